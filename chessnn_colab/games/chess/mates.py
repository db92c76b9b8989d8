"""Which legal moves may give check. Only these can mate, and a position has a few of them among some thirty moves."""

from __future__ import annotations

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import KING, PAWN, MoveGenerator
from .state import ChessState

_DIAGONAL = [number for number, (files, ranks) in enumerate(bb.DIRECTIONS) if files * ranks]
_STRAIGHT = [number for number, (files, ranks) in enumerate(bb.DIRECTIONS) if not files * ranks]


def may_check(state: ChessState, generator: MoveGenerator, rows: Tensor, origins: Tensor, targets: Tensor) -> Tensor:
    """bool [n]: whether a move from `origins` int64 [n] to `targets` int64 [n] in `rows` int64 [n] may give check.

    True for every move that does. It is also true for promotions, castling, en-passant captures, and pieces that stand
    first on a line from the enemy king, whatever is behind them.
    """
    king = state.pieces[:, 6 + KING]
    lines = _lines(king, state.pieces.sum(1), generator)
    straight, diagonal = bb.any_of(lines[_STRAIGHT]), bb.any_of(lines[_DIAGONAL])
    knights = bb.any_of(generator.knight.forward(king.expand(8, -1)))
    steps = generator.king.forward(king.expand(8, -1))
    pawns = steps[bb.SOUTH_WEST] | steps[bb.SOUTH_EAST]
    # Where a pawn, knight, bishop, rook, queen and king would have to stand to give check; a king never does.
    posts = torch.stack((pawns, knights, diagonal, straight, diagonal | straight, torch.zeros_like(king)), 1)

    source = (torch.ones_like(origins) << origins).unsqueeze(1)
    target = (torch.ones_like(targets) << targets).unsqueeze(1)
    moves_now = (state.pieces[:, :6].index_select(0, rows) & source) != 0  # [n, 6], which kind of piece moves
    direct = (moves_now & ((posts.index_select(0, rows) & target) != 0)).any(1)
    uncovers = ((diagonal | straight)[rows].unsqueeze(1) & source) != 0
    special = moves_now[:, PAWN] & (
        ((target & bb.RANK_8) != 0) | (target == state.ep_square[rows].unsqueeze(1))
    ).squeeze(1)
    castles = moves_now[:, KING] & ((origins - targets).abs() == 2)
    return direct | uncovers.squeeze(1) | special | castles


def _lines(king: Tensor, occupied: Tensor, generator: MoveGenerator) -> Tensor:
    """int64 [8, B]: what a queen in the place of `king` [B] sees in each direction, its first piece included."""
    front = king.expand(8, -1)
    lines = torch.zeros_like(front)
    for _ in range(7):
        front = generator.king.forward(front)
        lines = lines | front
        front = front & ~occupied
    return lines
