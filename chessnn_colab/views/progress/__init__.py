"""Progress of training and of measurements: one model, and the faces that draw it: lines of text, a
terminal, a notebook's panel, or nothing.
"""

import os
import sys
from contextlib import closing
from typing import TextIO

from ...settings import one_of, require
from ..front_end import has_widget_front_end
from .model import Face, LiveProgress
from .text import TextFace

FACES = ("text", "terminal", "widgets", "silent")


def make_progress(stream: TextIO | None = None) -> LiveProgress:
    """The progress that train() takes, and every function with a parameter `watch`; the caller
    closes it.

    The environment variable CHESSNN_UI names it: "text", "terminal", "widgets" (the panel of a
    notebook) or "silent". Without that, it is a notebook's panel where one can be drawn, a
    terminal's live lines in a terminal, else text. stream: where lines go; None is sys.stdout.
    Raises ConfigError for any other name.
    """
    name = os.environ.get("CHESSNN_UI") or _face_for_this_place(stream)
    require("CHESSNN_UI", name, one_of(*FACES))
    if name == "widgets":
        from .notebook import NotebookFace  # a terminal needs neither IPython nor matplotlib

        return LiveProgress(NotebookFace())
    if name == "terminal":
        from .terminal import TerminalFace  # only a terminal needs rich

        return LiveProgress(TerminalFace(stream))
    return LiveProgress(TextFace(stream) if name == "text" else Face())


def watching(stream: TextIO | None = None) -> closing[LiveProgress]:
    """`make_progress` for a with statement, which closes it."""
    return closing(make_progress(stream))


def _face_for_this_place(stream: TextIO | None) -> str:
    if has_widget_front_end():
        return "widgets"
    is_terminal = (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return "terminal" if is_terminal else "text"
