"""perft: the number of move sequences of a length, the proof of a move generator.

https://www.chessprogramming.org/Perft_Results has the published numbers.
"""

from __future__ import annotations

from typing import Iterator

import torch
from torch import Tensor

from ...errors import ConfigError
from ..base import select
from .bitboards import count_bits
from .rules import Chess, ChessState
from .notation import board_from_fen, move_from_action, reopen, state_from_boards

BATCH = 8_192  # positions expanded at once
MAX_DEPTH = 12


def perft(fen: str, depth: int) -> dict[str, int]:
    """Leaves `depth` plies deep below each legal move (UCI) of the position; {} when there is no move.

    No draw ends a line, as everywhere in perft. Raises NotationError and ConfigError.
    """
    if not isinstance(depth, int) or not 1 <= depth <= MAX_DEPTH:
        raise ConfigError(f"perft depth {depth!r}: expected a whole number from 1 to {MAX_DEPTH}")
    board, game = board_from_fen(fen), Chess()
    root = state_from_boards([board], game)
    actions = game.legal_action_mask(root)[0].nonzero().squeeze(1)
    counts = torch.ones_like(actions)
    if depth > 1 and len(actions):
        children = game.step(select(reopen(root), torch.zeros_like(actions)), actions)
        counts = torch.zeros_like(actions)
        _count(game, children, torch.arange(len(actions)), depth - 1, counts)
    moves = [move_from_action(action, board).uci() for action in actions.tolist()]
    return dict(sorted(zip(moves, counts.tolist())))


def format_perft(split: dict[str, int]) -> str:
    """A line a move and, last, the bare sum."""
    return "\n".join([*(f"{move}: {count}" for move, count in split.items()), "", str(sum(split.values()))])


def _count(game: Chess, state: ChessState, branch: Tensor, depth: int, counts: Tensor) -> None:
    """Add to `counts` [R] the leaves below `state`, whose rows come from the root moves `branch` int64 [B]."""
    if depth == 1:  # a leaf a legal move: no need to play it
        counts.index_add_(0, branch, count_bits(state.moves).sum(1))
        return
    for rows, actions in _expansions(game, state):
        _count(game, game.step(reopen(select(state, rows)), actions), branch[rows], depth - 1, counts)


def _expansions(game: Chess, state: ChessState) -> Iterator[tuple[Tensor, Tensor]]:
    """All legal (row, action), BATCH at most at a time."""
    for pairs in game.legal_action_mask(state).nonzero().split(BATCH):
        yield pairs.unbind(1)
