"""The mirror image of a position, with files a to h exchanged: the same game where neither side
may castle any more.
"""

from typing import Any

import chess
import torch
from torch import Tensor

from .moves import PLANES


def may_mirror(packed: Tensor) -> Tensor:
    """bool [B]: neither side may castle in the packed positions int64 [B, 5]."""
    return (packed[:, 4] & 15) == 0


def mirror_packed(packed: Tensor) -> Tensor:
    """The mirror images of packed positions int64 [B, 5]; call it for those that `may_mirror`."""
    extra = packed[:, 4]
    on_file = (extra >> 4) & 15  # of an en-passant square, counted from 1; 0 where there is none
    mirrored = torch.where(on_file > 0, 9 - on_file, 0)
    extra = (extra & ~(15 << 4)) | (mirrored << 4)
    boards: Any = packed[:, :4]
    boards = chess.flip_horizontal(boards)  # it shifts and masks, for tensors too
    return torch.cat((boards, extra.unsqueeze(1)), 1)


def mirror_actions() -> Tensor:
    """int64 [4672]: each action's mirror image."""
    planes = torch.tensor([PLANES.index((-files, ranks, piece)) for files, ranks, piece in PLANES])
    return (planes.unsqueeze(1) * 64 + (torch.arange(64) ^ 7)).flatten()
