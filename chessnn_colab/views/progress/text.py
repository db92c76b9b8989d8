"""Progress as plain lines."""

import sys
from typing import TextIO

from .model import Face


class TextFace(Face):
    """Lines of text, for a log, a pipe, or a notebook without widgets.

    stream: where the lines go; None is sys.stdout at the time of printing.
    """

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream

    def message(self, text: str) -> None:
        print(text, file=self._stream or sys.stdout, flush=True)

    detail = message
