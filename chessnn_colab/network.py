"""The spiking network: MS-ResNet blocks of leaky integrate-and-fire neurons with a policy and a value head.

Binary planes enter a convolutional stem once; its output is the input current of every time step (direct encoding).
Each block is neuron, convolution, batch norm, twice, added to the membrane shortcut (Hu et al. 2021, MS-ResNet:
the shortcut carries currents, so nothing but spikes is ever convolved). The heads do not spike: they read firing
rates, spikes' mean over time, of the last neurons and of the input. A neuron may fire several spikes in one time step
(I-LIF, Luo et al. 2024): one step of up to four costs a fourth of four steps of one. Knows tensors of planes, not chess.
"""

from __future__ import annotations

import copy
import logging
from typing import Mapping, NamedTuple

import numpy as np
import torch
from spikingjelly.activation_based import functional, neuron, surrogate
from torch import Tensor, nn
from torch.nn import functional as functional_nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from .errors import ConfigError
from .network_config import NetworkConfig

# Without Triton, torch warns twice per neuron family at first use; nothing follows from it here.
logging.getLogger("torch._library.triton").setLevel(logging.ERROR)


class NetworkOutput(NamedTuple):
    prior_logits: Tensor  # float32 [B, A], over all actions, legal or not
    wdl_logits: Tensor  # float32 [B, 3], win, draw, loss for the mover


def expected_value(wdl_logits: Tensor) -> Tensor:
    """float32 [B] in [-1, 1]: P(win) - P(loss) for the mover."""
    probabilities = wdl_logits.softmax(-1)
    return probabilities[..., 0] - probabilities[..., 2]


class PortableATan(surrogate.ATan):
    """ATan's arithmetic outside SpikingJelly's registered operators, which refuse MPS tensors.

    SpikingJelly 2.0 looks surrogates up by exact type; a subclass takes its plain torch path on every device.
    """


class RoundStraight(torch.autograd.Function):
    """round(x), in place; the gradient passes straight through, in x's memory format: batch norm's backward is four
    times slower on a mixture."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        ctx.format = (
            torch.channels_last if x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        )
        return x.round_()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient.contiguous(memory_format=ctx.format)


class SpikingLayer(nn.Module):
    """Neurons over time: currents [T, B, ...] in, spikes of the same shape out, whole numbers from 0 to `levels`.

    v[t] = v[t-1] (1 - 1/tau) + x[t]; spikes are v over the threshold, rounded, at most `levels` of them; each takes
    one threshold off the membrane (soft reset). With levels=1 a spike wants the whole threshold, and training runs
    SpikingJelly's LIFNode; with more this is its ILIFNode in fewer passes over memory. Tests hold all of them equal.
    """

    def __init__(self, config: NetworkConfig, portable: bool):
        super().__init__()
        arctangent = PortableATan() if portable else surrogate.ATan()
        self.keep = 1 - 1 / config.tau
        self.threshold = config.threshold
        self.levels = config.levels
        self.node = neuron.LIFNode(
            tau=config.tau,
            decay_input=False,
            v_threshold=config.threshold,
            v_reset=None,
            surrogate_function=arctangent,
            detach_reset=True,
            step_mode="m",
        )

    def forward(self, currents: Tensor) -> Tensor:
        steps = currents.shape[0]
        if steps > 1 or self.levels == 1:  # a membrane that lasts is float32: half precision would drift
            currents = currents.float()
        if self.levels == 1 and torch.is_grad_enabled():
            return self.node(currents)
        # squeeze has a backward without a copy
        spikes, membrane = [], currents.squeeze(0) if steps == 1 else currents[0]
        for t in range(steps):
            if t > 0:
                membrane = torch.add(currents[t], membrane, alpha=self.keep)
            spikes.append(self._fire(membrane))
            if t + 1 < steps:
                membrane = torch.sub(membrane, spikes[t].detach(), alpha=self.threshold)
        return torch.stack(spikes) if steps > 1 else spikes[0].unsqueeze(0)

    def _fire(self, membrane: Tensor) -> Tensor:
        if self.levels == 1:
            return torch.ge(membrane, self.threshold).to(membrane.dtype)
        thresholds = membrane if self.threshold == 1 else membrane / self.threshold
        if torch.is_grad_enabled():
            # hardtanh is clamp with a backward of one pass; the bounds themselves get no gradient.
            return RoundStraight.apply(functional_nn.hardtanh(thresholds, 0, self.levels))
        return thresholds.clamp(0, self.levels).round_()


class ConvNorm(nn.Module):
    """A convolution and batch norm on every time step; `fold` makes one convolution of the two."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)
        self.dtype: torch.dtype | None = None  # of the input, once folded; before that autocast may choose
        nn.init.constant_(self.norm.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x if self.dtype is None else x.to(self.dtype)))

    def fold(self, dtype: torch.dtype) -> None:
        """Fold the running statistics into the convolution, with weights in `dtype`; for evaluation only."""
        self.conv, self.norm = fuse_conv_bn_eval(self.conv, self.norm).to(dtype), nn.Identity()
        self.dtype = dtype


