"""The fixed player that takes the most valuable piece it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...games.chess.rules import Chess, ChessState
from ..players import Player, one_of_the_best


class GreedyPlayer(Player):
    """The move that leaves it with the most material. A random one of the best, if there are
    several.
    """

    name = "greedy"

    def __init__(self, game: Chess):
        self.game = game

    def choose(
        self, state: ChessState, generator: torch.Generator, boards: Sequence[Any] | None = None
    ) -> Tensor:
        mask = self.game.legal_action_mask(state)
        return one_of_the_best(torch.where(mask, self.game.gains(state), -1.0), generator)
