"""How far a long measurement is: what matches, a ladder, puzzles and a bench tell whoever watches them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One of several things that are measured together, such as one match."""

    name: str  # "iteration 7 against greedy"
    done: int
    total: int
    note: str = ""  # how it stands, such as "+14 =6 -2"


@dataclass(frozen=True)
class Standing:
    """How far all parts are."""

    parts: tuple[Part, ...]
    unit: str  # what `done` and `total` count, in the singular: "game"
    seconds: float  # since the beginning
    seconds_left: float | None = None  # an estimate; None before there is one
    now: str = ""  # what is being measured, where parts come one after the other: "bench rules, 1 of 10"

    @property
    def done(self) -> int:
        """What all parts have done."""
        return sum(part.done for part in self.parts)

    @property
    def total(self) -> int:
        """What all parts have to do."""
        return sum(part.total for part in self.parts)


Watch = Callable[[Standing], None]  # called in the thread that measures, often; views.measuring has the faces


def unwatched(standing: Standing) -> None:
    """The watch of a measurement that nobody looks at."""


def left(done: float, total: float, seconds: float) -> float | None:
    """Seconds still to go at the pace so far; None before anything is done."""
    return seconds * (total - done) / done if done > 0 else None