class Block(nn.Module):
    """x + norm(conv(spikes(norm(conv(spikes(x)))))), on currents [T, B, channels, 8, 8]."""

    def __init__(self, config: NetworkConfig, portable: bool):
        super().__init__()
        self.neurons1 = SpikingLayer(config, portable)
        self.conv1 = ConvNorm(config.channels, config.channels)
        self.neurons2 = SpikingLayer(config, portable)
        self.conv2 = ConvNorm(config.channels, config.channels, gain=0.0)  # starts as the identity

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[:2]
        y = self.conv1(self.neurons1(x).flatten(0, 1)).unflatten(0, steps)
        y = self.conv2(self.neurons2(y).flatten(0, 1)).unflatten(0, steps)
        return x + y


class SquareWise(nn.Conv2d):
    """A 1x1 convolution [B, inputs, 8, 8] -> [B, outputs * 64], as one matrix product: a CPU trains it twice as fast."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.flatten(1).expand(len(x), -1, -1)
        return torch.baddbmm(self.bias.unsqueeze(1), weight, x.flatten(2)).flatten(1)

    def at(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """[n]: forward(x)[rows, columns] and nothing else; rows and columns int64 [n]."""
        squares = x.permute(0, 2, 3, 1).flatten(0, 2)  # [B * 64, inputs]
        plane = torch.div(columns, 64, rounding_mode="floor")
        weight, bias = self.weight.flatten(1).index_select(0, plane), self.bias.index_select(0, plane)
        return (squares.index_select(0, rows * 64 + columns % 64) * weight).sum(1) + bias


class ValueInput(nn.Linear):
    """The value head's first layer, on what the last neurons say square by square [B, channels, 8, 8], and on the sums
    over squares of that and of the planes [B, planes, 8, 8], which count the pieces."""

    def __init__(self, channels: int, planes: int, outputs: int):
        super().__init__(channels * 65 + planes, outputs)
        self.parts = (channels * 64, channels, planes)

    def forward(self, rates: Tensor, observation: Tensor) -> Tensor:
        """float32 [B, outputs]. Sums are in eighths, to be of the size of one square."""
        squares, sums, planes = self.weight.split(self.parts, 1)
        squares = squares.unflatten(1, (-1, 64)) + sums.unsqueeze(2) / 8  # a sum weighs every square alike
        hidden = functional_nn.linear(
            rates.permute(0, 2, 3, 1).flatten(1), squares.transpose(1, 2).flatten(1), self.bias
        )
        return torch.addmm(hidden, observation.mean((2, 3)), planes.t(), alpha=8)


class SpikingNetwork(nn.Module):
    """Planes [B, planes, 8, 8] to prior logits [B, actions] and WDL logits [B, 3].

    portable: keep off SpikingJelly's registered neurons, for devices they refuse (MPS); the arithmetic is the same.
    """

    def __init__(self, config: NetworkConfig = NetworkConfig(), portable: bool = False):
        super().__init__()
        self.config = config
        self.portable = portable
        self.stem = ConvNorm(config.planes, config.channels)
        self.blocks = nn.ModuleList(Block(config, portable) for _ in range(config.blocks))
        self.neurons = SpikingLayer(config, portable)
        self.policy = SquareWise(config.channels, config.actions // 64)
        self.value = nn.ModuleList(
            (
                ValueInput(config.channels, config.planes, config.value_hidden),
                nn.ReLU(),
                nn.Linear(config.value_hidden, 3),
            )
        )
        nn.init.normal_(self.policy.weight, std=0.01)
        nn.init.normal_(self.value[2].weight, std=0.01)

    def forward(self, observation: Tensor) -> NetworkOutput:
        """observation [B, planes, 8, 8] of zeros and ones. Membranes start at rest: one reset a forward."""
        rates, wdl_logits = self.rates_and_wdl(observation)
        return NetworkOutput(self.prior_logits(rates), wdl_logits)

    def forward_at(self, observation: Tensor, rows: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """What learning needs: the prior logits [n] of `actions` [n] in `rows` [n] of the batch, and WDL logits [B, 3]."""
        rates, wdl_logits = self.rates_and_wdl(observation)
        return self.prior_logits_at(rates, rows, actions), wdl_logits

    def rates_and_wdl(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """float32 [B, channels, 8, 8], spikes a time step of the last neurons; and the value head's logits [B, 3].

        What the policy is to be known of, some positions or some actions, is asked for afterwards.
        """
        rates = self._rates(observation)
        with torch.autocast(rates.device.type, enabled=False):  # the heads are small: converting them costs more
            first, rectify, last = self.value
            return rates, last(rectify(first(rates, observation.float())))

    def prior_logits(self, rates: Tensor) -> Tensor:
        """float32 [B, actions]: the policy head on rates [B, channels, 8, 8]."""
        with torch.autocast(rates.device.type, enabled=False):
            return self.policy(rates)

    def prior_logits_at(self, rates: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """float32 [n]: prior_logits(rates)[rows, actions], without the rest of them."""
        with torch.autocast(rates.device.type, enabled=False):
            return self.policy.at(rates, rows, actions)

    def _rates(self, observation: Tensor) -> Tensor:
        functional.reset_net(self)
        x = self._currents(observation)
        for block in self.blocks:
            x = block(x)
        spikes = self.neurons(x).float()
        return spikes.squeeze(0) if self.config.steps == 1 else spikes.mean(0)

    def _currents(self, observation: Tensor) -> Tensor:
        """[T, B, channels, 8, 8]: the input currents of every time step."""
        steps = self.config.steps
        if self.config.encoding == "direct":
            return self.stem(observation).unsqueeze(0).expand(steps, -1, -1, -1, -1)
        # Rate coding: a lit square fires at each step with probability one half, twice as strongly.
        lit = torch.rand((steps, *observation.shape), device=observation.device) < 0.5
        return self.stem((observation * lit * 2).flatten(0, 1)).unflatten(0, (steps, -1))


def build_network(config: NetworkConfig, device: torch.device | str, seed: int = 0) -> SpikingNetwork:
    """A new network on `device`, with neurons that run there; weights depend on `seed` alone.

    Channels last in memory, in which CPUs and GPUs convolve small boards faster; MPS has it only in part.
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SpikingNetwork(config, portable=device.type == "mps")
    return network.to(device, memory_format=torch.preserve_format if device.type == "mps" else torch.channels_last)


