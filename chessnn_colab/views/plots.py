"""Figures of a run, a network and a match: pure functions that return a matplotlib Figure and do not use pyplot.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can tell apart. What has
an order, such as layers, is coloured by cividis.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator, StrMethodFormatter

from ..errors import RunError
from .match_plots import match_bar

__all__ = ["energy_bars", "figure_png", "firing_rates", "learning_curves", "match_bar", "spike_raster"]

BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
INK, QUIET, HAIRLINE = "#222222", "#5F6770", "#D9DDE2"
FIRST_WINS, DRAWS, PLY_CAP, SECOND_WINS = "#F4EEDC", "#A9B4BF", "#6FA8CF", "#33373D"
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.3g} %")
SILENT_RATE = 0.001  # a layer that fires less than this passes next to nothing on
MAX_MARKED_POINTS = 30
MAX_LAYER_LINES = 8
MAX_RASTER_ROWS = 400


def learning_curves(reports: Sequence[Any]) -> Figure:
    """Six panels over the iterations of a run, one `report.Report` each: a single one, or thousands.

    The panels are losses and entropy, value accuracy, throughput, results by player, game length, and firing rates by
    layer. Raises RunError when there is no report yet.
    """
    if not reports:
        raise RunError("no report to draw yet: train for one iteration first")
    figure = _figure(10.5, 6.2)
    axes = figure.subplots(2, 3)
    iterations = _column(reports, "iteration")
    _draw_losses(axes[0, 0], iterations, reports)
    _draw_value_accuracy(axes[0, 1], iterations, reports)
    _draw_line(axes[0, 2], iterations, _column(reports, "positions_per_second"), GREEN)
    _dress(axes[0, 2], "Throughput", "positions per second")
    axes[0, 2].yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _draw_results(axes[1, 0], iterations, reports)
    _draw_line(axes[1, 1], iterations, _column(reports, "average_plies"), PURPLE)
    _dress(axes[1, 1], "Game length", "plies per game, average")
    _draw_layer_rates(axes[1, 2], iterations, reports)
    for axis in axes.flat:
        _iterations_below(axis, iterations)
    for axis in (axes[0, 0], axes[0, 2], axes[1, 1], axes[1, 2]):
        axis.set_ylim(0, 1.06 * max(axis.dataLim.ymax, 1e-3) if np.isfinite(axis.dataLim.ymax) else 1)
    return figure


def spike_raster(spikes: np.ndarray) -> Figure:
    """Which neurons fire at which time step, with each neuron's rate beside it and each step's share above it.

    spikes: 0 and 1, [T, N], time steps by neurons; raises ValueError for any other shape.
    """
    spikes = np.asarray(spikes, dtype=np.float32)
    if spikes.ndim != 2 or 0 in spikes.shape:
        raise ValueError(f"spikes of shape {list(spikes.shape)}: expected [T, N], time steps by neurons")
    steps, neurons = spikes.shape
    figure = _figure(float(np.clip(3.5 + 0.3 * steps, 5.5, 10.5)), 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(4, 1), height_ratios=(1, 4))
    raster = figure.add_subplot(grid[1, 0])
    above, beside = figure.add_subplot(grid[0, 0], sharex=raster), figure.add_subplot(grid[1, 1], sharey=raster)
    group = -(-neurons // MAX_RASTER_ROWS)
    rows = np.add.reduceat(spikes, np.arange(0, neurons, group), axis=1) / group
    white_to_ink = LinearSegmentedColormap.from_list("spikes", ["#FFFFFF", INK])
    raster.imshow(
        rows.T, aspect="auto", origin="lower", cmap=white_to_ink, vmin=0, vmax=1, interpolation="nearest",
        extent=(0.5, steps + 0.5, -0.5, neurons - 0.5),
    )  # fmt: skip
    raster.vlines(np.arange(1, steps) + 0.5, -0.5, neurons - 0.5, color="white", lw=min(1.5, 48 / steps))
    _dress(raster, None, "neuron" if group == 1 else f"neuron (a row is {group} neighbours)", "time step", grid=False)
    for axis in (raster.xaxis, raster.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    above.stairs(spikes.mean(axis=1), np.arange(steps + 1) + 0.5, fill=True, color=BLUE)
    beside.stairs(spikes.mean(axis=0), np.arange(neurons + 1) - 0.5, orientation="horizontal", fill=True, color=BLUE)
    title = f"Spikes of {neurons:,} neuron{'s' * (neurons != 1)} over {steps} time step{'s' * (steps != 1)}"
    _dress(above, f"{title}: {_percent(spikes.mean())} fire", "share firing")
    _dress(beside, None, None, "firing rate")
    above.yaxis.set_major_formatter(PERCENT)
    beside.xaxis.set_major_formatter(PERCENT)
    beside.xaxis.set_major_locator(MaxNLocator(2))
    above.yaxis.set_major_locator(MaxNLocator(3))
    above.tick_params(labelbottom=False)
    beside.tick_params(labelleft=False)
    return figure


def firing_rates(rates: Mapping[str, float]) -> Figure:
    """One bar per layer, input first: spikes per neuron and time step, 0 to 1. Raises ValueError for no layer.

    A layer that hardly fires is marked as silent.
    """
    if not rates:
        raise ValueError("no layer to draw: expected a mapping of layer to firing rate")
    figure = _figure(7.5, 1.2 + 0.32 * len(rates))
    axis = figure.subplots()
    values = np.array(list(rates.values()), dtype=float)
    positions = np.arange(len(values))
    axis.barh(positions, values, height=0.68, color=[RED if rate < SILENT_RATE else BLUE for rate in values])
    for position, rate in zip(positions, values, strict=True):
        text, colour = (f"{_percent(rate)}, silent", RED) if rate < SILENT_RATE else (_percent(rate), INK)
        axis.annotate(text, (rate, position), (4, 0), textcoords="offset points", va="center", size=9, color=colour)
    axis.set_yticks(positions, list(rates))
    axis.invert_yaxis()
    axis.set_xlim(0, min(1.15, 1.25 * max(values.max(), 0.04)))
    axis.xaxis.set_major_formatter(PERCENT)
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], min_n_ticks=2))
    _dress(axis, "Firing rate by layer", "layer, input first", "spikes per neuron and time step")
    axis.grid(False, axis="y")
    return figure


def energy_bars(estimate: Mapping[str, float]) -> Figure:
    """The estimated energy of one evaluation: the spiking network, and the same network with ReLU instead of neurons.

    estimate: `spikes.Energy.to_dict()`, of which it reads spiking_nanojoules and dense_nanojoules.
    """
    figure = _figure(8.0, 2.3)
    axis = figure.subplots()
    joules = np.array([estimate["spiking_nanojoules"], estimate["dense_nanojoules"]], dtype=float) * 1e-9
    unit, scale = _energy_unit(joules.max())
    values = joules / scale
    axis.barh([0, 1], values, height=0.62, color=[BLUE, ORANGE])
    share = f" ({_percent(values[0] / values[1])} of its ReLU twin)" if values[1] > 0 else ""
    for row, text in enumerate((f"{values[0]:.3g} {unit}{share}", f"{values[1]:.3g} {unit}")):
        axis.annotate(text, (values[row], row), (4, 0), textcoords="offset points", va="center", size=9, color=INK)
    axis.set_yticks([0, 1], ["spiking network", "ReLU twin"])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.4 * max(values.max(), 1e-9))
    note = f"{unit} (arithmetic at 45 nm; memory traffic not counted)"
    _dress(axis, "Estimated energy of one evaluation", None, note)
    axis.grid(False, axis="y")
    return figure


def figure_png(figure: Figure, dpi: int = 96) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _draw_losses(axis: Axes, iterations: np.ndarray, reports: Sequence[Any]) -> None:
    _draw_line(axis, iterations, _column(reports, "policy_loss"), BLUE, "policy loss")
    _draw_line(axis, iterations, _column(reports, "value_loss"), RED, "value loss")
    _draw_line(axis, iterations, _column(reports, "entropy"), QUIET, "policy entropy", linestyle=(0, (4, 2)))
    _dress(axis, "Losses", "nats")
    _legend_below(axis)


def _draw_value_accuracy(axis: Axes, iterations: np.ndarray, reports: Sequence[Any]) -> None:
    _draw_line(axis, iterations, _column(reports, "value_accuracy"), ORANGE)
    _dress(axis, "Value accuracy", "results predicted right")
    axis.set_ylim(0, 1)
    axis.yaxis.set_major_formatter(PERCENT)


def _draw_results(axis: Axes, iterations: np.ndarray, reports: Sequence[Any]) -> None:
    """A column per iteration: the shares of wins, draws, games stopped at the ply cap and the other player's wins."""
    games, draws = np.maximum(_column(reports, "games"), 1), _column(reports, "draws")
    wins = [
        (f"{name} wins", np.array([report.wins.get(name, 0) for report in reports], dtype=float), colour)
        for name, colour in zip(reports[-1].wins, (FIRST_WINS, SECOND_WINS))
    ]
    stopped = games - draws - sum(counts for _, counts, _ in wins)
    results = [*wins[:1], ("draws", draws, DRAWS), ("ply cap", stopped, PLY_CAP), *wins[1:]]
    middles = (iterations[1:] + iterations[:-1]) / 2
    edges = np.concatenate([iterations[:1] - 0.5, middles, iterations[-1:] + 0.5])
    below = np.zeros_like(iterations)
    for name, counts, colour in results:
        above = below + counts / games
        axis.stairs(above, edges, baseline=below, fill=True, color=colour, label=name)
        axis.stairs(above, edges, color="white", lw=0.8)
        below = above
    _dress(axis, "Results of self-play", "share of games", grid=False)
    axis.set_ylim(0, 1)
    axis.yaxis.set_major_formatter(PERCENT)
    _legend_below(axis, ncols=4)


