"""Progress of what is measured as bars in a notebook. When it is over they become a table that needs no kernel.

Works with ipywidgets 7.7 and 8.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from typing import Any

import ipywidgets
from IPython.display import HTML, DisplayHandle, display

from ...arena.standing import Part, Standing
from .text import MOST_PARTS, parts_html, rate_limited, shown_parts, total_line

VIEW = "application/vnd.jupyter.widget-view+json"  # what a front end draws a widget from


class PartRow:
    """One line: a name, a bar, and numbers beside it."""

    def __init__(self) -> None:
        self._name = ipywidgets.HTML(layout=ipywidgets.Layout(width="260px"))
        self._bar = ipywidgets.IntProgress(min=0, max=1, layout=ipywidgets.Layout(width="240px"))
        self._numbers = ipywidgets.HTML()
        row = ipywidgets.Layout(flex_flow="row wrap", width="100%")
        self.widget = ipywidgets.HBox([self._name, self._bar, self._numbers], layout=row)

    def show(self, part: Part) -> None:
        """Draw this part."""
        self._name.value = html.escape(part.name)
        self._bar.max = max(part.total, 1)
        self._bar.value = part.done
        self._bar.bar_style = "success" if part.done >= part.total else "info"
        self._numbers.value = html.escape(f"{part.done}/{part.total} {part.note}")


class WidgetFace:
    """A bar for each part and a line for all, in the output of the running cell."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._due = rate_limited(clock)
        self._handle: DisplayHandle | None = None
        self._rows: list[PartRow] = []
        self._all = ipywidgets.HTML()
        self._panel: Any = None
        self._last: Standing | None = None

    def __call__(self, standing: Standing) -> None:
        self._last = standing
        if self._handle is None:
            self._rows = [PartRow() for _ in range(min(len(standing.parts), MOST_PARTS))]
            self._panel = ipywidgets.VBox([*(row.widget for row in self._rows), self._all])
            # Not display(panel): with ipywidgets 7 that publishes without the id by which the table takes its place.
            view = {"version_major": 2, "version_minor": 0, "model_id": self._panel.model_id}
            self._handle = display({"text/plain": "Measuring ...", VIEW: view}, raw=True, display_id=True)
        if not self._due():
            return
        shown = shown_parts(standing)
        for row, (_, part) in zip(self._rows, shown):
            row.show(part)
        for row in self._rows[len(shown) :]:
            row.widget.layout.display = "none"
        self._all.value = html.escape(total_line(standing))

    def close(self) -> None:
        """Put a table in the bars' place."""
        if self._handle is not None and self._last is not None:
            self._handle.update(HTML(parts_html(self._last, over=True)))
            self._panel.close()
        self._handle = None
