"""The moving part of a panel as ipywidgets, of version 7.7 and later. Its words are those of
panel.live_html, which shows where there are no widgets.
"""

import html
import secrets
from collections.abc import Sequence

import ipywidgets
from IPython import display

from ...arena.progress import Bar
from ..board import no_widgets_notice, widget_bundle
from ..cell import Place
from ..panel import ONE_LINE, bar_note, div, header_html, name_width
from ..style import PAGE_WIDTH

NO_WIDGETS = (
    "This page shows no ipywidgets, so the bars are drawn without them. To see them next time, "
    "reload the page (F5)."
)
OPENED_AGAIN = (
    "This page was opened again: it shows how far the kernel was when the page was saved. What ran "
    "may still run. From a shell, python -m chessnn_colab watch RUN shows a training live."
)
LINE = {"height": "24px", "min_width": "360px", "align_items": "center", "overflow": "hidden"}


class BarWidgets:
    """Header and bars. While a page shows them, HTML from `still` is hidden there."""

    def __init__(self):
        self._name = f"cn-{secrets.token_hex(5)}"  # a CSS class
        self._header = ipywidgets.HTML()
        self._bars = ipywidgets.VBox()
        self._workers = ipywidgets.HBox(layout={"flex_flow": "row wrap"})
        self._panel = ipywidgets.VBox((self._header, self._bars, self._workers))
        self._panel.layout.max_width = f"{PAGE_WIDTH}px"
        self._panel.add_class(self._name)
        hidden = f"<style>body:has(.{self._name}) .{self._name}-still{{display:none}}</style>"
        self._notice = Place()
        notice = no_widgets_notice(self._name, NO_WIDGETS, OPENED_AGAIN, "font-size:12px")
        self._notice.show(hidden + notice)
        self._shown = display.DisplayHandle()
        self._shown.display(widget_bundle(self._panel), raw=True)

    def still(self, page: str) -> str:
        """`page`, for readers who do not see the widgets."""
        return f'<div class="{self._name}-still">{page}</div>'

    def show(self, header: str, bars: Sequence[Bar], workers: Sequence[Bar]) -> None:
        """Show the header, the bars, and smaller those of workers; only what changed is sent."""
        self._header.value = header_html(header)
        _fill(self._bars, bars, "100%", name_width(bars), 250)
        _fill(self._workers, workers, "49%", 90, 190)

    def close(self) -> None:
        """Take the widgets away for good, from a saved copy too."""
        self._shown.update(display.HTML(""))
        self._notice.show("")
        self._panel.close()


def _fill(
    box: ipywidgets.Box, bars: Sequence[Bar], width: str, name_width: int, note_width: int
) -> None:
    """A line of that width for each bar, with its name, the bar and its note; widths of names and
    notes in CSS pixels.
    """
    if len(box.children) != len(bars):
        box.children = tuple(_line(width, name_width, note_width) for _ in bars)
    for line, bar in zip(box.children, bars):
        progress, note = line.children
        progress.description = bar.name
        progress.value = bar.share
        progress.bar_style = "danger" if bar.lost else "success" if bar.share == 1 else ""
        note.value = div(f"font-size:13px;{ONE_LINE}", html.escape(bar_note(bar)))


def _line(width: str, name_width: int, note_width: int) -> ipywidgets.HBox:
    progress = ipywidgets.FloatProgress(max=1.0, layout={"flex": "1 1 60px", "width": "auto"})
    progress.style.description_width = f"{name_width}px"
    note = ipywidgets.HTML(layout={"flex": f"0 1 {note_width}px", "width": "auto"})
    return ipywidgets.HBox((progress, note), layout={"width": width, **LINE})
