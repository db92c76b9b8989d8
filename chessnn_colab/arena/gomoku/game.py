"""The players, openings, puzzles and engines of Gomoku, for every size and rule."""

import functools
from functools import partial

from ...games.gomoku.notation import parse_cell
from ...games.gomoku.rules import Gomoku
from ...games.registry import rules
from ..game import ArenaGame
from ..players import RandomPlayer
from ..result import Opening
from .alphabeta import AlphaBetaPlayer
from .engine import parse_engine
from .heuristic import HeuristicPlayer
from .openings import book
from .tactics import SUITE_SIZE, load_puzzles


def board_after(game: Gomoku | type[Gomoku], opening: Opening) -> list[int]:
    """The actions of `opening`, which stand for the position after it: the board objects of
    Gomoku are lists of actions. game: the rules, or their class.
    """
    return [parse_cell(move, game.size) for move in opening.moves]


@functools.cache
def gomoku_game(name: str) -> ArenaGame:
    """For "gomoku", "gomoku:9" and so on. Raises ConfigError for a name that the rules
    refuse.
    """
    variant = rules(name)
    return ArenaGame(
        game=variant.name,
        players={
            "random": RandomPlayer,
            "heuristic": HeuristicPlayer,
            "alphabeta2": partial(AlphaBetaPlayer, depth=2),
            "alphabeta4": partial(AlphaBetaPlayer, depth=4),
        },
        book=book(variant.size),
        board_after=partial(board_after, variant),
        states=lambda boards, game: game.after(boards),
        push=list.append,
        engine=partial(parse_engine, variant),
        opening_actions=partial(board_after, variant),
        puzzles=load_puzzles if variant.size >= SUITE_SIZE else None,
    )
