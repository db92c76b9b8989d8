"""The setting of a measurement, and positions to look at."""

import functools
from dataclasses import dataclass
from typing import Any

import torch

from ..config import TrainConfig
from ..games.base import Game, random_plies
from ..games.registry import make_game
from ..int8 import playing_dtype
from ..network import SpikingNetwork, build_network
from ..network_config import NetworkConfig
from ..presets import usual_boards

RANDOM_PLIES = 16  # before a position of random play, at most
Figures = dict[str, Any]  # by name


@dataclass(frozen=True)
class Setting:
    """A game and a run's settings, measured on a device for about `seconds`."""

    device: str
    config: TrainConfig
    seconds: float
    boards: int | None = None  # games in lockstep, positions in network; None: each bench's own

    @functools.cached_property
    def game(self) -> Game:
        """The game's rules on the device."""
        return make_game(self.config.game, self.config.max_plies, self.device)

    @property
    def lockstep_boards(self) -> int:
        """Games in lockstep, as a worker has them."""
        return self.boards or usual_boards(self.device)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the convolutions."""
        return playing_dtype(self.config.precision, self.device, self.network_config)

    @property
    def network_config(self) -> NetworkConfig:
        """The preset's shape, for the game."""
        return self.config.network_config(self.game)

    def network(self) -> SpikingNetwork:
        """A new network on the device, in evaluation mode."""
        return build_network(self.network_config, self.device).eval()


def random_positions(game: Game, count: int) -> Any:
    """`count` positions of random play."""
    return random_plies(game, count, RANDOM_PLIES, torch.Generator().manual_seed(0))
