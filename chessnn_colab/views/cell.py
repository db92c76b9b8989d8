"""Output of a cell as HTML that needs no kernel."""

from __future__ import annotations

import html
import re
from typing import Any


class HtmlImage:
    """HTML as the output of a cell; where only text is shown, the texts of its images."""

    def __init__(self, text: str):
        self.html = text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return html.unescape(" ".join(re.findall(r'alt="([^"]*)"', self.html)))


class Place:
    """A place in a cell's output; new HTML replaces the old."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._content = ""

    def show(self, content: str) -> None:
        """Show this HTML; nothing happens where it is shown already."""
        from IPython.display import HTML, DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(HTML(content))
        elif content != self._content:
            self._handle.update(HTML(content))
        self._content = content
