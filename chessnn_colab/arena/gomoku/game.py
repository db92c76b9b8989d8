"""The players, openings, puzzles and engines of Gomoku, for every size and rule."""

import functools
from functools import partial

from ...games.gomoku.notation import parse_cell
from ...games.registry import rules
from ..game import ArenaGame
from ..players import RandomPlayer
from .alphabeta import AlphaBetaPlayer
from .engine import parse_engine
from .heuristic import HeuristicPlayer
from .openings import book
from .tactics import SUITE_SIZE, load_puzzles


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
        opening_actions=lambda opening: [parse_cell(move, variant.size) for move in opening.moves],
        states=lambda boards, game: game.after(boards),
        engine=partial(parse_engine, variant),
        puzzles=load_puzzles if variant.size >= SUITE_SIZE else None,
    )
