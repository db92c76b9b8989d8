"""A chess position in five 64-bit words, 40 bytes: how positions travel, and how replay keeps them.

Four words hold the bits of each square's piece number (0 empty, 1 to 6 own, 7 to 12 the opponent's). The fifth holds
castling (bits 0-3), en passant (file + 1, bits 4-7), clock (8-14), repetitions (15-16), player (17) and ply (18-33).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import torch
from torch import Tensor

from .state import CASTLING_ROOKS, EP_A, ChessState, Position

WORDS = 5


def pack(state: ChessState) -> Tensor:
    """int64 [B, 5]: the positions with their repetition counts, but without the keys of earlier positions."""
    pieces, rights = state.pieces, state.castling_rights
    words = [_union(pieces[:, number - 1] for number in range(1, 13) if number >> bit & 1) for bit in range(4)]
    extra = _union(((rights & rook) != 0) * (1 << i) for i, rook in enumerate(CASTLING_ROOKS))
    on_file = _union(((state.ep_square & (EP_A << file)) != 0) * (file + 1) for file in range(8))
    extra = extra | (on_file << 4) | (state.halfmove_clock.clamp(max=127) << 8)
    extra = extra | (state.repetitions.clamp(max=3) << 15) | (state.current_player << 17)
    return torch.stack((*words, extra | (state.ply.clamp(max=65535) << 18)), 1)


def unpack(packed: Tensor) -> tuple[Position, Tensor]:
    """The positions in the words int64 [B, 5] of `pack`, and their repetition counts int64 [B]."""
    bits, extra = packed[:, :4], packed[:, 4]
    pieces = [
        ~_union(~bits[:, bit] if number >> bit & 1 else bits[:, bit] for bit in range(4)) for number in range(1, 13)
    ]
    rights = _union(((extra >> i) & 1) * rook for i, rook in enumerate(CASTLING_ROOKS))
    on_file = (extra >> 4) & 15
    ep_square = torch.where(on_file > 0, EP_A << (on_file - 1).clamp(min=0), 0)
    clock, ply, player = (extra >> 8) & 127, (extra >> 18) & 65535, (extra >> 17) & 1
    return Position(torch.stack(pieces, 1), rights, ep_square, clock, ply, player), (extra >> 15) & 3


def _union(bits: Iterable[Tensor]) -> Tensor:
    return functools.reduce(operator.or_, bits)
