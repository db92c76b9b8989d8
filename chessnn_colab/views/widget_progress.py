"""Progress as widgets: a bar per worker, a bar for all, and curves and a sample game that are drawn again in place.

Widgets are made once; then only their values change, always on the caller's thread. Works with ipywidgets 7.7 and 8.
"""

import html
import time
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
from IPython.display import HTML, DisplayHandle, Image, display

from .plots import figure_png, learning_curves
from .replay import sample_html
from .text_progress import (
    SelfplayTally,
    closing_lines,
    completed_line,
    counted,
    duration,
    generating_line,
    rate,
    report_lines,
)

DRAWS_PER_SECOND = 5.0
FIGURE_COST = 0.05  # drawing figures takes at most this share of the time
FIGURE_WIDTH = 1000  # CSS pixels
FIGURE_DPI = 144  # 1.5 times the pixels on the page, so that it is sharp on a dense display; about 200 kB


class BarRow:
    """One line: a name, a bar that counts games, and numbers beside it."""

    def __init__(self) -> None:
        self._name = ipywidgets.HTML(layout=ipywidgets.Layout(width="230px"))
        self._bar = ipywidgets.IntProgress(min=0, max=1, layout=ipywidgets.Layout(width="300px"))
        self._numbers = ipywidgets.HTML()
        self.widget = ipywidgets.HBox([self._name, self._bar, self._numbers])

    def begin(self, name: str, games: int) -> None:
        """Start again at zero of `games`."""
        self._name.value = html.escape(name)
        self._bar.value = 0
        self._bar.max = max(1, games)
        self.move(0, games, "")

    def move(self, games: int, planned: int, numbers: str) -> None:
        """Show `games` of `planned`, and figures beside them."""
        self._bar.value = min(games, self._bar.max)
        self._bar.bar_style = "success" if games >= planned else "info"
        self._numbers.value = html.escape(" | ".join(filter(None, (f"{games}/{counted(planned, 'game')}", numbers))))


class WidgetProgress:
    """Bars, curves and a sample game in the output of the running cell; messages and the last line remain as text."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._forget()

    def _forget(self) -> None:
        self._rows: list[BarRow] = []
        self._panel: ipywidgets.VBox | None = None
        self._total = BarRow()
        self._status = ipywidgets.HTML()
        self._figure: DisplayHandle | None = None
        self._sample: DisplayHandle | None = None
        self._tally: SelfplayTally | None = None
        self._last_draw = self._last_figure = self._figure_seconds = 0.0
        self._reports: list[Any] = []
        self._drawn_reports = 0

    def message(self, text: str) -> None:
        print(text, flush=True)

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        self._tally = SelfplayTally(games_per_worker, devices, self._clock())
        if len(self._rows) != len(devices):
            self._rows = [BarRow() for _ in devices]
        rows = [self._total.widget, *(row.widget for row in self._rows), self._status]
        if self._panel is None:
            self._panel = ipywidgets.VBox(rows)
            display(self._panel)
        elif len(self._panel.children) != len(rows):
            self._panel.children = rows
        self._total.begin("All workers", self._tally.planned_games)
        for row, name, games in zip(self._rows, _names(devices), games_per_worker, strict=True):
            row.begin(name, games)
        self._say(generating_line(self._tally))

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        if self._tally is None:
            return
        completes = self._tally.update(worker, games, plies)
        if completes or self._clock() - self._last_draw >= 1 / DRAWS_PER_SECOND:
            self._draw_bars(self._tally)

    def finish_selfplay(self, seconds: float) -> None:
        if self._tally is not None:
            self._draw_bars(self._tally, over=True)
            self._say(f"{completed_line(self._tally, seconds)}; learning")
        self._tally = None

    def report(self, report: Any) -> None:
        self._reports.append(report)
        self._say(*report_lines(report))
        if self._clock() - self._last_figure >= self._figure_seconds / FIGURE_COST:
            self._draw_figures()

    def close(self) -> None:
        if self._drawn_reports < len(self._reports):
            self._draw_figures()
        if self._tally is not None:
            self._draw_bars(self._tally, over=True)
        lines = closing_lines(self._tally, self._reports[-1] if self._reports else None)
        if self._tally is not None:
            self._say(lines[0])
        for line in lines:
            self.message(line)
        self._forget()

    def _draw_bars(self, tally: SelfplayTally, over: bool = False) -> None:
        now = self._clock()
        seconds = now - tally.started
        for row, games, plies, planned in zip(
            self._rows, tally.games, tally.plies, tally.games_per_worker, strict=True
        ):
            row.move(games, planned, f"{rate(plies, seconds)} plies/s")
        numbers = f"{rate(tally.total_plies, seconds)} plies/s | {rate(tally.total_games, seconds, 1)} games/s"
        left = tally.planned_games - tally.total_games
        if not over and left > 0 and tally.total_games > 0:
            numbers += f" | {duration(seconds * left / tally.total_games)} left"
        self._total.move(tally.total_games, tally.planned_games, numbers)
        self._last_draw = now

    def _draw_figures(self) -> None:
        started = self._clock()
        png = figure_png(learning_curves(self._reports), FIGURE_DPI)
        self._figure = _show(self._figure, Image(png, format="png", width=FIGURE_WIDTH))
        newest = self._reports[-1]
        if newest.sample_game:
            caption = f"<b>A game of iteration {newest.iteration}</b>"
            self._sample = _show(self._sample, HTML(caption + sample_html(newest.sample_game)))
        self._last_figure = self._clock()
        self._figure_seconds = self._last_figure - started
        self._drawn_reports = len(self._reports)

    def _say(self, *lines: str) -> None:
        self._status.value = "<br>".join(html.escape(line) for line in lines)


def _names(devices: Sequence[str]) -> list[str]:
    """Each worker's device in full ("GPU 0: Tesla T4"), numbered where several workers share it."""
    return [
        device if devices.count(device) == 1 else f"{device}, worker {worker}" for worker, device in enumerate(devices)
    ]


def _show(handle: DisplayHandle | None, content: Any) -> DisplayHandle:
    """Show `content` at the place of `handle` in the output, or at a new place; return the place."""
    if handle is not None:
        handle.update(content)
        return handle
    handle = DisplayHandle()
    handle.display(content)
    return handle
