"""Colours, axes and sizes of every figure. Figures are transparent, and their text can be read on
light and dark pages.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can
tell apart, the blue a little lighter. INK is as far from white as from a dark notebook's background
(contrast 4.2 with #FFFFFF and #181818).
"""

from __future__ import annotations

import base64
import html
import io
import sys
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from .cell import HtmlImage

BLUE = "#2A8FD0"
ORANGE = "#E69F00"
GREEN = "#009E73"
RED = "#D55E00"
PURPLE = "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED)  # of lines, the first one first
INK = "#787C82"
DRAWS = "#A9B4BF"
# Dark to light, as if lit: it reads on any page and without colour.
NO_FIRE, FULL_FIRE = "#3A4048", "#FFD166"
HAIRLINE = "#80868C40"  # with a quarter of its strength
DASHED = (0, (4, 3))
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.3g} %")
MAX_MARKED_POINTS = 30
PAGE_WIDTH = 1000  # CSS pixels, of everything that a cell shows
PIXELS_AN_INCH = 100  # CSS pixels on the page; pictures have twice as many, for dense displays


# Jupyter puts white behind a transparent figure whose tick labels are all dark, and black where all
# are light. With one axis a shade lighter than the other it puts nothing.
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "ytick.labelcolor": "#80848A",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (9.0, 2.4),
    "font.size": 9.0,
}


def apply_style() -> None:
    """Draw the figures of pyplot that follow in the colours and sizes of this package's own."""
    matplotlib.rcParams.update(STYLE)


def new_figure(width: float, height: float, pad: float = 0.08) -> Figure:
    """An empty, transparent figure of `width` by `height` inches that renders without a display."""
    layout = ConstrainedLayoutEngine(w_pad=pad, h_pad=pad)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def dress(
    axis: Axes,
    title: str | None = None,
    y: str | None = None,
    x: str | None = None,
    grid: bool = True,
    size: float = 9.0,
) -> None:
    """Give an axis its title and labels, and remove what distracts. size: of its text, in points;
    the title has one more.
    """
    axis.set_title(
        title or "", loc="left", fontsize=size + 1, color=INK, fontweight="bold", pad=size - 4
    )
    axis.set_facecolor("none")
    axis.set_ylabel(y or "", fontsize=size, color=INK)
    axis.set_xlabel(x or "", fontsize=size, color=INK)
    axis.tick_params(labelsize=size, colors=INK, length=size / 3, pad=size / 3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(INK)
    axis.set_axisbelow(True)
    if grid:
        axis.grid(color=HAIRLINE, lw=0.8)


def add_legend(place: Axes | Figure, where: Any, size: float = 9.0, **options: Any) -> None:
    """A legend without a frame on an axis or a figure. where: as matplotlib's `loc`."""
    place.legend(loc=where, fontsize=size, frameon=False, labelcolor=INK, **options)


def draw_line(
    axis: Axes, x: np.ndarray, y: np.ndarray, colour: Any, label: str | None = None, **style: Any
) -> None:
    """A line; where there are few values each has a point, so that a single one can be seen too."""
    marker = "o" if len(x) <= MAX_MARKED_POINTS else None
    usual = {"lw": 1.6, "marker": marker, "ms": 3.5 if len(x) > 1 else 6}
    axis.plot(x, y, color=colour, label=label, **{**usual, **style})


def draw_bars(
    axis: Axes, names: Sequence[str], values: Sequence[float], texts: Sequence[str], colours: Any
) -> None:
    """Horizontal bars, the first one above the others, each with its text behind it."""
    bars = axis.barh(range(len(names)), values, height=0.66, color=colours)
    axis.bar_label(bars, texts, padding=4, size=9, color=INK)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)


def figure_png(figure: Figure, dpi: int = 2 * PIXELS_AN_INCH) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def figure_html(figure: Figure, alt: str, width: int | None = None) -> str:
    """The figure as an HTML image that needs no kernel.

    alt: what it shows, for those who do not see it. width: CSS pixels, None for its own; never
    wider than the page.
    """
    size = round(figure.get_figwidth() * PIXELS_AN_INCH) if width is None else width
    height = round(size * figure.get_figheight() / figure.get_figwidth())
    data = base64.b64encode(figure_png(figure)).decode()
    style = f"display:block;width:{size}px;max-width:100%;height:auto;aspect-ratio:{size}/{height};margin:0"
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)  # Jupyter draws pyplot's own figures again at the end of the cell
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}" width="{size}" style="{style}">'


def show(figure: Figure, alt: str) -> None:
    """Show the figure in a cell, as an image that needs no kernel. alt: as for figure_html."""
    from IPython.display import display  # a terminal needs no IPython

    display(HtmlImage(figure_html(figure, alt)))
