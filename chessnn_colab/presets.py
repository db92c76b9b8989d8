"""Which preset a new run gets: by the device, its free memory and the minutes."""

from __future__ import annotations

from dataclasses import dataclass

from .devices import Gpu, Inventory, WorkerPlan, free_memory
from .network_config import PRESETS


@dataclass(frozen=True)
class Size:
    """What a preset asks of a GPU and of a session."""

    worthwhile: float  # million positions; a session that makes fewer takes a smaller network
    memory: float  # GB of a GPU that learns and plays
    pace: tuple[float, float, float]  # thousand positions per second of the GPUs in KINDS


# Pace: estimates of the whole loop on one GPU. docs/speed.md ("On a GPU: estimates") multiplies
# them out; nobody has measured one.
#
# Worthwhile: with 32 channels five blocks are level with three after 3.2 and 4.5 million positions
# (LOG.md, "Does growing pay?", four times). So nothing larger than cpu is taken below 5 million.
# For the sizes above we have no measurement. KataGo's run g170 played its last games with 6 blocks
# of 96 channels after 26.8 million positions, and with 10 of 128 after 67.4 million (the table of
# networks in its README); then it went on with 10 of 128 and 15 of 192, which are a100 and h100.
#
# Memory: what an update of 1,024 positions in half precision keeps for its gradients (counted:
# 0.5, 1.8 and 4.5 GB), weights and optimizer, two processes with 0.4 GB of CUDA each, 512 games,
# and cuDNN's work space while it chooses; rounded up.
SIZES = {
    "t4": Size(5, 3, (8.4, 40.8, 66.1)),
    "a100": Size(27, 5, (1.9, 9.3, 29.5)),
    "h100": Size(67, 9, (0.7, 3.2, 10.1)),
}
KINDS = ("T4", "A100", "H200")
LEARNING = 0.45  # of the time of an iteration with one player (LOG.md, 2026-11-23)


def choose_preset(
    device: str, machine: Inventory, plan: WorkerPlan, minutes: float
) -> tuple[str, str]:
    """The name of the largest preset that fits a run's first `minutes`, and why, in a sentence.

    It fits when every GPU that learns or plays has the memory free, and when as many positions are
    made as this size needs to pay.
    """
    if device == "mps":
        # By arithmetic a base M2 is slower with t4 than its own CPU with cpu.
        return "cpu", _sentence("cpu", "no Apple GPU has been measured with a larger one")
    if "cpu" in (device, plan.devices[0]):
        return "cpu", _sentence("cpu", "cores are too slow for a larger one")
    names = {device, *plan.devices}
    gpus = [gpu for gpu in machine.gpus if f"cuda:{gpu.index}" in names]
    kind = min(kind_of(gpu) for gpu in gpus)
    free = min(free_memory(f"cuda:{gpu.index}", gpu.memory) for gpu in gpus) / 1e9
    players = max(len(plan.devices) // plan.workers_per_gpu, 1)
    seconds = 60 * minutes / ((1 - LEARNING) / players + LEARNING)
    reason = ""
    for name in reversed(SIZES):
        size = SIZES[name]
        if free < size.memory:
            reason = f"{name} needs {size.memory:g} GB of a GPU, and {free:.1f} GB are free"
            continue
        millions = size.pace[kind] * seconds / 1000
        made = (
            f"{minutes:g} minutes with {name} make about {millions:.1f} million positions "
            f"(an estimate), and it pays from {size.worthwhile:g} million on"
        )
        if millions >= size.worthwhile:
            return name, _sentence(name, made)
        reason = made
    return "cpu", _sentence("cpu", reason)


def kind_of(gpu: Gpu) -> int:
    """The place in KINDS of a GPU that is about as fast as this one, or faster."""
    if gpu.memory < 30 * 2**30:
        return 0
    # An A100 of 80 GB has as much memory as an H100: the generation tells them apart.
    return 2 if gpu.memory > 70 * 2**30 and gpu.capability >= (9, 0) else 1


def _sentence(name: str, reason: str) -> str:
    shape = PRESETS[name]
    return f"Preset {name} ({shape.channels} channels, {shape.blocks} blocks): {reason}"
