"""The parts of a game's matches: players, openings, puzzles and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..games.base import Game
from .players import Player
from .result import Opening

# Part of ArenaGame -> what the message of `require` calls it.
_PARTS = {
    "engine": "engines to play against",
    "games_folder": "file format for saving match games",
    "puzzles": "puzzles",
}


class Suite(NamedTuple):
    """Puzzles of one game, numbered from 0: positions with known answers."""

    game: Game
    kinds: Sequence[str]  # of each puzzle
    # Numbers -> a state with a row per puzzle, and a board object per puzzle for players that want
    # boards.
    start: Callable[[Sequence[int]], tuple[Any, Sequence[Any]]]
    is_right: Callable[[int, int], bool]  # a puzzle's number and an action, 0 or more


def start_from_init(game: Game, openings: Sequence[Opening]) -> tuple[Any, list[Any]]:
    """The game's standard start positions, one per opening, without board objects."""
    return game.init(len(openings)), [None] * len(openings)


def push_nothing(board: Any, action: int) -> None:
    """For a game without board objects."""


@dataclass(frozen=True)
class ArenaGame:
    """The parts of one game's matches. The game does not have a part that is None."""

    game: str
    # Name, as `--opponent` takes it -> a function that makes the player of a Game.
    players: Mapping[str, Callable[[Any], Player]]
    max_plies: int | None = None  # plies after which a match game is drawn; None: the game's limit
    book: Sequence[Opening] = (Opening("start position", ()),)
    # (game, openings) -> a state with a row per opening, and a board object per opening for players
    # that want boards.
    start: Callable[[Any, Sequence[Opening]], tuple[Any, list[Any]]] = start_from_init
    push: Callable[[Any, int], None] = push_nothing  # plays an action on a board object
    engine: Callable[[str], Player] | None = None  # the player for "engine:PATH"
    # Path -> a folder; its `save(MatchResult)` keeps all games of a match.
    games_folder: Callable[[str], Any] | None = None
    puzzles: Callable[[Any], Suite] | None = None  # of a Game
    num_puzzles: int = 0  # in the suite

    def require(self, part: str) -> Any:
        """The part with this name. Raises ConfigError when the game does not have it."""
        found = getattr(self, part)
        if found is None:
            raise ConfigError(
                f"the game {self.game!r} has no {_PARTS[part]}: expected a run of chess or gomoku"
            )
        return found