def _draw_layer_rates(axis: Axes, iterations: np.ndarray, reports: Sequence[Any]) -> None:
    """A line per layer, dark at the input, light at the output. Of many layers: a few lines, and the range of all."""
    layers = list(reports[-1].firing_rates)
    rates = np.array([[report.firing_rates.get(layer, np.nan) for layer in layers] for report in reports], dtype=float)
    shown = np.linspace(0, len(layers) - 1, min(len(layers), MAX_LAYER_LINES)).round().astype(int)
    if len(shown) < len(layers):
        axis.fill_between(iterations, rates.min(axis=1), rates.max(axis=1), color=HAIRLINE, label="all layers", lw=0)
    for index, colour in zip(shown, matplotlib.colormaps["cividis"](np.linspace(0, 0.9, len(shown))), strict=True):
        _draw_line(axis, iterations, rates[:, index], colour, layers[index])
    _dress(axis, "Firing rates", "spikes per neuron and step")
    axis.yaxis.set_major_formatter(PERCENT)
    if layers:
        _legend_below(axis, ncols=2)


def _draw_line(axis: Axes, x: np.ndarray, y: np.ndarray, colour: Any, label: str | None = None, **style: Any) -> None:
    """A line; where there are few values each has a point, so that a single one can be seen too."""
    marker = "o" if len(x) <= MAX_MARKED_POINTS else None
    size = 4 if len(x) > 1 else 7
    axis.plot(x, y, color=colour, label=label, lw=1.8, marker=marker, ms=size, **style)


