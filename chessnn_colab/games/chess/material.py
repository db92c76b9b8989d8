"""Material: what the pieces of a position are worth."""

from __future__ import annotations

import torch
from torch import Tensor

from . import bitboards as bb

VALUES = (1, 3, 3, 5, 9, 0)  # P N B R Q K, in pawns


class Material:
    """Counts material on one device."""

    def __init__(self, device: torch.device):
        # float32 [256], how many bits each byte has; float32 [96], what one man is worth in each
        # byte of `pieces`.
        self._counts = bb.bits_table(torch.float32, device).sum(1)
        worth = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=torch.float32)
        self._worth = worth.repeat_interleave(8).to(device)

    def balance(self, pieces: Tensor) -> Tensor:
        """float32 [B], a whole number: the mover's material less the opponent's, of pieces int64
        [B, 12].
        """
        octets = pieces.contiguous().view(torch.uint8).view(-1).to(torch.int32)
        counts = self._counts.index_select(0, octets).view(-1, len(self._worth))
        return counts @ self._worth
