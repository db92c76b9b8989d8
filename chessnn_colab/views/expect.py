"""What to expect of a run before it starts: how strong it gets by when, and how much of the disk it takes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from ..config import TrainConfig
from ..devices import detect_device, inventory
from ..files import absolute
from ..games.registry import make_game
from ..launch import planned_workers
from ..network import SpikingNetwork
from ..records import GameRecords
from ..runs.shelf import megabytes
from ..selfplay import POLICY_WIDTH
from .curves import Reference
from .story import reference_for

MOMENTS = (1.0, 3.0, 10.0, 20.0, 60.0, 180.0)  # minutes


@dataclass(frozen=True)
class Expectation:
    """What a run is likely to come to; shows itself as a few lines."""

    minutes: float | None
    checkpoint: int  # bytes of one checkpoint whose replay is full
    disk: int  # bytes that the run takes at most, without its snapshots
    snapshot: int  # bytes of one snapshot
    reference: Reference | None
    free: int  # bytes left on the disk of the run folder

    def __str__(self) -> str:
        lines = []
        if self.reference is not None:
            lines.append(f"A normal run on {self.reference['machine']} ({self.reference['date']}):")
            for measure, points in self.reference["curves"].items():
                lines.append(f"  {measure}: {_by_minutes(points, self.minutes)}")
        lines.append(
            f"Disk: at most {megabytes(self.disk)} once its replay is full, and {megabytes(self.snapshot)} per "
            f"snapshot; {megabytes(self.free)} are free"
        )
        return "\n".join(lines)

    __repr__ = __str__


def what_to_expect(config: TrainConfig) -> Expectation:
    """What a run of `config` is likely to come to on this machine. Raises ConfigError and DeviceError.

    The disk is computed from the settings. The strength is that of the run that the package was shipped with, on the
    machine that it names; without one for this game and preset nothing is said of strength.
    """
    machine = inventory()
    device = detect_device(config.device, machine, gpus=config.gpus).device
    settled = config.with_saved().for_device(device, machine, planned_workers(config, device, machine))
    game = make_game(config.game, config.max_plies)
    with torch.device("meta"):  # shapes without memory
        network = SpikingNetwork(settled.network_config(game), portable=True)
    weights = sum(tensor.numel() * 4 for tensor in network.state_dict().values())
    moments = 2 * sum(parameter.numel() * 4 for parameter in network.parameters())
    checkpoint = weights + moments + settled.replay_capacity * position_bytes(game.packed_words)
    kept = settled.keep_checkpoints + 1  # one more while it is being written
    reference, free = reference_for(settled.to_dict()), free_bytes(absolute(Path(config.run).expanduser()))
    return Expectation(config.minutes, checkpoint, kept * checkpoint, weights, reference, free)


def free_bytes(folder: Path) -> int:
    """Bytes left on the disk where `folder` is or will be."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


def position_bytes(packed_words: int) -> int:
    """Bytes that a position takes in a checkpoint's replay."""
    empty = GameRecords.empty(packed_words)
    one = empty.positions.itemsize * packed_words + empty.actions.itemsize
    one += POLICY_WIDTH * (empty.policy_actions.itemsize + empty.policy_weights.itemsize)
    return one + empty.root_values.itemsize + empty.value_targets.itemsize


def _by_minutes(points: list[list[float]], minutes: float | None) -> str:
    """The share at a few moments of a curve: "4 % untrained, 12 % after 3 min, 31 % after 20 min"."""
    end = min(points[-1][0], minutes or points[-1][0])
    moments = [moment for moment in MOMENTS if moment < 0.8 * end] + [end]
    said, told = [f"{100 * points[0][1]:.0f} % untrained"], points[0][0]
    for moment in moments:
        minute, share = [point for point in points if point[0] <= moment * 1.05][-1]
        if minute > told:  # nothing was measured since the moment before
            said.append(f"{100 * share:.0f} % after {moment:.3g} min")
            told = minute
    return ", ".join(said)
