"""Progress of a training run behind one interface: widgets, lines of text, or silence.

Training calls a `Progress` from the main thread of the running cell, because Colab may not draw what another thread
changes.
"""

import os
from collections.abc import Sequence
from typing import Any, Protocol

from ..errors import ConfigError
from .front_end import has_widget_front_end
from .text_progress import TextProgress

FACES = ("text", "widgets", "silent")


class Progress(Protocol):
    """What a training run tells. Per iteration: start_selfplay, worker_update many times, finish_selfplay, report."""

    def message(self, text: str) -> None:
        """A line that is worth reading at any time."""

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        """Self-play begins. Each worker has its share of games, and its device in words ("GPU 0: Tesla T4")."""

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        """Since start_selfplay, `worker` has finished `games` games and played `plies` plies."""

    def finish_selfplay(self, seconds: float) -> None:
        """Self-play is over, complete or not, after `seconds`; learning follows."""

    def report(self, report: Any) -> None:
        """The iteration is over; `report` is a report.Report."""

    def close(self) -> None:
        """The run is over or interrupted."""


class SilentProgress:
    """Says nothing."""

    def message(self, text: str) -> None:
        pass

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        pass

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        pass

    def finish_selfplay(self, seconds: float) -> None:
        pass

    def report(self, report: Any) -> None:
        pass

    def close(self) -> None:
        pass


def make_progress(kind: str | None = None) -> Progress:
    """The progress called `kind`: "text", "widgets" or "silent".

    Without a kind, the environment variable CHESSNN_UI names it. Without that, it is widgets where they can be drawn,
    else text. Raises ConfigError for any other name.
    """
    source, face = ("progress", kind) if kind else ("CHESSNN_UI", os.environ.get("CHESSNN_UI"))
    if not face:
        face = "widgets" if has_widget_front_end() else "text"
    if face not in FACES:
        raise ConfigError(f"unknown {source} {face!r}: expected one of {', '.join(FACES)}")
    if face == "silent":
        return SilentProgress()
    if face == "text":
        return TextProgress()
    from .widget_progress import WidgetProgress  # a terminal needs no ipywidgets

    return WidgetProgress()
