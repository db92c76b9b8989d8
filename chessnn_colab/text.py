"""Numbers as a person says them."""


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


def clock(seconds: float) -> str:
    """As a clock shows it: 0:07, 1:12, 2:05:00."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def percent(share: float) -> str:
    """A share as a percentage: 0.4 %, 12 %; a small positive share is "under 0.1 %"."""
    if 0 < share < 0.0005:
        return "under 0.1 %"
    digits = 0 if share == 0 or share >= 0.0995 else 1
    return f"{100 * share:.{digits}f} %"
