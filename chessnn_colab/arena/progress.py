"""The progress of a measurement: matches, a ladder, puzzles or a bench call a Watch with it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """The progress of one thing, such as one match or one worker."""

    name: str  # "iteration 7 against greedy"
    done: float
    total: float
    note: str = ""  # the result so far, such as "+14 =6 -2"
    under_way: float = 0.0  # of what is not yet in `done`, such as games that are being played
    lost: bool = False  # its worker has ended before its share was done

    @property
    def share(self) -> float:
        """How much is done, 0 to 1."""
        return min(max((self.done + self.under_way) / self.total, 0.0), 1.0) if self.total else 0.0

    @property
    def ended(self) -> bool:
        """True when all is done."""
        return self.done >= self.total


@dataclass(frozen=True)
class MatchProgress:
    """The progress of several things that are measured together, a bar for each."""

    bars: tuple[Bar, ...]
    unit: str  # what `done` and `total` count, in the singular: "game"
    seconds: float  # since the beginning
    seconds_left: float | None = None  # an estimate; None before there is one
    now: str = ""  # what goes on now, such as the pace of self-play

    @property
    def done(self) -> int:
        """The sum over all bars."""
        return int(sum(bar.done for bar in self.bars))

    @property
    def total(self) -> int:
        """The sum over all bars."""
        return int(sum(bar.total for bar in self.bars))


# Called often, in the thread that measures; views.progress draws.
Watch = Callable[[MatchProgress], None]


def unwatched(progress: MatchProgress) -> None:
    """The watch of a measurement that is not shown."""
