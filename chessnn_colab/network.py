"""The spiking network: MS-ResNet blocks of integrate-and-fire neurons, a policy head and a value
head.

Binary planes enter a convolutional stem once. Its output is the input current of every time step
(direct encoding). Each block is neuron, convolution, batch norm, twice, added to a shortcut of
currents, so that only spikes are ever convolved (Hu et al. 2021, MS-ResNet). A neuron may fire
several spikes in one time step (I-LIF, Luo et al. 2024): one step of up to four costs a quarter of
four steps of one. The heads do not spike: they read firing rates, the mean of spikes over time. The
network sees planes on a board; it knows no game.
"""

import copy
import logging
from typing import NamedTuple

import numpy as np
import torch
from spikingjelly.activation_based import functional
from torch import Tensor, nn

from .errors import ConfigError
from .in_flight import Arrays
from .int8 import to_int8
from .layers import Block, ConvNorm, DensePolicy, SpikingLayer, SquarePolicy, ValueInput
from .network_config import NetworkConfig
from .shapes import check_shape
from .transfer import to_host

# Without Triton, torch warns twice per neuron family at first use; nothing follows from it here.
logging.getLogger("torch._library.triton").setLevel(logging.ERROR)


class NetworkOutput(NamedTuple):
    """What the network says of B positions."""

    prior_logits: Tensor  # float32 [B, A], over all actions, legal or not
    # float32 [B, 3], win, draw, loss for the mover; of a score head [B, bins], see score_bins
    value_logits: Tensor


def score_bins(limit: float, bins: int, device: torch.device) -> Tensor:
    """float32 [bins]: the scores that a score head's logits stand for, limit * (i / (bins - 1))^2.

    A score of unknown size is learned as a choice among scores, so that no loss and no gradient
    grows with its size. The bins are even in the square root, MuZero's transform of returns
    (Schrittwieser et al. 2020, appendix F), because the spread of what is still to come grows with
    it. MuZero takes the mean among transformed scores. Here it is the mean score itself, which that
    would put too low by the spread.
    """
    return limit * torch.linspace(0, 1, bins, device=device).square()


class SpikingNetwork(nn.Module):
    """Planes [B, planes, H, W] to prior logits [B, actions] and WDL logits [B, 3], or a score
    head's [B, bins].

    portable: avoid SpikingJelly's registered neurons, for devices that they refuse (MPS). The
    arithmetic is the same.
    """

    def __init__(self, config: NetworkConfig = NetworkConfig(), portable: bool = False):
        super().__init__()
        self.config = config
        self.portable = portable
        self.stem = ConvNorm(config.planes, config.channels)
        self.blocks = nn.ModuleList(Block(config, portable) for _ in range(config.blocks))
        self.neurons = SpikingLayer(config, portable)
        self.policy = (DensePolicy if config.actions % config.squares else SquarePolicy)(config)
        first, last = ValueInput(config), nn.Linear(config.value_hidden, config.value_outputs)
        self.value = nn.ModuleList((first, nn.ReLU(), last))
        nn.init.normal_(self.policy.weight, std=0.01)
        nn.init.normal_(last.weight, std=0.01)

    def forward(self, observation: Tensor) -> NetworkOutput:
        """observation: float32 [B, planes, H, W] of zeros and ones. Membranes start at rest."""
        rates, value_logits = self.features_and_value(observation)
        return NetworkOutput(self.prior_logits(rates), value_logits)

    def features_and_value(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """The last neurons' spikes per time step, float32 [B, channels, H, W], and the value head's
        logits: [B, 3] for a win, a draw and a loss, or [B, bins] of a score.

        Ask for the policy logits afterwards (prior_logits, prior_logits_at), only for what you
        need.
        """
        config = self.config
        check_shape("observation", observation, None, config.planes, config.height, config.width)
        x = self.stem(observation).unsqueeze(0).expand(config.steps, -1, -1, -1, -1)
        for block in self.blocks:
            x = block(x)
        spikes = self.neurons(x).float()
        rates = spikes.squeeze(0) if config.steps == 1 else spikes.mean(0)
        # The heads are small: converting them costs more.
        with torch.autocast(rates.device.type, enabled=False):
            first, rectify, last = self.value
            return rates, last(rectify(first(rates, observation.float())))

    def prior_logits(self, rates: Tensor) -> Tensor:
        """float32 [B, actions]: the policy head on rates [B, channels, H, W]."""
        return self.policy(rates)

    def prior_logits_at(self, rates: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """float32 [n]: prior_logits(rates)[rows, actions], and nothing else is computed."""
        return self.policy.at(rates, rows, actions)


def build_network(
    config: NetworkConfig, device: torch.device | str, seed: int = 0
) -> SpikingNetwork:
    """A new network on `device`, with neurons that run there. The weights depend on `seed` alone.

    The memory format is channels last, in which CPUs and GPUs convolve small boards faster. MPS
    supports it only in part.
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SpikingNetwork(config, portable=device.type == "mps")
    layout = torch.preserve_format if network.portable else torch.channels_last
    # torch's stub lacks this form.
    return network.to(device, memory_format=layout)  # pyright: ignore[reportCallIssue]


def actor_copy(
    network: SpikingNetwork, dtype: torch.dtype = torch.float32, device: torch.device | None = None
) -> SpikingNetwork:
    """A copy for self-play: evaluation mode, batch norm folded, no gradients. The original is not
    changed.

    dtype: of the convolutions' weights. Spikes are exact in every dtype, and membranes that last
    stay float32. int8 is for a network for which int8.playing_dtype says so; such a copy only
    plays: it cannot be copied, pickled or saved, and estimate_energy does not see its layers.
    device: of the copy; None is the network's own.
    """
    functional.reset_net(network)
    actor = copy.deepcopy(network).to(device).eval().requires_grad_(False)
    for module in actor.modules():
        if isinstance(module, ConvNorm):
            module.fold(torch.float32 if dtype is torch.int8 else dtype)
    if dtype is torch.int8:
        to_int8(actor)
    return actor


def to_arrays(network: nn.Module) -> Arrays:
    """The weights and statistics as numpy arrays, for another process or a file."""
    return to_host(network.state_dict())


def check_fit(network: SpikingNetwork, arrays: Arrays) -> None:
    """Raise ConfigError when the arrays are not those of a network of this shape."""
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    given = {name: tuple(array.shape) for name, array in arrays.items()}
    for name in sorted(expected | given):
        if expected.get(name) != given.get(name):
            raise ConfigError(
                f"weights do not fit this network: {name} is {given.get(name)}, "
                f"expected {expected.get(name)}; choose the preset they came from"
            )


def load_arrays(network: SpikingNetwork, arrays: Arrays) -> None:
    """The inverse of `to_arrays`. Raises ConfigError when the arrays are another network's."""
    check_fit(network, arrays)
    network.load_state_dict(
        {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    )
