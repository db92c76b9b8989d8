"""The network run spike by spike (tools/event_driven.py) fires exactly what the package computes at
one go.

The whole count: python tools/event_driven.py RUN --positions 10000
"""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from chessnn_colab.errors import ConfigError
from chessnn_colab.layers import ConvNorm
from chessnn_colab.network import build_network
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.spikes import estimate_energy, without_waiting

from .test_network import lively

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from event_driven import (
    EventDriven,
    compare,
    differing,
    in_float64,
    main,
    package_spikes,
    positions,
)

CONFIG = NetworkConfig(channels=16, blocks=2)


def strong(config: NetworkConfig = CONFIG):
    """A network whose currents are large enough for several spikes."""
    network = lively(config)
    for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
        norm.weight.data *= 4
    return network


def counts(network, observation):
    """What the package fires in float64, and what the events fire, [B, channels, H, W] by layer."""
    fired, _ = EventDriven(network).run(observation)
    return package_spikes(in_float64(network), observation), {
        name: steps.sum(0) for name, steps in fired.items()
    }


@pytest.mark.parametrize("levels", [2, 3, 4, 8])
def test_every_layer_fires_the_same_spikes(levels):
    network = strong(NetworkConfig(channels=16, blocks=2, levels=levels))
    package, events = counts(network, positions(48))
    assert len(package) == 5
    for name, spikes in package.items():
        assert torch.equal(spikes, events[name].double()), name
        assert spikes.max() > 1 and 0 < spikes.mean() < levels, name


def test_a_spike_is_one_per_neuron_and_step_and_a_neuron_fires_its_spikes_first():
    fired, _ = EventDriven(strong()).run(positions(16))
    for name, steps in fired.items():
        assert steps.dtype == torch.bool and steps.shape == (8, 16, 16, 8, 8), name
        assert torch.equal(steps, steps.to(torch.int8).cummin(0).values.bool()), name


def with_ties() -> nn.Module:
    """A network of exact halves: every current is a multiple of a half, so that a quarter of the
    neurons tie.
    """
    network = build_network(CONFIG, "cpu", seed=3).eval()
    generator = torch.Generator().manual_seed(4)
    for module in network.modules():
        if isinstance(module, ConvNorm):
            halves = torch.randint(-3, 4, module.conv.weight.shape, generator=generator) / 2
            sparse = torch.rand(halves.shape, generator=generator) < 0.05
            module.conv.weight.data = torch.where(sparse, halves, 0.0)
            module.norm.eps = 0.0
            module.norm.weight.data.fill_(1.0)
            module.norm.bias.data = (
                torch.randint(0, 3, module.norm.bias.shape, generator=generator) / 2
            )
    return network


def test_ties_go_to_the_even_number_of_spikes():
    network, observation = with_ties(), positions(32)
    package, events = counts(network, observation)
    assert not any(differing(package, events).values())
    currents = network.stem.double()(observation.double())
    for tie, spikes in ((0.5, 0), (1.5, 2), (2.5, 2), (3.5, 4)):
        tied = currents == tie
        assert tied.any(), tie
        assert (events["blocks.0.neurons1"][tied] == spikes).all(), tie


def test_additions_are_the_weights_that_spikes_bring():
    """Counted tap by tap, and a little below the estimate, which counts taps beyond the edge of the
    board too.
    """
    network, observation = strong(), positions(16)
    fired, additions = EventDriven(network).run(observation)
    taps = nn.functional.conv2d(
        torch.ones(1, 1, 8, 8), torch.ones(1, 1, 3, 3), padding=1
    )  # neighbours of each square
    inputs = {"stem": observation, "blocks.0.conv1": fired["blocks.0.neurons1"].sum(0)}
    for name, spikes in inputs.items():
        assert additions[name] == int((spikes * taps).sum()) * 16, name
    total, estimate = (
        sum(additions.values()) / 16,
        estimate_energy(network, observation).synaptic_operations,
    )
    assert 0.8 * estimate < total < estimate


def test_the_other_forms_are_compared_and_differ():
    """float32 next to never, bfloat16 and firing without waiting often; only float64 is equal."""
    totals = compare(strong(), positions(32))
    neurons = sum(totals["neurons"].values())
    shares = {
        form: sum(totals[form].values()) / neurons
        for form in ("float64", "float32", "bfloat16", "pipelined")
    }
    assert shares["float64"] == 0 and shares["float32"] < 1e-4
    assert 1e-4 < shares["bfloat16"] < shares["pipelined"] < 0.5
    assert totals["pipelined"]["blocks.0.neurons1"] == 0  # it has its whole input at once


