"""Legal chess moves for a batch of positions, without a loop over games or squares.

Moves that go the same way and equally far share a plane. A plane's moves are one bitboard of the squares they start
from, so a position's legal moves are 73 bitboards: AlphaZero's 8x8x73 (Silver et al. 2018, table S2), plane first.
Sliding pieces, pins, checks, attacks and the en-passant test come from one flood fill of seven steps in eight
directions. Every tensor is batch last, [..., B], and seen by the mover, whose pawns go north.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import bitboards as bb
from .bitboards import Jumps, any_of

# The planes of actions as (files, ranks, underpromotion): how far the piece goes, and whether it is a pawn that becomes
# a knight (1), a bishop (2) or a rook (3). All other moves have 0; a pawn that promotes by one of them becomes a queen.
PLANES = (
    *((n * files, n * ranks, 0) for files, ranks in bb.DIRECTIONS for n in range(1, 8)),
    *((files, ranks, 0) for files, ranks in bb.KNIGHT_JUMPS),
    *((files, 1, piece) for piece in (1, 2, 3) for files in (-1, 0, 1)),
)
NUM_PLANES = len(PLANES)
UNDERPROMOTION_PLANES = PLANES.index((-1, 1, 1))  # from here on
CASTLE_KINGSIDE_PLANE, CASTLE_QUEENSIDE_PLANE = PLANES.index((2, 0, 0)), PLANES.index((-2, 0, 0))
DOUBLE_PUSH_PLANE = PLANES.index((0, 2, 0))
FILE_A = bb.signed(0x0101010101010101)
FILE_H = bb.signed(0x8080808080808080)
A1, H1 = 0x01, 0x80
F1_G1, E1_TO_G1, B1_TO_D1, C1_TO_E1 = 0x60, 0x70, 0x0E, 0x1C
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)


@dataclass(frozen=True)
class LegalMoves:
    """What a position allows, batch last."""

    moves: Tensor  # int64 [73, B], from-squares of the legal moves of each plane
    ep_from: Tensor  # int64 [B], own pawns that may capture en passant
    in_check: Tensor  # bool [B]
    attacks: Tensor  # int64 [2, B], squares attacked by the mover, by the opponent (through the mover's king)


class MoveGenerator:
    """The geometry on one device; `legal_moves` is a pure function of the position."""

    def __init__(self, device: torch.device | str):
        self.step = Jumps(bb.DIRECTIONS, 2, device)
        self.leap = Jumps(bb.KNIGHT_JUMPS + bb.DIRECTIONS, 2, device)
        self.knight = Jumps(bb.KNIGHT_JUMPS, 1, device)
        self.king = Jumps(bb.DIRECTIONS, 1, device)
        self.slide = Jumps([(files, ranks) for files, ranks, _ in PLANES[:56]], 1, device)
        self.diagonal = torch.tensor([files * ranks != 0 for files, ranks in bb.DIRECTIONS], device=device).view(8, 1)

    def legal_moves(self, pieces: Tensor, castling_rights: Tensor, ep_square: Tensor) -> LegalMoves:
        """What each position allows. pieces: int64 [12, B] as in ChessState; castling_rights, ep_square: int64 [B]."""
        own, opponent = pieces[:6].sum(0), pieces[6:].sum(0)
        occupied, king, pawns = own | opponent, pieces[KING], pieces[PAWN]
        ep_from = _ep_candidates(pawns, ep_square)
        sliders, enemy_sliders = self._sliders(pieces[:6]), self._sliders(pieces[6:])
        slides, reach = self._fill(sliders, enemy_sliders, king, occupied, ep_from, ep_square)
        enemy_reach, king_rays = reach[:, 1], reach[:, 2]
        leaps = self.leap.forward(_leapers(pieces))  # [16, 2, B]: knight jumps then king steps; mover, opponent
        attacked = any_of(enemy_reach) | any_of(leaps[:, 1]) | _pawns_attack_south(pieces[6 + PAWN])

        slider_checks = (king_rays & enemy_sliders) != 0
        knights_checking = any_of(self.knight.back(leaps[:8, 1] & king))
        pawns_checking = pieces[6 + PAWN] & (leaps[8 + bb.NORTH_EAST, 0] | leaps[8 + bb.NORTH_WEST, 0])
        leapers_checking = knights_checking | pawns_checking
        # Two knights never give check at once in a game, but a FEN or a random position may have them.
        several_leapers = (leapers_checking & (leapers_checking - 1)) != 0
        checks = slider_checks.sum(0) + (leapers_checking != 0) + several_leapers
        answers = any_of(torch.where(slider_checks, king_rays, 0)) | leapers_checking
        answers = torch.where(checks == 0, bb.EVERYWHERE, torch.where(checks == 1, answers, 0))

        # A piece is pinned on the line along which both the king and an enemy slider see it.
        pinned = king_rays & own & enemy_reach.roll(4, 0)
        pinned_on_line = pinned[:4] | pinned[4:]
        pinned_anywhere = any_of(pinned_on_line)
        may_go = ~(pinned_anywhere ^ pinned_on_line).repeat(2, 1)  # [8, B]: who may move in each direction

        targets = ~own & answers
        queen_planes = self.slide.back((slides & targets).flatten(0, 1)).view(8, 7, -1) & may_go.unsqueeze(1)
        queen_planes[:, 0] |= self.king.back(leaps[8:, 0] & ~own & ~attacked)
        knight_planes = self.knight.back(leaps[:8, 0] & targets) & ~pinned_anywhere
        exposed = ((reach[:, 3:] & enemy_sliders.unsqueeze(1)) != 0).any(0)
        exposed |= (knights_checking | (pawns_checking & ~(ep_square >> 8))) != 0
        ep_from = torch.where(exposed, 0, ep_from)
        pushes, captures = _pawn_moves(pawns, occupied, opponent, answers, may_go)
        queen_planes[bb.NORTH, :2] |= pushes
        queen_planes[bb.NORTH_EAST : bb.NORTH_WEST + 1, 0] |= captures | ep_from
        promotions = torch.stack((captures[1], pushes[0], captures[0])) & bb.RANK_7
        kingside, queenside = _castling(king, castling_rights, occupied, attacked)
        queen_planes[bb.EAST, 1] |= kingside
        queen_planes[bb.WEST, 1] |= queenside

        moves = torch.cat((queen_planes.flatten(0, 1), knight_planes, promotions.repeat(3, 1)))
        attacks = any_of(reach[:, 0]) | any_of(leaps[:, 0]) | _pawns_attack_north(pawns)
        return LegalMoves(moves, any_of(ep_from), checks > 0, torch.stack((attacks, attacked)))

    def _sliders(self, side: Tensor) -> Tensor:
        """[8, B]: the pieces of one side [6, B] that slide in each direction."""
        return torch.where(self.diagonal, side[BISHOP] | side[QUEEN], side[ROOK] | side[QUEEN])

    def _fill(
        self, sliders: Tensor, enemy_sliders: Tensor, king: Tensor, occupied: Tensor, ep_from: Tensor, ep_square: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Slide five sets of pieces at once in eight directions, each up to and including the first piece it meets.

        They are: own sliders; enemy sliders, which see through the king (it cannot hide behind itself); the king as if
        it were a queen; and the king again after each of the two en-passant captures. Returns the own sliders' squares
        by distance [8, 7, B], and every set's union over the distances [8, 5, B].
        """
        after_ep = (occupied ^ ep_from ^ (ep_square >> 8)) | ep_square
        empty = ~torch.cat((torch.stack((occupied, occupied ^ king, occupied)), after_ep))
        kings = king.expand(8, 3, -1)
        front = torch.cat((sliders.unsqueeze(1), enemy_sliders.unsqueeze(1), kings), 1)
        slides = []
        reach = torch.zeros_like(front)
        for _ in range(7):
            landed = self.step.forward(front)
            slides.append(landed[:, 0])
            reach = reach | landed
            front = landed & empty
        return torch.stack(slides, 1), reach


