"""Progress in a notebook: one panel that is redrawn in place, and that tells what the run has come to when it ends.

What is shown is HTML, replaced through its display id, always on the caller's thread.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence

from IPython.display import HTML, DisplayHandle

from ...report import Session, Strength
from ..panel import box, figures_html, live_html, messages_html, plain_lines, quiet, table_html
from ..replay import panel_replay
from ..story import reference_for, sample_part, summary_html
from .live import MEASURING, LiveProgress

DRAWS_PER_SECOND = 4.0
FIGURE_COST = 0.05  # drawing figures takes at most this share of the time
NEWEST_MESSAGES = 2
SAMPLE_HEIGHT = 430  # CSS pixels, more where the page is narrow


class NotebookProgress(LiveProgress):
    """Header and bars; below them figures, the last results, the newest messages; below them games that play."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        super().__init__(now)
        self._bars, self._figures, self._sample = _Place(), _Place(), _Place()
        self._place = uuid.uuid4().hex  # where games play
        self._last_draw = self._last_figures = self._figure_seconds = 0.0
        self._pictures = ""
        self._worker_rows = 0
        self._drawn: tuple[int, int] | None = None

    def start_run(self, session: Session) -> None:
        self._worker_rows = -(-session.workers // 2) if session.workers > 1 else 0
        super().start_run(session)
        self._draw_figures()

    def measured(self, points: Sequence[Strength]) -> None:
        super().measured(points)
        if not self.reports:  # the untrained network's, and the first report is far away
            self._draw_figures()

    def changed(self, important: bool) -> None:
        if self._ended or not (important or self._now() - self._last_draw >= 1 / DRAWS_PER_SECOND):
            return
        self._bars.show(live_html(self.header(), self.bars(), self.worker_bars(), self._worker_rows))
        self._last_draw = self._now()
        if self._now() - self._last_figures >= self._figure_seconds / FIGURE_COST and self.phase != MEASURING:
            self._draw_figures()  # after a measurement its report comes at once
        if important and self._pictures:
            self._show_below()

    def close(self) -> None:
        if self._ended:
            return
        super().close()
        if self.reports and self.session is not None:
            self._bars.show(summary_html(self.session.config, self.reports, self.points, self.messages))
            self._draw_figures()
        else:
            self._bars.show(box(plain_lines(self.messages)))
            self._figures.show("")
            self._sample.show("")

    def _draw_figures(self) -> None:
        drawn = (len(self.reports), len(self.points))
        if self.session is None or (drawn == self._drawn and not self._ended):
            return
        started = self._now()
        minutes = self.session.minutes
        if minutes is not None and self.session.history:
            minutes += self.session.history[-1].seconds / 60
        minutes = None if self._ended else minutes
        self._pictures = figures_html(self.reports, self.points, reference_for(self.session.config), minutes)
        self._show_below()
        moving = "" if self._ended else panel_replay(self.reports, self._place)
        sample = moving or sample_part(self.reports) or quiet("A game of the first iteration comes here.")
        self._sample.show(box(sample, style=f"min-height:{SAMPLE_HEIGHT}px"))
        self._drawn, self._last_figures = drawn, self._now()
        self._figure_seconds = self._last_figures - started

    def _show_below(self) -> None:
        told = "" if self._ended else messages_html(self.messages, NEWEST_MESSAGES)
        self._figures.show(box(self._pictures + table_html(self.reports) + told))


class _Place:
    """A place in the cell's output; what is shown there replaces what was."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def show(self, content: str) -> None:
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(HTML(content))
        else:
            self._handle.update(HTML(content))
