"""How a game of chess ends: the names of the endings, and which one applies."""

import functools
from typing import NamedTuple

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
(
    UNFINISHED,
    CHECKMATE,
    STALEMATE,
    INSUFFICIENT_MATERIAL,
    THREEFOLD_REPETITION,
    FIFTY_MOVES,
    TRUNCATED,
) = range(7)


# The facts that decide whether and how a game has ended, each a bit of the index into `outcomes`.
# The first line: pieces of either side on the board.
FACTS = (
    *("pawn", "rook", "queen", "knight", "dark_bishop", "light_bishop", "two_knights"),
    *("can_move", "in_check", "fifty_moves", "black_to_move", "at_cap", "threefold"),
)
_KINDS = (PAWN, ROOK, QUEEN, KNIGHT, BISHOP, BISHOP)
_SQUARES = (*[bb.EVERYWHERE] * 4, bb.DARK_SQUARES, bb.LIGHT_SQUARES)


class Outcomes(NamedTuple):
    """Whether and how B games have ended."""

    ending: Tensor  # int64 [B], index into ENDINGS
    flags: Tensor  # bool [B, 3]: the mover is in check; ended by the rules; stopped at the ply cap
    rewards: Tensor  # float32 [B, 2], +1 and -1 to White and Black after mate, else 0


class Referee:
    """Tells from the facts of a position whether and how its game has ended.

    A game is truncated `max_plies` plies after its start.
    """

    def __init__(self, max_plies: int, device: torch.device):
        self.kinds = torch.tensor(_KINDS, device=device)
        self.squares = torch.tensor(_SQUARES, device=device).view(-1, 1)
        # clock, current player, plies played and repetitions from which on the last facts hold
        self.limits = torch.tensor((100, 1, max_plies, 3), device=device).view(-1, 1)
        self.weights = (2 ** torch.arange(len(FACTS))).view(-1, 1).to(device)
        self.outcomes = Outcomes(*(table.to(device) for table in outcomes()))

    def judge(self, pieces: Tensor, moves: Tensor, in_check: Tensor, counts: Tensor) -> Outcomes:
        """The outcomes of games with pieces int64 [12, B], moves int64 [73, B] and in_check bool
        [B].

        counts int64 [4, B]: half-move clock, current player, plies played, repetitions.
        """
        both = pieces[:6] | pieces[6:]
        material = both.index_select(0, self.kinds) & self.squares
        second_knight = both[KNIGHT] & (both[KNIGHT] - 1)
        on_board = torch.cat((material, second_knight.unsqueeze(0))) != 0
        facts = torch.cat(
            (on_board, moves.any(0, keepdim=True), in_check.unsqueeze(0), counts >= self.limits)
        )
        index = (facts * self.weights).sum(0)
        return Outcomes(*(table.index_select(0, index) for table in self.outcomes))


@functools.cache
def outcomes() -> Outcomes:
    """The outcomes for every combination of FACTS.

    Where several endings apply, mate comes before any draw, and the ply cap last.
    """
    number = torch.arange(2 ** len(FACTS))
    fact = {name: (number >> bit & 1).bool() for bit, name in enumerate(FACTS)}
    no_mating_piece = ~(fact["pawn"] | fact["rook"] | fact["queen"])
    # All on one colour, or none.
    only_bishops = ~fact["knight"] & ~(fact["dark_bishop"] & fact["light_bishop"])
    one_knight = ~fact["two_knights"] & ~(fact["dark_bishop"] | fact["light_bishop"])
    ending = torch.where(fact["at_cap"], TRUNCATED, UNFINISHED)
    ending = torch.where(fact["fifty_moves"], FIFTY_MOVES, ending)
    ending = torch.where(fact["threefold"], THREEFOLD_REPETITION, ending)
    ending = torch.where(~fact["can_move"] & ~fact["in_check"], STALEMATE, ending)
    ending = torch.where(
        no_mating_piece & (only_bishops | one_knight), INSUFFICIENT_MATERIAL, ending
    )
    ending = torch.where(~fact["can_move"] & fact["in_check"], CHECKMATE, ending)
    truncated = ending == TRUNCATED
    flags = torch.stack((fact["in_check"], (ending != UNFINISHED) & ~truncated, truncated), 1)
    lost = (ending == CHECKMATE).float()
    white = torch.where(fact["black_to_move"], lost, -lost)
    return Outcomes(ending, flags, torch.stack((white, -white), 1))
