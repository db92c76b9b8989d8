"""The sentences of progress."""

import time
from collections.abc import Sequence
from contextlib import suppress
from statistics import median_high

from ...arena.progress import Bar, MatchProgress
from ...report import Session
from ...text import counted, duration, percent

LOG = "logs/training.log"  # of a run: everything that its trainings said
SLOW = 0.5  # of what the other workers have done
MAX_BARS = 8  # of more bars than these, those under way are shown


def games_done(progress: MatchProgress) -> str:
    """ "104/240 games" or "6,400/12,800 positions"."""
    return f"{progress.done:,}/{counted(progress.total, progress.unit)}"


def total_line(progress: MatchProgress) -> str:
    """All bars in one line: "104/240 games | 300 positions/s | 58s left"."""
    words = [games_done(progress)]
    if progress.now:
        words.append(progress.now)
    if progress.seconds_left is not None:
        words.append(f"{duration(progress.seconds_left)} left")
    return " | ".join(words)


def last_line(progress: MatchProgress) -> str:
    """ "120 games in 1m 10s"."""
    return f"{counted(progress.done, progress.unit)} in {duration(progress.seconds)}"


def ended_lines(before: Sequence[Bar], progress: MatchProgress, parts: str) -> list[str]:
    """A line for each bar that has ended since `before`; parts: such as "workers".

    "[   12.3s] GPU 2: completed 100 games | 1/8 workers done | 100/800 games"
    """
    lines = []
    ended = sum(bar.ended for bar in progress.bars)
    for old, bar in zip(before, progress.bars):
        if bar.ended and not old.ended:
            games = counted(int(bar.done), progress.unit)
            lines.append(
                f"{stamp(progress.seconds)} {bar.name}: completed {games} | "
                f"{ended}/{len(progress.bars)} {parts} done | {games_done(progress)}"
            )
    return lines


def stamp(seconds: float) -> str:
    """ "[   12.3s]"."""
    return f"[{seconds:7.1f}s]"


def shown_bars(bars: Sequence[Bar]) -> Sequence[Bar]:
    """All bars if they are few, else some of those under way."""
    if len(bars) <= MAX_BARS:
        return bars
    return [bar for bar in bars if not bar.ended][:MAX_BARS]


def worker_names(devices: Sequence[str]) -> list[str]:
    """Short names: "GPU 2", or "CPU worker 1" where several workers share a device."""
    names = [device.split(":")[0].strip() for device in devices]
    return [
        name if names.count(name) == 1 else f"{name} worker {worker}"
        for worker, name in enumerate(names)
    ]


def slow_worker(bars: Sequence[Bar]) -> str:
    """A sentence that names a worker with less than SLOW of the usual share of its work done, once
    the others have most of theirs; "" where there is none.
    """
    usual = median_high(bar.share for bar in bars)
    slowest = min(range(len(bars)), key=lambda worker: bars[worker].share)
    share = bars[slowest].share
    if usual < SLOW or share >= SLOW * usual:
        return ""
    return (
        f"{bars[slowest].name} is slow: {percent(share)} of its positions are played, the others "
        f"have {percent(usual)}. Look for another program on that device (nvidia-smi, top), then "
        "for its heat and its power limit, and into its log"
    )


def keep(session: Session | None, line: str) -> None:
    """Add a line with its time to the log of the run that trains, if there is one and the log can
    be written.
    """
    if session is not None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError), open(f"{session.run}/{LOG}", "a", encoding="utf-8") as log:
            log.write(f"{moment} {line}\n")


def rate(count: float, seconds: float, digits: int = 0) -> str:
    """`count` per second; "-" while no time has passed."""
    return f"{count / seconds:,.{digits}f}" if seconds > 0 else "-"
