"""Complete chess on tensors: thousands of boards a step, no loop over games, no branch on data.

A position is twelve bitboards seen by the side to move: when Black moves, ranks are flipped (files are not), so
one code path serves both colours and Black's pawns go north too. An action is ``plane * 64 + from_square`` in that
view: 56 queen planes (direction * 7 + distance - 1), 8 knight planes, 9 underpromotions (AlphaZero's 8x8x73,
Silver et al. 2018, laid plane first so that a position's 73 move bitboards unpack into the mask as they stand).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import bitboards as bb
from . import material, symmetry, starts
from ..base import finished, where
from .moves import (
    CASTLE_KINGSIDE_PLANE,
    CASTLE_QUEENSIDE_PLANE,
    DOUBLE_PUSH_PLANE,
    KING,
    NUM_PLANES,
    PAWN,
    QUEEN,
    ROOK,
    UNDERPROMOTION_DIRECTIONS,
    UNDERPROMOTION_PLANES,
    MoveGenerator,
)

ENDINGS = (
    "unfinished",
    "checkmate",
    "stalemate",
    "insufficient_material",
    "threefold_repetition",
    "fifty_moves",
    "truncated",
)
UNFINISHED, CHECKMATE, STALEMATE, INSUFFICIENT_MATERIAL, THREEFOLD_REPETITION, FIFTY_MOVES, TRUNCATED = range(7)
HISTORY = 100
# Half-moves without capture or pawn move at which one more plane of the counter's thermometer lights up.
CLOCK_THERMOMETER = (8, 16, 32, 56, 80)
NUM_OBSERVATION_PLANES = 12 + 4 + 1 + 2 + 2 + 1 + len(CLOCK_THERMOMETER)


@dataclass(frozen=True)
class ChessState:
    """B positions, each from its mover's point of view. Bitboards are int64, a1 = bit 0."""

    pieces: Tensor  # int64 [B, 12], own P N B R Q K, then the opponent's
    castling_rights: Tensor  # int64 [B], rooks of either side that may still castle
    ep_square: Tensor  # int64 [B], the square a pawn has just jumped over, or 0
    halfmove_clock: Tensor  # int64 [B], plies since the last capture or pawn move
    ply: Tensor  # int64 [B], plies since move 1 by White, as the FEN counts
    plies_played: Tensor  # int64 [B], plies since this game's own start; the cap counts these
    current_player: Tensor  # int64 [B], 0 White, 1 Black
    history: Tensor  # int64 [B, 100], keys of the positions since the last capture or pawn move
    repetitions: Tensor  # int64 [B], how often this position has stood, this time included
    moves: Tensor  # int64 [B, 73], from-squares of the legal moves of each plane
    attacks: Tensor  # int64 [B, 2], squares attacked by the mover, by the opponent
    in_check: Tensor  # bool [B]
    terminated: Tensor  # bool [B], ended by the rules
    truncated: Tensor  # bool [B], stopped at the ply cap
    rewards: Tensor  # float32 [B, 2], +1 and -1 to White and Black after mate, else 0
    ending: Tensor  # int64 [B], index into ENDINGS


