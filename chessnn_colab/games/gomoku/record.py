"""A game of Gomoku from the first stone on: what its text form (psq) holds, and how it is played again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import torch

from ...errors import NotationError
from ..base import finished
from .notation import cell_name
from .rules import LARGEST, SMALLEST, Gomoku
from .state import BLACK, EMPTY, WHITE, GomokuState

MAX_BYTES = 1_000_000
EXACTLY_FIVE = "exactly five"  # the rule of a record where six in a row win nothing


@dataclass(frozen=True)
class Record:
    """One game. Black moves first and the players take turns."""

    size: int
    actions: tuple[int, ...]
    black: str = "Black"
    white: str = "White"
    headers: Mapping[str, str] = field(default_factory=dict)  # anything else, by name

    def __post_init__(self) -> None:
        """Raises NotationError for a size that the rules do not have, a cell off the board and a cell used twice."""
        if not SMALLEST <= self.size <= LARGEST:
            raise NotationError(f"a board of {self.size}x{self.size}: expected a size from {SMALLEST} to {LARGEST}")
        seen: set[int] = set()
        for number, action in enumerate(self.actions, 1):
            if not 0 <= action < self.size**2:
                raise NotationError(f"move {number} is off the board of {self.size}x{self.size}")
            if action in seen:
                raise NotationError(f"move {number}, {cell_name(action, self.size)}: there is a stone already")
            seen.add(action)


def position_after(game: Gomoku, actions: Sequence[int]) -> GomokuState:
    """The position, one row, after `actions` from the empty board, as a fresh game: no cap on plies ends it on the way.

    Raises NotationError for a move on a stone, off the board or after the end of the game.
    """
    Record(game.size, tuple(actions))
    state = game.init(1)
    for number, action in enumerate(actions, 1):
        if finished(state):
            raise NotationError(f"move {number}, {cell_name(action, game.size)}: the game has ended before it")
        state = game.unpack(game.pack(game.step(state, torch.tensor([action], device=game.device))))
    return state


def moves_to(stones: Sequence[int]) -> list[int]:
    """Moves from the empty board that lead to `stones`, a row of EMPTY, BLACK and WHITE. Raises NotationError.

    Black's cells and White's are taken in turn, each in ascending order.
    """
    black, white = ([cell for cell, stone in enumerate(stones) if stone == colour] for colour in (BLACK, WHITE))
    if not len(black) - 1 <= len(white) <= len(black):
        raise NotationError(f"{len(black)} black and {len(white)} white stones: expected as many, or one more black")
    return [cell for pair in zip_longest(black, white, fillvalue=EMPTY - 1) for cell in pair if cell >= 0]


def game_record(
    game: Gomoku, start: GomokuState, actions: Sequence[int], ending: int, result: int, headers: Mapping[str, str]
) -> Record:
    """A finished game as a record (see registry.game_text). Raises NotationError for a move that is not legal."""
    line = [*moves_to(start.board[0].tolist()), *actions]
    position_after(game, line)
    winner = f"{game.player_names[0 if result > 0 else 1]} wins" if result else "no winner"
    names = {"black": "Black", "white": "White"}
    players = {key: headers[name] for key, name in names.items() if name in headers}
    told = {name: value for name, value in headers.items() if name not in names.values()}
    told["Rule"] = EXACTLY_FIVE if game.exact else "five or more"
    return Record(game.size, tuple(line), **players, headers={**told, "Ending": f"{game.endings[ending]}, {winner}"})


def check_size(text: str, kind: str) -> None:
    """Raises NotationError for a text that is too long to be one game."""
    if len(text) > MAX_BYTES:
        raise NotationError(f"{kind} of {len(text):,} characters: expected at most {MAX_BYTES:,}")
