"""perft: the number of move sequences of a length, the proof of a move generator.

https://www.chessprogramming.org/Perft_Results has the published numbers.
"""

from __future__ import annotations

import dataclasses

import torch

from .errors import ConfigError
from .games.base import select
from .games.chess import Chess, ChessState
from .notation import board_from_fen, move_from_action, state_from_boards

BATCH = 16_384  # positions expanded at once
MAX_DEPTH = 12


def perft(fen: str, depth: int) -> dict[str, int]:
    """Leaves below each legal move (UCI) of the position, `depth` plies deep. Raises NotationError, ConfigError."""
    if not 1 <= depth <= MAX_DEPTH:
        raise ConfigError(f"perft depth {depth}: expected 1 to {MAX_DEPTH}")
    board, game = board_from_fen(fen), Chess()
    root = state_from_boards([board], game)
    actions = game.legal_action_mask(root)[0].nonzero().squeeze(1).tolist()
    split = {}
    for action in actions:
        child = game.step(_going_on(root), torch.tensor([action]))
        split[move_from_action(action, board).uci()] = _count(game, child, depth - 1)
    return dict(sorted(split.items()))


def format_perft(split: dict[str, int]) -> str:
    """A line a move and, last, the bare sum."""
    return "\n".join([*(f"{move}: {count}" for move, count in split.items()), "", str(sum(split.values()))])


def _count(game: Chess, state: ChessState, depth: int) -> int:
    if depth == 0:
        return len(state.ply)
    mask = game.legal_action_mask(state)
    if depth == 1:
        return int(mask.sum())
    state, total = _going_on(state), 0
    for rows, actions in (pairs.unbind(1) for pairs in mask.nonzero().split(BATCH)):
        total += _count(game, game.step(select(state, rows), actions), depth - 1)
    return total


def _going_on(state: ChessState) -> ChessState:
    """The same positions, not finished: perft counts moves, and no draw ends it."""
    no = torch.zeros_like(state.terminated)
    return dataclasses.replace(state, terminated=no, truncated=no)
