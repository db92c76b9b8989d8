"""The setting of a measurement, a clock that waits for the device, and positions to look at."""

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..config import TrainConfig
from ..devices import choose_dtype
from ..games.base import Game
from ..games.registry import make_game
from ..network import SpikingNetwork, build_network
from ..network_config import NetworkConfig

BOARDS_ON_CPU = 128  # as many as a worker has on two cores
BOARDS_ON_GPU = 512


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
        """Games in lockstep, as a worker has them where two cores or a GPU play."""
        return self.boards or (BOARDS_ON_CPU if self.device == "cpu" else BOARDS_ON_GPU)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the convolutions."""
        return choose_dtype(self.config.precision, self.device)

    @property
    def network_config(self) -> NetworkConfig:
        """The preset's shape, for the game."""
        return self.config.network_config(self.game)

    def network(self) -> SpikingNetwork:
        """A new network on the device, in evaluation mode."""
        return build_network(self.network_config, self.device).eval()


class Clock:
    """Counts seconds spent inside calls. It waits for a GPU."""

    def __init__(self, device: str):
        self.seconds = 0.0
        self._device = device

    def time(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)`, timed."""
        wait_for(self._device)
        started = time.perf_counter()
        result = function(*args)
        wait_for(self._device)
        self.seconds += time.perf_counter() - started
        return result


def wait_for(device: str) -> None:
    """Return when the device has finished its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device == "mps":
        torch.mps.synchronize()


@torch.no_grad()
def seconds_per_call(function: Callable[[], Any], device: str, seconds: float) -> float:
    """The median over the calls that fit into `seconds`, at least three, after two for warming
    up.
    """
    for _ in range(2):
        function()
    times = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(times) < 3:
        clock = Clock(device)
        clock.time(function)
        times.append(clock.seconds)
    return statistics.median(times)


@torch.no_grad()
def random_observations(game: Game, count: int) -> torch.Tensor:
    """The observations of `random_positions`."""
    return game.observe(random_positions(game, count))


def random_positions(game: Game, count: int) -> Any:
    """`count` positions of random play."""
    kind = "random-plies" if "random-plies" in game.start_shares else "standard"
    return game.starts(count, kind, torch.Generator().manual_seed(0))
