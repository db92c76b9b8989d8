"""Tiny runs: the settings of one that trains in a moment; and a run folder with snapshots of
networks that were never trained, which is what measuring needs.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import torch

from chessnn_colab.config import TrainConfig
from chessnn_colab.network import SpikingNetwork, build_network, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.report import Report
from chessnn_colab.runs.folder import RunFolder

CONFIG = NetworkConfig(channels=8, blocks=1, value_hidden=8)
TICTACTOE = replace(CONFIG, planes=3, height=3, width=3, actions=9)


TINY = dict(
    preset="cpu",
    channels=8,
    blocks=1,
    positions_per_iteration=132,
    boards=3,
    max_plies=16,
    candidates=2,
    survivors=1,
    batch_size=32,
    checkpoint_every=0,
    replay_capacity=400,
    device="cpu",
    precision="float32",
    pool="inline",
    workers=2,
)


def tiny(run, **changes) -> TrainConfig:
    """The settings of a run of two short iterations, with `changes`."""
    return TrainConfig(**{**TINY, "run": str(run), "iterations": 2, **changes})


def opinionated(config: NetworkConfig = CONFIG, seed: int = 0) -> SpikingNetwork:
    """A network that prefers some moves to others: its weights are disturbed."""
    network = build_network(config, "cpu").eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=generator))
    return network


def write_reports(path: Path | str, reports: Iterable[Report], config: dict | None = None) -> Path:
    """A run folder at `path`, new or there already, that has these reports."""
    with RunFolder.create_or_open(path, config or {}) as run:
        for report in reports:
            run.append_report(asdict(report))
    return Path(path)


def make_run(
    path: Path, iterations: tuple[int, ...], game: str = "chess", config: NetworkConfig = CONFIG
) -> str:
    """Snapshots 0, ... whose weights differ from each other and from run to run; returns the folder
    as text.
    """
    with RunFolder.create_or_open(path, {} if game == "chess" else {"game": game}) as run:
        for iteration in iterations:
            network = opinionated(config, iteration + len(path.name))
            run.save_snapshot(
                iteration, to_arrays(network), {"game": game, "network": config.to_dict()}
            )
    return str(path)
