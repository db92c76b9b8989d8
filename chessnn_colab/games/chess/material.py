"""Material: what the pieces of a position are worth."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from . import bitboards as bb

VALUES = (1, 3, 3, 5, 9, 0)  # P N B R Q K, in pawns


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
