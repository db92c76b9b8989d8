"""Figures of a network: pure functions that return a matplotlib Figure and do not use pyplot.

The curves of a training run are in curves.py, colours and axes in ink.py.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .ink import BLUE, FULL_FIRE, INK, NO_FIRE, PERCENT, RED, dress, new_figure, percent

SILENT_RATE = 0.001  # a layer that fires less than this passes next to nothing on
MAX_RASTER_ROWS = 400


def spike_raster(spikes: np.ndarray) -> Figure:
    """Which neurons fire, and how often, with each neuron's rate beside it and the share of neurons above it.

    spikes: 0 and 1, [slots, N], as spikes.probe has them: a slot for every spike that a neuron may fire, the earlier
    first. Raises ValueError for any other shape.
    """
    spikes = np.asarray(spikes, dtype=np.float32)
    if spikes.ndim != 2 or 0 in spikes.shape:
        raise ValueError(f"spikes of shape {list(spikes.shape)}: expected [slots, N], slots by neurons")
    slots, neurons = spikes.shape
    figure = new_figure(float(np.clip(3.5 + 0.3 * slots, 5.5, 10.5)), 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(4, 1), height_ratios=(1, 4))
    raster = figure.add_subplot(grid[1, 0])
    above, beside = figure.add_subplot(grid[0, 0], sharex=raster), figure.add_subplot(grid[1, 1], sharey=raster)
    group = -(-neurons // MAX_RASTER_ROWS)
    rows = np.add.reduceat(spikes, np.arange(0, neurons, group), axis=1) / group
    colours = LinearSegmentedColormap.from_list("spikes", [NO_FIRE, FULL_FIRE])
    raster.imshow(
        rows.T, aspect="auto", origin="lower", cmap=colours, vmin=0, vmax=1, interpolation="nearest",
        extent=(0.5, slots + 0.5, -0.5, neurons - 0.5),
    )  # fmt: skip
    raster.vlines(np.arange(1, slots) + 0.5, -0.5, neurons - 0.5, color=INK, lw=min(1.5, 48 / slots))
    dress(raster, None, "neuron" if group == 1 else f"neuron (a row is {group} neighbours)", "spike", grid=False)
    for axis in (raster.xaxis, raster.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    above.stairs(spikes.mean(axis=1), np.arange(slots + 1) + 0.5, fill=True, color=BLUE)
    beside.stairs(spikes.mean(axis=0), np.arange(neurons + 1) - 0.5, orientation="horizontal", fill=True, color=BLUE)
    title = f"{neurons:,} neuron{'s' * (neurons != 1)} of at most {slots} spike{'s' * (slots != 1)} each"
    dress(above, f"{title}: {percent(spikes.mean())} are fired", "share firing")
    dress(beside, None, None, "firing rate")
    above.yaxis.set_major_formatter(PERCENT)
    beside.xaxis.set_major_formatter(PERCENT)
    beside.xaxis.set_major_locator(MaxNLocator(2))
    above.yaxis.set_major_locator(MaxNLocator(3))
    above.tick_params(labelbottom=False)
    beside.tick_params(labelleft=False)
    return figure


def firing_rates(rates: Mapping[str, float]) -> Figure:
    """One bar per layer, input first: the share of its possible spikes, 0 to 1. Raises ValueError for no layer.

    A layer that hardly fires is marked as silent.
    """
    if not rates:
        raise ValueError("no layer to draw: expected a mapping of layer to firing rate")
    figure = new_figure(7.5, 1.2 + 0.32 * len(rates))
    axis = figure.subplots()
    values = np.array(list(rates.values()), dtype=float)
    positions = np.arange(len(values))
    axis.barh(positions, values, height=0.68, color=[RED if rate < SILENT_RATE else BLUE for rate in values])
    for position, rate in zip(positions, values, strict=True):
        text, colour = (f"{percent(rate)}, silent", RED) if rate < SILENT_RATE else (percent(rate), INK)
        axis.annotate(text, (rate, position), (4, 0), textcoords="offset points", va="center", size=9, color=colour)
    axis.set_yticks(positions, list(rates))
    axis.invert_yaxis()
    axis.set_xlim(0, min(1.15, 1.25 * max(values.max(), 0.04)))
    axis.xaxis.set_major_formatter(PERCENT)
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], min_n_ticks=2))
    dress(axis, "Firing rate by layer", "layer, input first", "spikes, as a share of those it could fire")
    axis.grid(False, axis="y")
    return figure
