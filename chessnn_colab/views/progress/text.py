"""Progress as plain lines."""

import sys
from contextlib import suppress
from typing import TextIO

from .model import Face


class TextFace(Face):
    """Lines of text, for a log, a pipe, or a notebook without widgets.

    stream: where the lines go; None is sys.stdout at the time of printing. What it does not take is
    dropped: a full disk or a closed terminal ends no training and no match.
    """

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream

    def message(self, text: str) -> None:
        with suppress(OSError):
            print(text, file=self._stream or sys.stdout, flush=True)

    detail = message
