"""How a game of chess ends: the names of the endings, and which one applies."""

from __future__ import annotations

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import BISHOP, KNIGHT, PAWN, QUEEN, ROOK

ENDINGS = (
    "unfinished",
    "checkmate",
    "stalemate",
    "insufficient_material",
    "threefold_repetition",
    "fifty_moves",
    "truncated",
)
UNFINISHED, CHECKMATE, STALEMATE, INSUFFICIENT_MATERIAL, THREEFOLD_REPETITION, FIFTY_MOVES, TRUNCATED = range(7)


def find_ending(
    pieces: Tensor, no_moves: Tensor, in_check: Tensor, repetitions: Tensor, halfmove_clock: Tensor, at_cap: Tensor
) -> Tensor:
    """int64 [B]: the index into ENDINGS for positions with pieces int64 [12, B] and five columns [B].

    Where several endings apply, the order is python-chess's: mate comes before any draw, the ply cap comes last.
    """
    ending = torch.where(at_cap, TRUNCATED, UNFINISHED)
    ending = torch.where(halfmove_clock >= 100, FIFTY_MOVES, ending)
    ending = torch.where(repetitions >= 3, THREEFOLD_REPETITION, ending)
    ending = torch.where(no_moves & ~in_check, STALEMATE, ending)
    ending = torch.where(_insufficient_material(pieces), INSUFFICIENT_MATERIAL, ending)
    return torch.where(no_moves & in_check, CHECKMATE, ending)


def _insufficient_material(pieces: Tensor) -> Tensor:
    """bool [B]: neither side can ever mate: bare kings, one knight, or bishops that all stand on one colour."""
    both = pieces[:6] | pieces[6:]
    knights, bishops = both[KNIGHT], both[BISHOP]
    no_mating_piece = (both[PAWN] | both[ROOK] | both[QUEEN]) == 0
    one_colour = ((bishops & bb.DARK_SQUARES) == 0) | ((bishops & bb.LIGHT_SQUARES) == 0)
    only_bishops = (knights == 0) & one_colour
    one_knight = ((knights & (knights - 1)) == 0) & (bishops == 0)
    return no_mating_piece & (only_bishops | one_knight)
