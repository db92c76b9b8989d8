"""The network's parts: neurons, convolutions with batch norm, blocks and the two heads' first layers."""

# pyright: reportIncompatibleMethodOverride=false
# A layer's forward takes what that layer needs, as torch means it.

from __future__ import annotations

import math
from typing import Any

import torch
from spikingjelly.activation_based import neuron, surrogate
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from .network_config import NetworkConfig


class PortableATan(surrogate.ATan):
    """ATan's arithmetic outside SpikingJelly's registered operators, which refuse MPS tensors.

    SpikingJelly 2.0 looks surrogates up by exact type; a subclass takes its plain torch path on every device.
    """


class RoundStraight(torch.autograd.Function):
    """round(x), in place; the gradient passes straight through.

    The gradient takes x's memory format: batch norm's backward is four times slower on a mixture of formats.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """x rounded to the nearest whole number, halves to the even one; x is overwritten."""
        ctx.mark_dirty(x)
        ctx.format = (
            torch.channels_last if x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        )
        return x.round_()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """`gradient` as it came, in x's memory format."""
        return gradient.contiguous(memory_format=ctx.format)


class SpikingLayer(nn.Module):
    """Neurons over time: currents [T, B, ...] in, spikes of the same shape out, whole numbers from 0 to `levels`.

    v[t] = v[t-1] (1 - 1/tau) + x[t]. The spikes are v divided by the threshold, rounded, at most `levels` of them; each
    takes one threshold off the membrane (soft reset). With levels=1 a spike needs the whole threshold, and training
    runs SpikingJelly's LIFNode. With more levels this is SpikingJelly's ILIFNode in fewer passes over memory. Tests
    hold all of them equal. A twin without spikes gives on v itself, neither rounded nor, as a ReLU, limited above.
    """

    def __init__(self, config: NetworkConfig, portable: bool):
        super().__init__()
        arctangent = PortableATan() if portable else surrogate.ATan()
        self.keep = 1 - 1 / config.tau
        self.threshold = config.threshold
        self.levels = config.levels
        self.activation = config.activation
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
        """Spikes of the shape of `currents` [T, B, ...], from membranes at rest."""
        if self.activation != "spikes":  # of one step: nothing lasts
            thresholds = currents if self.threshold == 1 else currents / self.threshold
            return thresholds.relu() if self.activation == "relu" else functional.hardtanh(thresholds, 0, self.levels)
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
            return RoundStraight.apply(functional.hardtanh(thresholds, 0, self.levels))
        return thresholds.clamp(0, self.levels).round_()


class ConvNorm(nn.Module):
    """A convolution and batch norm on every time step; `fold` makes one convolution of the two."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm: nn.BatchNorm2d | nn.Identity = nn.BatchNorm2d(outputs)
        self.dtype: torch.dtype | None = None  # of the input, once folded; before that autocast may choose
        nn.init.constant_(self.norm.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        """float [N, outputs, H, W] of x [N, inputs, H, W]."""
        return self.norm(self.conv(x if self.dtype is None else x.to(self.dtype)))

    def fold(self, dtype: torch.dtype) -> None:
        """Fold the running statistics into the convolution, with weights in `dtype`; for evaluation only, and once."""
        assert isinstance(self.norm, nn.BatchNorm2d)
        self.conv, self.norm = fuse_conv_bn_eval(self.conv, self.norm).to(dtype), nn.Identity()
        self.dtype = dtype


class Block(nn.Module):
    """x + norm(conv(spikes(norm(conv(spikes(x)))))), on currents [T, B, channels, H, W]."""

    def __init__(self, config: NetworkConfig, portable: bool):
        super().__init__()
        self.neurons1 = SpikingLayer(config, portable)
        self.conv1 = ConvNorm(config.channels, config.channels)
        self.neurons2 = SpikingLayer(config, portable)
        self.conv2 = ConvNorm(config.channels, config.channels, gain=0.0)  # starts as the identity

    def forward(self, x: Tensor) -> Tensor:
        """Currents [T, B, channels, H, W], as x."""
        steps = x.shape[:2]
        y = self.conv1(self.neurons1(x).flatten(0, 1)).unflatten(0, steps)
        y = self.conv2(self.neurons2(y).flatten(0, 1)).unflatten(0, steps)
        return x + y


class SquarePolicy(nn.Conv2d):
    """Policy logits per square: a 1x1 convolution [B, channels, H, W] -> [B, planes * H * W].

    It is computed as one matrix product, which a CPU trains twice as fast. An action is plane * H * W + square.
    """

    def __init__(self, config: NetworkConfig):
        super().__init__(config.channels, config.actions // config.squares, 1)

    def forward(self, x: Tensor) -> Tensor:
        """float32 [B, planes * H * W] of x [B, channels, H, W]."""
        assert self.bias is not None
        weight = self.weight.flatten(1).expand(x.shape[0], -1, -1)
        return torch.baddbmm(self.bias.unsqueeze(1), weight, x.flatten(2)).flatten(1)

    def at(self, x: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """float32 [n]: forward(x)[rows, actions], and nothing else; rows and actions int64 [n]."""
        assert self.bias is not None
        size = x.shape[2] * x.shape[3]
        squares = x.permute(0, 2, 3, 1).flatten(0, 2)  # [B * H * W, channels]
        plane = torch.div(actions, size, rounding_mode="floor")
        weight, bias = self.weight.flatten(1).index_select(0, plane), self.bias.index_select(0, plane)
        return (squares.index_select(0, rows * size + actions % size) * weight).sum(1) + bias


class DensePolicy(nn.Linear):
    """Policy logits for actions that are not planes of squares: [B, channels, H, W] -> [B, actions]."""

    def __init__(self, config: NetworkConfig):
        super().__init__(config.channels * config.squares, config.actions)

    def forward(self, x: Tensor) -> Tensor:
        """float32 [B, actions] of x [B, channels, H, W]."""
        return super().forward(x.flatten(1))

    def at(self, x: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """float32 [n]: forward(x)[rows, actions]; rows and actions int64 [n]."""
        return self(x)[rows, actions]


class ValueInput(nn.Linear):
    """The value head's first layer.

    It reads the last neurons square by square, [B, channels, H, W], and the sums over squares of these and of the
    input planes [B, planes, H, W], which count the pieces.
    """

    def __init__(self, config: NetworkConfig):
        super().__init__(config.channels * (config.squares + 1) + config.planes, config.value_hidden)
        self.parts = (config.channels * config.squares, config.channels, config.planes)
        self.scale = math.sqrt(config.squares)  # divides the sums, so that they are of the size of one square

    def forward(self, rates: Tensor, observation: Tensor) -> Tensor:
        """float32 [B, value_hidden]."""
        squares, sums, planes = self.weight.split(self.parts, 1)
        channels = rates.shape[1]
        # A sum weighs every square alike.
        squares = squares.unflatten(1, (channels, -1)) + sums.unsqueeze(2) / self.scale
        hidden = functional.linear(rates.permute(0, 2, 3, 1).flatten(1), squares.transpose(1, 2).flatten(1), self.bias)
        return torch.addmm(hidden, observation.mean((2, 3)), planes.t(), alpha=self.scale)
