"""Chess puzzles: positions with known answers.

`data/tactics.txt` has a hundred each of mates in one, mates in two and hanging pieces. Its lines
are "kind; FEN; all solving moves". tools/make_tactics.py made it and solved every position
exhaustively.
"""

import chess

from ...games.chess.notation import action_from_move, board_from_fen
from ...games.chess.rules import Chess
from ..game import Puzzle, data_lines


def load_puzzles(game: Chess) -> list[Puzzle]:
    """The package's puzzles: "mate-in-one", "mate-in-two", "hanging-piece"."""
    puzzles = []
    for line in data_lines(__file__, "tactics.txt"):
        kind, fen, moves = line.split("; ")
        board = board_from_fen(fen)
        solutions = [action_from_move(chess.Move.from_uci(move), board) for move in moves.split()]
        puzzles.append(Puzzle(kind, board, frozenset(solutions)))
    return puzzles
