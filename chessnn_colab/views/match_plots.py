"""The figure of matches: their scores with intervals, before and after training side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .ink import BLUE, DRAWS, INK, ORANGE, PERCENT, dress, new_figure, show

COLOURS = {"wins": BLUE, "draws": DRAWS, "losses": ORANGE}


def show_matches(results: Sequence[Any]) -> None:
    """Show `match_bar` in a notebook; nothing where no match has a game, as when somebody stopped them."""
    if any(result.games for result in results):
        show(match_bar(results), "The results above as bars: games won, drawn and lost, the score and its interval")


def match_bar(results: Sequence[Any]) -> Figure:
    """The score of each match with its 95 % interval, on top of the shares of wins, draws and losses.

    results: `MatchResult`s of arena.result; those against one opponent stand together, such as before and after
    training. One without a game is left out. Raises ValueError when there is none.
    """
    results = [result for result in results if result.wins + result.draws + result.losses]
    if not results:
        raise ValueError("no match to draw: expected at least one match result with a game")
    opponents = list(dict.fromkeys(result.opponent for result in results))
    results = sorted(results, key=lambda result: opponents.index(result.opponent))
    # Half a row of air between opponents, where several networks meet them.
    several = len(results) > len(opponents)
    rows = [row + 0.5 * several * opponents.index(result.opponent) for row, result in enumerate(results)]
    figure = new_figure(9.0, 1.5 + 0.55 * (rows[-1] + 1))
    axis = figure.subplots()
    for row, result in zip(rows, results):
        _draw_match(axis, row, result, labelled=row == 0)
    axis.axvline(0.5, color=INK, lw=0.8, ls=(0, (4, 3)))
    who = (
        f"{result.player} against {result.opponent}" if several else f"against {result.opponent}" for result in results
    )
    axis.set_yticks(rows, [name.replace("iteration 0 ", "untrained ") for name in who])
    axis.set_ylim(rows[-1] + 0.55, -0.55)
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(PERCENT)
    dress(axis, None, None, "share of games; score = wins + half the draws", grid=False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9, labelcolor=INK)
    return figure


def _draw_match(axis: Axes, row: float, result: Any, labelled: bool) -> None:
    """One match's bar, with the score on it and the numbers beside it. labelled: whether it is in the legend."""
    games, left = max(1, result.wins + result.draws + result.losses), 0.0
    for kind, colour in COLOURS.items():
        share = getattr(result, kind) / games
        axis.barh(row, share, left=left, height=0.56, color=colour, alpha=0.75, label=kind if labelled else None)
        left += share
    score, (low, high) = result.score, result.interval
    # Rounding may leave the score a hair outside its interval; an error bar cannot be negative.
    errors = [[max(0.0, score - low)], [max(0.0, high - score)]]
    label = "score, 95 % interval" if labelled else None
    # Bars fill the whole width, so what lies on them is dark on any page.
    axis.errorbar(
        score, row, xerr=errors, fmt="o", color="#222222", ms=6, lw=1.8, capsize=5, label=label, clip_on=False
    )
    counts = f"+{result.wins} ={result.draws} -{result.losses}"
    text = f"{100 * score:.1f} % [{100 * low:.1f}, {100 * high:.1f}]   {counts}"
    axis.annotate(text, (1.02, row), va="center", size=9, color=INK, annotation_clip=False)
