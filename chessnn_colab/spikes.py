"""Looking into a network: which neurons fire, how often, and what that would cost in energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from .network import SpikingLayer, SpikingNetwork

# Energy of one operation in 45 nm CMOS, picojoules (Horowitz 2014, ISSCC, 32-bit floating point).
PICOJOULES_MAC = 4.6
PICOJOULES_ACCUMULATE = 0.9


@dataclass(frozen=True)
class Energy:
    """An estimate of the arithmetic of one evaluation; memory traffic, which dominates on real chips, is left out."""

    synaptic_operations: float  # accumulates that spikes cause
    macs: float  # multiply-accumulates of the layers that take no spikes (the heads)
    dense_macs: float  # what a ReLU network of the same shape would multiply, once instead of T times

    @property
    def spiking_nanojoules(self) -> float:
        """Energy of one evaluation by spikes."""
        return (self.synaptic_operations * PICOJOULES_ACCUMULATE + self.macs * PICOJOULES_MAC) / 1000

    @property
    def dense_nanojoules(self) -> float:
        """Energy of one evaluation by the dense twin."""
        return self.dense_macs * PICOJOULES_MAC / 1000

    def to_dict(self) -> dict[str, float]:
        """The counts and both energies as plain data."""
        return {
            "synaptic_operations": self.synaptic_operations,
            "macs": self.macs,
            "dense_macs": self.dense_macs,
            "spiking_nanojoules": self.spiking_nanojoules,
            "dense_nanojoules": self.dense_nanojoules,
        }


def probe(network: SpikingNetwork, observation: Tensor) -> dict[str, Tensor]:
    """The spikes [T * levels, B, channels, 8, 8] of every spiking layer, ones and zeros by name, while the network sees
    `observation`. Of several spikes in one step, each has a slot of its own (SpikingJelly's SpikeCountToBinary)."""
    spikes: dict[str, Tensor] = {}
    slots = torch.arange(network.config.levels, device=observation.device).view(1, -1, 1, 1, 1, 1)
    layers = {name: module for name, module in network.named_modules() if isinstance(module, SpikingLayer)}

    def keep(name: str, _: nn.Module, __: tuple[Tensor, ...], counts: Tensor) -> None:
        spikes[name] = (counts.unsqueeze(1) > slots).float().flatten(0, 1)

    hooks = [layer.register_forward_hook(partial(keep, name)) for name, layer in layers.items()]
    training = network.training
    try:
        network.eval()
        with torch.no_grad():
            network(observation)
    finally:
        network.train(training)
        for hook in hooks:
            hook.remove()
    return spikes


def firing_rates(network: SpikingNetwork, observation: Tensor) -> dict[str, float]:
    """Mean spikes of each layer's neurons as a share of the most they could fire, 0 to 1. A layer near 0 is dead."""
    return {name: float(spikes.mean()) for name, spikes in probe(network, observation).items()}


def estimate_energy(network: SpikingNetwork, observation: Tensor) -> Energy:
    """Count the operations of one evaluation, averaged over the batch.

    A convolution fed by spikes adds a weight for each spike and multiplies nothing. So does the stem, because the
    planes are binary. The heads read rates and multiply.
    """
    counts = {"synaptic": 0.0, "macs": 0.0, "dense": 0.0}
    batch = len(observation)

    def count(module: nn.Conv2d | nn.Linear, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        x = inputs[0]
        fan_out = output[0].numel() * module.weight[0].numel()
        frames = len(x) // batch  # time steps in one call
        counts["dense"] += fan_out
        if bool((x == x.round()).all()) and isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3):
            counts["synaptic"] += float(x.float().mean()) * fan_out * frames
        else:
            counts["macs"] += fan_out * frames

    modules = [module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    hooks = [module.register_forward_hook(count) for module in modules]
    try:
        with torch.no_grad():
            network(observation)
    finally:
        for hook in hooks:
            hook.remove()
    return Energy(counts["synaptic"], counts["macs"], counts["dense"])
