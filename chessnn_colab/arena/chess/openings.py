"""The openings that chess matches start from: a small fixed book of well-known lines.

Each is played twice, with each player once as White, so that neither player is lucky in what it
gets. `data/openings.txt` has a line for each, "name: moves", in an order that spreads open games,
Sicilians and the other families evenly over the book, so that a short match has all of them too.
"""

import chess

from ...games.chess.notation import action_from_move
from ..game import data_lines
from ..result import Opening


def opening_actions(opening: Opening) -> list[int]:
    """The actions of an opening in SAN, from the standard start."""
    board = chess.Board()
    actions = []
    for move in opening.moves:
        parsed = board.parse_san(move)
        actions.append(action_from_move(parsed, board))
        board.push(parsed)
    return actions


BOOK = tuple(
    Opening(name, tuple(moves.split()))
    for name, moves in (line.split(": ") for line in data_lines(__file__, "openings.txt"))
)
