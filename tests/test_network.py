"""The spiking network: shapes, spikes, folding, portability, precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import profile

from chessnn_colab.bench.network import plain_neurons
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingLayer, SpikingNetwork, actor_copy, build_network, to_arrays
from chessnn_colab.network_config import PRESETS, NetworkConfig
from chessnn_colab.spikes import firing_rates, spike_counts

SMALL = NetworkConfig(channels=16, blocks=2, steps=3, levels=1)
SHORT = NetworkConfig(channels=16, blocks=2)


def planes(batch: int, config: NetworkConfig = SMALL) -> torch.Tensor:
    shape = batch, config.planes, config.height, config.width
    return (torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.3).float()


def alike(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[name], array) for name, array in second.items())


def lively(config: NetworkConfig = SMALL, portable: bool = False) -> SpikingNetwork:
    """A network whose batch norms have a past, so that folding has something to fold."""
    network = (
        build_network(config, "cpu", seed=1)
        if not portable
        else SpikingNetwork(config, portable=True)
    )
    generator = torch.Generator().manual_seed(2)
    for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
        for tensor, low, high in (
            (norm.weight, 0.5, 1.5),
            (norm.bias, -0.3, 0.6),
            (norm.running_mean, -0.5, 0.5),
            (norm.running_var, 0.5, 2.0),
        ):
            tensor.data.uniform_(low, high, generator=generator)
    return network.eval()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_run_forward(name):
    config = PRESETS[name]
    output = build_network(config, "cpu").eval()(planes(2, config))
    assert output.prior_logits.shape == (2, 4672) and output.value_logits.shape == (2, 3)
    assert output.prior_logits.dtype == output.value_logits.dtype == torch.float32


@pytest.mark.parametrize("config", [SMALL, SHORT])
def test_layers_speak_in_spikes_and_every_layer_fires(config):
    network = lively(config)
    for name, counts in spike_counts(network, planes(8)).items():
        assert counts.shape == (config.steps, 8, 16, 8, 8), name
        assert set(counts.unique().tolist()) <= set(range(config.levels + 1)), name
    assert all(0.01 < rate < 0.9 for rate in firing_rates(network, planes(8)).values())


@pytest.mark.parametrize("portable", [True, False])
@pytest.mark.parametrize(
    "steps, levels, reset",
    [
        (6, 1, "soft"),
        (6, 1, "hard"),
        (1, 4, "soft"),
        (1, 2, "soft"),
        (3, 4, "soft"),
        (2, 3, "soft"),
    ],
)
def test_the_fast_neurons_are_spikingjellys_with_its_gradient(steps, levels, reset, portable):
    layer = SpikingLayer(NetworkConfig(steps=steps, levels=levels, reset=reset), portable)
    config = replace(SMALL, steps=steps, levels=levels, reset=reset)
    reference = plain_neurons(build_network(config, "cpu"))
    generator = torch.Generator().manual_seed(0)
    ours = (2 * torch.randn(steps, 4, 8, 8, 8, generator=generator)).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    weights = torch.randn(steps, 4, 8, 8, 8, generator=generator)
    fired, expected = layer(ours), reference(theirs)
    with torch.no_grad():
        assert torch.equal(layer(ours), fired)
    (fired * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.equal(fired, expected) and fired.max() == levels
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("config", [SMALL, SHORT])
def test_folded_actor_equals_the_original_and_leaves_it_alone(config):
    network = lively(config)
    before = to_arrays(network)
    with torch.enable_grad():
        network(planes(4)).value_logits.sum().backward()  # a copy must survive a graph left behind
    actor = actor_copy(network)
    with torch.no_grad():
        ours, theirs = actor(planes(64)), network(planes(64))
    # A membrane within a rounding of its threshold may fall either way; nothing else may differ.
    close = (ours.prior_logits - theirs.prior_logits).abs().amax(1) < 1e-4
    assert close.float().mean() > 0.9
    torch.testing.assert_close(
        ours.value_logits[close], theirs.value_logits[close], atol=1e-4, rtol=1e-4
    )
    assert not any(isinstance(module, nn.BatchNorm2d) for module in actor.modules())
    assert alike(before, to_arrays(network))


def test_state_is_reset_every_forward():
    network = lively()
    with torch.no_grad():
        first = network(planes(5)).prior_logits
        network(planes(9))
        assert torch.equal(network(planes(5)).prior_logits, first)
    for _ in range(2):  # a second backward without a reset would raise
        network(planes(5)).prior_logits.sum().backward()


def step_once(network: SpikingNetwork) -> None:
    network.train()
    output = network(planes(4))
    (output.prior_logits.logsumexp(1).mean() + output.value_logits.logsumexp(1).mean()).backward()
    network.eval()
    with torch.no_grad():
        network(planes(4))
        actor_copy(network)(planes(4))


@pytest.mark.parametrize("portable", [True, False])
def test_a_portable_network_alone_calls_no_spikingjelly_operator(portable):
    """On MPS SpikingJelly's registered neurons raise; the portable path must be plain torch."""
    with profile(acc_events=True) as profiler:
        step_once(lively(portable=portable))
    assert any("sj_" in event.key for event in profiler.key_averages()) != portable


