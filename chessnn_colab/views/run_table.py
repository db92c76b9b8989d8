"""Runs as tables in a terminal, a line per iteration, drawn by rich."""

import time
from collections.abc import Sequence

from rich import get_console
from rich.columns import Columns
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..report import strength_points
from ..runs.files import AnyPath
from ..runs.folder import RunFolder
from .columns import figure, strength_sentences, table_rows

REFRESH_SECONDS = 2.0
LINES = 2  # that a row takes in 80 columns
LINES_AROUND = 12  # the rows there: title, heading, totals and strength
WIDE = 120  # columns that a table takes at most where there is no terminal


def print_tables(runs: Sequence[AnyPath], last: int | None) -> None:
    """Print the table of each run: side by side on a terminal, one below the other elsewhere.
    Raises RunError.
    """
    console = Console()
    if not console.is_terminal:
        console.width = WIDE
    console.print(run_tables(runs, last))


def follow(runs: Sequence[AnyPath], last: int | None) -> None:
    """Show the tables of runs and draw them again as they grow, until KeyboardInterrupt. Raises
    RunError.

    last: the newest iterations to show; None: as many as the terminal surely has room for, where
    each run has a table below the others.
    """
    fits = (get_console().height // len(runs) - LINES_AROUND) // LINES
    shown = last or max(1, fits)
    with Live(run_tables(runs, shown), auto_refresh=False) as live:
        while True:
            live.update(run_tables(runs, shown), refresh=True)
            time.sleep(REFRESH_SECONDS)


def run_tables(runs: Sequence[AnyPath], last: int | None) -> Columns:
    """The tables of several runs, side by side. Raises RunError."""
    return Columns([run_table(run, last) for run in runs], padding=(0, 3))


def run_table(run: AnyPath, last: int | None) -> Table:
    """The last `last` iterations of a run (None: all), with totals below. Raises RunError."""
    folder = RunFolder.open(run)
    reports = folder.reports()
    caption = "no iteration has finished yet"
    if reports:
        newest = reports[-1]
        played = f"{newest.total_games:,} games, {newest.total_positions:,} positions"
        pace = f"loss {figure(newest.loss)}, {newest.positions_per_second:,.0f} positions/s"
        lines = [f"{played}, {newest.total_updates:,} updates", f"newest iteration: {pace}"]
        caption = "\n".join([*lines, *strength_sentences(strength_points(reports))])
    table = Table(title=Text(folder.path.name), caption=caption, box=None, padding=(0, 1, 0, 0))
    labels, rows = table_rows(reports, last)
    for label in labels:
        table.add_column(label, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
