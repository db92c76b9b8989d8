"""The network's parts: neurons, convolutions with batch norm, blocks and the two heads' first
layers.
"""

# pyright: reportIncompatibleMethodOverride=false
# A layer's forward takes what that layer needs, as torch means it.

import math
from typing import Any

import torch
from spikingjelly.activation_based import neuron, surrogate
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from .network_config import NetworkConfig

TAU = 2.0  # membrane time constant, in steps
PAYING = 64  # one position in so many pays for the spikes of all (see Counted)


class PortableATan(surrogate.ATan):
    """ATan's arithmetic outside SpikingJelly's registered operators, which refuse MPS tensors.

    SpikingJelly 2.0 looks surrogates up by exact type; a subclass takes its plain torch path on
    every device.
    """


class Rounded(torch.autograd.Function):
    """The whole number nearest to x from 0 to `levels`; inside these the gradient passes straight
    through.

    The gradient takes x's memory format: batch norm's backward is four times slower on a mixture of
    formats.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, levels: int) -> Tensor:
        """float of x's shape."""
        ctx.save_for_backward(x)
        ctx.levels = levels
        return rounded(x, levels)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient of x; at 0 and `levels` themselves there is none."""
        (x,) = ctx.saved_tensors
        channels_last = x.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if channels_last else torch.contiguous_format
        gradient = gradient.contiguous(memory_format=layout)
        return torch.ops.aten.hardtanh_backward(gradient, x, 0, ctx.levels), None


class Counted(torch.autograd.Function):
    """Spikes [T, B, ...] as they are, and float32 []: the mean spikes of a neuron in one
    evaluation.

    One position of PAYING has the gradient of the mean for all of them, PAYING times as much. Added
    to each position it would be far smaller than the gradient of what is learned, and in bfloat16
    a number plus a far smaller one is the number (LOG.md, 2026-11-26).
    """

    @staticmethod
    def forward(ctx: Any, spikes: Tensor) -> tuple[Tensor, Tensor]:
        ctx.neurons = spikes[0].numel()
        return spikes.view_as(spikes), spikes.sum(dtype=torch.float32) / ctx.neurons

    @staticmethod
    def backward(ctx: Any, spikes_gradient: Tensor, mean_gradient: Tensor) -> Tensor:
        gradient = spikes_gradient.clone()
        positions = gradient.shape[1]
        paying = max(positions // PAYING, 1)  # the first ones: their order is random
        gradient[:, :paying] += mean_gradient / ctx.neurons * (positions / paying)
        return gradient


def rounded(x: Tensor, levels: int) -> Tensor:
    """The whole number nearest to x from 0 to `levels`, halves to the even one."""
    return x.clamp(0, levels).round_()


class SpikingLayer(nn.Module):
    """Neurons over time: currents [T, B, ...] in, spikes of the same shape out, whole numbers from
    0 to `levels`.

    v[t] = v[t-1] (1 - 1/TAU) + x[t]. The spikes are v rounded, at most `levels` of them; each takes
    the threshold, which is 1, off the membrane (soft reset). With levels=1 a spike needs the whole
    threshold, and training runs SpikingJelly's LIFNode. With more levels this is
    SpikingJelly's ILIFNode in fewer passes over memory. Tests hold all of them equal. With
    reset="hard" a spike leaves a membrane of 0. A twin without spikes gives on v itself, neither
    rounded nor, as a ReLU, limited above.
    """

    def __init__(self, config: NetworkConfig, portable: bool):
        super().__init__()
        self.levels = config.levels
        self.activation = config.activation
        self.node = neuron.LIFNode(
            tau=TAU,
            decay_input=False,
            v_reset=0.0 if config.reset == "hard" else None,
            surrogate_function=PortableATan() if portable else surrogate.ATan(),
            detach_reset=True,
            step_mode="m",
        )

    def forward(self, currents: Tensor) -> Tensor:
        """Spikes of the shape of `currents` [T, B, ...], from membranes at rest."""
        if self.activation != "spikes":  # of one step: nothing lasts
            if self.activation == "relu":
                return currents.relu()
            return functional.hardtanh(currents, 0, self.levels)  # its backward is one pass
        steps = currents.shape[0]
        if (
            steps > 1 or self.levels == 1
        ):  # a membrane that lasts is float32: half precision would drift
            currents = currents.float()
        if self.levels == 1 and torch.is_grad_enabled():
            self.node.reset()
            spikes = self.node(currents)
            # Its membrane would keep the graph of autograd, and with it a stream that no recording
            # of an update may wait for.
            self.node.reset()
            return spikes
        # squeeze has a backward without a copy
        spikes, membrane = [], currents.squeeze(0) if steps == 1 else currents[0]
        for t in range(steps):
            if t > 0:
                membrane = torch.add(currents[t], membrane, alpha=1 - 1 / TAU)
            spikes.append(self._fire(membrane))
            if t + 1 < steps:
                taken = 1 if self.node.v_reset is None else membrane
                membrane = membrane - spikes[t].detach() * taken
        return torch.stack(spikes) if steps > 1 else spikes[0].unsqueeze(0)

    def _fire(self, membrane: Tensor) -> Tensor:
        if self.levels == 1:
            return torch.ge(membrane, 1.0).to(membrane.dtype)
        if torch.is_grad_enabled():
            # torch 2.10 does not say what it returns.
            return Rounded.apply(membrane, self.levels)  # pyright: ignore[reportReturnType]
        return rounded(membrane, self.levels)


class ConvNorm(nn.Module):
    """A convolution and batch norm on every time step; `fold` makes one convolution of the two."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm: nn.BatchNorm2d | nn.Identity = nn.BatchNorm2d(outputs)
        self.dtype: torch.dtype | None = (
            None  # of the input, once folded; before that autocast may choose
        )
        nn.init.constant_(self.norm.weight, gain)

    def forward(self, x: Tensor, shortcut: Tensor | None = None) -> Tensor:
        """float [N, outputs, H, W] of x [N, inputs, H, W], and of a shortcut that is added."""
        y = self.norm(self.conv(x if self.dtype is None else x.to(self.dtype)))
        return y if shortcut is None else shortcut + y

    def fold(self, dtype: torch.dtype) -> None:
        """Fold the running statistics into the convolution, with weights in `dtype`; for evaluation
        only, and once.
        """
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
        return self.conv2(self.neurons2(y).flatten(0, 1), x.flatten(0, 1)).unflatten(0, steps)


