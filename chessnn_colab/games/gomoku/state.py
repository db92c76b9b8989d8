"""A batch of Gomoku positions, and the words for what is on a cell and how a game ends."""

from dataclasses import dataclass

from torch import Tensor

EMPTY, BLACK, WHITE = range(3)  # what a cell holds
ENDINGS = ("unfinished", "five_in_a_row", "board_full", "truncated")


@dataclass(frozen=True)
class GomokuState:
    """B positions."""

    board: Tensor  # int8 [B, size * size], row after row from the top left: EMPTY, BLACK or WHITE
    plies_played: Tensor  # int64 [B], plies since this game's own start; the cap counts these
    current_player: Tensor  # int64 [B], 0 Black, 1 White
    terminated: Tensor  # bool [B], ended by the rules
    truncated: Tensor  # bool [B], stopped at the ply cap
    rewards: Tensor  # float32 [B, 2], +1 and -1 to Black and White once somebody has won, else 0
    ending: Tensor  # int64 [B], index into ENDINGS
