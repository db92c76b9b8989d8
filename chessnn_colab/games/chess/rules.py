"""Complete chess on tensors: thousands of games step at once, without a loop over games or a branch on data.

A position is twelve bitboards seen by the side to move. When Black moves, ranks are flipped (files are not), so one
code path serves both colours, and Black's pawns go north too. An action is ``plane * 64 + from_square`` in that view;
`moves.PLANES` lists the planes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ...errors import ConfigError
from ..base import finished, where
from . import bitboards as bb
from . import material, packing, starts, symmetry
from .endings import CHECKMATE, ENDINGS, TRUNCATED, UNFINISHED, find_ending
from .moves import (
    CASTLE_KINGSIDE_PLANE,
    CASTLE_QUEENSIDE_PLANE,
    DOUBLE_PUSH_PLANE,
    KING,
    NUM_PLANES,
    PAWN,
    QUEEN,
    ROOK,
    UNDERPROMOTION_PLANES,
    MoveGenerator,
    destinations,
)
from .state import CASTLING_ROOKS, HISTORY, STANDARD_PIECES, ChessState, Position

# The plies without a capture or a pawn move at which one more plane of the clock's thermometer lights up.
CLOCK_THERMOMETER = (8, 16, 32, 56, 80)
NUM_OBSERVATION_PLANES = 12 + 4 + 1 + 2 + 2 + 1 + len(CLOCK_THERMOMETER)


class Chess:
    """The rules, with their tables on one device.

    max_plies: a game that has not ended this many plies after its start is truncated.
    """

    name = "chess"
    num_players = 2
    player_names: tuple[str, ...] = ("White", "Black")
    num_actions = NUM_PLANES * 64
    observation_shape: tuple[int, int, int] = (NUM_OBSERVATION_PLANES, 8, 8)
    packed_words = packing.WORDS
    endings: tuple[str, ...] = ENDINGS
    start_shares: Mapping[str, float] = {"few-piece": 0.4, "random-plies": 0.2, "standard": 0.4}
    self_play_plies = 160
    sampling_plies = 30
    discount = 0.99
    td_lambda = 0.85
    chance = False
    reward_kinds: Mapping[str, float] = {}
    score_limit = 0.0

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
        pieces = torch.tensor(STANDARD_PIECES, dtype=torch.int64, device=self.device).repeat(batch_size, 1)
        zero = torch.zeros(batch_size, dtype=torch.int64, device=self.device)
        return self.from_position(Position(pieces, zero + sum(CASTLING_ROOKS), zero, zero, zero, zero))

    def from_position(self, position: Position) -> ChessState:
        """New games that start from `position`, which is not checked: notation.board_from_fen checks."""
        return self._state(position, torch.zeros_like(position.ply), self._no_history(position))

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
        seen_by_mover = torch.cat((opponent ^ captured, own, rights.unsqueeze(0), ep_square.unsqueeze(0)))
        bitboards = bb.flip_ranks(seen_by_mover)
        clock = torch.where(capture | pawn_moves, 0, state.halfmove_clock + 1)
        position = Position(
            bitboards[:12].t(), bitboards[12], bitboards[13], clock, state.ply + 1, 1 - state.current_player
        )
        return where(finished(state), state, self._state(position, state.plies_played + 1, state.history))

    def legal_action_mask(self, state: ChessState) -> Tensor:
        """bool [B, 4672]. In a finished game: the moves that the position alone would allow."""
        return bb.unpack_bits(state.moves, self._bool_bits)

    def legal_actions(self, state: ChessState) -> tuple[Tensor, Tensor]:
        """Rows int64 [n] and actions int64 [n] that legal_action_mask allows: row after row, actions ascending.

        The host has to learn n, so this waits for a GPU.
        """
        rows, planes = state.moves.nonzero(as_tuple=True)
        origins = bb.unpack_bits(state.moves[rows, planes].unsqueeze(1), self._bool_bits)
        which, squares = origins.nonzero(as_tuple=True)
        return rows[which], planes[which] * 64 + squares

    def observe(self, state: ChessState) -> Tensor:
        """float32 [B, 27, 8, 8], zeros and ones: what the network sees.

        The planes, in order: 12 kinds of pieces; the en-passant square; squares attacked by the mover, by the opponent;
        the rights to castle (own king's side, own queen's side, the opponent's two); this position has occurred before;
        the mover is in check; all ones; and the half-move clock as a thermometer.
        """
        rights = state.castling_rights
        flags = torch.stack(
            [(rights & rook) != 0 for rook in CASTLING_ROOKS]
            + [state.repetitions > 1, state.in_check, torch.ones_like(state.in_check)]
            + [state.halfmove_clock >= mark for mark in CLOCK_THERMOMETER],
            1,
        )
        planes = torch.cat((state.pieces, state.ep_square.unsqueeze(1), state.attacks, -flags.to(torch.int64)), 1)
        return bb.unpack_bits(planes, self._float_bits).view(-1, *self.observation_shape)

    pack = staticmethod(packing.pack)

    def unpack(self, packed: Tensor) -> ChessState:
        """The states in the words int64 [B, 5] of `pack`: repetition counts are kept, earlier positions are not."""
        position, repetitions = packing.unpack(packed)
        return self._state(position, torch.zeros_like(position.ply), self._no_history(position), repetitions)

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, 5] with half of the positions mirrored, among those in which nobody may castle.

        chance: float32 [B] in [0, 1). The second result, int64 [B], is the row of `action_images` that holds the
        images of a position's actions.
        """
        flip = (chance < 0.5) & symmetry.may_mirror(packed)
        return torch.where(flip.unsqueeze(1), symmetry.mirror_packed(packed), packed), flip.to(torch.int64)

    def gains(self, state: ChessState) -> Tensor:
        """int64 [B, 4672]: the material (P 1, N 3, B 3, R 5, Q 9) that each action captures and promotes to."""
        return material.gains(state.pieces, state.ep_square, self.destinations)

    def truncation_value(self, state: ChessState) -> Tensor:
        """float32 [B] in (-0.5, 0.5), the mover's view: the label of a game that is stopped here.

        0.5 tanh(material / 5): less than a mate is worth, so that there is a reason to mate.
        """
        return 0.5 * torch.tanh(material.balance(state.pieces).to(torch.float32) / 5)

    def starts(self, count: int, kind: str, generator: torch.Generator) -> ChessState:
        """`count` start positions of a kind in `start_shares` (see the module starts); `generator` is a CPU generator.

        Raises ConfigError for an unknown kind.
        """
        if kind == "standard":
            return self.init(count)
        if kind == "few-piece":
            return starts.few_piece(count, generator, self.device, self.from_position)
        if kind == "random-plies":
            return self.from_position(starts.random_plies(self, count, generator).position)
        raise ConfigError(f"unknown start positions {kind!r}: expected one of {', '.join(self.start_shares)}")

    def to_text(self, state: ChessState) -> list[str]:
        """Each position as White sees it: eight lines, White's pieces in capitals."""
        flipped = (state.current_player == 1).view(-1, 1)
        pieces = torch.where(flipped, bb.flip_ranks(state.pieces.roll(6, 1)), state.pieces)
        bits = bb.unpack_bits(pieces, self._bool_bits).view(-1, 12, 8, 8).flip(2)
        squares = [
            ["".join(letter for letter, on in zip("PNBRQKpnbrqk", men) if on) or "." for men in row]
            for row in bits.permute(0, 2, 3, 1).flatten(0, 1).tolist()
        ]
        lines = [" ".join(row) for row in squares]
        return ["\n".join(lines[first : first + 8]) for first in range(0, len(lines), 8)]

    def _state(
        self, position: Position, plies_played: Tensor, history: Tensor, repetitions: Tensor | None = None
    ) -> ChessState:
        """Everything that follows from `position` and from the keys int64 [B, 100] of those before it."""
        pieces = position.pieces.t().contiguous()
        clock, player = position.halfmove_clock, position.current_player
        legal = self._generator.legal_moves(pieces, position.castling_rights, position.ep_square)
        key = self._key(
            pieces, position.castling_rights, torch.where(legal.ep_from != 0, position.ep_square, 0), player
        )
        if repetitions is None:
            repetitions = (history == key.unsqueeze(1)).sum(1) + 1
        no_moves, at_cap = (legal.moves == 0).all(0), plies_played >= self.max_plies
        ending = find_ending(pieces, no_moves, legal.in_check, repetitions, clock, at_cap)
        lost = (ending == CHECKMATE).to(torch.float32)
        white_reward = torch.where(player == 0, -lost, lost)
        return ChessState(
            *position._replace(pieces=pieces.t()),
            plies_played=plies_played,
            history=history.scatter(1, clock.clamp(max=HISTORY - 1).unsqueeze(1), key.unsqueeze(1)),
            repetitions=repetitions,
            moves=legal.moves.t(),
            attacks=legal.attacks.t(),
            in_check=legal.in_check,
            terminated=(ending != UNFINISHED) & (ending != TRUNCATED),
            truncated=ending == TRUNCATED,
            rewards=torch.stack((white_reward, -white_reward), 1),
            ending=ending,
        )

    def _no_history(self, position: Position) -> Tensor:
        return torch.zeros(len(position.ply), HISTORY, dtype=torch.int64, device=self.device)

    def _promote(self, own: Tensor, plane: Tensor, arrived: Tensor) -> Tensor:
        """Own pieces [6, B] with the pawns that `arrived` [B] on the last rank turned into what the plane says."""
        underpromoted = torch.div(plane - UNDERPROMOTION_PLANES, 3, rounding_mode="floor") + 1
        becomes = torch.where(plane >= UNDERPROMOTION_PLANES, underpromoted, QUEEN)
        changes = (self._piece_index == becomes) | (self._piece_index == PAWN)
        return own ^ torch.where(changes, arrived, 0)

    def _key(self, pieces: Tensor, castling_rights: Tensor, ep_square: Tensor, player: Tensor) -> Tensor:
        """int64 [B]: a hash of all that makes two positions the same (FIDE Laws, 9.2.3)."""
        words = torch.cat((pieces, torch.stack((castling_rights, ep_square, player))))
        first, second = self._hash_multipliers
        words = words * first
        words = (words ^ (words >> 32)) * second
        total = (words ^ (words >> 29)).sum(0)
        return total ^ (total >> 31)


def _castling_rook(plane: Tensor, king_moves: Tensor) -> Tensor:
    """int64 [B]: where the king castles, the squares that its rook leaves and reaches; else 0."""
    kingside = torch.where(king_moves & (plane == CASTLE_KINGSIDE_PLANE), 0xA0, 0)
    return torch.where(king_moves & (plane == CASTLE_QUEENSIDE_PLANE), 0x09, kingside)


def _random_odd_numbers(*shape: int) -> Tensor:
    """Fixed odd int64 multipliers for the position key."""
    generator = torch.Generator().manual_seed(2718281828)
    high = torch.randint(-(2**31), 2**31, shape, generator=generator)
    low = torch.randint(0, 2**32, shape, generator=generator)
    return (high << 32) | low | 1
