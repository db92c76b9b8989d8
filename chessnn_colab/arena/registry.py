"""The matches of every game, by the game's name.

A game without a line in ARENA_GAMES can still play from its start position, against a random mover
and against networks.
"""

import torch

from ..devices import playing_device
from ..games.base import Game
from ..games.registry import family, make_game
from .chess.game import CHESS
from .game import ArenaGame
from .gomoku.game import gomoku_game
from .players import RandomPlayer
from .twenty48 import TWENTY48

# Name without options -> a function of the whole name.
ARENA_GAMES = {"chess": lambda name: CHESS, "gomoku": gomoku_game, "2048": lambda name: TWENTY48}


def arena_game(game: str) -> ArenaGame:
    """The players, openings and other parts of the matches of the game with this name."""
    if (make := ARENA_GAMES.get(family(game))) is not None:
        return make(game)
    return ArenaGame(game, {"random": RandomPlayer})


def match_game(name: str, device: torch.device | str = "cpu") -> Game:
    """The rules of a game with the limit on plies that its matches have, on
    devices.playing_device(device). Raises ConfigError for an unknown name.

    For a single board the CPU is the quickest, by arithmetic: a move by a tree of 48 evaluations,
    with proofs, is 61,000 operators on a GPU, at least 0.1 s as one graph. A core evaluates a
    network of preset t4 in about a millisecond.
    """
    return make_game(name, arena_game(name).max_plies, playing_device(device))
