"""The curves of a run, from its reports: strength first, then losses, results and firing."""

import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..arena.ladder import spread
from ..report import TIME_SHARE, Report, Strength, score_names
from ..text import percent
from .style import BLUE, COLOURS, DASHED, DRAWS, ORANGE, PERCENT, PURPLE, RED, draw_line, styled

RESULT_COLOURS = {
    **dict.fromkeys(("white", "x"), "#E6D9A8"),
    **dict.fromkeys(("black", "o"), "#4B535C"),
    "draws": DRAWS,
    "cap": "#6FA8CF",  # games stopped at the ply cap
}
MAX_LAYER_LINES = 8
SMALL = 7.0  # points, of the small figures' text
# The curve of a normal run: {"machine": ..., "game": ..., "preset": ..., "curves": {measure:
# [[minutes, share], ...]}}
Reference = Mapping[str, Any]


@styled
def strength_figure(
    reports: Sequence[Report],
    points: Sequence[Strength],
    reference: Reference | None = None,
    minutes: float | None = None,
) -> Figure:
    """How strong the network is over the minutes of training, with 95 % intervals; the untrained
    level is dashed.

    minutes: where the axis ends; None: at the last point.
    """
    figure = Figure(figsize=(5.0, 3.1))
    draw_strength(figure.subplots(), reports, points, reference, minutes)
    return figure


@styled
def small_figure(name: str, reports: Sequence[Report]) -> Figure:
    """One of SMALL_PANELS. Without a report its axes are empty."""
    figure = Figure(figsize=(1.92, 1.84))
    SMALL_PANELS[name](figure.subplots(), reports)
    return figure


def draw_strength(
    axis: Axes,
    reports: Sequence[Report],
    points: Sequence[Strength],
    reference: Reference | None = None,
    minutes: float | None = None,
    line: float = 0.08,
) -> None:
    """Strength over minutes: a line per measure. A game with points instead of wins has its games'
    mean score.

    line: a line of the legend as a share of the axis's height; the curves stay below the legend.
    """
    scored = [report for report in reports if "mean" in report.scores]
    moments = [report.seconds / 60 for report in scored]
    ends = [*moments, *(point.seconds / 60 for point in points)]
    axis.set(title="Is it getting stronger?", xlabel="minutes of training")
    axis.locator_params(nbins=6, steps=(1, 2, 5, 10))
    if points:
        _draw_measures(axis, points, reference)
        lines = len({point.measure for point in points}) + 0.5
        axis.set_ylim(0, max(point.high for point in points) / (1 - lines * line))
        axis.set_yticks([tick for tick in axis.get_yticks() if tick <= 1])
    elif scored:
        means = np.array([report.scores["mean"] for report in scored])
        draw_line(axis, np.array(moments), means, BLUE, "points per game, mean")
    else:
        axis.set_yticks([])
        text = "its strength has not been measured so far"
        axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center")
    if ends:
        axis.legend(loc="upper left", fontsize=8, handlelength=1.4, borderpad=0.1)
    axis.set_xlim(0, 1.04 * max([0.1, minutes or 0.0, *ends]))


def _draw_measures(axis: Axes, points: Sequence[Strength], reference: Reference | None) -> None:
    """A line per measure, over the pale line of the normal run where that has the measure."""
    usual = {} if reference is None else reference["curves"]
    measures = list(dict.fromkeys(point.measure for point in points))
    for measure, colour in zip(measures, cycle(COLOURS)):
        if measure in usual:
            axis.plot(*np.array(usual[measure], dtype=float).T, color=colour, lw=7, alpha=0.18)
        _draw_measure(axis, [point for point in points if point.measure == measure], colour)
    below = f"minutes of training, {100 * TIME_SHARE:.0f} % of them to measure this"
    if "puzzles, by policy" in measures:
        below += "\nby policy: without looking ahead; they fall while its games are weak"
    if reference and set(measures) & set(usual):
        below += "\n" + fill(f"pale: a run on {reference['machine']}", 60)
    axis.set_xlabel(below)
    axis.yaxis.set_major_formatter(PERCENT)


def _draw_measure(axis: Axes, points: Sequence[Strength], colour: str) -> None:
    minutes = np.array([point.seconds / 60 for point in points])
    shares = np.array([point.share for point in points])
    low = [point.low for point in points]
    high = [point.high for point in points]
    axis.vlines(minutes, low, high, color=colour, alpha=0.5, lw=1.2)
    measure = points[0].measure
    label = f"{points[-1].trials} {measure}: {percent(points[-1].share)}"
    # Games against somebody say more to most people than puzzles do.
    width = 2.6 if measure.startswith("games") else 1.2
    draw_line(axis, minutes, shares, colour, label, lw=width)
    if points[0].iteration == 0:
        axis.axhline(shares[0], color=colour, lw=1, ls=DASHED, alpha=0.8)


