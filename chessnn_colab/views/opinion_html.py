"""Show a network's opinion beside a board: its likeliest moves, and the value as a bar and over
time.
"""

import html
from collections.abc import Sequence

from ..arena.opponent import NetworkOpponent, Opinion
from ..branches import Branch
from ..text import percent
from .drawing import Drawing
from .squares import Arrow

TOP_MOVES = 5
LINE_PLIES = 6  # of a line of play
_HEADS = "<tr><td>line of play</td><td>visits</td><td>points</td><td>proof</td></tr>"
# White wins, a draw, Black wins: told apart without colour too.
_OUTCOMES = (
    "background:#fbfbf6;color:#222",
    "background:repeating-linear-gradient(45deg,#9aa7b3 0 5px,#adb9c4 5px 10px);color:#111",
    "background:#2b2f33;color:#fff",
)
_BAR = (
    "display:flex;height:1.5em;border:1px solid #6b7680;border-radius:3px;overflow:hidden;"
    "font-size:12px;line-height:1.5em;text-align:center;max-width:416px"
)
_PART = "overflow:hidden;min-width:0;white-space:nowrap"
GRAPH = 300, 90  # units of the win-rate graph


def arrows(drawing: Drawing, opinion: Opinion) -> list[Arrow]:
    """The likeliest moves: the likelier, the thicker."""
    paths = {action: path for path, action in drawing.clicks()}
    top = list(zip(opinion.actions, opinion.probabilities))[:TOP_MOVES]
    return [
        Arrow(paths[action], share, label=percent(share))
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
    return (
        f"<div>Its likeliest moves for {drawing.players[drawing.turn]}</div>"
        f'<table class="cn-tops">{rows}</table>'
    )


def candidates_html(drawing: Drawing, candidates: Sequence[Branch]) -> str:
    """What a search of this position tried, as a table: lines of play, visits, the points that the
    mover may expect, proofs; "" without any.
    """
    if not candidates:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(_line_text(drawing, branch))}</td><td>{branch.visits}</td>"
        f"<td>{percent((1 + branch.value) / 2)}</td><td>{branch.proof_words()}</td></tr>"
        for branch in candidates[:TOP_MOVES]
    )
    title = f"Where its search looked for {drawing.players[drawing.turn]}"
    return f'<div>{title}</div><table class="cn-tops">{_HEADS}{rows}</table>'


def _line_text(drawing: Drawing, branch: Branch) -> str:
    """The moves of the branch's line of play, which begins here."""
    words = []
    for action in branch.line[:LINE_PLIES]:
        words.append(drawing.move_text(action))
        drawing.push(action)
    for _ in words:
        drawing.pop()
    return " ".join(words)


def value_html(players: Sequence[str], opinion: Opinion) -> str:
    """Win, draw and loss of the first player as one bar; Black's part is dark. It needs no style
    sheet.
    """
    colours = _OUTCOMES[::-1] if players[0] == "Black" else _OUTCOMES
    words = (f"{players[0]} wins", "draw", f"{players[1]} wins")
    spans = "".join(
        f'<span style="flex:{share:.4f} 1 0px;{_PART};{colour}" title="{word}">'
        f"{percent(share) if share >= 0.12 else ''}</span>"
        for word, share, colour in zip(words, opinion.wdl, colours)
    )
    told = ", ".join(f"{word} {percent(share)}" for word, share in zip(words, opinion.wdl))
    return (
        f'<div>{told}</div><div class="cn-wdl" style="{_BAR}" role="img" '
        f'aria-label="{told}">{spans}</div>'
    )


def graph_html(players: Sequence[str], expected: Sequence[float]) -> str:
    """The points that the first player could expect after each ply, from 0 to 1, as a line. It is
    SVG.
    """
    if len(expected) < 2:
        return ""
    width, height = GRAPH
    step = width / (len(expected) - 1)
    points = " ".join(
        f"{step * ply:.1f},{height * (1 - value):.1f}" for ply, value in enumerate(expected)
    )
    told = f"{players[0]}'s expected points after each ply, now {percent(expected[-1])}"
    return (
        f"<div>{html.escape(told)}</div>"
        f'<svg class="cn-graph" viewBox="-2 -4 {width + 8} {height + 8}" role="img" '
        f'aria-label="{html.escape(told)}">'
        f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.4"/><path d="M0 {height / 2}H{width}" stroke="currentColor" '
        f'stroke-opacity="0.5" stroke-dasharray="4 4"/>'
        f'<polyline points="{points}" fill="none" stroke="#1f8a70" stroke-width="2.5"/>'
        f'<circle cx="{width}" cy="{height * (1 - expected[-1]):.1f}" r="4" fill="#1f8a70"/></svg>'
    )


def opinions(drawing: Drawing, network: NetworkOpponent, known: int) -> list[Opinion]:
    """The network's opinion of each position of the game from number `known` on; of a game that is
    over, its result as the last opinion.
    """
    if known > len(drawing.actions):
        return []
    states = drawing.states(known)
    if not drawing.ending():
        return network.opinions(states)
    reward = float(states.pop().rewards[0, 0])
    result = (float(reward > 0), float(reward == 0), float(reward < 0))
    return [*network.opinions(states), Opinion(result, [], [])]
