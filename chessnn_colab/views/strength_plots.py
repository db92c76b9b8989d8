"""Figures of how strong the snapshots of a run are: ratings and puzzles, against games played and minutes trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from ..arena.ladder import Ladder
from ..report import Report
from .ink import BLUE, GREEN, INK, ORANGE, PERCENT, PURPLE, RED, dress, new_figure

NEAR = 40  # rating points
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED)


def strength_curves(ladder: Ladder, reports: Sequence[Report]) -> Figure:
    """A run's ratings with their 95 % intervals, against games played and against minutes trained.

    The fixed players are dashed lines. reports: of the run; without one for a snapshot its amount of training is not
    known, and it is left out.
    """
    played = amounts_of_training(reports)
    points = [(name, played[number]) for name, number in ladder.snapshots.items() if number in played]
    ratings = [ladder.ratings.rating(name) for name, _ in points]
    errors = [ladder.ratings.error(name) for name, _ in points]
    figure, axes = _two_panels()
    for column, (axis, what) in enumerate(zip(axes, ("games of self-play", "minutes of training"))):
        amounts = [amount[column] for _, amount in points]
        axis.errorbar(amounts, ratings, yerr=errors, color=COLOURS[0], marker="o", ms=5, lw=1.8, capsize=4)
        _dress(axis, what, "rating" if column == 0 else "")
        for rating, names in _fixed_players(ladder).items():
            axis.axhline(rating, color=INK, lw=1, ls=(0, (4, 3)))
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
            axis.annotate(", ".join(names), (1, rating), color=INK, size=9, **place)
    return figure


def puzzle_curves(shares: Mapping[int, Mapping[str, float]], reports: Sequence[Report]) -> Figure:
    """The share of puzzles that each snapshot solves, by kind, against games played and against minutes trained.

    shares: iteration -> kind of puzzle -> share solved, as arena.puzzles.solved_over_run returns it. reports: as
    for strength_curves.
    """
    played = amounts_of_training(reports)
    iterations = [iteration for iteration in sorted(shares) if iteration in played]
    kinds = list(next(iter(shares.values()), {}))
    figure, axes = _two_panels()
    for column, (axis, what) in enumerate(zip(axes, ("games of self-play", "minutes of training"))):
        amounts = [played[iteration][column] for iteration in iterations]
        for colour, marker, kind in zip(COLOURS, "osD^v", kinds):
            solved = [shares[iteration][kind] for iteration in iterations]
            axis.plot(amounts, solved, color=colour, marker=marker, ms=5, lw=1.8, label=kind.replace("-", " "))
        _dress(axis, what, "puzzles solved" if column == 0 else "")
        axis.set_ylim(-0.02, 1.02)
        axis.yaxis.set_major_formatter(PERCENT)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9, labelcolor=INK)
    return figure


def amounts_of_training(reports: Sequence[Report]) -> dict[int, tuple[float, float]]:
    """Iteration -> games played and minutes trained until then; 0 is before training."""
    return {0: (0.0, 0.0)} | {report.iteration: (report.total_games, report.seconds / 60) for report in reports}


def _fixed_players(ladder: Ladder) -> dict[float, list[str]]:
    """Rating -> the fixed players that have it, or nearly: their names would lie on each other."""
    ratings, together = ladder.ratings, {}
    for name in sorted(set(ratings.names) - set(ladder.snapshots), key=ratings.rating):
        near = next((rating for rating in together if abs(rating - ratings.rating(name)) < NEAR), ratings.rating(name))
        together.setdefault(near, []).append(name)
    return together


def _two_panels() -> tuple[Figure, Sequence[Axes]]:
    figure = new_figure(10.0, 3.8)
    return figure, figure.subplots(1, 2, sharey=True)


def _dress(axis: Axes, x: str, y: str) -> None:
    dress(axis, None, y, x)
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
