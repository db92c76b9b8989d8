"""The players, openings, puzzles and engines of chess."""

import chess

from ...games.chess.notation import move_from_action, state_from_boards
from ..game import ArenaGame
from ..players import RandomPlayer
from ..result import Opening
from .engine import parse_engine
from .greedy import GreedyPlayer
from .minimax import MinimaxPlayer
from .openings import BOOK, opening_actions
from .tactics import load_puzzles


def push(board: chess.Board, action: int) -> None:
    """Play `action` on `board`. Raises NotationError when it is not legal there."""
    board.push(move_from_action(action, board))


CHESS = ArenaGame(
    game="chess",
    players={"random": RandomPlayer, "greedy": GreedyPlayer, "minimax": MinimaxPlayer},
    max_plies=300,
    book=BOOK,
    opening_actions=opening_actions,
    new_board=chess.Board,
    push=push,
    states=state_from_boards,
    engine=parse_engine,
    puzzles=load_puzzles,
    one_position=Opening("White's knight can take the queen", ("e4", "e5", "Nf3", "Qh4")),
)
