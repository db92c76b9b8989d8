"""Figures of strength: matches as bars; ratings and puzzles of a run's snapshots, against games
played and minutes trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from ..arena.ladder import Ladder
from ..report import Report
from ..runs.folder import RunFolder
from .style import (
    BLUE,
    COLOURS,
    DASHED,
    DRAWS,
    INK,
    ORANGE,
    PERCENT,
    add_legend,
    dress,
    new_figure,
    show,
)

RESULT_COLOURS = {"wins": BLUE, "draws": DRAWS, "losses": ORANGE}
ON_BARS = "#222222"  # bars fill the whole width, so their marks are dark on any page
NEAR = 40  # rating points


def show_matches(results: Sequence[Any]) -> None:
    """Show `match_bar` in a notebook; nothing when no match has a game, for example because
    somebody stopped them.
    """
    if any(result.games for result in results):
        show(
            match_bar(results),
            "The results above as bars: games won, drawn and lost, the score and its interval",
        )


def match_bar(results: Sequence[Any]) -> Figure:
    """The score of each match with its 95 % interval, on top of the shares of wins, draws and
    losses.

    results: `MatchResult`s of arena.result; those against one opponent stand together, such as
    before and after training. One without a game is left out. Raises ValueError when there is none.
    """
    results = [result for result in results if result.wins + result.draws + result.losses]
    if not results:
        raise ValueError("no match to draw: expected at least one match result with a game")
    opponents = list(dict.fromkeys(result.opponent for result in results))
    results = sorted(results, key=lambda result: opponents.index(result.opponent))
    several = len(results) > len(opponents)
    rows, names = [], []
    for row, result in enumerate(results):
        # Where several networks meet the opponents, half a row of air stands between opponents.
        rows.append(row + 0.5 * several * opponents.index(result.opponent))
        name = f"{result.player} against" if several else "against"
        names.append(f"{name} {result.opponent}".replace("iteration 0 ", "untrained "))
    figure = new_figure(9.0, 1.5 + 0.55 * (rows[-1] + 1))
    axis = figure.subplots()
    for row, result in zip(rows, results):
        _draw_match(axis, row, result, labelled=row == 0)
    axis.axvline(0.5, color=INK, lw=0.8, ls=DASHED)
    axis.set_yticks(rows, names)
    axis.set_ylim(rows[-1] + 0.55, -0.55)
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(PERCENT)
    dress(axis, None, None, "share of games; score = wins + half the draws", grid=False)
    add_legend(figure, "outside upper center", ncols=4)
    return figure


def _draw_match(axis: Axes, row: float, result: Any, labelled: bool) -> None:
    """One match's bar, with the score on it and the numbers beside it. labelled: whether it is in
    the legend.
    """
    games = result.wins + result.draws + result.losses
    left = 0.0
    for kind, colour in RESULT_COLOURS.items():
        share = getattr(result, kind) / games
        label = kind if labelled else None
        axis.barh(row, share, left=left, height=0.56, color=colour, alpha=0.75, label=label)
        left += share
    score = result.score
    low, high = result.interval
    # Rounding may leave the score a hair outside its interval; an error bar cannot be negative.
    errors = [[max(0.0, score - low)], [max(0.0, high - score)]]
    style = {"fmt": "o", "color": ON_BARS, "ms": 6, "lw": 1.8, "capsize": 5, "clip_on": False}
    label = "score, 95 % interval" if labelled else None
    axis.errorbar(score, row, xerr=errors, label=label, **style)
    counts = f"+{result.wins} ={result.draws} -{result.losses}"
    text = f"{100 * score:.1f} % [{100 * low:.1f}, {100 * high:.1f}]   {counts}"
    axis.annotate(text, (1.02, row), va="center", size=9, color=INK, annotation_clip=False)


def strength_curves(ladder: Ladder, run: str | Path) -> Figure:
    """A run's ratings with their 95 % intervals, against games played and against minutes trained.

    The fixed players are dashed lines. A snapshot that the run's reports do not have is left out,
    because its amount of training is not known. Raises RunError when there is no run.
    """
    played = amounts_of_training(run)
    snapshots = {name: number for name, number in ladder.snapshots.items() if number in played}
    ratings = [ladder.ratings.rating(name) for name in snapshots]
    errors = [ladder.ratings.error(name) for name in snapshots]
    figure, panels = _training_panels("rating")
    for column, axis in enumerate(panels):
        amounts = [played[number][column] for number in snapshots.values()]
        axis.errorbar(amounts, ratings, yerr=errors, color=BLUE, marker="o", lw=1.8, capsize=4)
        for rating, names in _fixed_players(ladder).items():
            axis.axhline(rating, color=INK, lw=1, ls=DASHED)
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
            axis.annotate(", ".join(names), (1, rating), color=INK, size=9, **place)
    return figure


def puzzle_curves(shares: Mapping[int, Mapping[str, float]], run: str | Path) -> Figure:
    """The share of puzzles that each snapshot solves, by kind, against games played and against
    minutes trained.

    shares: iteration -> kind of puzzle -> share solved, as arena.puzzles.solved_over_run returns
    it. Raises RunError when there is no run.
    """
    played = amounts_of_training(run)
    iterations = [iteration for iteration in sorted(shares) if iteration in played]
    kinds = list(next(iter(shares.values()), {}))
    figure, panels = _training_panels("puzzles solved")
    for column, axis in enumerate(panels):
        amounts = [played[iteration][column] for iteration in iterations]
        for colour, marker, kind in zip(COLOURS, "osD^v", kinds):
            solved = [shares[iteration][kind] for iteration in iterations]
            label = kind.replace("-", " ")
            axis.plot(amounts, solved, color=colour, marker=marker, ms=5, lw=1.8, label=label)
        axis.set_ylim(-0.02, 1.02)
        axis.yaxis.set_major_formatter(PERCENT)
    add_legend(panels[0], "lower right")
    return figure


def amounts_of_training(run: str | Path) -> dict[int, tuple[float, float]]:
    """Iteration -> games played and minutes trained until then; 0 is before training."""
    amounts = {0: (0.0, 0.0)}
    for values in RunFolder.open(run).read_reports():
        report = Report.from_dict(values)
        amounts[report.iteration] = (report.total_games, report.seconds / 60)
    return amounts


def _fixed_players(ladder: Ladder) -> dict[float, list[str]]:
    """Rating -> the fixed players with this rating, or nearly: their names would overlap."""
    together: dict[float, list[str]] = {}
    for name in ladder.ratings.names:
        if name not in ladder.snapshots:
            rating = ladder.ratings.rating(name)
            near = next((other for other in together if abs(other - rating) < NEAR), rating)
            together.setdefault(near, []).append(name)
    return together


def _training_panels(y: str) -> tuple[Figure, Sequence[Axes]]:
    """A figure with two axes: against games of self-play, and against minutes of training."""
    figure = new_figure(10.0, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    for axis, x in zip(panels, ("games of self-play", "minutes of training")):
        dress(axis, None, y if axis is panels[0] else None, x)
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    return figure, panels
