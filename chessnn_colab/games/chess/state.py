"""ChessState: a batch of chess positions as tensors, each seen by the side to move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from .bitboards import signed

_WHITE_PIECES = (0xFF00, 0x42, 0x24, 0x81, 0x08, 0x10)
STANDARD_PIECES = _WHITE_PIECES + tuple(
    signed(int.from_bytes(bits.to_bytes(8, "little"), "big")) for bits in _WHITE_PIECES
)
CASTLING_ROOKS = (1 << 7, 1 << 0, signed(1 << 63), 1 << 56)  # own h1, a1, the opponent's h8, a8
EP_A = 1 << 40  # a6, the square behind an opponent's pawn that has just moved from a7 to a5
HISTORY = 100  # keys kept per game: after this number of plies without a capture or a pawn move, the game is drawn


class Position(NamedTuple):
    """The contents of B FENs. Bitboards are int64 with a1 as bit 0; when Black moves,
    ranks are flipped.
    """

    pieces: Tensor  # int64 [B, 12], own P N B R Q K, then the opponent's
    castling_rights: Tensor  # int64 [B], rooks of either side that may still castle
    ep_square: Tensor  # int64 [B], the square that a pawn has just jumped over, or 0
    halfmove_clock: Tensor  # int64 [B], plies since the last capture or pawn move
    ply: Tensor  # int64 [B], plies since White's first move, as the FEN counts
    current_player: Tensor  # int64 [B], 0 White, 1 Black


# The columns of ChessState.words. Columns that are used together stand together, so that one operator takes
# all of it.
RIGHTS, PIECES, EP_SQUARE, ATTACKS, CLOCK, PLAYER, PLIES_PLAYED, REPETITIONS = (
    0,
    1,
    13,
    14,
    16,
    17,
    18,
    19,
)
PLY, ENDING, MOVES = 20, 21, 22


@dataclass(frozen=True)
class ChessState:
    """B positions with their past and with what the rules say about them.

    Four tensors hold everything, so that a selection of rows costs a GPU four launches. The
    properties name their columns; all of these are views.
    """

    words: Tensor  # int64 [B, 95], see the columns above
    history: Tensor  # int64 [B, 100], keys of the positions since the last capture or pawn move
    flags: Tensor  # bool [B, 3]: in_check, terminated, truncated
    rewards: Tensor  # float32 [B, 2], +1 and -1 to White and Black after mate, else 0

    @property
    def pieces(self) -> Tensor:
        """int64 [B, 12], own P N B R Q K, then the opponent's."""
        return self.words[:, PIECES:EP_SQUARE]

    @property
    def castling_rights(self) -> Tensor:
        """int64 [B], rooks of either side that may still castle."""
        return self.words[:, RIGHTS]

    @property
    def ep_square(self) -> Tensor:
        """int64 [B], the square that a pawn has just jumped over, or 0."""
        return self.words[:, EP_SQUARE]

    @property
    def halfmove_clock(self) -> Tensor:
        """int64 [B], plies since the last capture or pawn move."""
        return self.words[:, CLOCK]

    @property
    def ply(self) -> Tensor:
        """int64 [B], plies since White's first move, as the FEN counts."""
        return self.words[:, PLY]

    @property
    def current_player(self) -> Tensor:
        """int64 [B], 0 White, 1 Black."""
        return self.words[:, PLAYER]

    @property
    def plies_played(self) -> Tensor:
        """int64 [B], plies since this game's own start; the cap counts these."""
        return self.words[:, PLIES_PLAYED]

    @property
    def repetitions(self) -> Tensor:
        """int64 [B], how often this position has occurred, this time included."""
        return self.words[:, REPETITIONS]

    @property
    def moves(self) -> Tensor:
        """int64 [B, 73], from-squares of the legal moves of each plane."""
        return self.words[:, MOVES:]

    @property
    def attacks(self) -> Tensor:
        """int64 [B, 2], squares attacked by the mover, by the opponent."""
        return self.words[:, ATTACKS:CLOCK]

    @property
    def ending(self) -> Tensor:
        """int64 [B], index into endings.ENDINGS."""
        return self.words[:, ENDING]

    @property
    def in_check(self) -> Tensor:
        """bool [B], the mover."""
        return self.flags[:, 0]

    @property
    def terminated(self) -> Tensor:
        """bool [B], ended by the rules."""
        return self.flags[:, 1]

    @property
    def truncated(self) -> Tensor:
        """bool [B], stopped at the ply cap."""
        return self.flags[:, 2]

    @property
    def position(self) -> Position:
        """The positions alone, without their past."""
        return Position(*(getattr(self, name) for name in Position._fields))
