"""Race, a game of a few plies that only tests have: what is general in the arena has to work for it too.

Players take turns to take one of 64 squares. Whoever takes one of the first eight wins; 16 plies are a draw.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from chessnn_colab.games import registry
from chessnn_colab.games.base import finished, where
from chessnn_colab.network_config import NetworkConfig

NETWORK = NetworkConfig(planes=2, actions=64, channels=8, blocks=1, value_hidden=8)


@dataclass(frozen=True)
class RaceState:
    taken: Tensor  # bool [B, 64]
    plies_played: Tensor
    current_player: Tensor
    terminated: Tensor
    truncated: Tensor
    rewards: Tensor
    ending: Tensor


class Race:
    name = "race"
    num_players = 2
    num_actions = 64
    endings = ("unfinished", "arrived", "truncated")
    discount = 0.99

    def __init__(self, max_plies: int = 16, device: torch.device | str = "cpu"):
        self.max_plies, self.device = max_plies, torch.device(device)

    def init(self, batch_size: int) -> RaceState:
        zeros, no = torch.zeros(batch_size, dtype=torch.int64), torch.zeros(batch_size, 64, dtype=torch.bool)
        return RaceState(no, zeros, zeros, no[:, 0], no[:, 0], torch.zeros(batch_size, 2), zeros)

    def step(self, state: RaceState, action: Tensor) -> RaceState:
        taken = state.taken.scatter(1, action.unsqueeze(1), True)
        plies, won = state.plies_played + 1, action < 8
        first = torch.where(won, 1.0 - 2 * state.current_player, 0.0)
        capped = ~won & (plies >= self.max_plies)
        ending = torch.where(won, 1, torch.where(capped, 2, 0))
        after = RaceState(taken, plies, 1 - state.current_player, won, capped, torch.stack((first, -first), 1), ending)
        return where(finished(state), state, after)

    def legal_action_mask(self, state: RaceState) -> Tensor:
        return ~state.taken

    def legal_actions(self, state: RaceState) -> tuple[Tensor, Tensor]:
        return (~state.taken).nonzero(as_tuple=True)

    def observe(self, state: RaceState) -> Tensor:
        planes = torch.stack((state.taken, torch.ones_like(state.taken)), 1)
        return planes.view(-1, 2, 8, 8).to(torch.float32)


@pytest.fixture(scope="module", name="race")
def race_game():
    """The name of the game, in the registry for the tests of one module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "chessnn_colab.games.race", sys.modules[__name__])
        patch.setitem(registry.GAMES, "race", registry.Entry("race:Race"))
        yield "race"