class Chess:
    """The rules, with their tables on one device.

    max_plies: a game that has not ended after so many plies from its start is truncated.
    """

    name = "chess"
    num_players = 2
    player_names = ("White", "Black")
    num_actions = NUM_PLANES * 64
    observation_shape = (NUM_OBSERVATION_PLANES, 8, 8)
    packed_words = 5
    endings = ENDINGS
    start_shares = {"few-piece": 0.4, "random-plies": 0.2, "standard": 0.4}
    self_play_plies = 160
    sampling_plies = 30
    discount = 0.99
    td_lambda = 0.85

    def __init__(self, max_plies: int = 512, device: torch.device | str = "cpu"):
        self.max_plies = max_plies
        self.device = torch.device(device)
        self._generator = MoveGenerator(self.device)
        self.destinations = destinations().to(self.device)
        self.action_images = torch.stack((torch.arange(self.num_actions), symmetry.mirror_actions())).to(self.device)
        self._bool_bits = bb.bits_table(torch.bool, self.device)
        self._float_bits = bb.bits_table(torch.float32, self.device)
        self._hash_multipliers = _random_odd_numbers(2, 15).to(self.device).unsqueeze(-1)
        self._piece_index = torch.arange(6, device=self.device).unsqueeze(-1)

    def init(self, batch_size: int) -> ChessState:
        """The standard start position, `batch_size` times."""
        pieces = torch.tensor(starts.STANDARD_PIECES, dtype=torch.int64, device=self.device).repeat(batch_size, 1)
        zero = torch.zeros(batch_size, dtype=torch.int64, device=self.device)
        return self.from_position(pieces, zero + starts.STANDARD_CASTLING, zero, zero, zero, zero)

    def from_position(
        self,
        pieces: Tensor,
        castling_rights: Tensor,
        ep_square: Tensor,
        halfmove_clock: Tensor,
        ply: Tensor,
        current_player: Tensor,
    ) -> ChessState:
        """States without a past from the mover's bitboards [B, 12] and the five counters, each int64 [B]."""
        history = torch.zeros(pieces.shape[0], HISTORY, dtype=torch.int64, device=self.device)
        return self._state(
            pieces.t(), castling_rights, ep_square, halfmove_clock, ply, torch.zeros_like(ply), current_player, history
        )

    def step(self, state: ChessState, action: Tensor) -> ChessState:
        """Play `action` int64 [B], legal in its position; rows of finished games stay as they are."""
        plane, origin = action >> 6, action & 63
        source = torch.ones_like(action) << origin
        target = torch.ones_like(action) << self.destinations[action]
        own, opponent = state.pieces.t()[:6], state.pieces.t()[6:]

        moves_now = (own & source) != 0  # [6, B], which kind of piece moves
        pawn_moves, king_moves = moves_now[PAWN], moves_now[KING]
        ep_victim = torch.where(pawn_moves & (target == state.ep_square), state.ep_square >> 8, 0)
        captured = opponent & (target | ep_victim)
        capture = (captured != 0).any(0)
        own = own ^ torch.where(moves_now, source | target, 0)
        own = self._promote(own, plane, torch.where(pawn_moves, target & bb.RANK_8, 0))
        rook_jump = _castling_rook(plane, king_moves)
        own = own ^ torch.where(self._piece_index == ROOK, rook_jump, 0)

        rights = state.castling_rights & ~(source | target)
        rights = torch.where(king_moves, rights & ~bb.RANK_1, rights)
        ep_square = torch.where(pawn_moves & (plane == DOUBLE_PUSH_PLANE), source << 8, 0)
        boards = torch.cat((opponent ^ captured, own, rights.unsqueeze(0), ep_square.unsqueeze(0)))
        boards = bb.flip_ranks(boards)
        clock = torch.where(capture | pawn_moves, 0, state.halfmove_clock + 1)
        after = self._state(
            boards[:12],
            boards[12],
            boards[13],
            clock,
            state.ply + 1,
            state.plies_played + 1,
            1 - state.current_player,
            state.history,
        )
        return where(finished(state), state, after)

    def legal_action_mask(self, state: ChessState) -> Tensor:
        """bool [B, 4672]; of a finished game: the moves the position alone would allow."""
        return bb.unpack_bits(state.moves, self._bool_bits)

    def legal_actions(self, state: ChessState) -> tuple[Tensor, Tensor]:
        """int64 [n] and int64 [n]: row and action of everything legal_action_mask allows, row after row, actions
        ascending. How many there are is known to the host first: a GPU is waited for."""
        rows, planes = state.moves.nonzero(as_tuple=True)
        origins = bb.unpack_bits(state.moves[rows, planes].unsqueeze(1), self._bool_bits)
        which, squares = origins.nonzero(as_tuple=True)
        return rows[which], planes[which] * 64 + squares

    def observe(self, state: ChessState) -> Tensor:
        """float32 [B, C, 8, 8], every plane binary: what the network sees.

        12 piece planes; the rights to castle (own king's side, own queen's side, the opponent's two); the en-passant
        square; seen before; in check; attacked by the mover, by the opponent; all ones; and the half-move clock as a
        thermometer.
        """
        rights = state.castling_rights
        flags = torch.stack(
            [(rights & rook) != 0 for rook in starts.CASTLING_ROOKS]
            + [state.repetitions > 1, state.in_check, torch.ones_like(state.in_check)]
            + [state.halfmove_clock >= mark for mark in CLOCK_THERMOMETER],
            1,
        )
        planes = torch.cat((state.pieces, state.ep_square.unsqueeze(1), state.attacks, -flags.to(torch.int64)), 1)
        return bb.unpack_bits(planes, self._float_bits).view(-1, *self.observation_shape)

    def pack(self, state: ChessState) -> Tensor:
        """int64 [B, 5]: the position in 40 bytes, all but its history. Inverse: `unpack`.

        Four words hold the bits of each square's piece number (0 empty, 1-6 own, 7-12 the opponent's); the fifth
        holds castling (bits 0-3), en passant (file + 1, bits 4-7), clock (8-14), repetitions (15-16), player (17)
        and ply (18-33).
        """
        pieces = state.pieces
        words = [sum(pieces[:, number - 1] for number in range(1, 13) if number >> bit & 1) for bit in range(4)]
        rights = state.castling_rights
        extra = sum(((rights & rook) != 0) * (1 << i) for i, rook in enumerate(starts.CASTLING_ROOKS))
        on_file = sum(((state.ep_square & (starts.EP_A << file)) != 0) * (file + 1) for file in range(8))
        extra = extra | (on_file << 4) | (state.halfmove_clock.clamp(max=127) << 8)
        extra = extra | (state.repetitions.clamp(max=3) << 15) | (state.current_player << 17)
        return torch.stack((*words, extra | (state.ply.clamp(max=65535) << 18)), 1)

    def unpack(self, packed: Tensor) -> ChessState:
        """The states of `pack`'s words int64 [B, 5], with the repetition count but no history of keys."""
        bits, extra = packed[:, :4], packed[:, 4]
        pieces = torch.stack(
            [
                _all_of([bits[:, bit] if number >> bit & 1 else ~bits[:, bit] for bit in range(4)])
                for number in range(1, 13)
            ],
            1,
        )
        rights = sum(((extra >> i) & 1) * rook for i, rook in enumerate(starts.CASTLING_ROOKS))
        on_file = (extra >> 4) & 15
        ep_square = torch.where(on_file > 0, starts.EP_A << (on_file - 1).clamp(min=0), 0)
        history = torch.zeros(packed.shape[0], HISTORY, dtype=torch.int64, device=packed.device)
        ply = (extra >> 18) & 65535
        return self._state(
            pieces.t(),
            rights,
            ep_square,
            (extra >> 8) & 127,
            ply,
            torch.zeros_like(ply),
            (extra >> 17) & 1,
            history,
            repetitions=(extra >> 15) & 3,
        )

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, 5] with half of the positions in a mirror, of those that are the same game there.

        chance: float32 [B] in [0, 1). Also int64 [B]: which row of `action_images` a position's actions follow.
        """
        flip = (chance < 0.5) & symmetry.may_mirror(packed)
        return torch.where(flip.unsqueeze(1), symmetry.mirror_packed(packed), packed), flip.to(torch.int64)

    def material(self, state: ChessState) -> Tensor:
        """int64 [B]: the mover's material less the opponent's (P 1, N 3, B 3, R 5, Q 9)."""
        return material.balance(state.pieces)

    def gains(self, state: ChessState) -> Tensor:
        """int64 [B, 4672]: the material each action wins at once, by capture and promotion."""
        return material.gains(self, state)

    def truncation_value(self, state: ChessState) -> Tensor:
        """float32 [B] in (-0.5, 0.5), the mover's view: what a game stopped at the cap is labelled.

        0.5 tanh(material / 5): never worth a mate, so that there is a reason to give one.
        """
        return 0.5 * torch.tanh(self.material(state).to(torch.float32) / 5)

    def starts(self, count: int, kind: str, generator: torch.Generator) -> ChessState:
        """`count` start positions: "standard", "few-piece" (kings and a handful) or "random-plies" (see starts)."""
        return starts.make(self, count, kind, generator)

    def to_text(self, state: ChessState) -> list[str]:
        """Each row as White sees it: eight lines, White's men in capitals."""
        flipped = (state.current_player == 1).view(-1, 1)
        boards = torch.where(flipped, bb.flip_ranks(state.pieces.roll(6, 1)), state.pieces)
        bits = bb.unpack_bits(boards, self._bool_bits).view(-1, 12, 8, 8).flip(2)
        squares = [
            ["".join(letter for letter, on in zip("PNBRQKpnbrqk", men) if on) or "." for men in row]
            for row in bits.permute(0, 2, 3, 1).flatten(0, 1).tolist()
        ]
        lines = [" ".join(row) for row in squares]
        return ["\n".join(lines[first : first + 8]) for first in range(0, len(lines), 8)]

    def _state(
        self,
        pieces,
        castling_rights,
        ep_square,
        clock,
        ply,
        plies_played,
        player,
        history,
        repetitions: Tensor | None = None,
    ) -> ChessState:
        """Everything that follows from a position (pieces [12, B]) and the keys of those before it."""
        pieces = pieces.contiguous()
        legal = self._generator.legal_moves(pieces, castling_rights, ep_square)
        key = self._key(pieces, castling_rights, torch.where(legal.ep_from != 0, ep_square, 0), player)
        if repetitions is None:
            repetitions = (history == key.unsqueeze(1)).sum(1) + 1
        history = history.scatter(1, clock.clamp(max=HISTORY - 1).unsqueeze(1), key.unsqueeze(1))
        stuck = (legal.moves == 0).all(0)
        ending = _ending(pieces, stuck, legal.in_check, repetitions, clock, plies_played >= self.max_plies)
        lost = (ending == CHECKMATE).to(torch.float32)
        white_reward = torch.where(player == 0, -lost, lost)
        return ChessState(
            pieces.t(),
            castling_rights,
            ep_square,
            clock,
            ply,
            plies_played,
            player,
            history,
            repetitions,
            legal.moves.t(),
            legal.attacks.t(),
            legal.in_check,
            terminated=(ending != UNFINISHED) & (ending != TRUNCATED),
            truncated=ending == TRUNCATED,
            rewards=torch.stack((white_reward, -white_reward), 1),
            ending=ending,
        )

    def _promote(self, own: Tensor, plane: Tensor, arrived: Tensor) -> Tensor:
        """Turn the pawns that `arrived` [B] on the last rank into what the plane says."""
        underpromoted = torch.div(plane - UNDERPROMOTION_PLANES, 3, rounding_mode="floor") + 1
        becomes = torch.where(plane >= UNDERPROMOTION_PLANES, underpromoted, QUEEN)
        changes = (self._piece_index == becomes) | (self._piece_index == PAWN)
        return own ^ torch.where(changes, arrived, 0)

    def _key(self, pieces: Tensor, castling_rights: Tensor, ep_square: Tensor, player: Tensor) -> Tensor:
        """int64 [B]: a 64-bit hash of what makes two positions the same (FIDE 9.2.3)."""
        words = torch.cat((pieces, torch.stack((castling_rights, ep_square, player))))
        first, second = self._hash_multipliers
        words = words * first
        words = (words ^ (words >> 32)) * second
        total = (words ^ (words >> 29)).sum(0)
        return total ^ (total >> 31)


