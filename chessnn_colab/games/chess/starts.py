"""Random start positions with a few pieces, for self-play."""

from typing import Any

import torch

from ..base import concatenate, finished, select
from .moves import KING, PAWN, ROOK
from .state import ChessState, Position

MAX_RANDOM_PLIES = 16  # of the other kind of start position (see base.random_plies)
# The strong side gets one to five pieces, the weak side none to two: lessons in mating, promoting
# and defending.
_STRONG_EXTRA = 5
_WEAK_EXTRA = 2
_PIECE_WEIGHTS = (4.0, 1.0, 1.0, 2.0, 1.5)  # P N B R Q


def few_piece(game: Any, count: int, generator: torch.Generator) -> ChessState:
    """`count` positions with two kings and one to seven other pieces, either colour to move.

    Draws until enough positions are legal and unfinished. game: the rules, which import this
    module.
    """
    found = []
    missing = count
    while missing > 0:
        position = _random_pieces(2 * missing + 64, generator)
        state = game.from_position(Position(*(column.to(game.device) for column in position)))
        opponents_king = state.pieces[:, 6 + KING]
        # Nobody starts in check: random pieces give checks that no move could have led to.
        fair = ((opponents_king & state.attacks[:, 0]) == 0) & ~state.in_check & ~finished(state)
        state = select(state, fair.nonzero().squeeze(1)[:missing])
        found.append(state)
        missing -= len(state.ply)
    return concatenate(found)


def _random_pieces(count: int, generator: torch.Generator) -> Position:
    """Random pieces on distinct random squares, legal or not; no pawn is on the first or last
    rank.
    """
    extra = _STRONG_EXTRA + _WEAK_EXTRA
    squares = torch.rand(count, 64, generator=generator).argsort(1)[:, : extra + 2]
    bits = torch.ones_like(squares) << squares
    kinds = torch.multinomial(
        torch.tensor(_PIECE_WEIGHTS), count * extra, True, generator=generator
    ).view(count, extra)
    on_edge = (squares[:, 2:] < 8) | (squares[:, 2:] >= 56)
    kinds = torch.where((kinds == PAWN) & on_edge, ROOK, kinds)
    strong = torch.randint(1, _STRONG_EXTRA + 1, (count, 1), generator=generator)
    weak = torch.randint(0, _WEAK_EXTRA + 1, (count, 1), generator=generator)
    slot = torch.arange(extra)
    on_board = (slot < strong) | ((slot >= _STRONG_EXTRA) & (slot < _STRONG_EXTRA + weak))
    mover_is_strong = torch.rand(count, 1, generator=generator) < 0.5
    belongs_to_mover = (slot < _STRONG_EXTRA) == mover_is_strong
    number = kinds + torch.where(belongs_to_mover, 0, 6)
    pieces = torch.zeros(count, 12, dtype=torch.int64)
    pieces.scatter_add_(1, number, torch.where(on_board, bits[:, 2:], 0))
    pieces[:, KING], pieces[:, 6 + KING] = bits[:, 0], bits[:, 1]
    zero = torch.zeros(count, dtype=torch.int64)
    player = torch.randint(0, 2, (count,), generator=generator)
    return Position(pieces, zero, zero, zero, player, player)
