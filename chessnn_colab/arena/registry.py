"""What a game brings to its matches: players, openings, puzzles and more. This is the arena's only door to them.

A game without a line in KITS can still play: against a random mover and against networks, from its start position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from ..devices import playing_device
from ..errors import ConfigError
from ..games.base import Game
from ..games.registry import family, make_game
from .players import Player, RandomPlayer
from .result import Opening

# Game -> a module below this package that has a KIT, or, where a game's name may have options, a function kit(name).
KITS: Mapping[str, str] = {"chess": "chess.kit", "gomoku": "gomoku.kit", "2048": "twenty48"}

# What `MatchKit.require` says is missing.
_PARTS = {
    "engine": "engines to play against",
    "games_folder": "file format for saving match games",
    "puzzles": "puzzles",
    "uci": "UCI protocol",
    "pbrain": "Gomocup protocol",
}


def _from_init(game: Game, openings: Sequence[Opening]) -> tuple[Any, list[Any]]:
    return game.init(len(openings)), [None] * len(openings)


@dataclass(frozen=True)
class MatchKit:
    """What the matches of one game need beyond its rules. A part that is None is a part that the game does not have."""

    game: str
    players: Mapping[str, Callable[[Any], Player]]  # made of a Game, by the name that `--opponent` gives them
    max_plies: int | None = None  # plies after which a match game is drawn; None: the game's own limit
    book: Sequence[Opening] = (Opening("start position", ()),)
    # (game, openings): a state with a row per opening, and a board object per opening for players that want boards.
    start: Callable[[Any, Sequence[Opening]], tuple[Any, list[Any]]] = _from_init
    push: Callable[[Any, int], None] = lambda board, action: None  # plays an action on a board object
    engine: Callable[[str], Player] | None = None  # the player for "engine:PATH"
    games_folder: Callable[[str], Any] | None = None  # a folder by its path; its `save(MatchResult)` keeps all games
    puzzles: Callable[[Any], Any] | None = None  # (game) -> puzzles.Suite
    num_puzzles: int = 0  # in it
    uci: Callable[[str, int | None, str], None] | None = None  # as chess.uci.serve
    pbrain: Callable[[str, int | None, str], None] | None = None  # as gomoku.pbrain.serve

    def require(self, part: str) -> Any:
        """The part with this name. Raises ConfigError when the game does not have it."""
        if getattr(self, part) is None:
            having = [game for game in KITS if getattr(match_kit(game), part) is not None]
            raise ConfigError(f"the game {self.game!r} has no {_PARTS[part]}: expected a run of {' or '.join(having)}")
        return getattr(self, part)


def match_kit(game: str) -> MatchKit:
    """The kit of the game with this name, or the default one, which has the random mover only."""
    if place := KITS.get(family(game)):
        module = import_module(f".{place}", __package__)
        return module.kit(game) if hasattr(module, "kit") else module.KIT
    return MatchKit(game, {"random": RandomPlayer})


def match_game(name: str, device: torch.device | str = "cpu") -> Game:
    """The rules of a game with the limit on plies that its matches have, on playing_device(device).

    Raises ConfigError for an unknown name.
    """
    return make_game(name, match_kit(name).max_plies, playing_device(device))
