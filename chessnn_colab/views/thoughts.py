"""What a network thinks of a game, beside the board: its likeliest moves, the value as a bar, the value over time."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..arena.opponent import NetworkOpponent, Opinion
from .drawings import Drawing
from .squares import Arrow

TOP_MOVES = 5
GRAPH = 300, 90  # units of the win-rate graph


def percent(share: float) -> str:
    """A share as people say it; what is not nothing is never called nothing."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def arrows(drawing: Drawing, opinion: Opinion) -> list[Arrow]:
    """The likeliest moves: the likelier, the thicker."""
    paths = {action: path for path, action in drawing.clicks()}
    top = list(zip(opinion.actions, opinion.probabilities))[:TOP_MOVES]
    return [
        Arrow(paths[action], share / top[0][1], label=percent(share))
        for action, share in reversed(top)
        if action in paths
    ]


def top_moves_html(drawing: Drawing, opinion: Opinion) -> str:
    """The likeliest moves with their probabilities, as a table; "" when the game is over."""
    if not opinion.actions:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(drawing.move_text(action))}</td><td>{percent(share)}</td></tr>"
        for action, share in list(zip(opinion.actions, opinion.probabilities))[:TOP_MOVES]
    )
    return f'<div>Its likeliest moves for {drawing.players[drawing.turn]}</div><table class="cn-tops">{rows}</table>'


def value_html(players: Sequence[str], opinion: Opinion) -> str:
    """Win, draw and loss of the first player as one bar."""
    words = (f"{players[0]} wins", "draw", f"{players[1]} wins")
    spans = "".join(
        f'<span style="flex:{share:.4f} 1 0px" title="{word}">{percent(share) if share >= 0.12 else ""}</span>'
        for word, share in zip(words, opinion.wdl)
    )
    told = ", ".join(f"{word} {percent(share)}" for word, share in zip(words, opinion.wdl))
    return f'<div>{told}</div><div class="cn-wdl" role="img" aria-label="{told}">{spans}</div>'


def graph_html(players: Sequence[str], expected: Sequence[float]) -> str:
    """The points that the first player could expect after each ply, from 0 to 1, as a line. It is SVG."""
    if len(expected) < 2:
        return ""
    width, height = GRAPH
    step = width / (len(expected) - 1)
    points = " ".join(f"{step * ply:.1f},{height * (1 - value):.1f}" for ply, value in enumerate(expected))
    told = f"{players[0]}'s expected points after each ply, now {percent(expected[-1])}"
    return (
        f'<div>{html.escape(told)}</div><svg class="cn-graph" viewBox="-2 -4 {width + 8} {height + 8}" role="img" '
        f'aria-label="{html.escape(told)}"><rect width="{width}" height="{height}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.4"/><path d="M0 {height / 2}H{width}" stroke="currentColor" stroke-opacity="0.5" '
        f'stroke-dasharray="4 4"/><polyline points="{points}" fill="none" stroke="#1f8a70" stroke-width="2.5"/>'
        f'<circle cx="{width}" cy="{height * (1 - expected[-1]):.1f}" r="4" fill="#1f8a70"/></svg>'
    )


def opinions(drawing: Drawing, network: NetworkOpponent, known: int) -> list[Opinion]:
    """The network's opinion of each position of the game from number `known` on; of the end, how it ended."""
    actions, states = list(drawing.actions), []
    try:
        for _ in actions[known:]:
            drawing.pop()
        for action in actions[known:]:
            states.append(drawing.state())
            drawing.push(action)
    finally:  # an interrupt loses no moves
        for action in actions[len(drawing.actions) :]:
            drawing.push(action)
    if known > len(actions):
        return []
    if not drawing.ending():
        return network.opinions([*states, drawing.state()])
    reward = float(drawing.state().rewards[0, 0])
    return [*network.opinions(states), Opinion((float(reward > 0), float(reward == 0), float(reward < 0)), (), ())]
