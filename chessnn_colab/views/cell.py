"""Output of a cell as HTML that needs no kernel."""

import base64
import html
import re
from typing import Any


def image_html(data: bytes, kind: str, width: int, height: int, words: str) -> str:
    """A picture as an HTML image that needs no kernel, smaller where the page is narrow.

    kind: "png" or "svg+xml". width, height: CSS pixels. words: what it shows, for those who do not
    see it.
    """
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    style = (
        f"display:block;flex:0 0 auto;width:{width}px;max-width:100%;height:auto;"
        f"aspect-ratio:{width}/{height};margin:0"
    )
    return f'<img src="{source}" alt="{html.escape(words)}" width="{width}" style="{style}">'


class HtmlImage:
    """HTML as the output of a cell.

    words: what a terminal shows instead; by default the texts of the images.
    """

    def __init__(self, text: str, words: str = ""):
        self.html = text
        self._words = words or html.unescape(" ".join(re.findall(r'alt="([^"]*)"', text)))

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self._words


def unfold(line: str, text: object) -> HtmlImage:
    """`line` in a cell, which unfolds into `text`; a terminal shows `text`."""
    fixed = f'<pre style="font-size:12px;overflow-x:auto">{html.escape(str(text))}</pre>'
    page = f"<details><summary>{html.escape(line)}</summary>{fixed}</details>"
    return HtmlImage(page, str(text))


class Place:
    """A place in a cell's output; new HTML replaces the old."""

    def __init__(self):
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
