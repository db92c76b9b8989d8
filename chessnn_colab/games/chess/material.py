"""Material: what the pieces of a position are worth, and what each legal move wins at once."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import PAWN, PLANES

VALUES = (1, 3, 3, 5, 9, 0)  # P N B R Q K, in pawns
_QUEENING = 8  # a queen for a pawn
_UNDERPROMOTIONS = (0, 2, 2, 4)  # none, then a knight, a bishop, a rook for a pawn


def balance(pieces: Tensor) -> Tensor:
    """float32 [B], a whole number: the mover's material less the opponent's, of pieces int64 [B,
    12].
    """
    counts, worth = _tables(pieces.device)
    octets = pieces.contiguous().view(torch.uint8).view(-1).to(torch.int32)
    return counts.index_select(0, octets).view(-1, len(worth)) @ worth


@functools.lru_cache(maxsize=16)
def _tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """float32 [256], how many bits each byte has; and float32 [96], what one man is worth in each
    byte of `pieces`.
    """
    counts = bb.bits_table(torch.float32, device).sum(1)
    worth = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=torch.float32)
    return counts, worth.repeat_interleave(8).to(device)


def gains(pieces: Tensor, ep_square: Tensor, destinations: Tensor) -> Tensor:
    """int64 [B, 4672]: what each legal action captures and promotes to, in pawns; meaningless for
    illegal actions.

    pieces int64 [B, 12] and ep_square int64 [B] of a ChessState; destinations int64 [4672] (see
    moves.destinations).
    """
    batch = len(pieces)
    device = pieces.device
    bits = bb.bits_table(torch.int64, device)
    squares = bb.unpack_bits(pieces, bits).view(batch, 12, 64)
    worth = (squares[:, 6:] * torch.tensor(VALUES, device=device).view(1, 6, 1)).sum(1)  # [B, 64]
    origin = torch.arange(len(destinations), device=device) & 63
    by_pawn = squares[:, PAWN].index_select(1, origin)
    en_passant = (
        bb.unpack_bits(ep_square.unsqueeze(1), bits).index_select(1, destinations) * by_pawn
    )
    return (
        worth.index_select(1, destinations) + en_passant + by_pawn * _promotion_gains(destinations)
    )


def _promotion_gains(destinations: Tensor) -> Tensor:
    """int64 [4672]: what a pawn gains when it promotes by each action."""
    underpromotion = [_UNDERPROMOTIONS[piece] for _, _, piece in PLANES]
    gain = torch.tensor(underpromotion, device=destinations.device).repeat_interleave(64)
    return torch.where((gain == 0) & (destinations >= 56), _QUEENING, gain)
