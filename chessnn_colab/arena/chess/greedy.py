"""The fixed player that takes the most valuable piece it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...games.base import select
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
        rows, actions = self.game.legal_actions(state)
        children = self.game.step(select(state, rows), actions)
        scores = state.rewards.new_full((len(state.ply), self.game.num_actions), -torch.inf)
        scores[rows, actions] = -self.game.material.balance(
            children.pieces
        )  # which the opponent sees
        return one_of_the_best(scores, generator)
