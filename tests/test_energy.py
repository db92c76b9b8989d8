"""The energy estimate: what each design counts, by hand, and the sentence that follows from it."""

import pytest

from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.spikes import Energy, estimate_energy, spike_counts

from .test_network import lively, planes
from .test_training import assert_same

# A million additions, dense twin of two million, half of it on zeros; heads of 100,000, half of
# them on zeros.
ENERGY = Energy(1e6, 1e5, 2e6, 1e6, 5e4, slots=4)


def test_energies_by_hand():
    """The arithmetic, and the bytes of the operations times the 2.5 picojoules of a byte."""
    few_bits = 0.2 * 3 / 8 + 0.03
    expected = {
        "spikes, float32": (900 + 460, 1000 * 12 + 100 * 8),
        "spikes, int8": (30 + 50 * few_bits, 1000 * 5 + 50 * 5),
        "dense twin, float32": (9200, 2000 * 8),
        "dense twin, int8": (460, 2000 * 2),
        "dense twin, 3-bit": (2000 * few_bits, 2000 * (1 + 3 / 8)),
        "3-bit twin, zeros skipped": (1000 * few_bits, 1000 * 5),
    }
    for design, (name, (arithmetic, fetched)) in zip(ENERGY.designs, expected.items()):
        found = design.arithmetic_nanojoules, design.memory_nanojoules
        assert design.name == name and found == pytest.approx((arithmetic, 2.5 * fetched))


@pytest.mark.parametrize("slots, bits", [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
def test_the_twin_has_the_bits_of_a_spike_count(slots, bits):
    energy = Energy(1e6, 1e5, 2e6, 1e6, 5e4, slots)
    assert energy.bits == bits and f"{bits}-bit" in energy.designs[4].name


@pytest.mark.parametrize(
    "additions, active, words",
    [
        (0.5e6, 1e6, "These spikes save energy"),
        (1.2e6, 1e6, "save arithmetic, and lose it again in memory traffic"),
        (9e6, 1e6, "save no energy that numbers of few bits do not save too"),
    ],
)
def test_the_verdict_falls_whichever_way_the_figures_say(additions, active, words):
    verdict = Energy(additions, 1e5, 2e6, active, 5e4, 4).verdict
    assert verdict.count(". ") == 0 and verdict.endswith(".")
    assert words in verdict and "the best 3-bit twin 0.105 µJ and 7.08 µJ" in verdict


def test_numbers_are_not_judged_as_spikes():
    """A twin's network passes on numbers, which no spike carries."""
    network = lively(NetworkConfig(channels=16, blocks=1, activation="relu"))
    assert "no spikes" in estimate_energy(network, planes(8)).verdict


@pytest.mark.parametrize("look", [estimate_energy, spike_counts])
def test_a_network_that_learns_is_left_as_it_is(look):
    network = lively(NetworkConfig(channels=16, blocks=1)).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    evaluated = look(network, planes(8))
    assert network.training
    assert_same(before, network.state_dict())
    assert str(look(network.eval(), planes(8))) == str(evaluated)


@pytest.mark.parametrize("steps, levels", [(2, 1), (1, 4)])
def test_operations_are_counted_as_arithmetic_says(steps, levels):
    """In a network of known size. Zeros are counted per number, not per spike."""
    network = lively(NetworkConfig(channels=16, blocks=1, steps=steps, levels=levels))
    x = planes(8)
    energy, counts = estimate_energy(network, x), spike_counts(network, x)
    spikes = {name: float(count.sum(0).mean()) for name, count in counts.items()}
    fired = {name: float(count.any(0).float().mean()) for name, count in counts.items()}
    convolution, last = 64 * 9 * 16, 64 * 3
    # The value head's rows and the policy's 1x1 convolution multiply rates.
    heads = 64 * 16 * 73 + (16 * 65 + 27) * 64
    stem = float(x.mean()) * convolution * 27
    spiking, active = (
        16 * convolution * (means["blocks.0.neurons1"] + means["blocks.0.neurons2"])
        for means in (spikes, fired)
    )
    assert energy.slots == steps * levels
    assert energy.synaptic_operations == pytest.approx(stem + spiking, rel=1e-3)
    assert energy.macs == pytest.approx(heads + last)
    assert energy.dense_macs == pytest.approx(convolution * (27 + 2 * 16) + heads + last)
    assert energy.active_macs - energy.active_head_macs == pytest.approx(stem + active, rel=1e-3)
    least = fired["neurons"] * heads
    # The value head's last layer is behind its ReLU.
    assert least < energy.active_head_macs <= least + last
