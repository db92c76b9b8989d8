"""Progress in a terminal: lines that stay, and below them bars that rich redraws in place
(https://rich.readthedocs.io). rich leaves out colours where NO_COLOR is set.
"""

from contextlib import suppress
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .model import Face, LiveProgress

BAR_WIDTH = 32
BAR_STYLE = "bright_blue"
FULL_STYLE = "green"


class TerminalFace(Face):
    """Messages as lines, and below them the header and the bars, which go when all has ended.

    stream: the terminal; None is sys.stdout. One that has gone ends no training.
    """

    def __init__(self, stream: TextIO | None = None):
        self._console = Console(file=stream, highlight=False, soft_wrap=True)
        self._live: Live | None = None

    def message(self, text: str) -> None:
        with suppress(OSError):
            self._console.print(text, markup=False)

    def draw(self, model: LiveProgress) -> None:
        if self._live is None:
            if model.session is None and model.matches is None:
                return
            # A thread keeps the clock of training moving; a bench is not to be slowed down by one.
            self._live = Live(
                get_renderable=lambda: picture(model),
                console=self._console,
                transient=True,
                auto_refresh=model.session is not None,
            )
        with suppress(OSError):
            self._live.start()
            self._live.refresh()

    def close(self, model: LiveProgress) -> None:
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()


def picture(model: LiveProgress) -> Group:
    """The header, and below it a row for each bar: name, bar, note."""
    rows = Table.grid(padding=(0, 1))
    for bar in (*model.bars(), *model.worker_bars()):
        drawn = ProgressBar(
            1.0, bar.share, BAR_WIDTH, complete_style=BAR_STYLE, finished_style=FULL_STYLE
        )
        rows.add_row(Text(bar.name), drawn, Text(bar.note, style="dim"))
    return Group(Text(model.header(), style="bold"), rows)
