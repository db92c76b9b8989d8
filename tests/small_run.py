"""A run folder with snapshots of tiny networks, never trained: what measuring needs, in a
moment.
"""

from dataclasses import replace
from pathlib import Path

import torch

from chessnn_colab.network import build_network, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.runs.folder import RunFolder

CONFIG = NetworkConfig(channels=8, blocks=1, value_hidden=8)
TICTACTOE = replace(CONFIG, planes=3, height=3, width=3, actions=9)


def make_run(
    path: Path, iterations: tuple[int, ...], game: str = "chess", config: NetworkConfig = CONFIG
) -> str:
    """Snapshots 0, ... whose weights differ from each other and from run to run; returns the folder
    as text.
    """
    with RunFolder.create_or_open(path, {} if game == "chess" else {"game": game}) as run:
        for iteration in iterations:
            network = build_network(config, "cpu")
            generator = torch.Generator().manual_seed(iteration + len(path.name))
            with torch.no_grad():
                for weights in network.parameters():
                    weights.add_(0.3 * torch.randn(weights.shape, generator=generator))
            run.save_snapshot(
                iteration, to_arrays(network), {"game": game, "network": config.to_dict()}
            )
    return str(path)
