"""Figures of strength: matches as bars; what was measured of a run's snapshots, against games
played and minutes trained.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ..arena.result import MatchResult
from ..runs.files import AnyPath
from ..runs.folder import RunFolder
from .style import BLUE, DASHED, DRAWS, INK, ORANGE, PERCENT, legend_above, show, styled

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
    names = [name.replace("iteration 0 ", "before training ") for name in names]
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
    left = 0.0
    for kind, colour in RESULT_COLOURS.items():
        share = getattr(result, kind) / result.games
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
def training_curves(
    lines: Mapping[str, Mapping[int, float]],
    run: AnyPath,
    label: str,
    errors: Mapping[int, float] | None = None,
) -> Figure:
    """Lines against the games that a run played and the minutes that it trained.

    lines: name -> iteration -> value; errors: iteration -> half of the interval of the first line.
    An iteration that the run's reports do not have is left out, because its amount of training is
    not known. Raises RunError when there is no run.
    """
    amounts = {0: (0.0, 0.0)}
    for report in RunFolder.open(run).reports():
        amounts[report.iteration] = (report.total_games, report.seconds / 60)
    first = next(iter(lines), "")
    figure = Figure(figsize=(10.0, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    for column, axis in enumerate(panels):
        for (name, values), marker in zip(lines.items(), itertools.cycle("osD^vP")):
            known = [iteration for iteration in sorted(values) if iteration in amounts]
            x = [amounts[iteration][column] for iteration in known]
            y = [values[iteration] for iteration in known]
            bars = [errors[iteration] for iteration in known] if errors and name == first else None
            axis.errorbar(x, y, yerr=bars, label=name, marker=marker, ms=5, lw=1.8, capsize=4)
    panels[0].set(xlabel="games of self-play", ylabel=label)
    panels[0].xaxis.set_major_formatter("{x:,g}")
    panels[1].set_xlabel("minutes of training")
    legend_above(panels[0])
    return figure
