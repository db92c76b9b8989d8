"""The only door to the games: from a name, as `TrainConfig.game` has it, to the rules.

A game is added by a module (or a folder) beside this one and a line in GAMES. A name may have
options after colons: gomoku:9 is Gomoku on 9x9. To runs and checkpoints a name with other options
is another game.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..errors import ConfigError
from .base import Game, Moves, move_list
from .chess import pgn
from .chess.rules import Chess
from .gomoku.rules import Gomoku, variant
from .tictactoe import TicTacToe
from .twenty48 import Twenty48


class Entry(NamedTuple):
    """The parts of a game."""

    rules: type[Any]  # made as rules(max_plies, device)
    # The words after the colons of a name such as gomoku:9 -> a class like `rules`.
    variant: Callable[[Sequence[str]], type[Any]] | None = None
    options: str = ""  # what may follow the game's own name, for people
    writer: Callable[..., str] = move_list  # of games, called like base.move_list
    suffix: str = ".txt"  # of a file that holds what `writer` returns


GAMES = {
    "chess": Entry(Chess, writer=pgn.game_text, suffix=".pgn"),
    "gomoku": Entry(Gomoku, variant, "[:SIZE][:exact]"),
    "tictactoe": Entry(TicTacToe),
    "2048": Entry(Twenty48),
}


def make_game(name: str, max_plies: int | None = None, device: torch.device | str = "cpu") -> Game:
    """The rules of one of GAMES on `device`. `name` may have options after colons.

    max_plies: plies after which a game is truncated; None: after as many as self-play gives it.
    Raises ConfigError for an unknown name and for options that the game does not have.
    """
    game = rules(name)
    return game(max_plies or game.self_play_plies, device)


def rules(name: str) -> Any:
    """The class of one of GAMES, whose attributes tell of the game before one is made. Raises
    ConfigError.

    Its `name` is the one that runs and checkpoints use: gomoku:15 is gomoku, because 15x15 is its
    own size.
    """
    entry = _entry(name)
    options = name.split(":")[1:]
    return entry.variant(options) if entry.variant and options else entry.rules


def family(name: str) -> str:
    """The line of GAMES that a name belongs to: gomoku for gomoku:9."""
    return name.partition(":")[0]


def game_text(game: Game, moves: Moves, **headers: str) -> str:
    """A game as text: PGN for chess, else base.move_list.

    In chess, an action that is not legal where it was played raises NotationError.
    """
    return _entry(game.name).writer(game, moves, **headers)


def text_suffix(name: str) -> str:
    """The suffix of a file that holds a `game_text`, such as ".pgn"."""
    return _entry(name).suffix


def _entry(name: str) -> Entry:
    entry = GAMES.get(family(name))
    if entry is None or (name not in GAMES and not entry.variant):
        known = ", ".join(game + GAMES[game].options for game in GAMES)
        raise ConfigError(f"unknown game {name!r:.60}: expected one of {known}")
    return entry