def draw_losses(axis: Axes, reports: Sequence[Report]) -> None:
    """The policy loss minus the entropy of its targets, the value loss, and the Brier score of new
    games, on an axis that shows how they change.
    """
    lines = {
        "policy, to targets": (column(reports, "policy_kl"), BLUE),
        "value": (column(reports, "value_loss"), RED),
    }
    brier = column(reports, "brier")
    if np.isfinite(brier).any():
        lines["Brier"] = (brier, PURPLE)
    _draw_history(axis, "Losses, nats; Brier score", reports, lines)


def draw_results(axis: Axes, reports: Sequence[Report]) -> None:
    """The shares of wins, draws and games stopped at the ply cap, from the bottom up; the best and
    the median score in a game that pays points. Iterations in which no game ended are left out.
    """
    if score_names(reports):
        lines = {
            name: (np.array([report.scores.get(name, np.nan) for report in reports]), colour)
            for name, colour in (("best", BLUE), ("median", ORANGE))
        }
        _draw_history(axis, "Best and median score", reports, lines)
        return
    _dress_small(axis, "Results of self-play", reports)
    axis.grid(False)
    reports = [report for report in reports if report.games]
    axis.set_ylim(0, 1)
    axis.yaxis.set_major_formatter(PERCENT)
    axis.yaxis.set_major_locator(MaxNLocator(2))
    if not reports:
        return
    iterations = column(reports, "iteration")
    edges = np.append(iterations - 0.5, iterations[-1] + 0.5)
    below = np.zeros_like(iterations)
    for name in reports[-1].results:
        above = below + [report.results.get(name, 0.0) for report in reports]
        colour = RESULT_COLOURS.get(name, BLUE)
        axis.stairs(above, edges, baseline=below, fill=True, color=colour, label=name)
        below = above
    _small_legend(axis, ncols=4)


def draw_firing(axis: Axes, reports: Sequence[Report]) -> None:
    """A line per block, dark at the input, light at the output; of many blocks MAX_LAYER_LINES,
    evenly spread.
    """
    by_block = [block_rates(report.firing_rates) for report in reports]
    blocks = list(by_block[-1]) if by_block else []
    chosen = spread(range(len(blocks)), MAX_LAYER_LINES) if blocks else []
    shades = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.9, len(chosen)))
    lines = {
        blocks[index]: (np.array([rates.get(blocks[index], np.nan) for rates in by_block]), shade)
        for index, shade in zip(chosen, shades)
    }
    title = "Firing rates" if blocks or not reports else "No spikes measured"
    _draw_history(axis, title, reports, lines, ncols=2 if len(blocks) < 5 else 3)
    axis.yaxis.set_major_formatter(PERCENT)
    axis.set_ylim(0, 1.1 * axis.get_ylim()[1])


SMALL_PANELS = {"losses": draw_losses, "results": draw_results, "firing": draw_firing}


def block_rates(rates: Mapping[str, float]) -> dict[str, float]:
    """Block -> the mean firing rate of its layers, input first; "last" is the layer after them."""
    groups = {}
    for name, rate in rates.items():
        found = re.match(r"blocks\.(\d+)\.", name)
        block = f"block {int(found[1]) + 1}" if found else name.replace("neurons", "last")
        groups.setdefault(block, []).append(rate)
    return {name: float(np.mean(group)) for name, group in groups.items()}


def column(reports: Sequence[Report], name: str) -> np.ndarray:
    """One number per report, [len(reports)]; None, a loss that does not exist, becomes NaN."""
    return np.array([getattr(report, name) for report in reports], dtype=float)


def _draw_history(
    axis: Axes,
    title: str,
    reports: Sequence[Report],
    lines: Mapping[str, tuple[np.ndarray, Any]],
    ncols: int = 2,
) -> None:
    """A line per name over the iterations, and a legend where there are several; lines: name ->
    values [len(reports)] and colour.
    """
    _dress_small(axis, title, reports)
    if not reports:
        return
    iterations = column(reports, "iteration")
    for name, (values, colour) in lines.items():
        draw_line(axis, iterations, values, colour, name, ms=2.5)
    axis.margins(y=0.15)
    if len(lines) > 1:
        _small_legend(axis, ncols)


def _dress_small(axis: Axes, title: str, reports: Sequence[Report]) -> None:
    axis.set_title(title, fontsize=SMALL + 1)
    axis.tick_params(labelsize=SMALL, length=2, pad=2)
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.yaxis.set_major_locator(MaxNLocator(3))
    if not reports:
        axis.set(xticks=(), yticks=())
    last = max((report.iteration for report in reports), default=1)
    axis.set_xlim(0.5, max(last, 2) + 0.5)


def _small_legend(axis: Axes, ncols: int) -> None:
    """A legend below the axis, where it cannot cover a curve."""
    axis.legend(
        loc="upper center",
        bbox_to_anchor=(0.45, -0.16),
        ncols=ncols,
        fontsize=SMALL - 0.5,
        borderpad=0,
        handlelength=0.9,
        handletextpad=0.4,
        columnspacing=0.7,
        labelspacing=0.2,
    )
