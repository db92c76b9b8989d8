"""The operators of a ply on a device: which ones count, and that there are not more than 900."""

import json

import torch

from chessnn_colab.__main__ import main
from chessnn_colab.bench.launches import Kernels
from chessnn_colab.network_config import NetworkConfig

TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)


def counted(function) -> int:
    with Kernels() as kernels:
        function()
    return kernels.parts.total()


def test_what_counts_as_a_kernel():
    numbers, network = torch.zeros(4, 4), torch.nn.Conv2d(1, 1, 1).requires_grad_(False)
    assert counted(lambda: numbers + 1) == 1
    assert counted(lambda: numbers.add_(1)) == 1
    assert counted(lambda: network(numbers.view(1, 1, 4, 4))) == 1
    assert (
        counted(lambda: torch.where(numbers > 0, numbers, 0.0)) == 3
    )  # the comparison, a fill, the choice
    assert counted(lambda: torch.zeros_like(numbers)) == 1
    for view in (
        lambda: numbers.t()[1:].unsqueeze(0).expand(3, -1, -1),
        lambda: torch.empty_like(numbers),
    ):
        assert counted(view) == 0
    assert counted(lambda: numbers.t().contiguous()) == 1


def test_a_ply_of_two_rungs_has_at_most_900_operators(capsys):
    arguments = "bench launches --preset t4 --device cpu --precision float32 --json"
    assert main(arguments.split()) == 0
    found = json.loads(capsys.readouterr().out)
    parts = [found[f"kernels_{part}"] for part in ("rules", "network", "search", "self_play")]
    assert 500 < found["kernels_per_ply"] == sum(parts) <= 900 and min(parts) > 0
    assert sum(found["by_function"].values()) == found["kernels_rules"]
    assert found["by_function"]["legal_moves"] <= 340  # three calls
