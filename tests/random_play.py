"""Games of random moves, and what a learner is shown of them."""

import numpy as np
import torch

from chessnn_colab.device_probe import batch_of
from chessnn_colab.games.base import Game


def random_actions(game: Game, state, generator: torch.Generator) -> torch.Tensor:
    """int64 [B]: in each row a legal action, all equally likely."""
    mask = game.legal_action_mask(state)
    noise = torch.rand(mask.shape, generator=generator)
    return torch.where(mask, noise, -1.0).argmax(1)


def batch(game: Game, seed: int = 0) -> dict[str, np.ndarray]:
    """32 positions after random moves, as a learner takes them."""
    return batch_of(game, game.starts(32, "random-plies", torch.Generator().manual_seed(seed)))
