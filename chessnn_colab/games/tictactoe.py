"""Tic-tac-toe: the rules of Gomoku on 3x3, where three in a row win. It is the smallest game, whose
true values are known, so that learning can be checked against them.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from .base import random_plies
from .gomoku.rules import Gomoku
from .gomoku.state import GomokuState

MAX_RANDOM_PLIES = 6


class TicTacToe(Gomoku):
    """The rules, with their tables on one device (see Gomoku)."""

    name = "tictactoe"
    title = "tic-tac-toe"
    size = 3
    line = 3
    player_names = ("X", "O")
    num_actions = 9
    observation_shape = (3, 3, 3)
    packed_words = 2
    endings = ("unfinished", "three_in_a_row", "board_full", "truncated")
    start_shares: Mapping[str, float] = {"random-plies": 0.8, "standard": 0.2}
    self_play_plies = 9
    sampling_plies = 9

    def observe(self, state: GomokuState) -> Tensor:
        """float32 [B, 3, 3, 3]: the mover's stones, the opponent's, and all ones, which show where
        the board ends.
        """
        stones = self.stones(state)
        planes = torch.cat((stones, torch.ones_like(stones[:, :1])), 1)
        return planes.float().view(-1, *self.observation_shape)

    def starts(self, count: int, kind: str, generator: torch.Generator) -> GomokuState:
        """`count` start positions: "standard", or "random-plies": 1 to MAX_RANDOM_PLIES uniformly
        random moves, without those that would have ended the game. `generator` is a CPU generator.
        """
        if kind == "standard":
            return self.init(count)
        return self.unpack(self.pack(random_plies(self, count, MAX_RANDOM_PLIES, generator)))
