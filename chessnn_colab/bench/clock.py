"""What every measurement needs: a clock that waits for the device, and positions to look at."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable

import torch

from ..games.chess.rules import Chess


class Clock:
    """Seconds spent inside calls; a GPU is waited for."""

    def __init__(self, device: str):
        self.seconds = 0.0
        self.count = 0
        self._device = device

    def time(self, function: Callable, *args, count: int = 0) -> Any:
        """`function(*args)`, timed; `count` is added to what was done in that time."""
        wait_for(self._device)
        started = time.perf_counter()
        result = function(*args)
        wait_for(self._device)
        self.seconds += time.perf_counter() - started
        self.count += count
        return result

    @property
    def rate(self) -> float:
        return self.count / self.seconds


def wait_for(device: str) -> None:
    """Return when the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


@torch.no_grad()
def evaluation_rate(network: Callable, observation: torch.Tensor, device: str, seconds: float) -> float:
    """Positions a second (see seconds_a_call)."""
    return len(observation) / seconds_a_call(lambda: network(observation), device, seconds)


@torch.no_grad()
def seconds_a_call(function: Callable[[], Any], device: str, seconds: float) -> float:
    """The median over the calls that fit into `seconds`, three at least, after two for warming up."""
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
def random_observations(device: str, count: int) -> torch.Tensor:
    """What a network sees at `count` positions of random play."""
    game = Chess(device=device)
    return game.observe(game.starts(count, "random-plies", torch.Generator().manual_seed(0)))
