"""Games of random moves."""

import torch

from chessnn_colab.games.base import Game


def random_actions(game: Game, state, generator: torch.Generator) -> torch.Tensor:
    """int64 [B]: in each row a legal action, all equally likely."""
    mask = game.legal_action_mask(state)
    noise = torch.rand(mask.shape, generator=generator)
    return torch.where(mask, noise, -1.0).argmax(1)
