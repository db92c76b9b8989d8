"""Chess in a mirror, the h file where the a file was: the same game wherever nobody may castle any more."""

from __future__ import annotations

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import UNDERPROMOTION_DIRECTIONS

# Swaps of neighbouring bits, pairs and nibbles turn every byte, a rank, round.
_SWAPS = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))


def mirror_files(boards: Tensor) -> Tensor:
    """Bitboards, int64 of any shape, with files a to h in reverse."""
    for shift, mask in _SWAPS:
        boards = ((boards >> shift) & mask) | ((boards & mask) << shift)
    return boards


def may_mirror(packed: Tensor) -> Tensor:
    """bool [B]: nobody may castle in the positions int64 [B, 5] of Chess.pack."""
    return (packed[:, 4] & 15) == 0


def mirror_packed(packed: Tensor) -> Tensor:
    """The mirror images int64 [B, 5] of the positions of Chess.pack; meant for those that `may_mirror`."""
    extra = packed[:, 4]
    on_file = (extra >> 4) & 15  # of an en-passant square, counted from 1; 0 where there is none
    mirrored = torch.where(on_file > 0, 9 - on_file, 0)
    extra = (extra & ~(15 << 4)) | (mirrored << 4)
    return torch.cat((mirror_files(packed[:, :4]), extra.unsqueeze(1)), 1)


def mirror_actions() -> Tensor:
    """int64 [4672]: each action's mirror image."""
    jumps = [(n * files, n * ranks, 0) for files, ranks in bb.DIRECTIONS for n in range(1, 8)]
    jumps += [(files, ranks, 0) for files, ranks in bb.KNIGHT_JUMPS]
    directions = [bb.DIRECTIONS[direction] for direction in UNDERPROMOTION_DIRECTIONS]
    jumps += [(files, ranks, piece) for piece in (1, 2, 3) for files, ranks in directions]
    planes = torch.tensor([jumps.index((-files, ranks, piece)) for files, ranks, piece in jumps])
    return (planes.unsqueeze(1) * 64 + (torch.arange(64) ^ 7)).flatten()
