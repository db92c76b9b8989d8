"""Colours, axes and sizes of every figure. Figures are transparent, and their text can be read on
light and dark pages.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can
tell apart, the blue a little lighter. INK is as far from white as from a dark notebook's background
(contrast 4.2 with #FFFFFF and #181818).
"""

import io
import sys
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .cell import HtmlImage, image_html

BLUE = "#2A8FD0"
ORANGE = "#E69F00"
GREEN = "#009E73"
RED = "#D55E00"
PURPLE = "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, "#8A6A4A")  # of lines, the first one first
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
    "text.parse_math": False,  # a folder's name may have a $
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": HAIRLINE,
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (9.0, 2.4),
    "font.size": 9.0,
}
# Decorates every function that makes a figure, and the one that renders it: matplotlib makes the
# ticks of an axis only then.
styled = matplotlib.rc_context(STYLE)


def apply_style() -> None:
    """Draw the figures of pyplot that follow in the colours and sizes of this package's own."""
    matplotlib.rcParams.update(STYLE)


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
    bars = axis.barh(names, values, height=0.66, color=colours)
    axis.bar_label(bars, texts, padding=4)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(False, axis="y")


def legend_above(axis: Axes) -> None:
    """One legend for a whole figure, above it: each label of `axis` once."""
    handles, labels = axis.get_legend_handles_labels()
    entries = dict(zip(labels, handles))
    axis.figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=5)


@styled
def figure_png(figure: Figure, facecolor: str = "none") -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * PIXELS_AN_INCH, facecolor=facecolor)
    return buffer.getvalue()


def figure_html(figure: Figure, alt: str = "") -> str:
    """The figure as an HTML image that needs no kernel.

    alt: what it shows, for those who do not see it; by default the titles of its axes.
    """
    alt = alt or ". ".join(axis.get_title("left") or axis.get_title() for axis in figure.axes)
    width, height = (round(inches * PIXELS_AN_INCH) for inches in figure.get_size_inches())
    data = figure_png(figure)
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)  # Jupyter draws pyplot's own figures again at the end of the cell
    return image_html(data, "png", width, height, alt)


def show(figure: Figure, alt: str) -> None:
    """Show the figure in a cell, as an image that needs no kernel. alt: as for figure_html."""
    from IPython.display import display  # a terminal needs no IPython

    display(HtmlImage(figure_html(figure, alt)))
