"""Looking into a network: which neurons fire, how often, and what that would cost in energy."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .errors import ConfigError
from .layers import Counted, SpikingLayer
from .network import SpikingNetwork

# Energy in 45 nm CMOS, picojoules (Horowitz 2014, ISSCC, "Computing's energy problem", figure
# 1.1.9).
PICOJOULES_MAC = 4.6  # float32: a multiplication, 3.7, and an addition, 0.9
PICOJOULES_ACCUMULATE = 0.9
PICOJOULES_MULTIPLY_INT8 = 0.2
PICOJOULES_ADD_INT8 = 0.03
PICOJOULES_PER_BYTE = 20 / 8  # of a memory of 32 kB beside the arithmetic: 20 for 64 bits
MEMBRANE_BYTES = 2  # of a sum of int8 weights, which does not fit in 8 bits

Inputs = tuple[Tensor, ...]  # of a module, as torch hands them to a forward hook


@dataclass(frozen=True)
class Design:
    """What one evaluation would cost in one kind of hardware."""

    name: str
    arithmetic_nanojoules: float
    # If every operand is fetched from the memory beside the arithmetic, and nothing is reused.
    memory_nanojoules: float

    @property
    def nanojoules(self) -> float:
        """Arithmetic and memory traffic together."""
        return self.arithmetic_nanojoules + self.memory_nanojoules


@dataclass(frozen=True)
class Energy:
    """An estimate of one evaluation: as spikes, and as twins without spikes, which compute the same
    from numbers.

    A chip without spikes can hold a layer's output, 0 to `slots`, as a number of a few bits (Yan et
    al., arXiv 2409.08290, compare spikes with such a twin). A twin that skips zeros computes only
    where a neuron fired.
    """

    synaptic_operations: float  # accumulates that spikes cause
    macs: float  # multiply-accumulates of the layers that take no spikes (the heads)
    dense_macs: float  # of a ReLU network of the same shape: once instead of T times
    active_macs: float  # those of dense_macs whose input is not zero
    active_head_macs: float  # those of macs whose input is not zero
    slots: int  # most spikes of a neuron in one evaluation: time steps times levels
    spiking: bool = True  # not of a network whose neurons pass on numbers

    @property
    def bits(self) -> int:
        """Bits of a number from 0 to `slots`."""
        return self.slots.bit_length()

    @property
    def designs(self) -> tuple[Design, ...]:
        """Spikes in float32 and int8, then the twins: dense float32, dense int8, few bits, few bits
        without zeros.

        A spike reads a weight, and reads and writes the membrane that it arrives at. So does a
        number in a twin that skips zeros, once instead of once per spike. A dense
        multiply-accumulate reads a weight and an input, and keeps its sum at hand. The cost of
        finding where a spike or a number goes is left out.
        """
        # The size of a multiplier, and with it its energy, grows with the product of its operands'
        # bits.
        few_bits = PICOJOULES_MULTIPLY_INT8 * self.bits / 8 + PICOJOULES_ADD_INT8
        mac_int8 = PICOJOULES_MULTIPLY_INT8 + PICOJOULES_ADD_INT8
        membrane = 1 + 2 * MEMBRANE_BYTES  # bytes: a weight in int8, a sum read and written
        number = 1 + self.bits / 8  # bytes: a weight in int8, an input of few bits
        # Operations, picojoules and bytes of each.
        additions = (self.synaptic_operations, PICOJOULES_ACCUMULATE, 4 + 4 + 4)
        heads = (self.macs, PICOJOULES_MAC, 4 + 4)
        additions_int8 = (self.synaptic_operations, PICOJOULES_ADD_INT8, membrane)
        heads_few_bits = (self.active_head_macs, few_bits, membrane)
        return (
            _design("spikes, float32", additions, heads),
            _design("spikes, int8", additions_int8, heads_few_bits),
            _design("dense twin, float32", (self.dense_macs, PICOJOULES_MAC, 4 + 4)),
            _design("dense twin, int8", (self.dense_macs, mac_int8, 1 + 1)),
            _design(f"dense twin, {self.bits}-bit", (self.dense_macs, few_bits, number)),
            _design(f"{self.bits}-bit twin, zeros skipped", (self.active_macs, few_bits, membrane)),
        )

    @property
    def verdict(self) -> str:
        """One sentence: what the spikes save, and what they do not."""
        if not self.spiking:
            return "This network has no spikes: its bars of spikes count a number of 3 as 3 spikes."
        _, int8, _, _, few, sparse = self.designs
        best = min(few.arithmetic_nanojoules, sparse.arithmetic_nanojoules)
        best_with_memory = min(few.nanojoules, sparse.nanojoules)
        cheaper = int8.arithmetic_nanojoules < best
        cheaper_with_memory = int8.nanojoules < best_with_memory
        conclusion = {
            (True, True): "These spikes save energy",
            (True, False): "These spikes save arithmetic, and lose it again in memory traffic",
            (False, True): "These spikes save memory traffic, and no arithmetic",
            (False, False): "These spikes save no energy that numbers of few bits do not save too",
        }[cheaper, cheaper_with_memory]
        return (
            f"{conclusion}: in int8 one evaluation takes them "
            f"{_joules(int8.arithmetic_nanojoules)} of arithmetic and {_joules(int8.nanojoules)} "
            f"with memory traffic, and the best {self.bits}-bit twin {_joules(best)} and "
            f"{_joules(best_with_memory)}."
        )


def _design(name: str, *parts: tuple[float, float, float]) -> Design:
    """parts: how many operations, the picojoules of one, and the bytes it fetches."""
    arithmetic = sum(count * picojoules for count, picojoules, _ in parts)
    fetched = sum(count * size for count, _, size in parts)
    return Design(name, arithmetic / 1000, fetched * PICOJOULES_PER_BYTE / 1000)


def _joules(nanojoules: float) -> str:
    return f"{nanojoules / 1000:.3g} µJ"


def spiking_layers(network: SpikingNetwork) -> dict[str, SpikingLayer]:
    """Every spiking layer by its own name, input first."""
    return {
        name: module for name, module in network.named_modules() if isinstance(module, SpikingLayer)
    }


def spike_counts(network: SpikingNetwork, observation: Tensor) -> dict[str, Tensor]:
    """How often every neuron fires in each time step while the network sees `observation`: [T, B,
    channels, H, W] by the name of its layer, 0 to `levels`."""
    layers = spiking_layers(network)
    spikes = []

    def keep(_: nn.Module, __: Inputs, counts: Tensor) -> None:
        spikes.append(counts.float())

    with _evaluated(network, layers.values(), keep):
        network(observation)
    return dict(zip(layers, spikes, strict=True))


@contextmanager
def _evaluated(
    network: SpikingNetwork, modules: Iterable[nn.Module], hook: Callable[..., Any]
) -> Iterator[None]:
    """While the block runs, the network evaluates without learning, and calls `hook` after each of
    `modules`.
    """
    training = network.training
    network.eval()
    try:
        with _hooked(modules, hook), torch.no_grad():
            yield
    finally:
        network.train(training)


@contextmanager
def _hooked(modules: Iterable[nn.Module], hook: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, `hook` is called after each of `modules`."""
    hooks = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


