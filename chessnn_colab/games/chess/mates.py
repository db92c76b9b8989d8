"""Which legal moves may give check. Only these can mate, and a position has a few of them among
some thirty moves.
"""

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import KING, PAWN
from .state import ChessState


class CheckFinder:
    """The geometry of checks on one device."""

    def __init__(self, device: torch.device | str):
        self._ray = bb.Jumps(bb.DIRECTIONS, 1, device)
        self._knight = bb.Jumps(bb.KNIGHT_JUMPS, 1, device)

    def may_check(
        self, state: ChessState, rows: Tensor, origins: Tensor, targets: Tensor
    ) -> Tensor:
        """bool [n]: whether a move from `origins` int64 [n] to `targets` int64 [n] in `rows` int64
        [n] may give check.

        True for every move that does. It is also true for promotions, castling, en-passant
        captures, and pieces that stand first on a line from the enemy king, whatever is behind
        them.
        """
        king = state.pieces[:, 6 + KING]
        lines, seen = self._lines(king, state.pieces.sum(1))
        knights = bb.any_of(self._knight.forward(king.expand(8, -1)))
        steps = self._ray.forward(king.expand(8, -1))
        pawns = steps[bb.SOUTH_WEST] | steps[bb.SOUTH_EAST]
        # Where a pawn, knight, bishop, rook, queen and king would have to stand to give check; a
        # king never does.
        posts = torch.stack((pawns, knights, *lines, seen, torch.zeros_like(king)), 1)

        source = (torch.ones_like(origins) << origins).unsqueeze(1)
        target = (torch.ones_like(targets) << targets).unsqueeze(1)
        moves_now = (
            state.pieces[:, :6].index_select(0, rows) & source
        ) != 0  # [n, 6], which kind of piece moves
        direct = (moves_now & ((posts.index_select(0, rows) & target) != 0)).any(1)
        uncovers = (seen[rows].unsqueeze(1) & source) != 0
        queens_or_takes = target & (state.ep_square[rows].unsqueeze(1) | bb.RANK_8)
        special = moves_now[:, PAWN] & (queens_or_takes != 0).squeeze(1)
        castles = moves_now[:, KING] & ((origins - targets).abs() == 2)
        return direct | uncovers.squeeze(1) | special | castles

    def _lines(self, king: Tensor, occupied: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """The squares that a bishop, a rook and either see from `king` [B], first pieces included."""
        front = king.expand(8, -1)
        lines = torch.zeros_like(front)
        for _ in range(7):
            front = self._ray.forward(front)
            lines = lines | front
            front = front & ~occupied
        both_ways = lines[:4] | lines[4:]  # N and S, E and W, then the two diagonals
        straight = both_ways[bb.NORTH] | both_ways[bb.EAST]
        diagonal = both_ways[bb.NORTH_EAST] | both_ways[bb.NORTH_WEST]
        return (diagonal, straight), diagonal | straight
