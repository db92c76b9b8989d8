"""Bitboards: sets of squares in an int64, with the geometry tables and the few operations that the
rules are made of.

Square a1 is bit 0 and h8 is bit 63, as in python-chess. torch shifts an int64 right with its sign,
so every right shift here is followed by a mask that clears the copies of the sign.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# A queen's directions as (files, ranks): N, E, NE, NW and then their opposites S, W, SW, SE, so
# that direction d and (d + 4) % 8 lie on one line and d % 4 names the line.
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (-1, 1), (0, -1), (-1, 0), (-1, -1), (1, -1))
NORTH, EAST, NORTH_EAST, NORTH_WEST, SOUTH, WEST, SOUTH_WEST, SOUTH_EAST = range(8)
# A knight's, again in the order of opposites four apart.
KNIGHT_JUMPS = ((1, 2), (-1, 2), (2, 1), (-2, 1), (-1, -2), (1, -2), (-2, -1), (2, -1))


def signed(bits: int) -> int:
    """The int64 whose two's complement is the unsigned 64-bit number `bits`."""
    bits &= (1 << 64) - 1
    return bits - (1 << 64) if bits >> 63 else bits


RANK_1 = 0xFF
RANK_2 = 0xFF << 8
RANK_5 = 0xFF << 32
RANK_7 = 0xFF << 48
RANK_8 = signed(0xFF << 56)
DARK_SQUARES = signed(0xAA55AA55AA55AA55)
LIGHT_SQUARES = ~DARK_SQUARES
EVERYWHERE = -1


def squares_with_room(files: int, ranks: int) -> int:
    """The squares from which a jump by (files, ranks) stays on the board, as a signed bitboard."""
    bits = 0
    for square in range(64):
        if 0 <= square % 8 + files < 8 and 0 <= square // 8 + ranks < 8:
            bits |= 1 << square
    return signed(bits)


class Jumps:
    """Moves every bit of a bitboard by fixed jumps; a bit that would leave the board vanishes.

    jumps: J pairs (files, ranks). Bitboards are int64 [J, ..., B], batch last, so that one jump's
    shift is the same number along a long inner loop; trailing_dims is how many dimensions follow J.
    """

    def __init__(self, jumps: Sequence[tuple[int, int]], trailing_dims: int, device: torch.device):
        shape = (-1, *[1] * trailing_dims)

        def table(values: list[int]) -> Tensor:
            return torch.tensor(values, device=device).view(shape)

        deltas = [files + 8 * ranks for files, ranks in jumps]
        self.left = table([max(delta, 0) for delta in deltas])
        self.right = table([max(-delta, 0) for delta in deltas])
        self.landings = table([squares_with_room(-files, -ranks) for files, ranks in jumps])
        self.origins = table([squares_with_room(files, ranks) for files, ranks in jumps])

    def forward(self, bitboards: Tensor) -> Tensor:
        """The squares that the bits of `bitboards` reach."""
        return ((bitboards << self.left) >> self.right) & self.landings

    def back(self, bitboards: Tensor) -> Tensor:
        """The squares from which the bits of `bitboards` are reached."""
        return ((bitboards >> self.left) << self.right) & self.origins


def flip_ranks(bitboards: Tensor) -> Tensor:
    """`bitboards` seen from the other side: rank 1 becomes rank 8, files stay. A byte swap."""
    octets = bitboards.contiguous().view(-1).view(torch.uint8).view(-1, 8)
    return octets.flip(1).view(-1).view(torch.int64).view(bitboards.shape)


def any_of(bitboards: Tensor) -> Tensor:
    """The union of `bitboards` [n, ...] over the first dimension (torch has no bitwise-or
    reduction).
    """
    return _fold(torch.bitwise_or, bitboards)


def all_of(bitboards: Tensor) -> Tensor:
    """The intersection of `bitboards` [n, ...] over the first dimension."""
    return _fold(torch.bitwise_and, bitboards)


def _fold(operator: Callable[[Tensor, Tensor], Tensor], bitboards: Tensor) -> Tensor:
    while (half := bitboards.shape[0] // 2) > 0:
        # The middle of an odd number counts twice.
        bitboards = operator(bitboards[: len(bitboards) - half], bitboards[half:])
    return bitboards[0]


class Bits(NamedTuple):
    """How unpack_bits reads bytes."""

    table: Tensor  # [256, 8]: the eight bits of each byte, lowest first
    masks: Tensor  # uint8 [8]: of each of the eight


def bits_of(dtype: torch.dtype, device: torch.device) -> Bits:
    """For bits of `dtype`."""
    masks = (1 << torch.arange(8)).to(torch.uint8)
    byte = torch.arange(256, dtype=torch.uint8).unsqueeze(1)
    return Bits(((byte & masks) != 0).to(dtype).to(device), masks.to(device))


def unpack_bits(bitboards: Tensor, bits: Bits) -> Tensor:
    """The 64 squares of each bitboard: int64 [B, N] -> [B, N * 64] of the dtype of `bits`.

    A CPU looks eight up at once; for a GPU arithmetic is faster (LOG.md, 2026-11-27).
    """
    octets = bitboards.contiguous().view(torch.uint8)
    if octets.is_cpu:
        squares = bits.table.index_select(0, octets.view(-1).int())
    else:
        squares = ((octets.unsqueeze(2) & bits.masks) != 0).to(bits.table.dtype)
    return squares.view(bitboards.shape[0], 64 * bitboards.shape[1])


def count_bits(bitboards: Tensor) -> Tensor:
    """How many squares each bitboard holds, by pairwise sums (Warren, Hacker's Delight, 5-1)."""
    pairs, nibbles, octets = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F
    bitboards = bitboards - ((bitboards >> 1) & pairs)
    bitboards = (bitboards & nibbles) + ((bitboards >> 2) & nibbles)
    bitboards = (bitboards + (bitboards >> 4)) & octets
    return (bitboards * 0x0101010101010101 >> 56) & 0xFF
