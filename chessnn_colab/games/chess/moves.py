"""Legal chess moves for a batch of positions, without a loop over games or squares.

Moves that go the same way and equally far share a plane. A plane's moves are one bitboard of the
squares they start from, so a position's legal moves are 73 bitboards: AlphaZero's 8x8x73 (Silver et
al. 2018, table S2), plane first. Sliding pieces, pins, checks, attacks and the en-passant test come
from one flood fill in eight directions. One shift back along all planes gives the squares from
which each plane's targets are reached, and over how many empty squares. Every tensor is batch last,
[..., B], and seen by the mover, whose pawns go north. On a GPU every operator costs the host time,
so operations that can share one do: `bench launches` counts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import bitboards as bb
from .bitboards import Jumps, all_of, any_of

# The planes of actions as (files, ranks, underpromotion): how far the piece goes, and whether it is
# a pawn that becomes a knight (1), a bishop (2) or a rook (3). All other moves have 0; a pawn that
# promotes by one of them becomes a queen.
PLANES = (
    *((n * files, n * ranks, 0) for files, ranks in bb.DIRECTIONS for n in range(1, 8)),
    *((files, ranks, 0) for files, ranks in bb.KNIGHT_JUMPS),
    *((files, 1, piece) for piece in (1, 2, 3) for files in (-1, 0, 1)),
)
NUM_PLANES = len(PLANES)
PLANE_JUMPS = tuple((files, ranks) for files, ranks, _ in PLANES)
UNDERPROMOTION_PLANES = PLANES.index((-1, 1, 1))  # from here on
CASTLE_KINGSIDE_PLANE = PLANES.index((2, 0, 0))
CASTLE_QUEENSIDE_PLANE = PLANES.index((-2, 0, 0))
DOUBLE_PUSH_PLANE = PLANES.index((0, 2, 0))
A1 = 0x01
H1 = 0x80
F1_G1, E1_TO_G1, B1_TO_D1, C1_TO_E1 = 0x60, 0x70, 0x0E, 0x1C
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
# Who leaps where, as (row of the pieces, jump): what the mover attacks; what the opponent attacks;
# and what would have to stand where the mover's king leaps as a knight and as a pawn, to give
# check.
_NORTHWARD = ((1, 1), (-1, 1))
_SOUTHWARD = ((1, -1), (-1, -1))
LEAPS = (
    *((KNIGHT, jump) for jump in bb.KNIGHT_JUMPS),
    *((KING, jump) for jump in bb.DIRECTIONS),
    *((PAWN, jump) for jump in _NORTHWARD),
    *((6 + KNIGHT, jump) for jump in bb.KNIGHT_JUMPS),
    *((6 + KING, jump) for jump in bb.DIRECTIONS),
    *((6 + PAWN, jump) for jump in _SOUTHWARD),
    *((KING, jump) for jump in bb.KNIGHT_JUMPS),
    *((KING, jump) for jump in _NORTHWARD),
)


@dataclass(frozen=True)
class LegalMoves:
    """The legal moves of B positions, batch last."""

    moves: Tensor  # int64 [73, B], from-squares of the legal moves of each plane
    # int64 [2, B], own pawns that may capture en passant to the north-east, to the north-west
    ep_from: Tensor
    in_check: Tensor  # bool [B]
    # int64 [2, B], squares attacked by the mover, by the opponent (through the mover's king)
    attacks: Tensor


class MoveGenerator:
    """The geometry on one device; `legal_moves` is a pure function of the position."""

    def __init__(self, device: torch.device):
        def constant(values: Sequence[int], *shape: int) -> Tensor:
            return torch.tensor(values, device=device).view(*shape)

        self.step = Jumps(bb.DIRECTIONS, 2, device)
        self.shifts = {
            steps: (self.step.left * steps, self.step.right * steps) for steps in (1, 2, 4)
        }
        self.leapers = constant([piece for piece, _ in LEAPS], -1)
        self.leap = Jumps([jump for _, jump in LEAPS], 1, device)
        self.plane = Jumps(PLANE_JUMPS[:UNDERPROMOTION_PLANES], 1, device)
        self.diagonal = constant([files * ranks != 0 for files, ranks in bb.DIRECTIONS], 8, 1, 1)
        self.nothing = constant([0], 1, 1)
        self.everywhere = constant([bb.EVERYWHERE], 1, 1)
        # From the en-passant square to a pawn in the south-west, south-east.
        self.ep_shifts = constant([9, 7], 2, 1)
        # Index order of pawn moves: N, E (no pawn moves due east), NE, NW, and the jump from rank
        # 2.
        self.pawn_masks = constant([-1, 0, -1, -1, bb.RANK_2], 5, 1)
        # Where a pawn's target has to be occupied rather than empty.
        self.captures = constant([0, 0, -1, -1], 4, 1)
        self.promotions = constant([bb.NORTH_WEST, bb.NORTH, bb.NORTH_EAST] * 3, -1)
        # Rights, occupied and attacked squares; king's side, then queen's side.
        self.castling = constant([H1, F1_G1, E1_TO_G1, A1, B1_TO_D1, C1_TO_E1], 2, 3, 1)
        self.may_castle = constant([H1, 0, 0, A1, 0, 0], 2, 3, 1)

    def legal_moves(self, pieces: Tensor, castling_rights: Tensor, ep_square: Tensor) -> LegalMoves:
        """The legal moves of B positions. pieces: int64 [12, B] as in ChessState; castling_rights,
        ep_square: int64 [B].
        """
        own, opponent = pieces.unflatten(0, (2, 6)).sum(1)
        occupied = own | opponent
        empty = ~occupied
        king = pieces[KING]
        ep_from, after_ep, victim = self._en_passant(pieces[PAWN], ep_square)
        sliders = self._sliders(pieces)
        reach = self._fill(sliders, king, empty, after_ep)
        leaps = self.leap.forward(pieces.index_select(0, self.leapers))  # [46, B], see LEAPS
        attacks = self._attacks(reach[:, :2], leaps[:36])

        lines = torch.cat((reach[:, 2], leaps[36:]))
        checkers, answers = self._checks(pieces, sliders[:, 1], lines)

        pinned, may_go = self._pins(reach[:, 2], reach[:, 1], own)
        landings, clear = self._landings(answers & ~own, empty)
        planes = _along_lines(landings[:56], may_go)
        steps = self._leave_slides_and_pawn_moves(planes, clear, sliders[:, 0], pieces[PAWN])
        planes[:, 0].bitwise_or_(self._king_steps(king, leaps[8:16], own | attacks[1]))
        leapers = checkers[8:] & ~victim
        ep_from = self._unexposed(ep_from, reach[:, 3:] & sliders[:, 1:], leapers)
        planes[bb.NORTH_EAST : bb.NORTH_WEST + 1, 0].bitwise_or_(ep_from)
        castling = self._castling(king, castling_rights, occupied, attacks[1])
        planes[bb.EAST :: 4, 1].bitwise_or_(castling)

        knights = landings[56:] & (pieces[KNIGHT] & ~pinned)
        promotions = steps.index_select(0, self.promotions) & bb.RANK_7
        return LegalMoves(
            moves=torch.cat((planes.flatten(0, 1), knights, promotions)),
            ep_from=ep_from,
            in_check=answers != bb.EVERYWHERE,
            attacks=attacks,
        )

    def _sliders(self, pieces: Tensor) -> Tensor:
        """[8, 2, B]: the pieces of the mover and of the opponent that slide in each direction."""
        sides = pieces.unflatten(0, (2, 6))
        bishops_rooks = sides[:, BISHOP:QUEEN] | sides[:, QUEEN:KING]
        return torch.where(self.diagonal, bishops_rooks[:, 0], bishops_rooks[:, 1])

    def _checks(
        self, pieces: Tensor, enemy_sliders: Tensor, lines: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Who gives check along each line [18, B], and the squares [B] on which a move answers
        every check.

        lines: the squares that the mover's king sees along eight rays, by eight knight's jumps and
        by two pawn's captures. An enemy piece of that kind there gives check. Two lines have no
        square in common, so only a king's move answers two checks.
        """
        leapers = pieces[6 + KNIGHT].expand(8, -1), pieces[6 + PAWN].expand(2, -1)
        checkers = lines & torch.cat((enemy_sliders, *leapers))
        return checkers, all_of(torch.where(checkers != 0, lines, self.everywhere))

    def _fill(self, sliders: Tensor, king: Tensor, empty: Tensor, after_ep: Tensor) -> Tensor:
        """[8, 5, B]: what five sets of pieces reach in eight directions, up to and including the
        first piece they meet.

        They are: own sliders; enemy sliders, which see through the king (it cannot hide behind
        itself); the king as if it were a queen; and the king again after each of the two en-passant
        captures, which change the squares after_ep [2, B]. The steps double: 1, 2 and 4 squares at
        once (Kogge and Stone 1973). No landing square of a slide takes a bit that a shift has
        carried round the edge, because a path must be empty and on the board.
        """
        nothing = self.nothing.expand(1, king.shape[0])
        empty = empty ^ torch.cat((nothing, king.unsqueeze(0), nothing, after_ep))
        front = torch.cat((sliders, king.expand(8, 3, -1)), 1)
        path = empty & self.step.landings
        front = front | (path & self._shifted(front, 1))
        for steps in (1, 2):
            path = path & self._shifted(path, steps)
            front = front | (path & self._shifted(front, 2 * steps))
        return self.step.forward(front)

    def _shifted(self, sets: Tensor, steps: int) -> Tensor:
        left, right = self.shifts[steps]
        return (sets << left) >> right

    def _pins(self, rays: Tensor, seen: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """The mover's pinned pieces [B], and the pieces [4, B] that may move along each line.

        A piece is pinned on the line along which both the king (rays [8, B]) and an enemy slider
        (seen [8, B]) see it.
        """
        on_line = ((rays[:4] & seen[4:]) | (rays[4:] & seen[:4])) & own
        pinned = any_of(on_line)
        return pinned, ~(pinned ^ on_line)

    def _attacks(self, slides: Tensor, leaps: Tensor) -> Tensor:
        """[2, B]: the squares attacked by the mover and by the opponent, with slides [8, 2, B] and
        leaps [36, B].
        """
        return any_of(torch.cat((slides, leaps.unflatten(0, (2, 18)).transpose(0, 1))))

    def _landings(self, targets: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """From-squares [64, B] of each plane whose move ends on one of `targets` [B]; and [8, 6,
        B], from which squares the first 1 to 6 squares of each direction are in `empty` [B].
        """
        landings, empty_from = self.plane.back(torch.stack((targets, empty)).unsqueeze(1))
        return landings, _and_all_before(empty_from[:56].unflatten(0, (8, 7))[:, :6])

    def _en_passant(self, pawns: Tensor, ep_square: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[2, B]: pawns that would capture to the north-east and to the north-west; [2, B]: the
        squares that each of these captures changes; [B]: the pawn that they capture.
        """
        victim = ep_square >> 8
        ep_from = (ep_square >> self.ep_shifts) & (pawns & bb.RANK_5)
        return ep_from, ep_from ^ (ep_square | victim), victim

    def _leave_slides_and_pawn_moves(
        self, planes: Tensor, clear: Tensor, sliders: Tensor, pawns: Tensor
    ) -> Tensor:
        """Leave in `planes` [8, 7, B] the moves of sliders [8, B] and of pawns [B]; all pieces'
        before. Return from-squares [4, B] of the pawns' single steps to the N, E (none), NE and NW.

        clear [8, 6, B]: from which squares the first squares of a line are empty.
        """
        ready = pawns & self.pawn_masks
        steps = planes[:4, 0] & ready[:4] & (clear[:4, 0] ^ self.captures)
        jumps = planes[bb.NORTH, 1] & ready[4] & clear[bb.NORTH, 1]
        planes.bitwise_and_(sliders.unsqueeze(1))
        # `planes[:, 1:] &= clear` would copy the result once more.
        planes[:, 1:].bitwise_and_(clear)
        planes[:4, 0].bitwise_or_(steps)
        planes[bb.NORTH, 1].bitwise_or_(jumps)
        return steps

    def _king_steps(self, king: Tensor, leaps: Tensor, forbidden: Tensor) -> Tensor:
        """[8, B]: the king's square for each of its `leaps` [8, B] that does not end on a forbidden
        square; else 0.
        """
        unsafe = (leaps & forbidden) == leaps
        return torch.where(unsafe, self.nothing, king)

    def _unexposed(self, ep_from: Tensor, sliders: Tensor, leapers: Tensor) -> Tensor:
        """ep_from [2, B] where no slider [8, 2, B] and no leaper [10, B] checks the king after the
        capture.
        """
        checks = torch.cat((sliders, leapers.unsqueeze(1).expand(-1, 2, -1)))
        return torch.where(checks.any(0), self.nothing, ep_from)

    def _castling(
        self, king: Tensor, castling_rights: Tensor, occupied: Tensor, attacked: Tensor
    ) -> Tensor:
        """[2, B]: the king's square where it may castle on its side, and on the queen's; else 0."""
        facts = torch.stack((castling_rights, occupied, attacked)) & self.castling
        return torch.where((facts == self.may_castle).all(1), king, self.nothing)


def _along_lines(landings: Tensor, may_go: Tensor) -> Tensor:
    """landings [56, B] as [direction 8, distance 7, B], of each line's pieces may_go [4, B]."""
    planes = landings.view(2, 4, 7, -1) & may_go.unsqueeze(1)
    return planes.view(8, 7, -1)


def _and_all_before(sets: Tensor) -> Tensor:
    """sets [8, 6, B], overwritten: each becomes its intersection with all those before it."""
    sets[:, 1::2].bitwise_and_(sets[:, 0::2])
    sets[:, 2:4].bitwise_and_(sets[:, 1:2])
    sets[:, 4:6].bitwise_and_(sets[:, 3:4])
    return sets


def destinations() -> Tensor:
    """int64 [4672]: the square to which each action leads; 0 where it would leave the board."""
    square = torch.arange(64)
    planes = []
    for files, ranks, _ in PLANES:
        inside = (bb.squares_with_room(files, ranks) >> square) & 1
        planes.append(inside * (square + files + 8 * ranks))
    return torch.cat(planes)
