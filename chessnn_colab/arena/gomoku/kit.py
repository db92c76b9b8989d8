"""What Gomoku brings to its matches (see arena.registry), whatever its size and rule."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial

from ...games.base import concatenate
from ...games.gomoku.notation import parse_cell
from ...games.gomoku.record import position_after
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import GomokuState
from ...games.registry import rules
from ..players import RandomPlayer
from ..registry import MatchKit
from ..result import Opening
from .alphabeta import AlphaBetaPlayer
from .board import GomokuBoard
from .engine import parse_engine
from .heuristic import HeuristicPlayer
from .match_psq import GamesFolder
from .openings import book
from .pbrain import serve
from .tactics import NUM_PUZZLES, SUITE_SIZE, make_suite


def start(game: Gomoku, openings: Sequence[Opening]) -> tuple[GomokuState, list[GomokuBoard]]:
    """The positions after `openings`, as a state with a row each and as boards with their moves."""
    lines = [[parse_cell(move, game.size) for move in opening.moves] for opening in openings]
    states = [position_after(game, line) for line in lines]
    return concatenate(states), [GomokuBoard(game.size, game.exact, line) for line in lines]


@functools.cache
def kit(name: str) -> MatchKit:
    """The kit of "gomoku", "gomoku:9" and so on. Raises ConfigError for a name that the rules refuse."""
    variant = rules(name)
    return MatchKit(
        game=variant.name,
        players={
            "random": RandomPlayer,
            "heuristic": HeuristicPlayer,
            "alphabeta2": partial(AlphaBetaPlayer, depth=2),
            "alphabeta4": partial(AlphaBetaPlayer, depth=4),
        },
        book=book(variant.size),
        start=start,
        push=GomokuBoard.push,
        engine=parse_engine,
        games_folder=partial(GamesFolder, variant.size),
        puzzles=make_suite,
        num_puzzles=NUM_PUZZLES if variant.size >= SUITE_SIZE else 0,
        pbrain=serve,
    )