def _leapers(pieces: Tensor) -> Tensor:
    """[16, 2, B]: the knights eight times, then the kings eight times, of the mover and the opponent."""
    knights = torch.stack((pieces[KNIGHT], pieces[6 + KNIGHT])).expand(8, -1, -1)
    kings = torch.stack((pieces[KING], pieces[6 + KING])).expand(8, -1, -1)
    return torch.cat((knights, kings))


def _ep_candidates(pawns: Tensor, ep_square: Tensor) -> Tensor:
    """[2, B]: own pawns that would capture en passant to the north-east and to the north-west."""
    from_west = (ep_square & ~FILE_A) >> 9
    from_east = (ep_square & ~FILE_H) >> 7
    return torch.stack((from_west, from_east)) & pawns


def _pawns_attack_north(pawns: Tensor) -> Tensor:
    return ((pawns & ~FILE_H) << 9) | ((pawns & ~FILE_A) << 7)


def _pawns_attack_south(pawns: Tensor) -> Tensor:
    return ((pawns & ~FILE_H) >> 7) | ((pawns & ~FILE_A) >> 9)


def _pawn_moves(
    pawns: Tensor, occupied: Tensor, opponent: Tensor, answers: Tensor, may_go: Tensor
) -> tuple[Tensor, Tensor]:
    """From-squares [2, B] of single and double pushes, and [2, B] of captures to the north-east and north-west."""
    single = (pawns << 8) & ~occupied
    double = ((single & bb.RANK_3) << 8) & ~occupied
    # The mask with the pawns also clears the sign that a shift right drags in: no pawn stands on rank 8.
    pushes = torch.stack(((single & answers) >> 8, (double & answers) >> 16)) & pawns & may_go[bb.NORTH]
    hits = opponent & answers
    # From h8 the sign is dragged over h7, where a pawn may stand, but none that captures to the north-east.
    north_east = ((((pawns & ~FILE_H) << 9) & hits) >> 9) & ~FILE_H
    north_west = (((pawns & ~FILE_A) << 7) & hits) >> 7
    captures = torch.stack((north_east, north_west)) & pawns & may_go[bb.NORTH_EAST : bb.NORTH_WEST + 1]
    return pushes, captures


def _castling(king: Tensor, castling_rights: Tensor, occupied: Tensor, attacked: Tensor) -> tuple[Tensor, Tensor]:
    """The king's square [B] where it may castle on its side, and on the queen's; else 0."""
    kingside = ((castling_rights & H1) != 0) & ((occupied & F1_G1) == 0) & ((attacked & E1_TO_G1) == 0)
    queenside = ((castling_rights & A1) != 0) & ((occupied & B1_TO_D1) == 0) & ((attacked & C1_TO_E1) == 0)
    return torch.where(kingside, king, 0), torch.where(queenside, king, 0)


def destinations() -> Tensor:
    """int64 [4672]: the square to which each action leads; 0 where it would leave the board."""
    squares = torch.zeros(NUM_PLANES, 64, dtype=torch.int64)
    for plane, (files, ranks, _) in enumerate(PLANES):
        room = bb.squares_with_room(files, ranks)
        for square in range(64):
            if room >> square & 1:
                squares[plane, square] = square + files + 8 * ranks
    return squares.flatten()
