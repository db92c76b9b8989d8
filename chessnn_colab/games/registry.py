"""The only door to the games: from a name, as `TrainConfig.game` has it, to the rules.

A game is added by a module (or a folder) beside this one and a line in GAMES. Modules load when first asked for. A name
may go on with options after colons, where the game has some: gomoku:9 is Gomoku on 9x9. A name with other options is
the name of another game to runs and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import torch

from ..errors import ConfigError
from .base import Game, move_list


class Entry(NamedTuple):
    """Where a game's parts are, each as "module:name" below this package."""

    rules: str  # a class: rules(max_plies, device=device)
    variant: str = ""  # a function: the words after the colons of a name such as gomoku:9 -> a class like `rules`
    options: str = ""  # what a name may say after the game's own, for people
    writer: str = ""  # a function like base.move_list, which it replaces
    suffix: str = ".txt"  # of a file that holds what `writer` returns


GAMES: Mapping[str, Entry] = {
    "chess": Entry("chess.rules:Chess", writer="chess.pgn:game_text", suffix=".pgn"),
    "gomoku": Entry("gomoku.rules:Gomoku", "gomoku.rules:variant", "[:SIZE][:exact]", "gomoku.psq:game_text", ".psq"),
    "tictactoe": Entry("tictactoe:TicTacToe"),
    "2048": Entry("twenty48:Twenty48"),
}


def make_game(
    name: str, max_plies: int | None = None, device: torch.device | str = "cpu", reward: str | None = None
) -> Game:
    """The rules of one of GAMES on `device`. `name` may have options after colons.

    max_plies: plies after which a game is truncated; None: after as many as self-play gives it. reward: one of the
    game's `reward_kinds`; None: the first of them. Raises ConfigError for an unknown name or reward and for options
    that the game does not have.
    """
    game = rules(name)
    check_reward(name, reward)
    kind = {} if reward is None else {"reward": reward}
    return game(max_plies or game.self_play_plies, device=device, **kind)


def rules(name: str) -> Any:
    """The class of one of GAMES, whose attributes tell of the game before one is made. Raises ConfigError.

    Its `name` is the one that runs and checkpoints use: gomoku:15 is gomoku, because 15x15 is its own size.
    """
    entry, options = _entry(name), name.split(":")[1:]
    return _load(entry.variant)(options) if options else _load(entry.rules)


def family(name: str) -> str:
    """The line of GAMES that a name belongs to: gomoku for gomoku:9."""
    return name.partition(":")[0]


def check_reward(name: str, reward: str | None) -> None:
    """Raise ConfigError unless `reward` is None or one of the `reward_kinds` of the game with this name."""
    kinds = rules(name).reward_kinds
    if reward is not None and reward not in kinds:
        expected = f"one of {', '.join(kinds)}" if kinds else "none, because it pays no points"
        raise ConfigError(f"reward={reward!r:.60} for the game {name!r}: expected {expected}")


def game_text(game: Game, start: Any, actions: Sequence[int], ending: int, result: int, **headers: str) -> str:
    """A finished game as its players write it down: PGN for chess.

    start: a state with one row, the first position; actions: what was played from there; ending: index into
    `game.endings`; result: +1 when the first player won, -1 when the second did, else 0. Raises NotationError when an
    action is not legal where it was played.
    """
    writer: Callable[..., str] = _load(_entry(game.name).writer) if _entry(game.name).writer else move_list
    return writer(game, start, actions, ending, result, **headers)


def text_suffix(name: str) -> str:
    """What the name of a file with `game_text` ends in, such as ".pgn"."""
    return _entry(name).suffix


def _entry(name: str) -> Entry:
    entry = GAMES.get(family(name))
    if entry is None or (name not in GAMES and not entry.variant):
        known = ", ".join(game + GAMES[game].options for game in GAMES)
        raise ConfigError(f"unknown game {name!r:.60}: expected one of {known}")
    return entry


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f".{module}", __package__), name)