def actor_copy(network: SpikingNetwork, dtype: torch.dtype = torch.float32) -> SpikingNetwork:
    """A copy for self-play: evaluation mode, batch norm folded, no gradients; the original is untouched.

    dtype: of the convolutions' weights. Spikes are exact in every dtype, and membranes stay float32.
    """
    functional.reset_net(network)
    actor = copy.deepcopy(network).eval().requires_grad_(False)
    for module in actor.modules():
        if isinstance(module, ConvNorm):
            module.fold(dtype)
    return actor


def to_arrays(network: SpikingNetwork) -> dict[str, np.ndarray]:
    """The weights and statistics as numpy arrays, for another process or a file."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def check_fit(network: SpikingNetwork, arrays: Mapping[str, np.ndarray]) -> None:
    """Raises ConfigError when the arrays are not those of a network of this shape."""
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    given = {name: tuple(array.shape) for name, array in arrays.items()}
    if expected != given:
        wrong = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
        raise ConfigError(
            f"weights do not fit this network: {wrong[0]} is {given.get(wrong[0])}, "
            f"expected {expected.get(wrong[0])} ({len(wrong)} arrays differ); choose the preset they came from"
        )


def load_arrays(network: SpikingNetwork, arrays: Mapping[str, np.ndarray]) -> None:
    """The inverse of `to_arrays`. Raises ConfigError when the arrays are another network's."""
    check_fit(network, arrays)
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
