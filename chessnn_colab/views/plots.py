"""Figures of a network: its spikes, its firing rates and its energy. Functions that return a
matplotlib Figure and do not use pyplot.

The curves of a training run are in curves.py, colours and axes in style.py.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..spikes import Energy
from ..text import percent
from .style import BLUE, FULL_FIRE, INK, NO_FIRE, ORANGE, PERCENT, RED, draw_bars, dress, new_figure

SILENT_RATE = 0.001  # a layer that fires less than this passes next to nothing on
MAX_RASTER_ROWS = 400


def spike_raster(counts: np.ndarray, levels: int) -> Figure:
    """Which neurons fire, and how often, with each neuron's rate beside it and the share of neurons
    above it.

    counts: how often each neuron fires in each time step, [T, N], from 0 to `levels`. Every spike
    that a neuron may fire has a slot of its own, the earlier first. Raises ValueError for any other
    shape.
    """
    if counts.ndim != 2 or 0 in counts.shape:
        raise ValueError(
            f"spikes of shape {list(counts.shape)}: expected [T, N], time steps by neurons"
        )
    spikes = (counts[:, None] > np.arange(levels)[:, None]).reshape(-1, counts.shape[1])
    slots, neurons = spikes.shape
    figure = new_figure(float(np.clip(3.5 + 0.3 * slots, 5.5, 10.5)), 5.6)
    axes = figure.subplot_mosaic(
        [["above", "."], ["raster", "beside"]], width_ratios=(4, 1), height_ratios=(1, 4)
    )
    _draw_raster(axes["raster"], spikes)
    above, beside = axes["above"], axes["beside"]
    above.sharex(axes["raster"])
    beside.sharey(axes["raster"])
    slot_edges = np.arange(slots + 1) + 0.5
    neuron_edges = np.arange(neurons + 1) - 0.5
    above.stairs(spikes.mean(axis=1), slot_edges, fill=True, color=BLUE)
    beside.stairs(
        spikes.mean(axis=0), neuron_edges, orientation="horizontal", fill=True, color=BLUE
    )
    title = f"{neurons:,} neuron{'s' * (neurons != 1)} of at most {slots} spike{'s' * (slots != 1)} each"
    dress(above, f"{title}: {percent(spikes.mean())} are fired", "share firing")
    dress(beside, None, None, "firing rate")
    for scale, ticks in ((above.yaxis, 3), (beside.xaxis, 2)):
        scale.set_major_formatter(PERCENT)
        scale.set_major_locator(MaxNLocator(ticks))
    above.tick_params(labelbottom=False)
    beside.tick_params(labelleft=False)
    return figure


def _draw_raster(axis: Axes, spikes: np.ndarray) -> None:
    """The spikes [slots, N] as rows of neighbouring neurons, MAX_RASTER_ROWS at most."""
    slots, neurons = spikes.shape
    group = -(-neurons // MAX_RASTER_ROWS)
    starts = np.arange(0, neurons, group)
    rows = np.add.reduceat(spikes.astype(float), starts, axis=1) / group
    axis.imshow(
        rows.T,
        aspect="auto",
        origin="lower",
        cmap=LinearSegmentedColormap.from_list("spikes", [NO_FIRE, FULL_FIRE]),
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(0.5, slots + 0.5, -0.5, neurons - 0.5),
    )
    between = np.arange(1, slots) + 0.5
    axis.vlines(between, -0.5, neurons - 0.5, color=INK, lw=min(1.5, 48 / slots))
    rows_are = "neuron" if group == 1 else f"neuron (a row is {group} neighbours)"
    dress(axis, None, rows_are, "spike", grid=False)
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def firing_rate_bars(rates: Mapping[str, float]) -> Figure:
    """One bar per layer, input first: the share of its possible spikes, 0 to 1. Raises ValueError
    for no layer.

    A layer that hardly fires is marked as silent.
    """
    if not rates:
        raise ValueError("no layer to draw: expected a mapping of layer to firing rate")
    silent = [rate < SILENT_RATE for rate in rates.values()]
    texts = [
        f"{percent(rate)}, silent" if quiet else percent(rate)
        for rate, quiet in zip(rates.values(), silent)
    ]
    figure = new_figure(7.5, 1.2 + 0.32 * len(rates))
    axis = figure.subplots()
    colours = [RED if quiet else BLUE for quiet in silent]
    draw_bars(axis, list(rates), list(rates.values()), texts, colours)
    axis.set_xlim(0, min(1.15, 1.25 * max(0.04, *rates.values())))
    axis.xaxis.set_major_formatter(PERCENT)
    spikes = "spikes, as a share of those it could fire"
    dress(axis, "Firing rate by layer", "layer, input first", spikes)
    axis.grid(False, axis="y")
    return figure


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
    figure = new_figure(9.2, 3.0)
    for axis, (title, values) in zip(figure.subplots(1, 2, sharey=True), panels.items()):
        joules = [max(value, 1e-6) for value in values]
        texts = [f"{value:.3g} µJ" for value in joules]
        colours = [BLUE if name.startswith("spikes") else ORANGE for name in names]
        draw_bars(axis, names, joules, texts, colours)
        axis.set_xscale("log")
        axis.set_xlim(min(joules) / 3, max(joules) * 12)
        dress(axis, title, None, "microjoules per evaluation, logarithmic")
        axis.grid(False, axis="y")
    return figure
