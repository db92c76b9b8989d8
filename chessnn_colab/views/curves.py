"""The curves of a run, from its reports: strength first, then losses, results, game length and firing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..report import TIME_SHARE, Report, Strength, score_names
from .ink import (
    BLUE,
    DRAWS,
    GREEN,
    HAIRLINE,
    INK,
    ORANGE,
    PERCENT,
    PURPLE,
    QUIET,
    RED,
    draw_line,
    dress,
    new_figure,
    percent,
)

LIGHT_WINS, PLY_CAP, DARK_WINS = "#E6D9A8", "#6FA8CF", "#4B535C"
MEASURE_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
MAX_LAYER_LINES = 8
NARROW = 8.0  # points, of the small figures' text
# The curve of a normal run: {"machine": ..., "game": ..., "preset": ..., "curves": {measure: [[minutes, share], ...]}}
Reference = Mapping[str, Any]


def strength_figure(
    reports: Sequence[Report],
    points: Sequence[Strength],
    reference: Reference | None = None,
    minutes: float | None = None,
) -> Figure:
    """How strong the network is over the minutes of training, with 95 % intervals; the untrained level is dashed.

    minutes: where the axis ends; None: at the last point.
    """
    figure = new_figure(5.0, 3.5)
    draw_strength(figure.subplots(), reports, points, reference, minutes)
    return figure


def small_figure(name: str, reports: Sequence[Report]) -> Figure:
    """One of SMALL_PANELS. Without a report its axes are empty."""
    figure = new_figure(2.45, 1.72, pad=0.04)
    SMALL_PANELS[name](figure.subplots(), reports)
    return figure


def draw_strength(
    axis: Axes,
    reports: Sequence[Report],
    points: Sequence[Strength],
    reference: Reference | None = None,
    minutes: float | None = None,
    room: float = 1.28,
) -> None:
    """Strength over minutes: a line per measure. A game with points instead of wins has its games' mean score.

    room: the axis's height beside its highest value's; the legend stands there.
    """
    measures = list(dict.fromkeys(point.measure for point in points))
    for measure, colour in zip(measures, MEASURE_COLOURS * len(measures)):
        _draw_measure(axis, [point for point in points if point.measure == measure], colour, reference)
    scores = [(report.seconds / 60, report.scores.get("mean")) for report in reports]
    scores = [(minute, score) for minute, score in scores if score is not None]
    if measures:
        below = f"minutes of training, {100 * TIME_SHARE:.0f} % of them to measure this"
        if reference is not None and set(measures) & set(reference["curves"]):
            below += "\n" + fill(f"pale: a run on {reference['machine']}", 60)
        dress(axis, "Is it getting stronger?", None, below)
        axis.yaxis.set_major_formatter(PERCENT)
        axis.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_ylim(0, room * max(point.high for point in points))
        axis.set_yticks([tick for tick in axis.get_yticks() if tick <= 1])
    elif scores:
        minute, score = np.array(scores, dtype=float).T
        draw_line(axis, minute, score, BLUE, "points per game, mean")
        dress(axis, "Is it getting stronger?", "points", "minutes of training")
    else:
        dress(axis, "Is it getting stronger?", None, "minutes of training")
        axis.set_yticks([])
        text = "measured between iterations" if minutes else "this run did not measure its strength"
        axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", color=QUIET, fontsize=9)
    if measures or scores:
        axis.legend(loc="upper left", fontsize=8, frameon=False, labelcolor=INK, handlelength=1.4, borderpad=0.1)
    ends = [point.seconds / 60 for point in points] + [minute for minute, _ in scores] + [minutes or 0.0]
    axis.set_xlim(0, max(1.04 * max(ends), 0.1))
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _draw_measure(axis: Axes, points: Sequence[Strength], colour: str, reference: Reference | None) -> None:
    minutes = np.array([point.seconds / 60 for point in points])
    shares = np.array([point.share for point in points])
    measure, last = points[0].measure, points[-1]
    usual = np.array((reference or {}).get("curves", {}).get(measure, []), dtype=float).reshape(-1, 2)
    if len(usual):
        axis.plot(*usual.T, color=colour, lw=7, alpha=0.18, solid_capstyle="round", zorder=1)
    axis.fill_between(
        minutes, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.15, lw=0
    )
    errors = [shares - [min(point.low, point.share) for point in points]]
    errors.append([max(point.high, point.share) for point in points] - shares)
    if len(points) <= 12:
        axis.errorbar(minutes, shares, yerr=errors, fmt="none", ecolor=colour, alpha=0.6, lw=1, capsize=2)
    draw_line(axis, minutes, shares, colour, f"{last.trials} {measure}: {percent(last.share)}", lw=2.2)
    if points[0].iteration == 0:
        axis.axhline(shares[0], color=colour, lw=1, ls=(0, (4, 3)), alpha=0.8)


def draw_losses(axis: Axes, reports: Sequence[Report]) -> None:
    """Policy loss less the entropy of its targets, and the value loss, on an axis that shows how they change."""
    kl = np.array([report.policy_kl for report in reports])
    name = "policy, to targets" if np.isfinite(kl).any() else "policy"
    policy = kl if np.isfinite(kl).any() else column(reports, "policy_loss")
    _small(axis, "Losses, nats", reports)
    if not reports:
        return
    _draw_history(axis, reports, policy, BLUE, name)
    _draw_history(axis, reports, column(reports, "value_loss"), RED, "value")
    axis.margins(y=0.15)
    _small_legend(axis)


def draw_results(axis: Axes, reports: Sequence[Report]) -> None:
    """The shares of wins, draws, games stopped at the ply cap and the other player's wins, from the bottom up.

    Iterations that the clock cut are left out: only their shortest games ended.
    """
    if score_names(reports):
        return _draw_scores(axis, reports)
    _small(axis, "Results of self-play", reports, grid=False)
    reports = [report for report in reports if not report.cut]
    axis.set_ylim(0, 1)
    axis.yaxis.set_major_formatter(PERCENT)
    axis.yaxis.set_major_locator(MaxNLocator(2))
    if not reports:
        return None
    iterations = column(reports, "iteration")
    games, draws = np.maximum(column(reports, "games"), 1), column(reports, "draws")
    players = list(reports[-1].wins)
    colours = (DARK_WINS, LIGHT_WINS) if players[:1] == ["black"] else (LIGHT_WINS, DARK_WINS)
    wins = [
        (name, np.array([report.wins.get(name, 0) for report in reports], dtype=float), colour)
        for name, colour in zip(players, colours)
    ]
    stopped = games - draws - sum(counts for _, counts, _ in wins)
    results = [*wins[:1], ("draw", draws, DRAWS), ("ply cap", stopped, PLY_CAP), *wins[1:]]
    edges = np.concatenate([iterations - 0.5, iterations[-1:] + 0.5])
    edges[1:-1] = (iterations[1:] + iterations[:-1]) / 2
    below = np.zeros_like(iterations)
    for name, counts, colour in results:
        above = below + counts / games
        axis.stairs(above, edges, baseline=below, fill=True, color=colour, label=name)
        below = above
    _small_legend(axis, ncols=4)


def _draw_scores(axis: Axes, reports: Sequence[Report]) -> None:
    """Instead of results, in a game that pays points: the best and the median score."""
    _small(axis, "Best and median score", reports)
    for name, colour in (("best", BLUE), ("median", ORANGE)):
        values = np.array([report.scores.get(name, np.nan) for report in reports])
        _draw_history(axis, reports, values, colour, name)
    _small_legend(axis)


def draw_lengths(axis: Axes, reports: Sequence[Report]) -> None:
    """Plies per game; iterations that the clock cut are left out."""
    _small(axis, "Plies per game", reports)
    whole = [report for report in reports if not report.cut]
    if not whole:
        axis.set_yticks([])
        return
    _draw_history(axis, whole, column(whole, "average_plies"), PURPLE, None)
    axis.margins(y=0.15)


def draw_firing(axis: Axes, reports: Sequence[Report]) -> None:
    """A line per block, dark at the input, light at the output. Of many: a few lines, and the range of all."""
    _small(axis, "Firing rates", reports)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{100 * rate:.2g} %"))
    by_block = [grouped_rates(report.firing_rates) for report in reports]
    blocks = list(by_block[-1]) if by_block else []
    if not blocks:
        return
    iterations = column(reports, "iteration")
    rates = np.array([[rates.get(block, np.nan) for block in blocks] for rates in by_block], dtype=float)
    shown = np.linspace(0, len(blocks) - 1, min(len(blocks), MAX_LAYER_LINES)).round().astype(int)
    if len(shown) < len(blocks):
        axis.fill_between(iterations, rates.min(axis=1), rates.max(axis=1), color=HAIRLINE, label="all", lw=0)
    for index, colour in zip(shown, matplotlib.colormaps["viridis"](np.linspace(0.3, 0.9, len(shown))), strict=True):
        _draw_history(axis, reports, rates[:, index], colour, blocks[index])
    highest = max((rate for rates in by_block for rate in rates.values()), default=0.0)
    axis.set_ylim(0, max(1.15 * highest, 1e-3))
    _small_legend(axis, ncols=2 if len(blocks) < 5 else 3)


SMALL_PANELS = {"losses": draw_losses, "results": draw_results, "lengths": draw_lengths, "firing": draw_firing}


def short_layer(name: str) -> str:
    """What people call a layer of neurons: "blocks.0.neurons1" is "block 1", and "neurons" is "last"."""
    found = re.match(r"blocks\.(\d+)\.", name)
    return f"block {int(found[1]) + 1}" if found else {"neurons": "last"}.get(name, name)


def grouped_rates(rates: Mapping[str, float]) -> dict[str, float]:
    """Block -> the mean firing rate of its layers, input first."""
    groups: dict[str, list[float]] = {}
    for name, rate in rates.items():
        groups.setdefault(short_layer(name), []).append(rate)
    return {name: float(np.mean(group)) for name, group in groups.items()}


def column(reports: Sequence[Report], name: str) -> np.ndarray:
    """One number per report, [len(reports)]; None, a loss that does not exist, becomes NaN."""
    return np.array([getattr(report, name) for report in reports], dtype=float)


def _draw_history(axis: Axes, reports: Sequence[Report], values: np.ndarray, colour: Any, label: str | None) -> None:
    """A line over the iterations; where the clock cut one, its point is hollow."""
    iterations = column(reports, "iteration")
    cut = np.array([report.cut for report in reports], dtype=bool)
    size = 2.5 if len(reports) > 1 else 4
    draw_line(axis, iterations, values, colour, label, ms=size, markevery=np.flatnonzero(~cut).tolist())
    if cut.any():
        axis.plot(iterations[cut], values[cut], "o", ms=6, mfc="none", mec=colour, mew=1.2)


def _small(axis: Axes, title: str, reports: Sequence[Report], grid: bool = True) -> None:
    dress(axis, None, None, grid=grid)
    axis.set_title(title, loc="left", fontsize=NARROW, color=INK, fontweight="bold", pad=3)
    axis.tick_params(labelsize=NARROW - 1, length=2, pad=2)
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.yaxis.set_major_locator(MaxNLocator(3))
    if not reports:
        axis.set_xticks([])
        axis.set_yticks([])
    last = max((report.iteration for report in reports), default=1)
    axis.set_xlim(0.5, max(last, 2) + 0.5)


def _small_legend(axis: Axes, ncols: int = 2) -> None:
    """A legend below the axis, where it cannot cover a curve."""
    axis.legend(
        loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=ncols, fontsize=NARROW - 1.5, frameon=False,
        labelcolor=INK, handlelength=0.9, handletextpad=0.4, columnspacing=0.7, labelspacing=0.2, borderpad=0,
    )  # fmt: skip