def _ending(pieces, stuck, in_check, repetitions, clock, at_cap) -> Tensor:
    """int64 [B]: the first of ENDINGS that applies, in python-chess's order; mate comes before any draw."""
    ending = torch.where(at_cap, TRUNCATED, UNFINISHED)
    ending = torch.where(clock >= 100, FIFTY_MOVES, ending)
    ending = torch.where(repetitions >= 3, THREEFOLD_REPETITION, ending)
    ending = torch.where(stuck & ~in_check, STALEMATE, ending)
    ending = torch.where(_insufficient_material(pieces), INSUFFICIENT_MATERIAL, ending)
    return torch.where(stuck & in_check, CHECKMATE, ending)


def _insufficient_material(pieces: Tensor) -> Tensor:
    """bool [B]: neither side could ever mate: bare kings, one knight, or bishops all on one colour."""
    both = pieces[:6] | pieces[6:]
    knights, bishops = both[1], both[2]
    no_mating_piece = (both[PAWN] | both[ROOK] | both[QUEEN]) == 0
    one_colour = ((bishops & bb.DARK_SQUARES) == 0) | ((bishops & bb.LIGHT_SQUARES) == 0)
    only_bishops = (knights == 0) & one_colour
    one_knight = ((knights & (knights - 1)) == 0) & (bishops == 0)
    return no_mating_piece & (only_bishops | one_knight)