def pipelined(events: EventDriven, observation: torch.Tensor) -> dict[str, torch.Tensor]:
    """The event-driven network without waiting: in each of `levels` steps every layer takes one
    step's spikes and fires. Spikes come as in EventDriven.run.
    """
    config, batch = events.config, len(observation)
    start = events.rest(batch) + events.biases["stem"]
    events.add("stem", start, observation.bool())
    names = [f"blocks.{block}.neurons{half}" for block in range(config.blocks) for half in (1, 2)]
    membranes = {name: events.rest(batch) for name in (*names, "neurons")}
    counts = {name: events.rest(batch).byte() for name in membranes}
    fired: dict[str, list[torch.Tensor]] = {name: [] for name in membranes}
    for step in range(config.levels):
        arriving = (
            start if step == 0 else torch.zeros_like(start)
        )  # what joins the shortcut in this step
        for block in range(config.blocks):
            first, second = f"blocks.{block}.neurons1", f"blocks.{block}.neurons2"
            membranes[first] += arriving
            fired[first].append(events.fire_once(membranes[first], counts[first]))
            membranes[second] += events.biases[f"blocks.{block}.conv1"] if step == 0 else 0
            events.add(f"blocks.{block}.conv1", membranes[second], fired[first][-1])
            fired[second].append(events.fire_once(membranes[second], counts[second]))
            arriving = (
                arriving + events.biases[f"blocks.{block}.conv2"] if step == 0 else arriving.clone()
            )
            events.add(f"blocks.{block}.conv2", arriving, fired[second][-1])
        membranes["neurons"] += arriving
        fired["neurons"].append(events.fire_once(membranes["neurons"], counts["neurons"]))
    return {name: torch.stack(steps) for name, steps in fired.items()}


def steps_without_waiting(network, observation, steps, **options):
    """The spikes so far [B, channels, H, W] by layer, after each step of the package's pipeline."""
    exact = in_float64(network)
    with without_waiting(exact, **options):
        return [package_spikes(exact, observation) for _ in range(steps)]


@pytest.mark.parametrize("make", [strong, with_ties])
def test_without_waiting_the_package_fires_what_the_events_fire_in_every_step(make):
    network, observation = make(), positions(32)
    events = pipelined(EventDriven(network), observation)
    for step, counts in enumerate(steps_without_waiting(network, observation, 8), 1):
        for name, spikes in counts.items():
            assert torch.equal(spikes, events[name][:step].sum(0).double()), (name, step)


@pytest.mark.parametrize("make", [strong, with_ties])
def test_spikes_that_can_be_taken_back_end_as_if_every_layer_had_waited(make):
    network, observation = make(), positions(32)
    waiting = package_spikes(in_float64(network), observation)
    most = 8 * len(waiting)  # a layer whose input stands still is done after eight steps
    steps = steps_without_waiting(network, observation, most, take_back=True)
    assert not any(differing(waiting, steps[-1]).values())
    assert any(differing(waiting, steps[3]).values())
    changes = [after[name] - before[name] for before, after in pairwise(steps) for name in waiting]
    assert max(change.max() for change in changes) == 1
    assert min(change.min() for change in changes) == -1


def test_who_may_be_late_is_nearer_to_the_network_that_waits():
    """A neuron that waits until its last moment has seen more, and most of its input came late."""
    network, observation = strong(), positions(32)
    waiting = package_spikes(in_float64(network), observation)
    prompt = steps_without_waiting(network, observation, 18)[-1]
    late = steps_without_waiting(network, observation, 18, first=3, lag=2)
    assert sum(differing(waiting, late[-1]).values()) < sum(differing(waiting, prompt).values()) / 2
    assert not late[0]["neurons"].any()  # 11 steps are left, and nobody fires more than 8 spikes


def test_what_cannot_run_so_is_refused(capsys, tmp_path):
    with pytest.raises(
        ConfigError, match="2 steps with 1 levels of spikes: expected 1 step with 2 levels"
    ):
        EventDriven(build_network(NetworkConfig(channels=8, blocks=1, steps=2, levels=1), "cpu"))
    with pytest.raises(ConfigError, match="1 steps with 8 levels of relu"):
        EventDriven(build_network(NetworkConfig(channels=8, blocks=1, activation="relu"), "cpu"))
    several = build_network(NetworkConfig(channels=8, blocks=1, steps=2), "cpu")
    with (
        pytest.raises(
            ConfigError, match="steps=2, activation='spikes': expected one step of spikes"
        ),
        without_waiting(several),
    ):
        several(positions(1))
    sys.argv = ["event_driven", str(tmp_path / "nothing")]
    assert main() == 2 and "there is no run" in capsys.readouterr().err
