"""Progress in a notebook: one panel that is redrawn in place, and that sums the run up at its end.

It is HTML, replaced through its display id, so that a saved copy and a page without a kernel show
where it stood. Where a page shows widgets, its bars are ipywidgets.
"""

import time
import uuid
from typing import TYPE_CHECKING

from ...report import Session
from ..cell import Place
from ..front_end import has_widget_front_end, scroll_to_cell
from ..panel import box, figures_html, live_html, messages_html, plain_lines, quiet, table_html
from ..reference import reference_for
from ..replay import one_position, panel_replay
from ..story import sample_part, summary_html
from .model import Face, LiveProgress

if TYPE_CHECKING:
    from .bars import BarWidgets

FIGURE_COST = 0.05  # drawing figures takes at most this share of the time


class NotebookFace(Face):
    """Header, bars and messages; of a run also figures, the latest results, and games that play."""

    keeps_bars = True

    def __init__(self):
        self._widgets: BarWidgets | None = None
        self._bars = Place()
        self._figures = Place()
        self._place = uuid.uuid4().hex  # where games play
        self._drawn: tuple[int, bool] | None = None  # what the figures show
        self._next_figures = float("-inf")  # seconds
        self._begun = False

    def draw(self, model: LiveProgress) -> None:
        if not self._begun:
            self._begun = True
            self._begin(model)
        shown = (model.header(), model.bars(), model.worker_bars())
        page = live_html(*shown)
        if self._widgets is not None:
            self._widgets.show(*shown)
            page = self._widgets.still(page)
        if model.session is None:
            self._bars.show(page)
            return
        self._bars.show(page + messages_html(model.messages))
        # Points that follow a report come with the next one; the first ones are drawn at once.
        drawn = (len(model.reports), bool(model.points))
        first = self._drawn is None or self._drawn[0] == 0
        if drawn != self._drawn and (first or time.monotonic() >= self._next_figures):
            self._drawn = drawn
            self._draw_figures(model, model.session)

    def close(self, model: LiveProgress) -> None:
        if model.session is not None and model.reports:
            self._bars.show(
                summary_html(model.session.config, model.reports, model.points, model.messages)
            )
            self._draw_figures(model, model.session)
        elif model.matches is not None:
            self.draw(model)
        else:
            self._bars.show(box(plain_lines(model.messages)))
            self._figures.show("")
        if self._widgets is not None:
            self._widgets.close()

    def _begin(self, model: LiveProgress) -> None:
        if model.matches is None:
            scroll_to_cell()
        if has_widget_front_end():
            from .bars import BarWidgets  # where nobody looks there may be no ipywidgets

            self._widgets = BarWidgets()

    def _draw_figures(self, model: LiveProgress, session: Session) -> None:
        started = time.monotonic()
        minutes = None
        game = ""
        if not model.ended:
            before = session.history[-1].seconds / 60 if session.history else 0.0
            minutes = None if session.minutes is None else before + session.minutes
            game = panel_replay(model.reports, self._place)
        game = (
            game or sample_part(model.reports) or quiet("A game of the first iteration comes here.")
        )
        reference = reference_for(session.config)
        position = one_position(model.reports, session.config["game"], self._place)
        figures = figures_html(model.reports, model.points, reference, minutes, game, position)
        self._figures.show(box(figures + table_html(model.reports)))
        now = time.monotonic()
        self._next_figures = now + (now - started) / FIGURE_COST
