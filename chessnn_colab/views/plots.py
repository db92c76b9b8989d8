"""Figures of a network: its firing rates and its energy. Functions that return a matplotlib Figure
and do not use pyplot.

The curves of a training run are in curves.py, colours and axes in style.py.
"""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ..spikes import Energy
from ..text import percent
from .style import BLUE, ORANGE, PERCENT, RED, draw_bars, styled

SILENT_RATE = 0.001  # a layer that fires less than this passes next to nothing on


@styled
def firing_rate_bars(rates: Mapping[str, float]) -> Figure:
    """One bar per layer, input first: the share of its possible spikes, 0 to 1.

    A layer that hardly fires is marked as silent.
    """
    silent = [rate < SILENT_RATE for rate in rates.values()]
    texts = [
        f"{percent(rate)}, silent" if quiet else percent(rate)
        for rate, quiet in zip(rates.values(), silent)
    ]
    figure = Figure(figsize=(7.5, 1.2 + 0.32 * len(rates)))
    axis = figure.subplots()
    colours = [RED if quiet else BLUE for quiet in silent]
    draw_bars(axis, list(rates), list(rates.values()), texts, colours)
    axis.set_xlim(0, min(1.15, 1.25 * max(0.04, *rates.values())))
    axis.xaxis.set_major_formatter(PERCENT)
    axis.set(
        title="Firing rate by layer",
        xlabel="spikes, as a share of those it could fire",
        ylabel="layer, input first",
    )
    return figure


@styled
def energy_bars(energy: Energy) -> Figure:
    """The energy of one evaluation for every design, on a logarithmic scale: arithmetic alone, and
    with memory traffic.
    """
    designs = energy.designs
    names = [design.name for design in designs]
    panels = {
        "Arithmetic alone": [design.arithmetic_nanojoules / 1000 for design in designs],
        "With memory traffic": [design.nanojoules / 1000 for design in designs],
    }
    figure = Figure(figsize=(9.2, 3.0))
    for axis, (title, values) in zip(figure.subplots(1, 2, sharey=True), panels.items()):
        joules = [max(value, 1e-6) for value in values]
        texts = [f"{value:.3g} µJ" for value in joules]
        colours = [BLUE if name.startswith("spikes") else ORANGE for name in names]
        draw_bars(axis, names, joules, texts, colours)
        axis.set_xscale("log")
        axis.set_xlim(min(joules) / 3, max(joules) * 12)
        axis.set(title=title, xlabel="microjoules per evaluation, logarithmic")
    return figure