@contextmanager
def without_waiting(
    network: SpikingNetwork, take_back: bool = False, first: int = 0, lag: int = 0
) -> Iterator[None]:
    """While the block runs, each call of the network is one step more of a pipeline in which no
    layer waits until the one below has fired all its spikes.

    In a step a layer takes in what has arrived so far, this step included, and each neuron fires at
    most once. One that has fired fewer spikes than it would fire on that current fires one. With
    `take_back`, one that has fired too many sends a spike of the opposite sign, which takes one
    back: after some steps every layer has then fired exactly what it fires when it waits. The
    network gives its answer of that step, and `spike_counts` the spikes of all steps so far. Every
    call must be on the same positions.

    first, lag: the step, counted from 0, by which the neurons of the first layer should have fired,
    and how many steps later those of each further layer. Until then a neuron fires only when it has
    more spikes left to fire than steps. 0, 0: it fires as soon as it can. Raises ConfigError for a
    network other than of one step of spikes.
    """
    config = network.config
    if config.steps != 1 or config.activation != "spikes":
        raise ConfigError(
            f"steps={config.steps}, activation={config.activation!r}: expected one step of spikes"
        )
    layers = list(spiking_layers(network).values())
    left: dict[nn.Module, int] = {layer: first + lag * i for i, layer in enumerate(layers)}
    fired = {}

    def step(layer: nn.Module, _: Inputs, wanted: Tensor) -> Tensor:
        before = fired.get(layer, torch.zeros_like(wanted))
        due = wanted - before
        more = (due > max(left[layer], 0)).float()
        less = (due < 0).float() * take_back
        left[layer] -= 1
        fired[layer] = before + more - less
        return fired[layer]

    with _hooked(layers, step):
        yield


