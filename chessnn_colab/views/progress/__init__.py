"""Progress of a training run behind one interface: a notebook's panel, live lines, plain lines, or silence.

Training calls a `Progress` from the main thread of the running cell, because Colab may not draw what another thread
changes.
"""

import os
import sys
from typing import TextIO

from ...errors import ConfigError
from ...report import Progress, Silence
from ..front_end import has_widget_front_end
from .text import TextProgress

FACES = ("text", "terminal", "widgets", "silent")


def make_progress(kind: str | None = None) -> Progress:
    """The progress called `kind`: "text", "terminal", "widgets" (the panel of a notebook) or "silent".

    Without a kind, the environment variable CHESSNN_UI names it. Without that, it is a notebook's panel where one can
    be drawn, a terminal's live lines in a terminal, else text. Raises ConfigError for any other name.
    """
    face = face_named(kind)
    if face == "silent":
        return Silence()
    if face == "text":
        return TextProgress()
    if face == "terminal":
        from .terminal import TerminalProgress  # only a terminal needs rich

        return TerminalProgress()
    from .notebook import NotebookProgress  # a terminal needs neither IPython nor matplotlib

    return NotebookProgress()


def face_named(kind: str | None, stream: TextIO | None = None) -> str:
    """The one of FACES that `kind`, the environment or the place itself asks for; see `make_progress`.

    stream: where a terminal's lines would go; None is sys.stdout.
    """
    source, face = ("progress", kind) if kind else ("CHESSNN_UI", os.environ.get("CHESSNN_UI"))
    if not face and has_widget_front_end():
        return "widgets"
    face = face or ("terminal" if (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb" else "text")
    if face not in FACES:
        raise ConfigError(f"unknown {source} {face!r}: expected one of {', '.join(FACES)}")
    return face
