"""Progress in a terminal: lines that stay, and below them a few that live, drawn by rich (https://rich.readthedocs.io).

rich leaves out colours where NO_COLOR is set.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...report import Report, Session
from ...words import clock
from .live import LiveProgress
from .text import figure, result_shares

REDRAWS_PER_SECOND = 4
BAR_WIDTH = 32


class TerminalProgress(LiveProgress):
    """A line for every iteration, and a live header with bars that a thread redraws, so that the clock never stands."""

    def __init__(self, console: Console | None = None, now: Callable[[], float] = time.monotonic):
        super().__init__(now)
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None

    def message(self, text: str) -> None:
        super().message(text)
        self._print(text)

    def start_run(self, session: Session) -> None:
        super().start_run(session)
        self._live = Live(
            get_renderable=self._picture, console=self._console, refresh_per_second=REDRAWS_PER_SECOND, transient=True
        )
        self._live.start()

    def report(self, report: Report) -> None:
        super().report(report)
        self._print(iteration_line(report))

    def close(self) -> None:
        told = len(self.messages)
        super().close()
        if self._live is not None:
            self._live.stop()
            self._live = None
        for text in self.messages[told:]:
            self._print(text)
        latest = {point.measure: point for point in self.points}
        for point in latest.values():
            before = next((other for other in self.points if other.measure == point.measure), point)
            change = f"{100 * before.share:.0f} % -> {100 * point.share:.0f} %"
            if before.iteration < point.iteration:
                self._print(f"{point.measure}: {change} since iteration {before.iteration}")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _picture(self) -> Group:
        rows = Table.grid(padding=(0, 1))
        for bar in (*self.bars(), *self.worker_bars()):
            drawn = ProgressBar(1.0, bar.share, BAR_WIDTH, complete_style="bright_blue", finished_style="bright_blue")
            rows.add_row(Text(bar.name), drawn, Text(bar.words, style="dim"))
        return Group(Text(self.header(), style="bold"), rows)


def iteration_line(report: Report) -> str:
    """An iteration in one line of a terminal."""
    games = "cut short by the clock" if report.cut else f"{result_shares(report)} | {report.average_plies:.0f} plies"
    losses = f"policy {figure(report.policy_kl)} value {figure(report.value_loss)}"
    words = [f"{report.iteration:4} {clock(report.seconds):>7}", games, losses]
    words.append(f"{report.positions_per_second:,.0f} positions/s")
    words += [f"{100 * point.share:.0f} % of {point.trials} {point.measure}" for point in report.strength[-1:]]
    return " | ".join(words)
