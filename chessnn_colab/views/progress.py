"""Progress of a training run behind one interface: widgets, lines of text, or silence.

Training calls a `Progress` from the main thread of the running cell, because Colab may not draw what another thread
changes.
"""

import os

from ..errors import ConfigError
from ..report import Progress, Silence
from .front_end import has_widget_front_end
from .text_progress import TextProgress

FACES = ("text", "widgets", "silent")


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
        return Silence()
    if face == "text":
        return TextProgress()
    from .widget_progress import WidgetProgress  # a terminal needs no ipywidgets

    return WidgetProgress()
