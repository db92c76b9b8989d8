"""Playing in int8 on a CPU.

Spikes are whole numbers, exact in eight bits. Weights are rounded to eight bits, with a scale for
each output channel, when a network is copied for playing; files and the learner keep float32. A
convolution, its norm and the shortcut are one kernel of oneDNN. It adds up whole numbers exactly,
so a position's neurons do not depend on the others in its batch.
"""

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .devices import choose_dtype, cpu_has
from .layers import ConvNorm
from .network_config import NetworkConfig


def playing_dtype(precision: str, device: str | torch.device, config: NetworkConfig) -> torch.dtype:
    """Return the dtype of a playing network's convolutions, for one of PRECISIONS.

    As choose_dtype, but "auto" is int8 on a CPU where that is fast and exact, for networks of one
    step of several spikes, 127 at most, and for their clipped twins. A ReLU has no
    limit: its scale would have to be measured on positions.
    """
    limited = config.activation != "relu" and 1 < config.levels < 128 and config.steps == 1
    if precision == "auto" and torch.device(device).type == "cpu" and limited and is_exact():
        return torch.int8
    return choose_dtype(precision, device)


@functools.cache
def is_exact() -> bool:
    """Whether a convolution in int8 is fast and exact on this CPU: one with AVX2 or AVX-512.

    Without VNNI such a CPU adds products in pairs, in 16 bits. Two of ours are at most 2 * 127 *
    127 = 32,258, which fits. False with AMX, where bfloat16 is fast.
    """
    if cpu_has("amx_tile") or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return False
    spikes = 127 - torch.arange(512.0).view(1, 8, 8, 8) % 9
    try:
        layer = Int8Conv(torch.linspace(-1, 1, 576).sign().view(8, 8, 3, 3), None, 1)
        found = layer(spikes, layer(spikes))
        plain = F.conv2d(spikes, layer.weight, padding=1)
        return torch.allclose(found, 2 * plain, rtol=0, atol=4e-3)  # a wrong sum is off by 0.008
    except Exception:  # a torch without oneDNN, or whatever it raises
        return False


class Int8Conv(nn.Module):
    """A convolution of whole numbers from 0 to 127 with `weight` [outputs, inputs, k, k] in int8.

    Sums are scaled, and `bias` [outputs] is added, in float32. dtype: of the output; in int8 it is
    rounded, halves to the even number. weight: what was rounded, as float32. unit: what numbers
    that are not whole are multiplied by before they are rounded.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        padding: int,
        dtype: torch.dtype = torch.float32,
        unit: float = 1.0,
    ):
        super().__init__()
        scales = weight.abs().amax((1, 2, 3)) / 127 + 1e-30  # not 0
        whole = (weight / scales.view(-1, 1, 1, 1)).round()
        self.weight, self.bias = whole * scales.view(-1, 1, 1, 1), bias
        shape = [1, 1], [padding, padding], [1, 1], 1  # stride, padding, dilation, groups
        packed = torch.ops.onednn.qconv_prepack(whole.to(torch.int8), scales, 1.0, 0, *shape, None)
        self.unit = unit
        self.before = 1 / unit, 0, packed, scales, torch.zeros(len(weight), dtype=torch.int32)
        self.after = bias, *shape, 1 / unit if dtype is torch.int8 else 1.0, 0, dtype

    def forward(self, spikes: Tensor, shortcut: Tensor | None = None) -> Tensor:
        """[N, outputs, H, W] of spikes [N, inputs, H, W], and of a shortcut of the output's shape
        that is added. The result may overwrite the shortcut.
        """
        if self.unit != 1 and spikes.is_floating_point():
            spikes = (spikes * self.unit).round_()
        spikes = spikes.to(torch.int8).view(
            torch.uint8
        )  # straight to uint8 takes five times as long
        convolve = torch.ops.onednn.qconv2d_pointwise
        if shortcut is None:
            return convolve(spikes, *self.before, *self.after, "none", [], "")
        added = 1.0, 0, "sum", 1.0, "none", [], ""
        shortcut = shortcut.contiguous(memory_format=torch.channels_last)
        return convolve.binary(spikes, *self.before, shortcut, *self.after, *added)


class Int8Stem(nn.Module):
    """A convolution of zeros and ones with two weights in int8 for each plane.

    The second holds what rounding the first left over. With one weight alone the stem would be the
    cause of most moves that differ from float32's.
    """

    def __init__(self, folded: ConvNorm):
        super().__init__()
        weight = folded.conv.weight
        coarse = _rounded(folded).weight
        both = torch.cat((coarse / 127, weight - coarse), 1)
        self.both = Int8Conv(both, folded.conv.bias, 1)

    def forward(self, planes: Tensor) -> Tensor:
        """float32 [B, channels, H, W] of planes [B, planes, H, W]."""
        planes = planes.to(torch.int8)
        return self.both(torch.cat((127 * planes, planes), 1))


def to_int8(network: Any) -> None:
    """Give a SpikingNetwork with folded norms weights in int8, and its clipped twin numbers in int8
    too.
    """
    config = network.config
    unit = 1.0 if config.activation == "spikes" else 127 / config.levels
    network.stem = Int8Stem(network.stem)
    for block in network.blocks:
        block.conv1 = _rounded(block.conv1, torch.int8, unit)
        block.neurons2.levels = round(config.levels * unit)  # they get what conv1 gives
        block.conv2 = _rounded(block.conv2, unit=unit)
    first = network.value[0]
    squares = first.squares().unflatten(2, (config.height, config.width))
    first.int8 = Int8Conv(squares, first.bias, 0, unit=unit)


def _rounded(folded: ConvNorm, dtype: torch.dtype = torch.float32, unit: float = 1.0) -> Int8Conv:
    return Int8Conv(folded.conv.weight, folded.conv.bias, 1, dtype, unit)