def _castling_rook(plane: Tensor, king_moves: Tensor) -> Tensor:
    """int64 [B]: the two squares the rook changes when the king castles, else 0."""
    kingside = torch.where(king_moves & (plane == CASTLE_KINGSIDE_PLANE), 0xA0, 0)
    return torch.where(king_moves & (plane == CASTLE_QUEENSIDE_PLANE), 0x09, kingside)


def _all_of(boards: list[Tensor]) -> Tensor:
    result = boards[0]
    for board in boards[1:]:
        result = result & board
    return result


def destinations() -> Tensor:
    """int64 [4672]: the square each action leads to; 0 where it would leave the board."""
    jumps = [(n * files, n * ranks) for files, ranks in bb.DIRECTIONS for n in range(1, 8)]
    jumps += bb.KNIGHT_JUMPS
    jumps += [bb.DIRECTIONS[direction] for _ in range(3) for direction in UNDERPROMOTION_DIRECTIONS]
    squares = torch.zeros(len(jumps), 64, dtype=torch.int64)
    for plane, (files, ranks) in enumerate(jumps):
        for square in range(64):
            if bb.squares_with_room(files, ranks) >> square & 1:
                squares[plane, square] = square + files + 8 * ranks
    return squares.flatten()


def _random_odd_numbers(*shape: int) -> Tensor:
    """Fixed odd int64 multipliers for the position key."""
    generator = torch.Generator().manual_seed(2718281828)
    high = torch.randint(-(2**31), 2**31, shape, generator=generator)
    low = torch.randint(0, 2**32, shape, generator=generator)
    return (high << 32) | low | 1
