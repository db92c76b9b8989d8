"""Playing in int8: spikes equal to sums of whole numbers in numpy, whatever shares the batch; another
precision where a network or a CPU is not made for it.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from chessnn_colab import int8
from chessnn_colab.devices import choose_dtype
from chessnn_colab.games.base import random_plies
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.runs.networks import shipped_networks
from chessnn_colab.spikes import spike_counts

from .counts import full

POSITIONS = full(200, 10_000)
exact_here = pytest.mark.skipif(not int8.is_exact(), reason="this CPU is not made for int8")


@pytest.fixture(scope="module")
def network() -> SpikingNetwork:
    return list(shipped_networks().values())[-1]


def observations(count: int, seed: int = 0) -> torch.Tensor:
    game = Chess()
    return game.observe(random_plies(game, count, 80, torch.Generator().manual_seed(seed)))


def convolved(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, shortcut: np.ndarray | float = 0.0
) -> np.ndarray:
    """A 3x3 convolution of whole numbers with rounded weights: exact sums; then, rounded to float32
    each time, as the kernel does, the shortcut and the bias.
    """
    scales = np.abs(weight).max((1, 2, 3), keepdims=True) / np.float32(127)
    whole = np.rint(weight / scales).astype(np.float64)
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    taps = [(row, column) for row in range(3) for column in range(3)]
    sums = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 8, j : j + 8], whole[:, :, i, j], optimize=True)
        for i, j in taps
    )
    return (sums * scales[..., 0] + shortcut).astype(np.float32) + bias[:, None, None]


def parts(conv: nn.Conv2d) -> tuple[np.ndarray, np.ndarray]:
    assert conv.bias is not None
    return conv.weight.numpy(), conv.bias.numpy()


def reference(network: SpikingNetwork, planes: np.ndarray) -> Iterator[np.ndarray]:
    """The spikes of each layer, input first."""
    folded, levels = actor_copy(network), network.config.levels
    weight, bias = parts(folded.stem.conv)
    scales = np.abs(weight).max((1, 2, 3), keepdims=True) / np.float32(127)
    coarse = np.rint(weight / scales) * scales
    both = np.concatenate((coarse / np.float32(127), weight - coarse), 1)
    x = convolved(np.concatenate((127 * planes, planes), 1), both, bias)
    for block in folded.blocks:
        yield np.rint(x.clip(0, levels))
        y = np.rint(convolved(np.rint(x.clip(0, levels)), *parts(block.conv1.conv)))
        yield y.clip(0, levels)
        x = convolved(y.clip(0, levels), *parts(block.conv2.conv), x)
    yield np.rint(x.clip(0, levels))


@exact_here
def test_spikes_are_sums_of_whole_numbers(network):
    actor = actor_copy(network, torch.int8)
    for first in range(0, POSITIONS, 500):
        planes = observations(min(500, POSITIONS), seed=first)
        found = spike_counts(actor, planes).values()
        for layer, expected in zip(found, reference(network, planes.numpy()), strict=True):
            assert np.array_equal(layer[0].numpy(), expected)


@exact_here
@torch.no_grad()
def test_a_position_does_not_depend_on_its_batch(network):
    actor = actor_copy(network, torch.int8)
    planes = observations(257)
    rates, values = actor.features_and_value(planes)
    for count in (8, 64, 136, 256):
        some = actor.features_and_value(planes[:count])
        assert torch.equal(some[0], rates[:count]) and torch.equal(some[1], values[:count])
    for count in (1, 3, 33):
        assert torch.equal(actor.features_and_value(planes[-count:])[0], rates[-count:])


def clipped(network: SpikingNetwork) -> SpikingNetwork:
    """The same weights, without rounding."""
    twin = SpikingNetwork(replace(network.config, activation="clipped")).eval()
    twin.load_state_dict(network.state_dict())
    return twin


@exact_here
@pytest.mark.parametrize("twin", [lambda network: network, clipped])
@torch.no_grad()
def test_it_sees_what_float32_sees(twin, network):
    """Closer than bfloat16 does; a clipped twin as close as eight bits for 0 to 8 allow."""
    network = twin(network)
    planes = observations(POSITIONS)
    exact, halved, ours = (
        actor_copy(network, dtype)(planes).value_logits.softmax(1)
        for dtype in (torch.float32, torch.bfloat16, torch.int8)
    )
    allowed = 1.1 * (halved - exact).abs().mean() if twin is not clipped else 0.01
    assert (ours - exact).abs().mean() < allowed


@pytest.mark.parametrize(
    "change", [{"levels": 1}, {"levels": 128}, {"steps": 4}, {"activation": "relu"}]
)
def test_other_networks_play_as_before(change, monkeypatch):
    monkeypatch.setattr(int8, "is_exact", lambda: True)
    config = NetworkConfig()
    assert int8.playing_dtype("auto", "cpu", config) is torch.int8
    assert int8.playing_dtype("auto", "cpu", replace(config, activation="clipped")) is torch.int8
    assert int8.playing_dtype("bfloat16", "cpu", config) is torch.bfloat16
    assert int8.playing_dtype("auto", "mps", config) is torch.float32
    played = int8.playing_dtype("auto", "cpu", replace(config, **change))
    assert played is choose_dtype("auto", "cpu")


made_for_it = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


@pytest.mark.skipif(not made_for_it or int8.cpu_has("amx_tile"), reason="another kind of CPU")
def test_the_probe_passes_here():
    assert int8.is_exact()


@pytest.mark.parametrize("fault", ["no AVX2", "AMX", "no operator", "a sum is one less"])
def test_a_cpu_that_is_not_made_for_it_plays_as_before(fault, monkeypatch):
    amx, units = fault == "AMX", "NO AVX" if fault == "no AVX2" else "AVX2"
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: units)
    if fault == "no operator":
        monkeypatch.setattr(torch.ops, "onednn", None)
    if fault == "a sum is one less":
        right = int8.Int8Conv.forward

        def wrong(self, spikes, shortcut=None):
            found = right(self, spikes, shortcut)
            found[0, 3, 2, 1] -= 1 / 127
            return found

        monkeypatch.setattr(int8.Int8Conv, "forward", wrong)
    monkeypatch.setattr(int8, "is_exact", int8.is_exact.__wrapped__)
    assert int8.playing_dtype("auto", "cpu", NetworkConfig()) is choose_dtype("auto", "cpu")
