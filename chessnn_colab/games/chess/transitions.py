"""A table of the changes that each action makes, for each kind of piece that plays it."""

import functools

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import (
    CASTLE_KINGSIDE_PLANE,
    CASTLE_QUEENSIDE_PLANE,
    DOUBLE_PUSH_PLANE,
    KING,
    NUM_PLANES,
    PAWN,
    QUEEN,
    ROOK,
    UNDERPROMOTION_PLANES,
    destinations,
)

# What the rook leaves and reaches.
ROOK_JUMPS = {CASTLE_KINGSIDE_PLANE: 0xA0, CASTLE_QUEENSIDE_PLANE: 0x09}


def origins() -> Tensor:
    """int64 [4672]: the square that each action leaves, as a bitboard."""
    return 1 << (torch.arange(NUM_PLANES * 64) & 63)


@functools.cache
def changes() -> Tensor:
    """int64 [7 * 4672, 10]: what a move changes before the board is turned round.

    Row (kind + 1) * 4672 + action; kind -1 is an empty square. Columns 0 to 5: squares that change
    in the mover's bitboards. 6: every square but those whose rook or king loses its right to
    castle. 7: the square that a pawn has jumped over, else 0. 8: the square reached if a pawn
    moves, else 0. 9: the square reached.
    """
    return torch.cat([_changes_of(kind) for kind in (-1, *range(6))])


def _changes_of(kind: int) -> Tensor:
    source = origins()
    target = 1 << destinations()
    plane = torch.arange(NUM_PLANES).repeat_interleave(64)
    own = torch.zeros(6, len(plane), dtype=torch.int64)
    pawn_target = ep_square = torch.zeros_like(source)
    rights_kept = ~(source | target)
    if kind >= 0:
        own[kind] = source | target
    if kind == PAWN:
        pawn_target = target
        ep_square = torch.where(plane == DOUBLE_PUSH_PLANE, source << 8, 0)
        underpromoted = (plane - UNDERPROMOTION_PLANES) // 3 + 1
        becomes = torch.where(plane >= UNDERPROMOTION_PLANES, underpromoted, QUEEN)
        arrived = target & bb.RANK_8
        own[PAWN] ^= arrived
        own.scatter_(0, becomes.unsqueeze(0), arrived.unsqueeze(0))
    if kind == KING:
        rights_kept = rights_kept & ~bb.RANK_1
        for castling, jump in ROOK_JUMPS.items():
            own[ROOK] |= torch.where(plane == castling, jump, 0)
    return torch.stack((*own, rights_kept, ep_square, pawn_target, target), 1)
