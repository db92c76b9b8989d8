"""What each legal move wins in material at once: the greedy player's whole understanding of chess."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from . import bitboards as bb
from .moves import PAWN, UNDERPROMOTION_PLANES

if TYPE_CHECKING:
    from .rules import Chess, ChessState

VALUES = (1, 3, 3, 5, 9, 0)
_QUEENING = 8  # a queen for a pawn
_UNDERPROMOTIONS = (2, 2, 4)  # knight, bishop, rook for a pawn


def balance(pieces: Tensor) -> Tensor:
    """int64 [B]: the mover's material less the opponent's, of pieces [B, 12]."""
    counts = bb.count_bits(pieces)
    return sum(value * (counts[:, kind] - counts[:, 6 + kind]) for kind, value in enumerate(VALUES))


def gains(game: "Chess", state: "ChessState") -> Tensor:
    """int64 [B, 4672]: pawns' worth captured and promoted by each action; illegal actions mean nothing."""
    batch, device = len(state.ply), state.pieces.device
    bits = bb.bits_table(torch.int64, device)
    men = bb.unpack_bits(state.pieces[:, 6:], bits).view(batch, 6, 64)
    worth = (men * torch.tensor(VALUES, device=device).view(1, 6, 1)).sum(1)  # [B, 64]
    action = torch.arange(game.num_actions, device=device)
    origin, target = action & 63, game.destinations
    by_pawn = bb.unpack_bits(state.pieces[:, PAWN : PAWN + 1], bits).index_select(1, origin)
    en_passant = bb.unpack_bits(state.ep_square.unsqueeze(1), bits).index_select(1, target) * by_pawn
    return worth.index_select(1, target) + en_passant + by_pawn * _promotion_gains(action, target)


def _promotion_gains(action: Tensor, target: Tensor) -> Tensor:
    """int64 [4672]: what a pawn gains by each action's promotion."""
    underpromotion = (action >> 6) - UNDERPROMOTION_PLANES
    queening = torch.where((target >= 56) & (underpromotion < 0), _QUEENING, 0)
    for piece, gain in enumerate(_UNDERPROMOTIONS):
        queening = torch.where(torch.div(underpromotion, 3, rounding_mode="floor") == piece, gain, queening)
    return queening
