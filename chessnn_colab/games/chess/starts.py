"""Start positions for self-play: the standard one, a few pieces thrown on the board, random opening moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...errors import ConfigError
from . import bitboards as bb
from ..base import concatenate, finished, select, where

if TYPE_CHECKING:
    from .rules import Chess, ChessState

_WHITE = (0xFF00, 0x42, 0x24, 0x81, 0x08, 0x10)
STANDARD_PIECES = _WHITE + tuple(bb.signed(int.from_bytes(board.to_bytes(8, "little"), "big")) for board in _WHITE)
CASTLING_ROOKS = (1 << 7, 1 << 0, bb.signed(1 << 63), 1 << 56)  # own h1, a1, the opponent's h8, a8
STANDARD_CASTLING = sum(CASTLING_ROOKS)
EP_A = 1 << 40  # a6: where the opponent's pawn on the a-file has jumped over
KINDS = ("standard", "few-piece", "random-plies")
MAX_RANDOM_PLIES = 16
# Weak sides get at most two pieces, strong ones up to five: lessons in mating, promoting and defending.
_STRONG_EXTRA = 5
_WEAK_EXTRA = 2
_PIECE_WEIGHTS = (4.0, 1.0, 1.0, 2.0, 1.5)  # P N B R Q


def make(game: "Chess", count: int, kind: str, generator: torch.Generator) -> "ChessState":
    """`count` unfinished start positions of one of KINDS; `generator` is a CPU generator."""
    if kind == "standard":
        return game.init(count)
    if kind == "few-piece":
        return _few_piece(game, count, generator)
    if kind == "random-plies":
        return _random_plies(game, count, generator)
    raise ConfigError(f"unknown start positions {kind!r}: expected one of {', '.join(KINDS)}")


def _few_piece(game: "Chess", count: int, generator: torch.Generator) -> "ChessState":
    """Two kings and one to seven more, either colour to move; drawn until enough are legal and unfinished."""
    found, missing = [], count
    while missing > 0:
        state = _throw_pieces(game, 2 * missing + 64, generator)
        opponents_king = state.pieces[:, 11]
        # Nobody starts in check: thrown pieces give checks that no move could have led to.
        fair = ((opponents_king & state.attacks[:, 0]) == 0) & ~state.in_check & ~finished(state)
        state = select(state, fair.nonzero().squeeze(1)[:missing])
        found.append(state)
        missing -= len(state.ply)
    return concatenate(found)


def _throw_pieces(game: "Chess", count: int, generator: torch.Generator) -> "ChessState":
    """Random pieces on distinct random squares; pawns keep off the first and last rank."""
    extra = _STRONG_EXTRA + _WEAK_EXTRA
    squares = torch.rand(count, 64, generator=generator).argsort(1)[:, : extra + 2]
    bits = torch.ones_like(squares) << squares
    kinds = torch.multinomial(torch.tensor(_PIECE_WEIGHTS), count * extra, True, generator=generator).view(count, extra)
    on_edge = (squares[:, 2:] < 8) | (squares[:, 2:] >= 56)
    kinds = torch.where((kinds == 0) & on_edge, 3, kinds)
    strong = torch.randint(1, _STRONG_EXTRA + 1, (count, 1), generator=generator)
    weak = torch.randint(0, _WEAK_EXTRA + 1, (count, 1), generator=generator)
    slot = torch.arange(extra)
    present = (slot < strong) | ((slot >= _STRONG_EXTRA) & (slot < _STRONG_EXTRA + weak))
    mover_is_strong = torch.rand(count, 1, generator=generator) < 0.5
    belongs_to_mover = (slot < _STRONG_EXTRA) == mover_is_strong
    number = kinds + torch.where(belongs_to_mover, 0, 6)
    pieces = torch.zeros(count, 12, dtype=torch.int64)
    pieces.scatter_add_(1, number, torch.where(present, bits[:, 2:], 0))
    pieces[:, 5], pieces[:, 11] = bits[:, 0], bits[:, 1]
    zero = torch.zeros(count, dtype=torch.int64)
    player = torch.randint(0, 2, (count,), generator=generator)
    return game.from_position(*(x.to(game.device) for x in (pieces, zero, zero, zero, player, player)))


def _random_plies(game: "Chess", count: int, generator: torch.Generator) -> "ChessState":
    """The standard start after 1 to MAX_RANDOM_PLIES uniformly random moves, as a fresh game from there."""
    state = game.init(count)
    lengths = torch.randint(1, MAX_RANDOM_PLIES + 1, (count,), generator=generator).to(game.device)
    for played in range(MAX_RANDOM_PLIES):
        noise = torch.rand(count, game.num_actions, generator=generator).to(game.device)
        action = torch.where(game.legal_action_mask(state), noise, -1.0).argmax(1)
        after = game.step(state, action)
        state = where((lengths > played) & ~finished(after), after, state)
    return game.from_position(
        state.pieces, state.castling_rights, state.ep_square, state.halfmove_clock, state.ply, state.current_player
    )
