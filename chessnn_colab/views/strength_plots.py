"""Figures of strength: matches as bars; ratings and puzzles of a run's snapshots, against games
played and minutes trained.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ..arena.ladder import Ladder
from ..arena.result import MatchResult
from ..chances import Calibration
from ..runs.folder import RunFolder
from .style import BLUE, COLOURS, DASHED, DRAWS, INK, ORANGE, PERCENT, legend_above, show, styled

RESULT_COLOURS = {"wins": BLUE, "draws": DRAWS, "losses": ORANGE}
ON_BARS = "#222222"  # bars fill the whole width, so their marks are dark on any page
ON_DARK_PAGES = withStroke(linewidth=4.5, foreground="#FFFFFF")  # around them, for the legend


def show_matches(results: Sequence[Any]) -> None:
    """Show `match_bar` in a notebook, with the results in words for a screen reader; nothing when
    no match has a game, for example because somebody stopped them, or the game is for one player.
    """
    matches = [result for result in results if isinstance(result, MatchResult) and result.games]
    if matches:
        show(match_bar(matches), "\n".join(map(str, matches)))


@styled
def match_bar(results: Sequence[Any]) -> Figure:
    """The score of each match with its 95 % interval, on top of the shares of wins, draws and
    losses.

    results: `MatchResult`s of arena.result; those against one opponent stand together, such as
    before and after training. Each has a game.
    """
    opponents = list(dict.fromkeys(result.opponent for result in results))
    results = sorted(results, key=lambda result: opponents.index(result.opponent))
    names = [f"{result.player} against {result.opponent}" for result in results]
    names = [name.replace("iteration 0 ", "untrained ") for name in names]
    figure = Figure(figsize=(9.0, 1.5 + 0.55 * len(results)))
    axis = figure.subplots()
    for row, result in enumerate(results):
        _draw_match(axis, row, result)
    axis.axvline(0.5, color=INK, lw=0.8, ls=DASHED)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(PERCENT)
    axis.set_xlabel("share of games; score = wins + half the draws")
    axis.grid(False)
    legend_above(axis)
    return figure


def _draw_match(axis: Axes, row: int, result: Any) -> None:
    """One match's bar, with the score on it and the numbers beside it."""
    games = result.wins + result.draws + result.losses
    left = 0.0
    for kind, colour in RESULT_COLOURS.items():
        share = getattr(result, kind) / games
        axis.barh(row, share, left=left, height=0.56, color=colour, label=kind)
        left += share
    low, high = result.interval
    # Rounding may leave the score a hair outside its interval; an error bar cannot be negative.
    errors = [[max(0.0, result.score - low)], [max(0.0, high - result.score)]]
    style = {"fmt": "o", "color": ON_BARS, "ms": 6, "lw": 1.8, "capsize": 5, "clip_on": False}
    with matplotlib.rc_context({"path.effects": [ON_DARK_PAGES]}):
        axis.errorbar(result.score, row, xerr=errors, label="score, 95 % interval", **style)
    counts = f"+{result.wins} ={result.draws} -{result.losses}"
    text = f"{100 * result.score:.1f} % [{100 * low:.1f}, {100 * high:.1f}]   {counts}"
    axis.annotate(text, (1.02, row), va="center", annotation_clip=False)


@styled
def calibration_bars(calibration: Calibration) -> Figure:
    """What a network's search said beside what was played, in five equal parts of the positions:
    from those where it expected least to those where it expected most.
    """
    figure = Figure(figsize=(9.0, 3.5))
    axis = figure.subplots()
    for row, fifth in enumerate(calibration.fifths):
        for side, (kind, shares) in enumerate(fifth.items()):
            bottom = 0.0
            for share, (result, colour) in zip(shares, RESULT_COLOURS.items()):
                label = result if row == side == 0 else None
                axis.bar(3 * row + side, share, 0.9, bottom, color=colour, label=label)
                bottom += share
            word = "said" if kind == "predicted" else kind
            axis.annotate(word, (3 * row + side, 0.02), ha="center", color=ON_BARS)
    axis.set_xticks([])
    axis.set_xlabel("fifths of the positions, by the points that the player to move expected")
    axis.yaxis.set_major_formatter(PERCENT)
    axis.set_ylim(0, 1)
    axis.grid(False)
    legend_above(axis)
    return figure


@styled
def strength_curves(ladder: Ladder, run: str | Path) -> Figure:
    """A run's ratings with their 95 % intervals, against games played and against minutes trained.

    The fixed players are dashed lines. A snapshot that the run's reports do not have is left out,
    because its amount of training is not known. Raises RunError when there is no run.
    """
    played = amounts_of_training(run)
    snapshots = {name: number for name, number in ladder.snapshots.items() if number in played}
    figure, panels = _training_panels("rating")
    for column, axis in enumerate(panels):
        amounts = [played[number][column] for number in snapshots.values()]
        ratings = [ladder.ratings.rating(name) for name in snapshots]
        errors = [ladder.ratings.error(name) for name in snapshots]
        axis.errorbar(amounts, ratings, yerr=errors, color=BLUE, marker="o", lw=1.8, capsize=4)
        fixed = [name for name in ladder.ratings.names if name not in ladder.snapshots]
        for name, colour in zip(fixed, cycle(COLOURS[1:])):
            rating = ladder.ratings.rating(name)
            axis.axhline(rating, color=colour, lw=1.2, ls=DASHED, label=name)
    legend_above(panels[0])
    return figure


@styled
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
        for kind, marker in zip(kinds, "osD^v"):
            solved = [shares[iteration][kind] for iteration in iterations]
            axis.plot(amounts, solved, marker=marker, ms=5, lw=1.8, label=kind.replace("-", " "))
        axis.set_ylim(-0.02, 1.02)
        axis.yaxis.set_major_formatter(PERCENT)
    legend_above(panels[0])
    return figure


def amounts_of_training(run: str | Path) -> dict[int, tuple[float, float]]:
    """Iteration -> games played and minutes trained until then; 0 is before training."""
    amounts = {0: (0.0, 0.0)}
    for report in RunFolder.open(run).reports():
        amounts[report.iteration] = (report.total_games, report.seconds / 60)
    return amounts


def _training_panels(y: str) -> tuple[Figure, Sequence[Axes]]:
    """A figure with two axes: against games of self-play, and against minutes of training."""
    figure = Figure(figsize=(10.0, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    panels[0].set(xlabel="games of self-play", ylabel=y)
    panels[0].xaxis.set_major_formatter("{x:,g}")
    panels[1].set_xlabel("minutes of training")
    return figure, panels
