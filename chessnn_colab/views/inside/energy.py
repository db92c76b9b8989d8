"""The energy of one evaluation, as spikes and as twins without spikes: arithmetic alone, and with memory traffic."""

from __future__ import annotations

from ...spikes import Energy
from ..cell import Picture
from ..ink import BLUE, INK, ORANGE, dress, figure_html, new_figure
from .position import caption


def energy_picture(energy: Energy) -> Picture:
    """Bars for every design on a logarithmic scale, and the verdict below them."""
    figure = new_figure(9.2, 3.0)
    designs = energy.designs
    panels = (
        ("Arithmetic alone", [design.arithmetic_nanojoules for design in designs]),
        ("With memory traffic", [design.nanojoules for design in designs]),
    )
    for axis, (title, values) in zip(figure.subplots(1, 2, sharey=True), panels):
        joules = [max(value / 1000, 1e-6) for value in values]
        colours = [BLUE if design.name.startswith("spikes") else ORANGE for design in designs]
        axis.barh(range(len(designs)), joules, color=colours, height=0.66)
        axis.set_xscale("log")
        axis.set_xlim(min(joules) / 3, max(joules) * 12)
        for place, value in enumerate(joules):
            axis.annotate(f"{value:.3g} µJ", (value, place), (4, 0), textcoords="offset points", va="center",
                          size=9, color=INK)  # fmt: skip
        axis.set_yticks(range(len(designs)), [design.name for design in designs])
        dress(axis, title, None, "microjoules per evaluation, logarithmic")
        axis.grid(False, axis="y")
    figure.axes[0].invert_yaxis()
    return Picture(figure_html(figure, energy.verdict) + caption(energy.verdict, 880))
