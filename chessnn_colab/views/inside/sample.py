"""Positions to look at a network with."""

import torch
from torch import Tensor

from ...games.base import concatenate, finished, random_actions
from ...games.chess.rules import Chess

PLIES = 60  # of each game of the sample


def sample_positions(count: int = 3000) -> Tensor:
    """float32 [count, 27, 8, 8]: positions from games of random moves, a third of them from starts
    of a few pieces.
    """
    game = Chess()
    generator = torch.Generator().manual_seed(0)
    found = []
    while sum(map(len, found)) < count:
        starts = (game.starts(96, "standard", generator), game.starts(48, "few-piece", generator))
        state = concatenate(starts)
        for _ in range(PLIES):
            state = game.step(state, random_actions(game.legal_action_mask(state), generator))
            found.append(game.observe(state)[~finished(state)])
    positions = torch.cat(found)
    return positions[torch.randperm(len(positions), generator=generator)[:count]]