class SquarePolicy(nn.Conv2d):
    """Policy logits per square: a 1x1 convolution [B, channels, H, W] -> [B, planes * H * W].

    It is computed as one matrix product, which a CPU trains twice as fast. An action is plane * H *
    W + square. Where actions lead to another square (NetworkConfig.jumps), a logit is a sum: one
    part reads the square that the action starts from, one the square that it leads to. So the
    convolutions need not carry the one to the other.
    """

    targets: Tensor  # int64 [actions], the square that each action leads to
    sources: (
        Tensor  # int64 [actions], the action of the same plane that leads to the square of this one
    )

    def __init__(self, config: NetworkConfig):
        planes = config.actions // config.squares
        super().__init__(config.channels, planes * (2 if config.jumps else 1), 1)
        self.planes, self.jumps = planes, bool(config.jumps)
        if self.jumps:
            targets = _targets(config)
            sources = targets.argsort(1) + config.squares * torch.arange(
                planes, device=targets.device
            ).unsqueeze(1)
            self.register_buffer("targets", targets.flatten(), persistent=False)
            self.register_buffer("sources", sources.flatten(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """float32 [B, planes * H * W] of x [B, channels, H, W]."""
        assert self.bias is not None
        weight = self.weight.flatten(1).expand(x.shape[0], -1, -1)
        logits = torch.baddbmm(self.bias.unsqueeze(1), weight, x.flatten(2))
        if not self.jumps:
            return logits.flatten(1)
        here, there = logits[:, : self.planes].flatten(1), logits[:, self.planes :].flatten(1)
        return here.index_add(1, self.sources, there)

    def at(self, x: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """float32 [n]: forward(x)[rows, actions], and nothing else; rows and actions int64 [n]."""
        size = x.shape[2] * x.shape[3]
        squares = x.permute(0, 2, 3, 1).flatten(0, 2)  # [B * H * W, channels]
        plane, first = actions // size, rows * size
        logits = self._products(squares, first + actions % size, plane)
        if not self.jumps:
            return logits
        return logits + self._products(
            squares, first + self.targets.index_select(0, actions), plane + self.planes
        )

    def _products(self, squares: Tensor, which: Tensor, planes: Tensor) -> Tensor:
        """float32 [n]: of the squares [B * H * W, channels] in rows `which` with the weights of
        `planes`.
        """
        assert self.bias is not None
        weight, bias = (
            self.weight.flatten(1).index_select(0, planes),
            self.bias.index_select(0, planes),
        )
        return (squares.index_select(0, which) * weight).sum(1) + bias


def _targets(config: NetworkConfig) -> Tensor:
    """int64 [planes, H * W]: the square that each action leads to.

    One that would leave the board, which is never legal, comes in again on the other side. So the
    actions of a plane lead to all squares, one to each.
    """
    columns, rows = torch.tensor(config.jumps).t().unsqueeze(2)
    squares = torch.arange(config.squares, device=columns.device)
    column = (squares % config.width + columns) % config.width
    row = (squares // config.width + rows) % config.height
    return row * config.width + column


class DensePolicy(nn.Linear):
    """Policy logits for actions that are not planes of squares: [B, channels, H, W] -> [B,
    actions].
    """

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

    It reads the last neurons square by square, [B, channels, H, W], and the sums over squares of
    these and of the input planes [B, planes, H, W], which count the pieces.
    """

    def __init__(self, config: NetworkConfig):
        super().__init__(
            config.channels * (config.squares + 1) + config.planes, config.value_hidden
        )
        self.parts = (config.channels * config.squares, config.channels, config.planes)
        self.int8: nn.Module | None = None  # reads the squares, in a network that plays in int8
        self.scale = math.sqrt(
            config.squares
        )  # divides the sums, so that they are of the size of one square

    def forward(self, rates: Tensor, observation: Tensor) -> Tensor:
        """float32 [B, value_hidden]."""
        planes = self.weight.split(self.parts, 1)[2]
        if self.int8 is None:
            weight = self.squares().transpose(1, 2).flatten(1)
            hidden = functional.linear(rates.permute(0, 2, 3, 1).flatten(1), weight, self.bias)
        else:
            hidden = self.int8(rates).flatten(1)
        return torch.addmm(hidden, observation.mean((2, 3)), planes.t(), alpha=self.scale)

    def squares(self) -> Tensor:
        """The weights of the squares, and of the sums over them: float32 [value_hidden, channels, H
        * W].
        """
        squares, sums, _ = self.weight.split(self.parts, 1)
        # A sum weighs every square alike.
        return squares.unflatten(1, (sums.shape[1], -1)) + sums.unsqueeze(2) / self.scale
