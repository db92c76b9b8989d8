"""What is said to a person, and numbers as a person says them."""

from collections.abc import Callable

Say = Callable[[str], None]  # is called with a sentence for the user


def silent(text: str) -> None:
    """Say nothing."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 game, 2,000 games."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """24s, 3m 20s, 2h 05m. Hours are given with the full minutes only."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def percent(share: float) -> str:
    """A share as a percentage: 0.4 %, 12 %; a small positive share is "under 0.1 %"."""
    if 0 < share < 0.0005:
        return "under 0.1 %"
    digits = 0 if share == 0 or share >= 0.0995 else 1
    return f"{100 * share:.{digits}f} %"
