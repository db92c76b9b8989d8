"""Progress of what is measured as lines of text, and the words that every face uses."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable
from typing import TextIO

from ...arena.standing import Part, Standing
from ..progress.text import HEARTBEAT_SECONDS, counted, duration

DRAWS_PER_SECOND = 5.0
MOST_PARTS = 8  # of more than these, a face shows those that are under way


class TextFace:
    """Lines: how long it will take, what begins, what ends, and every quarter of a minute how far all parts are."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock = stream, clock
        self._last_line: float | None = None
        self._ended: set[int] = set()
        self._now = ""

    def __call__(self, standing: Standing) -> None:
        now = self._clock()
        if self._last_line is None:
            self._say(beginning(standing))
            self._last_line = now
        if len(standing.parts) > 1:
            for number, part in enumerate(standing.parts):
                if part.done >= part.total and number not in self._ended:
                    self._ended.add(number)
                    self._say(part_line(part, number, standing))
        if standing.now not in ("", self._now):
            self._now = standing.now
            self._say(f"{self._now} ...")
        if now - self._last_line >= HEARTBEAT_SECONDS:
            self._last_line = now
            for number, part in shown_parts(standing):
                if number not in self._ended and not standing.now:
                    self._say(part_line(part, number, standing))
            if len(standing.parts) > 1:
                self._say(total_line(standing))

    def _say(self, text: str) -> None:
        print(text, file=self._stream or sys.stdout, flush=True)

    def close(self) -> None:
        """Every line stands already."""


def beginning(standing: Standing) -> str:
    """The first line: how much there is to do, and about how long it takes."""
    about = "" if standing.seconds_left is None else f", about {duration(standing.seconds_left)}"
    return f"{counted(standing.total - standing.done, standing.unit)} to go{about}"


def part_line(part: Part, number: int, standing: Standing) -> str:
    """ "against greedy 3/6 ... 22/40 +14 =6 -2 | 58s left"."""
    place = f" {number + 1}/{len(standing.parts)}" if len(standing.parts) > 1 else ""
    figures = " ".join(filter(None, (f"{part.done}/{part.total}", part.note)))
    return f"{part.name}{place} ... {figures}{_left(standing) if part.done < part.total else ''}"


def total_line(standing: Standing) -> str:
    """The line for all parts: "104/240 games | 58s left"."""
    now = f" | {standing.now}" if standing.now else ""
    return f"{standing.done}/{counted(standing.total, standing.unit)}{now}{_left(standing)}"


def shown_parts(standing: Standing) -> list[tuple[int, Part]]:
    """Parts with their numbers, from 0: all of them if they are few, else some of those that are under way."""
    parts = list(enumerate(standing.parts))
    if len(parts) <= MOST_PARTS:
        return parts
    under_way = [(number, part) for number, part in parts if part.done < part.total]
    return sorted(under_way, key=lambda item: -item[1].done / max(item[1].total, 1))[:MOST_PARTS]


def _left(standing: Standing) -> str:
    return "" if standing.seconds_left is None else f" | {duration(standing.seconds_left)} left"


def parts_html(standing: Standing, over: bool) -> str:
    """The parts as a table that needs no widget front end."""
    rows = [
        f"<tr><td>{html.escape(part.name)}</td><td>{part.done}/{part.total}</td><td>{html.escape(part.note)}</td></tr>"
        for part in standing.parts
    ]
    last = total_line(standing)
    if over:
        last = f"{counted(standing.done, standing.unit)} in {duration(standing.seconds)}"
    return f"<table>{''.join(rows)}</table><p>{html.escape(last)}</p>"


def rate_limited(clock: Callable[[], float]) -> Callable[[], bool]:
    """A function that says whether to draw again now: DRAWS_PER_SECOND at most."""
    last = [float("-inf")]

    def due() -> bool:
        if clock() - last[0] < 1 / DRAWS_PER_SECOND:
            return False
        last[0] = clock()
        return True

    return due
