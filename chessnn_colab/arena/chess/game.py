"""The players, openings, puzzles and engines of chess."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import chess

from ...games.chess.notation import move_from_action, state_from_boards
from ...games.chess.rules import Chess, ChessState
from ..game import ArenaGame
from ..games_folder import GamesFolder
from ..players import RandomPlayer
from ..result import Opening
from .engine import parse_engine
from .greedy import GreedyPlayer
from .match_pgn import match_text
from .minimax import MinimaxPlayer
from .openings import BOOK, board_after
from .tactics import NUM_PUZZLES, make_suite


def start(game: Chess, openings: Sequence[Opening]) -> tuple[ChessState, list[chess.Board]]:
    """The positions after `openings`, as a state with a row each and as python-chess boards with
    their moves.
    """
    boards = [board_after(opening) for opening in openings]
    return state_from_boards(boards, game), boards


def push(board: chess.Board, action: int) -> None:
    """Play `action` on `board`. Raises NotationError when it is not legal there."""
    board.push(move_from_action(action, board))


CHESS = ArenaGame(
    game="chess",
    players={"random": RandomPlayer, "greedy": GreedyPlayer, "minimax": MinimaxPlayer},
    max_plies=300,
    book=BOOK,
    start=start,
    push=push,
    engine=parse_engine,
    games_folder=partial(GamesFolder, ".pgn", match_text),
    puzzles=make_suite,
    num_puzzles=NUM_PUZZLES,
)


def chess_game(name: str) -> ArenaGame:
    """CHESS; chess has one name."""
    return CHESS
