"""What every figure is drawn with: colours, axes, sizes. Figures are transparent, and their ink suits light and dark.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can tell apart, the blue
a little lighter. INK is as far from white as from a dark notebook's background (contrast 4.2 with #FFFFFF and #181818).
"""

from __future__ import annotations

import base64
import html
import io
import sys
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from .cell import Picture

BLUE, ORANGE, GREEN, RED, PURPLE = "#2A8FD0", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
INK = QUIET = "#787C82"
DRAWS = "#A9B4BF"
BOARD_LIGHT, BOARD_DARK, BOARD_LAST = "#EAE6DA", "#8FA3B5", "#E9D48A"  # as in data/board.css
NO_FIRE, FULL_FIRE = "#3A4048", "#FFD166"  # dark to light, as if lit: reads on any page and without colour
HAIRLINE = "#80868C40"  # with a quarter of its strength
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.3g} %")
MAX_MARKED_POINTS = 30
PAGE_WIDTH = 1000  # CSS pixels, of everything that a cell shows
PIXELS_AN_INCH = 100  # CSS pixels on the page; pictures have twice as many, so that they are sharp on dense displays


# For pyplot's own figures: plt.rcParams.update(STYLE). Jupyter puts white behind a transparent figure whose tick labels
# are all dark, and black where all are light. With one axis a shade lighter than the other it puts nothing.
STYLE: dict[str, Any] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "ytick.labelcolor": "#80848A",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "axes.prop_cycle": cycler(color=(BLUE, ORANGE, GREEN, RED, PURPLE)),
    "figure.constrained_layout.use": True,
    "figure.figsize": (9.0, 2.4),
    "font.size": 9.0,
}


def new_figure(width: float, height: float, pad: float = 0.08) -> Figure:
    """An empty, transparent figure of `width` by `height` inches that renders without a display."""
    layout = ConstrainedLayoutEngine(w_pad=pad, h_pad=pad)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def dress(axis: Axes, title: str | None, y: str | None, x: str | None = None, grid: bool = True) -> None:
    """Give an axis its title and labels, and take away what distracts."""
    if title:
        axis.set_title(title, loc="left", fontsize=10, color=INK, fontweight="bold")
    axis.set_facecolor("none")
    axis.set_ylabel(y or "", fontsize=9, color=QUIET)
    axis.set_xlabel(x or "", fontsize=9, color=QUIET)
    axis.tick_params(labelsize=9, colors=QUIET, labelcolor=INK, length=3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(QUIET)
    axis.set_axisbelow(True)
    if grid:
        axis.grid(color=HAIRLINE, lw=0.8)


def draw_line(axis: Axes, x: np.ndarray, y: np.ndarray, colour: Any, label: str | None = None, **style: Any) -> None:
    """A line; where there are few values each has a point, so that a single one can be seen too."""
    marker = "o" if len(x) <= MAX_MARKED_POINTS else None
    axis.plot(x, y, color=colour, label=label, **{"lw": 1.6, "marker": marker, "ms": 3.5 if len(x) > 1 else 6, **style})


def percent(share: float) -> str:
    """A share as people write it: 0.4 %, 12 %."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def figure_png(figure: Figure, dpi: int = 2 * PIXELS_AN_INCH) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def figure_html(figure: Figure, alt: str, width: int | None = None) -> str:
    """The figure as an HTML image that needs no kernel.

    alt: what it shows, for those who do not see it. width: CSS pixels, None for its own; never wider than the page.
    """
    size = round(figure.get_figwidth() * PIXELS_AN_INCH) if width is None else width
    height = round(size * figure.get_figheight() / figure.get_figwidth())
    data = base64.b64encode(figure_png(figure)).decode()
    style = f"display:block;width:{size}px;max-width:100%;height:auto;aspect-ratio:{size}/{height};margin:0"
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}" width="{size}" style="{style}">'


def show(figure: Figure, alt: str) -> None:
    """Show the figure in a cell, as an image that needs no kernel. alt: as for figure_html."""
    from IPython.display import display  # a terminal needs no IPython

    display(Picture(figure_html(figure, alt)))
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)  # Jupyter draws pyplot's own figures again at the end of the cell