@contextmanager
def collect_spikes(network: SpikingNetwork) -> Iterator[list[Tensor]]:
    """While the block runs, each layer that the network runs adds a float32 [] to this list: how
    often its neurons fire in one evaluation, in the mean. Gradients pass through it.
    """
    means = []

    def keep(_: nn.Module, __: Inputs, spikes: Tensor) -> Tensor:
        spikes, mean = Counted.apply(spikes)
        means.append(mean)
        return spikes

    with _hooked(spiking_layers(network).values(), keep):
        yield means


def firing_rates(network: SpikingNetwork, observation: Tensor) -> dict[str, float]:
    """Mean spikes of each layer's neurons as a share of the most they could fire, 0 to 1. A layer
    near 0 is dead.
    """
    levels = network.config.levels
    return {
        name: float(counts.mean()) / levels
        for name, counts in spike_counts(network, observation).items()
    }


def layer_names(network: SpikingNetwork) -> dict[str, str]:
    """The name of every spiking layer, input first, and the short name that people read: "block 1
    in", ..., "last".
    """
    names = {}
    for block in range(network.config.blocks):
        names[f"blocks.{block}.neurons1"] = f"block {block + 1} in"
        names[f"blocks.{block}.neurons2"] = f"block {block + 1} mid"
    return {**names, "neurons": "last"}


@contextmanager
def silenced(network: SpikingNetwork, layer: str, channel: int | None = None) -> Iterator[None]:
    """While the block runs, no neuron of `layer` (its name in `layer_names`) fires, or none of one
    `channel` of it.
    """

    def silence(_: nn.Module, __: Inputs, spikes: Tensor) -> Tensor:
        spikes = spikes.clone()
        spikes[:, :, slice(None) if channel is None else channel] = 0
        return spikes

    with _hooked([network.get_submodule(layer)], silence):
        yield


def estimate_energy(network: SpikingNetwork, observation: Tensor) -> Energy:
    """Count the operations of one evaluation, averaged over a batch.

    observation: float32 [B, planes, H, W].

    A convolution fed by spikes adds a weight for each spike and multiplies nothing. So does the
    stem, because the planes are binary. The heads read rates and multiply.
    """
    counts = defaultdict(float)  # by the names of Energy's fields
    batch = len(observation)

    def count(module: nn.Conv2d | nn.Linear, inputs: Inputs, _: Tensor) -> None:
        x = inputs[0]
        fan_out = module.weight.numel() * (x[0, 0].numel() if isinstance(module, nn.Conv2d) else 1)
        frames = len(x) // batch  # time steps in one call
        active = float(x.unflatten(0, (frames, batch)).any(0).float().mean()) * fan_out
        counts["dense_macs"] += fan_out
        counts["active_macs"] += active
        if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3):  # not a head
            counts["synaptic_operations"] += float(x.float().mean()) * fan_out * frames
        else:
            counts["macs"] += fan_out * frames
            counts["active_head_macs"] += active

    modules = [module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    with _evaluated(network, modules, count):
        network(observation)
    spiking = network.config.activation == "spikes"
    return Energy(**counts, slots=network.config.slots, spiking=spiking)
