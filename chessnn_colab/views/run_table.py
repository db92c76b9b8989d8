"""Runs as tables in a terminal, an iteration a line, drawn by rich. Colour follows the terminal and NO_COLOR."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from rich.columns import Columns
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..files import AnyPath
from ..report import Report, score_names
from ..runs.folder import RunFolder
from .progress.text import duration, figure

REFRESH_SECONDS = 2.0
WIDE = 110  # columns that a table takes at most, where nothing says how many there are


def print_tables(runs: Sequence[AnyPath], last: int | None = None, stream: TextIO | None = None) -> None:
    """Print the table of each run: side by side on a terminal, one below the other elsewhere. Raises RunError."""
    console = Console(file=stream or sys.stdout)
    tables = [run_table(run, last) for run in runs]
    if console.is_terminal:
        return console.print(Columns(tables, padding=(0, 3)))
    console.width = WIDE
    for table in tables:
        console.print(table)


def follow(
    runs: Sequence[AnyPath], last: int, console: Console | None = None, sleep: Callable[[float], Any] = time.sleep
) -> None:
    """Show the tables of runs and draw them again as they grow, until KeyboardInterrupt. Raises RunError."""
    console = console or Console()

    def tables() -> Columns:
        return Columns([run_table(run, last) for run in runs], padding=(0, 3))

    with Live(tables(), console=console, auto_refresh=False) as live:
        while True:
            live.update(tables(), refresh=True)
            sleep(REFRESH_SECONDS)


def run_table(run: AnyPath, last: int | None = None) -> Table:
    """The last so many iterations of a run (None: all of them), with totals below. Raises RunError."""
    folder = RunFolder.open(run)
    reports = [Report.from_dict(values) for values in folder.read_reports()]
    table = Table(title=Text(folder.path.name), title_justify="left", title_style="bold", box=None, padding=(0, 1))
    shown = [f"{name} score" for name in score_names(reports)] or (list(_results(reports[-1])) if reports else [])
    table.add_column("Iteration", justify="right", style="bold")
    for name in ("time", "games", *shown, "plies"):
        table.add_column(name, justify="right")
    for name, style in (("policy", "cyan"), ("value", "magenta"), ("entropy", "dim"), ("positions/s", "green")):
        table.add_column(name, justify="right", style=style)
    for report in reports[-last:] if last else reports:
        table.add_row(*_cells(report, shown))
    if reports:
        newest = reports[-1]
        table.caption = (
            f"{newest.total_games:,} games, {newest.total_positions:,} positions, {newest.total_updates:,} updates"
        )
    else:
        table.caption = "no iteration has finished yet"
    table.caption_justify = "left"
    return table


def _results(report: Report) -> dict[str, str]:
    """Column -> its text: the shares of wins and draws, or the scores of a game that pays points.

    Where the clock cut the games short, shares would be false: they are those of the short games alone.
    """
    texts = {f"{name} score": f"{score:,.0f}" for name, score in report.scores.items()}
    if not texts:
        shares = {**{f"{player} wins": rate for player, rate in report.win_rates.items()}, "draws": report.draw_rate}
        texts = {name: f"{100 * share:.0f} %" for name, share in shares.items()}
    return dict.fromkeys(texts, "-") if report.cut else texts


def _cells(report: Report, shown: Sequence[str]) -> list[str]:
    results = _results(report)
    return [
        f"({report.iteration})" if report.cut else f"{report.iteration}",
        duration(report.seconds),
        f"{report.games}",
        *(results.get(name, "-") for name in shown),
        "-" if report.cut else f"{report.average_plies:.0f}",
        figure(report.policy_loss),
        figure(report.value_loss),
        figure(report.entropy),
        f"{report.positions_per_second:,.0f}",
    ]