@pytest.mark.parametrize("activation", ["clipped", "relu"])
def test_a_twin_without_spikes_gives_on_numbers_and_learns(activation):
    """The same weights and currents: rounded, limited and as they are."""
    config = replace(SMALL, steps=1, levels=4, activation=activation)
    currents = 9 * torch.rand(1, 2, 16, 8, 8, generator=torch.Generator().manual_seed(0)) - 4
    expected = currents.clamp(min=0, max=4 if activation == "clipped" else None)
    layer, spiking = (
        SpikingLayer(each, portable=True) for each in (config, replace(config, activation="spikes"))
    )
    torch.testing.assert_close(layer(currents), expected)
    assert torch.equal(spiking(currents.clone()), expected.clamp(max=4).round())
    twin, network = (
        build_network(each, "cpu", seed=3)
        for each in (config, replace(config, activation="spikes"))
    )
    assert alike(to_arrays(network), to_arrays(twin))
    twin(planes(4)).value_logits.square().sum().backward()
    assert twin.stem.conv.weight.grad.abs().sum() > 0
    actor = actor_copy(twin)
    with torch.no_grad():
        torch.testing.assert_close(
            actor(planes(4)).value_logits, twin.eval()(planes(4)).value_logits
        )


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"steps": 0}, "steps=0"),
        ({"score_limit": -1.0}, "score_limit="),
        ({"score_limit": float("inf")}, "score_limit="),
        ({"score_limit": "many"}, "score_limit="),
        ({"score_bins": 0}, "score_bins="),
        ({"activation": "gelu"}, "spikes, clipped, relu"),
        ({"activation": "relu", "steps": 4}, "activation='relu' with steps=4: expected steps=1"),
        ({"reset": "hard"}, "reset='hard' with levels=8: expected levels=1"),
        ({"actions": 0}, "actions=0"),
        ({"height": 2.5}, "height=2.5"),
        ({"actions": 4671, "jumps": ((1, 0),) * 73}, "73 jumps for 4671 actions on 64 squares"),
    ],
)
def test_impossible_networks_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        NetworkConfig(**settings)


def test_the_value_head_reads_squares_and_sums():
    """Its first layer is one matrix product with the squares, then the sums over them in eighths,
    then the planes'.
    """
    first = SpikingNetwork(SMALL).value[0]
    generator = torch.Generator().manual_seed(0)
    rates = torch.randint(0, 5, (6, SMALL.channels, 8, 8), generator=generator).float()
    observation = planes(6)
    sums = torch.cat((rates.sum((2, 3)), observation.sum((2, 3))), 1) / 8
    expected = nn.functional.linear(
        torch.cat((rates.flatten(1), sums), 1), first.weight, first.bias
    )
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.testing.assert_close(
            first(rates.contiguous(memory_format=layout), observation),
            expected,
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("jumps", [(), Chess.jumps])
def test_learning_sees_the_same_logits_as_playing(jumps):
    """prior_logits_at computes a few of forward's numbers, and its gradients are those of all of
    them.
    """
    config = NetworkConfig(channels=8, blocks=1, value_hidden=8, jumps=jumps)
    network = build_network(config, "cpu").train()
    nn.init.normal_(network.policy.weight)
    observation = planes(6, config)
    rows, actions = torch.tensor([0, 0, 3, 5, 3]), torch.tensor([0, 4671, 64, 100, 64])
    gradients = []
    for part in (False, True):
        network.zero_grad()
        if part:
            rates, wdl = network.features_and_value(observation)
            logits = network.prior_logits_at(rates, rows, actions)
        else:
            output = network(observation)
            logits, wdl = output.prior_logits[rows, actions], output.value_logits
        (logits.square().sum() + wdl.square().sum()).backward()
        gradients.append([logits, wdl, *(parameter.grad for parameter in network.parameters())])
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device, last", [("cpu", True), ("mps", False)])
def test_memory_format(device, last, monkeypatch):
    if device == "mps":
        monkeypatch.setattr(
            nn.Module,
            "to",
            lambda module, device, memory_format: (
                module
                if memory_format == torch.preserve_format
                else pytest.fail("MPS has channels last only in part")
            ),
        )
    network = build_network(NetworkConfig(channels=8, blocks=1), device)
    assert (
        network.blocks[0].conv1.conv.weight.is_contiguous(memory_format=torch.channels_last) == last
    )
    assert all(array.flags.c_contiguous for array in to_arrays(network).values())
