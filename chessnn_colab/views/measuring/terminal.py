"""Progress of what is measured as bars on a terminal, drawn by rich. They go when it is over; results stand below."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...arena.standing import Standing
from .text import rate_limited, shown_parts, total_line

BAR_WIDTH = 28


class TerminalFace:
    """A bar for each part and a line for all, in place. Colour follows the terminal and NO_COLOR."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self._live = Live(console=Console(file=stream), auto_refresh=False, transient=True)
        self._due = rate_limited(clock)
        self._live.start()

    def __call__(self, standing: Standing) -> None:
        if self._due() or standing.done >= standing.total:
            self._live.update(bars(standing), refresh=True)

    def close(self) -> None:
        self._live.stop()


def bars(standing: Standing) -> Table:
    """One row a part: name, bar, numbers; below them the line for all."""
    table = Table.grid(padding=(0, 1))
    for _, part in shown_parts(standing):
        bar = ProgressBar(max(part.total, 1), part.done, BAR_WIDTH, complete_style="cyan", finished_style="green")
        table.add_row(Text(part.name), bar, f"{part.done}/{part.total}", Text(part.note))
    whole = Table.grid()
    whole.add_row(table)
    whole.add_row(total_line(standing))
    return whole
