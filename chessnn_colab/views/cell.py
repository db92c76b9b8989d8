"""What a cell shows as it is: HTML that needs no kernel."""

from __future__ import annotations

import html
import re


class Picture:
    """HTML that a cell shows as it is; where only text is shown, the texts of its images."""

    def __init__(self, text: str):
        self.html = text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return html.unescape(" ".join(re.findall(r'alt="([^"]*)"', self.html)))
