"""perft: how many sequences of legal moves a position has, the proof of a move generator.

The published numbers are at https://www.chessprogramming.org/Perft_Results.
"""

import torch
from torch import Tensor

from chessnn_colab.games.base import select
from chessnn_colab.games.chess.bitboards import count_bits
from chessnn_colab.games.chess.notation import (
    board_from_fen,
    move_from_action,
    reopen,
    state_from_boards,
)
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.chess.state import ChessState

BATCH = 8_192  # positions expanded at once


def perft(fen: str, depth: int) -> dict[str, int]:
    """For each legal move (UCI) of the position, how many sequences of `depth` moves begin with it.

    No draw ends a sequence, as everywhere in perft. A position without a legal move gives {}.
    """
    board = board_from_fen(fen)
    game = Chess()
    root = state_from_boards([board], game)
    rows, actions = game.legal_actions(root)
    counts = _leaves(game, game.step(select(reopen(root), rows), actions), depth - 1)
    moves = [move_from_action(action, board).uci() for action in actions.tolist()]
    return dict(sorted(zip(moves, counts.tolist())))


def _leaves(game: Chess, state: ChessState, depth: int) -> Tensor:
    """int64 [B]: how many sequences of `depth` moves each row of `state` has."""
    if depth == 0:
        return torch.ones_like(state.ply)
    if depth == 1:  # the legal moves are counted without being played
        return count_bits(state.moves).sum(1)
    rows, actions = game.legal_actions(state)
    parts = [
        _leaves(game, game.step(reopen(select(state, some)), action), depth - 1)
        for some, action in zip(rows.split(BATCH), actions.split(BATCH))
    ]
    return torch.zeros_like(state.ply).index_add_(0, rows, torch.cat(parts))
