"""A chess position in five 64-bit words, 40 bytes: how positions travel, and how replay keeps them.

Four words hold the bits of each square's piece number (0 empty, 1 to 6 own, 7 to 12 the
opponent's). The fifth holds castling (bits 0-3), en passant (file + 1, bits 4-7), clock (8-14),
repetitions (15-16), player (17) and ply (18-33).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .bitboards import all_of
from .state import CASTLING_ROOKS, CLOCK, EP_A, EP_SQUARE, PLY, RIGHTS, ChessState, Position

WORDS = 5


def pack(state: ChessState, tables: Tables) -> Tensor:
    """int64 [B, 5]: the positions with their repetition counts, but without the keys of earlier
    positions.
    """
    # No two pieces share a square: a sum is a union.
    words = (state.pieces.unsqueeze(1) & tables.pieces).sum(2)
    flags = (state.words.index_select(1, tables.columns) & tables.squares) != 0
    counts = torch.minimum(state.words[:, CLOCK : PLY + 1], tables.limits) << tables.shifts
    extra = (flags * tables.values).sum(1, keepdim=True) + counts.sum(1, keepdim=True)
    return torch.cat((words, extra), 1)


class Tables(NamedTuple):
    """The tables of `pack` and `unpack`, on one device."""

    pieces: (
        Tensor  # int64 [4, 12], which pieces' numbers have each bit: all squares of them, or none
    )
    # int64 [12], of ChessState.words: four times the rights, eight times the en-passant square
    columns: Tensor
    squares: Tensor  # int64 [12], the square that is looked up in each
    values: Tensor  # int64 [12], what it adds to the fifth word
    masks: Tensor  # int64 [12], which bits of the fifth word then have that value
    # int64 [5], clock, player, plies played (left out), repetitions, ply: the most that is kept
    limits: Tensor
    shifts: Tensor  # int64 [5], where they stand in the fifth word

    @staticmethod
    def on(device: torch.device) -> Tables:
        """The tables on `device`."""
        lists = (
            [[-(number >> bit & 1) for number in range(1, 13)] for bit in range(4)],
            [RIGHTS] * 4 + [EP_SQUARE] * 8,
            [*CASTLING_ROOKS, *(EP_A << file for file in range(8))],
            [1, 2, 4, 8, *(file + 1 << 4 for file in range(8))],
            [1, 2, 4, 8] + [15 << 4] * 8,
            [127, 1, 0, 3, 65535],
            [8, 17, 0, 15, 18],
        )
        return Tables(*(torch.tensor(values, device=device) for values in lists))


def unpack(packed: Tensor, tables: Tables) -> tuple[Position, Tensor]:
    """The positions in the words int64 [B, 5] of `pack`, and their repetition counts int64 [B]."""
    # A square has a piece where all four bits are those of the piece's number.
    differing = packed[:, :4].t().unsqueeze(2) ^ tables.pieces.unsqueeze(1)  # [4, B, 12]
    extra = packed[:, 4:]
    marked = torch.where((extra & tables.masks) == tables.values, tables.squares, 0)
    clock, player, _, repetitions, ply = ((extra >> tables.shifts) & tables.limits).unbind(1)
    rights = marked[:, :4].sum(1)
    ep_square = marked[:, 4:].sum(1)
    return Position(all_of(~differing), rights, ep_square, clock, ply, player), repetitions
