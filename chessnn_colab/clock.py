"""How long calls take on a device: a GPU is waited for."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def timed(device: str, function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """`function(*args)`, and the seconds until the device has finished its work."""
    _wait_for(device)
    started = time.perf_counter()
    result = function(*args)
    _wait_for(device)
    return result, time.perf_counter() - started


@torch.no_grad()
def seconds_per_call(function: Callable[[], Any], device: str, seconds: float = 0.0) -> float:
    """The median over the calls that fit into `seconds`, at least three, after two for warming
    up.
    """
    for _ in range(2):
        function()
    times = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(times) < 3:
        times.append(timed(device, function)[1])
    return statistics.median(times)


def _wait_for(device: str) -> None:
    if device == "mps":  # torch 2.6 returns early from the general call there
        torch.mps.synchronize()
    elif device != "cpu":
        torch.accelerator.synchronize(device)