def _column(reports: Sequence[Any], name: str) -> np.ndarray:
    """One number per report, [len(reports)]; None, a loss that does not exist, becomes NaN."""
    return np.array([getattr(report, name) for report in reports], dtype=float)


def _figure(width: float, height: float) -> Figure:
    """An empty figure of `width` by `height` inches that renders without a display."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _dress(axis: Axes, title: str | None, y: str | None, x: str | None = None, grid: bool = True) -> None:
    if title:
        axis.set_title(title, loc="left", fontsize=11, color=INK, fontweight="bold")
    axis.set_ylabel(y or "", fontsize=9, color=QUIET)
    axis.set_xlabel(x or "", fontsize=9, color=QUIET)
    axis.tick_params(labelsize=9, colors=QUIET, labelcolor=INK, length=3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(QUIET)
    axis.set_axisbelow(True)
    if grid:
        axis.grid(color=HAIRLINE, lw=0.8)


def _iterations_below(axis: Axes, iterations: np.ndarray) -> None:
    axis.set_xlabel("iteration", fontsize=9, color=QUIET)
    axis.set_xlim(iterations[0] - 0.5, iterations[-1] + 0.5)
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))


def _legend_below(axis: Axes, ncols: int = 3) -> None:
    """A legend below the axis, where it cannot cover a curve."""
    axis.legend(
        loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=ncols, fontsize=8, frameon=False, labelcolor=INK,
        handlelength=1.2, handletextpad=0.5, columnspacing=1.0, labelspacing=0.3,
    )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def _energy_unit(joules: float) -> tuple[str, float]:
    """The unit in which `joules` reads as 1 to 1000, and its size in joules."""
    for unit, scale in (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6), ("nJ", 1e-9)):
        if joules >= scale:
            return unit, scale
    return "pJ", 1e-12
