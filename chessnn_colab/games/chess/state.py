"""ChessState: a batch of chess positions as tensors, each seen by the side to move."""

from dataclasses import dataclass
from typing import NamedTuple, cast

from torch import Tensor

from .bitboards import signed

CASTLING_ROOKS = (1 << 7, 1 << 0, signed(1 << 63), 1 << 56)  # own h1, a1, the opponent's h8, a8
EP_A = 1 << 40  # a6, the square behind an opponent's pawn that has just moved from a7 to a5
# Keys kept per game: after this number of plies without a capture or a pawn move, the game is drawn
HISTORY = 100


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


# The columns of ChessState.words. Columns that are used together stand together, so that one
# operator takes all of it.
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
PLY = 20
ENDING = 21
MOVES = 22


def _view(tensor: str, columns: int | slice) -> Tensor:
    """A property: a view of these columns of a ChessState's tensor. To a type checker, the view."""
    return cast(Tensor, property(lambda state: getattr(state, tensor)[:, columns]))


@dataclass(frozen=True)
class ChessState:
    """B positions with their past and with what the rules say about them.

    Four tensors hold everything, so that a selection of rows costs a GPU four launches. The other
    attributes name their columns; all of these are views.
    """

    words: Tensor  # int64 [B, 95], see the columns above
    history: Tensor  # int64 [B, 100], keys of the positions since the last capture or pawn move
    flags: Tensor  # bool [B, 3]: in_check, terminated, truncated
    rewards: Tensor  # float32 [B, 2], +1 and -1 to White and Black after mate, else 0

    # int64 [B, 12], own P N B R Q K, then the opponent's
    pieces = _view("words", slice(PIECES, EP_SQUARE))
    # int64 [B], rooks of either side that may still castle
    castling_rights = _view("words", RIGHTS)
    # int64 [B], the square that a pawn has just jumped over, or 0
    ep_square = _view("words", EP_SQUARE)
    # int64 [B], plies since the last capture or pawn move
    halfmove_clock = _view("words", CLOCK)
    # int64 [B], plies since White's first move, as the FEN counts
    ply = _view("words", PLY)
    # int64 [B], 0 White, 1 Black
    current_player = _view("words", PLAYER)
    # int64 [B], plies since this game's own start; the cap counts these
    plies_played = _view("words", PLIES_PLAYED)
    # int64 [B], how often this position has occurred, this time included
    repetitions = _view("words", REPETITIONS)
    # int64 [B, 73], from-squares of the legal moves of each plane
    moves = _view("words", slice(MOVES, None))
    # int64 [B, 2], squares attacked by the mover, by the opponent
    attacks = _view("words", slice(ATTACKS, CLOCK))
    # int64 [B], index into endings.ENDINGS
    ending = _view("words", ENDING)
    # bool [B] each: the mover is in check, ended by the rules, stopped at the ply cap
    in_check = _view("flags", 0)
    terminated = _view("flags", 1)
    truncated = _view("flags", 2)

    @property
    def position(self) -> Position:
        """The positions alone, without their past."""
        return Position(*(getattr(self, name) for name in Position._fields))
