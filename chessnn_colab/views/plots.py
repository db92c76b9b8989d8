"""The figure of a network's energy."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..spikes import Design, Energy
from .style import BLUE, ORANGE, draw_bars, styled

ARITHMETIC = "arithmetic_nanojoules"  # of Design


@styled
def energy_bars(energy: Energy) -> Figure:
    """The energy of one evaluation for every design, on a logarithmic scale: arithmetic alone, and
    with memory traffic.
    """
    panels = {"Arithmetic alone": ARITHMETIC, "With memory traffic": "nanojoules"}
    figure = Figure(figsize=(9.2, 3.0))
    for axis, (title, part) in zip(figure.subplots(1, 2, sharey=True), panels.items()):
        joules = draw_designs(axis, energy.designs, part)
        axis.set_xscale("log")
        axis.set_xlim(min(joules) / 3, max(joules) * 12)
        axis.set(title=title, xlabel="microjoules per evaluation, logarithmic")
    return figure


def draw_designs(axis: Axes, designs: Sequence[Design], part: str) -> list[float]:
    """A bar for each design; part: the figure of it in nanojoules. Returns them in microjoules."""
    names = [design.name for design in designs]
    joules = [max(getattr(design, part) / 1000, 1e-6) for design in designs]
    texts = [f"{value:.3g} µJ" for value in joules]
    colours = [BLUE if name.startswith("spikes") else ORANGE for name in names]
    draw_bars(axis, names, joules, texts, colours)
    return joules
