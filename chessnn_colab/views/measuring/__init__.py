"""Progress of what is measured (matches, a ladder, puzzles, a bench) in three faces: a terminal, a notebook, lines.

Each face is an arena.standing.Watch. It draws in the thread that calls it, because Colab may not draw what another
thread changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO

from ...arena.evaluate import measure_run, run_game
from ...arena.players import MATCH_SEARCHES, play_search
from ...arena.registry import match_kit
from ...arena.result import MatchResult
from ...arena.solo import SoloResult
from ...arena.standing import Standing
from ...runs.folder import RunFolder
from ...search import SearchConfig
from ..progress import face_named
from .text import TextFace

LONGEST_MEASURE, SHARE_OF_TRAINING = 180.0, 0.25  # seconds; of the time that training took
QUICK_SECONDS = 60.0  # below this a network looks ahead as in training, so that enough games fit


class Face(Protocol):
    """Shows a Standing whenever it is called with one."""

    def __call__(self, standing: Standing) -> None: ...

    def close(self) -> None:
        """Nothing more will come."""


def measure(
    run: str | Path,
    opponents: Sequence[str] | None = None,
    snapshots: Sequence[int | None] = (0, None),
    games: int = 40,
    search: SearchConfig | None = None,
    seconds: float | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Sequence[MatchResult | SoloResult]:
    """Measure a run in a notebook: several snapshots against several opponents, with progress, all side by side.

    opponents: as arena.evaluate.find_player takes them; None is every fixed player of the game.
    snapshots: iterations; 0 is the untrained network, None the last one saved. games: of each match. seconds: start no
    game that would end later (see arena.match.play_matches); None is a quarter of the time that the run has trained,
    three minutes at most. search: None is two rungs, which serve a large batch best: 48 evaluations a move, or the 13
    of training where there is less than a minute. Returns the matches, opponent by opponent; prints each, and what a
    longer match would add. An interrupt ends it, and the games that had ended count. In a game for one player every
    player plays the same number of games, as many as fit into that time (see arena.solo).
    Raises ConfigError, RunError or CheckpointError.
    """
    if seconds is None:
        seconds = measuring_seconds(run)
    if search is None:
        search = MATCH_SEARCHES["two-rung"] if seconds >= QUICK_SECONDS else play_search("two-rung", 8, 4)
    if opponents is None:
        opponents = list(match_kit(run_game(str(run))).players)
    with watching() as watch:
        results = measure_run(str(run), opponents, snapshots, games, search, seconds, seed, device, watch=watch)
    print(*told_once(results), sep="\n")
    if told := longer_match(results):
        print(told)
    return results


def told_once(results: Sequence[MatchResult | SoloResult]) -> list[str]:
    """Every match in words; of games for one player every player once, though it is compared with several."""
    told = []
    for result in results:
        told += [str(result)] if isinstance(result, MatchResult) else [str(result.own), str(result.others)]
    return list(dict.fromkeys(told))


def longer_match(results: Sequence[MatchResult | SoloResult]) -> str:
    """What four times the games would add to matches whose games were all played; "" without such a match."""
    matches = [result for result in results if isinstance(result, MatchResult) and result.games]
    whole = [
        match
        for match in matches
        if match.games >= (match.asked or 0) and not match.interrupted and len(match.distinct()) == match.games
    ]
    if not whole:
        return ""
    widest = max(whole, key=lambda match: match.interval[1] - match.interval[0])
    return f"Four times the games would bring the widest interval from {widest.width_with(4 * widest.games)}."


def measuring_seconds(run: str | Path) -> float:
    """How long to measure a run: a quarter of the time that it has trained, three minutes at most."""
    reports = RunFolder.open(run).read_reports()
    return min(LONGEST_MEASURE, SHARE_OF_TRAINING * (reports[-1]["seconds"] if reports else 0.0))


@contextmanager
def watching(kind: str | None = None, stream: TextIO | None = None) -> Iterator[Face]:
    """The face called `kind`, closed when the block ends: "text", "terminal", "widgets" or "silent".

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
    name = face_named(kind, stream)
    if name == "silent":
        return Silent()
    if name == "widgets":
        from .widget import WidgetFace  # a terminal needs no ipywidgets

        return WidgetFace()
    if name == "terminal":
        from .terminal import TerminalFace  # nor do lines need rich

        return TerminalFace(stream or sys.stdout)
    return TextFace(stream)


class Silent:
    """Shows nothing."""

    def __call__(self, standing: Standing) -> None: ...

    def close(self) -> None: ...
