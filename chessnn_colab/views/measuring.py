"""Progress of what is measured (matches, a ladder, puzzles, a bench) in three faces: a terminal, a notebook, lines.

Each face is an arena.standing.Watch. It draws in the thread that calls it, because Colab may not draw what another
thread changes.
"""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

from ..arena.evaluate import measure_run
from ..arena.players import MATCH_SEARCHES, play_search
from ..arena.result import MatchResult
from ..arena.standing import Part, Standing
from ..errors import ConfigError
from ..search import SearchConfig
from .front_end import has_widget_front_end
from .text_progress import HEARTBEAT_SECONDS, counted, duration

DRAWS_PER_SECOND = 5.0
MOST_PARTS = 8  # of more than these, a face shows those that are under way
FACES = ("text", "widgets", "silent")
LONGEST_MEASURE, SHARE_OF_TRAINING = 180.0, 0.25  # seconds; of the time that training took
QUICK_SECONDS = 60.0  # below this a network looks ahead as in training, so that enough games fit


class Face(Protocol):
    """Shows a Standing whenever it is called with one."""

    def __call__(self, standing: Standing) -> None: ...

    def close(self) -> None:
        """Nothing more will come."""


def measure(
    run: str | Path,
    opponents: Sequence[str] = ("random", "greedy", "minimax"),
    snapshots: Sequence[int | None] = (0, None),
    games: int = 40,
    search: SearchConfig | None = None,
    seconds: float | None = None,
    seed: int = 0,
    device: str = "auto",
) -> list[MatchResult]:
    """Measure a run in a notebook: several snapshots against several opponents, with progress, all in one batch.

    snapshots: iterations; 0 is the untrained network, None the last one saved. games: of each match. seconds: start no
    game that would end later (see arena.match.play_matches); None is a quarter of the time that the run has trained,
    three minutes at most. search: None is two rungs, which serve a large batch best: 48 evaluations a move, or the 13
    of training where there is less than a minute. Returns the matches, opponent by opponent; prints each, and what a
    longer match would add. An interrupt ends it, and the games that had ended count.
    Raises ConfigError, RunError or CheckpointError.
    """
    if seconds is None:
        seconds = measuring_seconds(run)
    if search is None:
        search = MATCH_SEARCHES["two-rung"] if seconds >= QUICK_SECONDS else play_search("two-rung", 8, 4)
    with watching() as watch:
        results = measure_run(str(run), opponents, snapshots, games, search, seconds, seed, device, watch=watch)
    for result in results:
        print(result)
    return results


def measuring_seconds(run: str | Path) -> float:
    """How long to measure a run: a quarter of the time that it has trained, three minutes at most."""
    from ..runs.folder import RunFolder

    reports = RunFolder.open(run).read_reports()
    return min(LONGEST_MEASURE, SHARE_OF_TRAINING * (reports[-1]["seconds"] if reports else 0.0))


@contextmanager
def watching(kind: str | None = None, stream: TextIO | None = None) -> Iterator[Face]:
    """The face called `kind`, closed when the block ends: "text", "widgets" or "silent".

    Without a kind the environment variable CHESSNN_UI names it; without that it is widgets where they can be drawn, a
    live line on a terminal, else text. stream: where a terminal's line and the text go; None is sys.stdout. Raises
    ConfigError for any other name.
    """
    face = make_face(kind, stream)
    try:
        yield face
    finally:
        face.close()


def make_face(kind: str | None = None, stream: TextIO | None = None) -> Face:
    """See `watching`; the caller closes it."""
    source, name = ("progress", kind) if kind else ("CHESSNN_UI", os.environ.get("CHESSNN_UI"))
    if name and name not in FACES:
        raise ConfigError(f"unknown {source} {name!r}: expected one of {', '.join(FACES)}")
    if name == "silent":
        return Silent()
    if name == "widgets" or (not name and has_widget_front_end()):
        from .measuring_widget import WidgetFace  # a terminal needs no ipywidgets

        return WidgetFace()
    stream = stream or sys.stdout
    if not name and stream.isatty():
        from .measuring_terminal import TerminalFace  # nor do lines need rich

        return TerminalFace(stream)
    return TextFace(stream)


class Silent:
    """Shows nothing."""

    def __call__(self, standing: Standing) -> None: ...

    def close(self) -> None: ...


class TextFace:
    """Lines: how long it will take, each part as it ends, and every quarter of a minute how far all of them are."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock = stream, clock
        self._last_line: float | None = None
        self._ended: set[int] = set()

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
        if now - self._last_line >= HEARTBEAT_SECONDS:
            self._last_line = now
            for number, part in shown_parts(standing):
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
    return (
        f"{counted(standing.total, standing.unit)} to play{about}"
        if standing.unit == "game"
        else (f"{counted(standing.total, standing.unit)} to do{about}")
    )


def part_line(part: Part, number: int, standing: Standing) -> str:
    """ "against greedy 3/6 ... 22/40 +14 =6 -2 | 58s left"."""
    place = f" {number + 1}/{len(standing.parts)}" if len(standing.parts) > 1 else ""
    figures = " ".join(filter(None, (f"{part.done}/{part.total}", part.note)))
    return f"{part.name}{place} ... {figures}{_left(standing) if part.done < part.total else ''}"


def total_line(standing: Standing) -> str:
    """The line for all parts: "104/240 games | 58s left"."""
    return f"{standing.done}/{counted(standing.total, standing.unit)}{_left(standing)}"


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
    last = (
        f"{total_line(standing)}" if not over else f"{standing.done} {standing.unit}s in {duration(standing.seconds)}"
    )
    return f"<table>{''.join(rows)}</table><p>{html.escape(last)}</p>"


def rate_limited(clock: Callable[[], float]) -> Callable[[], Any]:
    """A function that says whether to draw again now: DRAWS_PER_SECOND at most."""
    last = [float("-inf")]

    def due() -> bool:
        if clock() - last[0] < 1 / DRAWS_PER_SECOND:
            return False
        last[0] = clock()
        return True

    return due
