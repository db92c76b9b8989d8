"""Which legal moves may give check. Only these can mate, and a position has a few of them among
some thirty moves.
"""

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import KING, PLANE_JUMPS, UNDERPROMOTION_PLANES
from .state import ChessState

CASTLED = 1 << 6 | 1 << 2  # g1 and c1


class CheckFinder:
    """The geometry of checks on one device."""

    def __init__(self, device: torch.device):
        self._ray = bb.Jumps(bb.DIRECTIONS, 1, device)
        self._knight = bb.Jumps(bb.KNIGHT_JUMPS, 1, device)
        self._plane = bb.Jumps(PLANE_JUMPS[:UNDERPROMOTION_PLANES], 2, device)

    def may_check(self, state: ChessState) -> Tensor:
        """int64 [B, 73]: from-squares of the legal moves of each plane that may give check.

        Every move that gives check is among them. So are promotions, en-passant captures, a king's
        moves to the squares of castling, and the moves of pieces that stand first on a line from
        the enemy king, whatever is behind them.
        """
        king = state.pieces[:, 6 + KING]
        diagonal, straight = self._lines(king, state.pieces.sum(1))
        seen = diagonal | straight
        knights = bb.any_of(self._knight.forward(king.expand(8, -1)))
        steps = self._ray.forward(king.expand(8, -1))
        pawns = steps[bb.SOUTH_WEST] | steps[bb.SOUTH_EAST] | state.ep_square | bb.RANK_8
        castled = torch.full_like(king, CASTLED)
        # Where a pawn, knight, bishop, rook, queen and king have to land.
        posts = torch.stack((pawns, knights, diagonal, straight, seen, castled))
        direct = self._plane.back(posts) & state.pieces[:, :6].t()  # [64, 6, B]
        origins = bb.any_of(direct.transpose(0, 1)) | seen
        planes = state.moves[:, :UNDERPROMOTION_PLANES] & origins.t()
        return torch.cat((planes, state.moves[:, UNDERPROMOTION_PLANES:]), 1)

    def _lines(self, king: Tensor, occupied: Tensor) -> tuple[Tensor, Tensor]:
        """Squares that a bishop and a rook see from `king` [B], with the first pieces."""
        front = king.expand(8, -1)
        lines = torch.zeros_like(front)
        for _ in range(7):
            front = self._ray.forward(front)
            lines = lines | front
            front = front & ~occupied
        both_ways = lines[:4] | lines[4:]  # N and S, E and W, then the two diagonals
        straight = both_ways[bb.NORTH] | both_ways[bb.EAST]
        diagonal = both_ways[bb.NORTH_EAST] | both_ways[bb.NORTH_WEST]
        return diagonal, straight
