"""Before a run starts: how strong it is likely to get by when, and how much disk it takes."""

from __future__ import annotations

import math
import shutil

import numpy as np
import torch

from ..config import TrainConfig, saved_config
from ..devices import detect_device, inventory
from ..games.registry import make_game
from ..network import SpikingNetwork
from ..records import GameRecords
from ..replay import FIELDS, window_size
from ..runs.files import absolute
from ..runs.folder import KEEP_CHECKPOINTS
from ..runs.run_list import megabytes
from .story import reference_for

MANY = 10_000_000  # positions, some three hours on two cores
MOMENTS = (1.0, 3.0, 10.0, 20.0, 60.0, 180.0)  # minutes


def what_to_expect(config: TrainConfig) -> str:
    """Lines that say which preset is chosen and why, how strong a run of `config` is likely to get,
    and how much disk it takes. Raises ConfigError and DeviceError.

    The disk is computed from the settings. The strength is that of the reference run that comes
    with the package, on the machine that it names; without one for this game and preset there is
    no line about strength.
    """
    machine = inventory()
    device = detect_device(config.device, machine, gpus=config.gpus).device
    plan = config.worker_plan(device, machine)
    lines: list[str] = []
    resolved = config.resolve(device, machine, plan, saved_config(config.run), lines.append)
    if reference := reference_for(resolved.to_dict()):
        lines.append(f"A normal run on {reference['machine']} ({reference['date']}):")
        for measure, points in reference["curves"].items():
            lines.append(f"  {measure}: {_by_minutes(points, config.minutes)}")
    game = make_game(config.game, config.max_plies)
    with torch.device("meta"):  # shapes without memory
        network = SpikingNetwork(resolved.network_config(game), portable=True)
    weights = sum(tensor.numel() * 4 for tensor in network.state_dict().values())
    moments = 2 * sum(parameter.numel() * 4 for parameter in network.parameters())
    empty = GameRecords.empty(game.packed_words)
    position = 0  # bytes
    for name in FIELDS:
        array = getattr(empty, name)
        position += array.itemsize * math.prod(array.shape[1:])
    window = window_size(MANY, resolved.positions_per_iteration, resolved.replay_capacity)
    checkpoint = weights + moments + window * position
    disk = megabytes((KEEP_CHECKPOINTS + 1) * checkpoint)  # one more while it is being written
    folder = absolute(config.run)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = megabytes(shutil.disk_usage(existing).free)
    snapshot = megabytes(weights)
    lines.append(
        f"Disk: {disk} after {MANY // 10**6} million positions, and {snapshot} per snapshot; "
        f"{free} are free"
    )
    return "\n".join(lines)


def _by_minutes(points: list[list[float]], minutes: float | None) -> str:
    """The share at a few moments of a curve, between its points in a straight line: "4 % untrained,
    12 % after 3 min, 31 % after 20 min".
    """
    measured, shares = zip(*points)
    end = min(measured[-1], minutes or measured[-1])
    moments = [*(moment for moment in MOMENTS if moment < 0.8 * end), end]
    said = [f"{100 * shares[0]:.0f} % untrained"]
    for moment, share in zip(moments, np.interp(moments, measured, shares)):
        said.append(f"{100 * share:.0f} % after {moment:.3g} min")
    return ", ".join(said)
