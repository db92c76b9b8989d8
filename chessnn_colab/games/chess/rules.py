"""Complete chess on tensors: thousands of games step at once, without a loop over games or a branch
on data.

A position is twelve bitboards seen by the side to move. When Black moves, ranks are flipped (files
are not), so one code path serves both colours, and Black's pawns go north too. An action is ``plane
* 64 + from_square`` in that view; `moves.PLANES` lists the planes.
"""

from collections.abc import Mapping

import chess
import torch
from torch import Tensor

from ..base import Game, finished, random_plies, select, top_candidates, where
from . import bitboards as bb
from . import packing, starts, symmetry, transitions
from .boards import boards_from_state, position_from_boards
from .endings import ENDINGS, Referee
from .material import Material
from .mates import CheckFinder
from .moves import NUM_PLANES, PLANE_JUMPS, MoveGenerator
from .state import (
    CASTLING_ROOKS,
    CLOCK,
    ENDING,
    EP_SQUARE,
    HISTORY,
    PIECES,
    RIGHTS,
    ChessState,
    Position,
)

# The plies without a capture or a pawn move at which one more plane of the clock's thermometer
# lights up; the first is always lit.
CLOCK_THERMOMETER = (0, 8, 16, 32, 56, 80)
FEW_REPLIES = (
    3  # a move that leaves no more forces the opponent; 95 of the suite's 100 mates in two begin so
)
NUM_OBSERVATION_PLANES = 12 + 4 + 1 + 2 + 2 + len(CLOCK_THERMOMETER)


class Chess(Game):
    """The rules, with their tables on one device.

    max_plies: a game that has not ended this many plies after its start is truncated.
    """

    name = "chess"
    title = "chess"
    num_players = 2
    player_names = ("White", "Black")
    num_actions = NUM_PLANES * 64
    jumps = PLANE_JUMPS
    observation_shape = (NUM_OBSERVATION_PLANES, 8, 8)
    packed_words = packing.WORDS
    endings = ENDINGS
    start_shares: Mapping[str, float] = {"few-piece": 0.4, "random-plies": 0.2, "standard": 0.4}
    self_play_plies = 160
    sampling_plies = 30
    discount = 0.99
    td_lambda = 0.85
    bootstrap_after = 200_000

    def __init__(self, max_plies: int = 512, device: torch.device | str = "cpu"):
        self.max_plies = max_plies
        self.device = torch.device(device)
        self.action_images = torch.stack(
            (torch.arange(self.num_actions), symmetry.mirror_actions())
        ).to(self.device)
        self.material = Material(self.device)
        self._packing = packing.Tables.on(self.device)
        self._generator = MoveGenerator(self.device)
        self._checks = CheckFinder(self.device)
        self._referee = Referee(max_plies, self.device)
        self._bool_bits = bb.bits_of(torch.bool, self.device)
        self._float_bits = bb.bits_of(torch.float32, self.device)
        self._hash_multipliers = _random_odd_numbers().to(self.device)
        self._changes = transitions.changes().to(self.device)
        self._origins = transitions.origins().to(self.device)
        self._kinds = torch.arange(1, 7, device=self.device).unsqueeze(-1) * self.num_actions
        self._turn = torch.tensor((1, -1, 1, 0, 1), device=self.device).unsqueeze(-1)
        self._rooks = torch.tensor(CASTLING_ROOKS, device=self.device)
        self._marks = torch.tensor(CLOCK_THERMOMETER, device=self.device)

    def init(self, batch_size: int) -> ChessState:
        """The standard start position, `batch_size` times."""
        start = position_from_boards([chess.Board()], self.device)
        columns = [column.expand(batch_size, *column.shape[1:]) for column in start]
        return self.from_position(Position(*columns))

    def from_position(self, position: Position, repetitions: Tensor | None = None) -> ChessState:
        """New games that start from `position`, which is not checked: notation.board_from_fen
        checks.

        repetitions: int64 [B], how often each position has occurred; None: this once.
        """
        pieces, rights, ep_square, clock, ply, player = position
        squares = (
            torch.cat((rights.unsqueeze(1), pieces, ep_square.unsqueeze(1)), 1).t().contiguous()
        )
        zero = torch.zeros_like(ply)
        counts = torch.stack(
            (clock, player, zero, zero if repetitions is None else repetitions, ply)
        )
        history = torch.zeros(len(ply), HISTORY, dtype=torch.int64, device=self.device)
        return self._state(squares, counts, history, repetitions is None)

    def step(self, state: ChessState, action: Tensor) -> ChessState:
        """Play `action` int64 [B], legal in its position; rows of finished games stay as they
        are.
        """
        words = state.words[:, :ENDING].t().contiguous()  # batch last
        own = words[PIECES : PIECES + 6]
        opponent = words[PIECES + 6 : EP_SQUARE]
        # One piece moves. A search fills spare rows with illegal moves: then two pieces
        # may stand on one square, and the higher one moves.
        kind = (((own & self._origins.index_select(0, action)) != 0) * self._kinds).amax(0)
        changes = self._changes.index_select(0, kind + action).t()
        rights_kept, ep_square, pawn_target, target = changes[6:]
        captured = opponent & (target | ((pawn_target & words[EP_SQUARE]) >> 8))
        rights = words[RIGHTS] & rights_kept
        squares = torch.cat(
            (rights.unsqueeze(0), opponent ^ captured, own ^ changes[:6], ep_square.unsqueeze(0))
        )
        counts = words[CLOCK:ENDING] * self._turn + 1
        counts[0].mul_((captured.sum(0) | pawn_target) == 0)  # the clock starts anew
        after = self._state(bb.flip_ranks(squares), counts, state.history)
        return where(finished(state), state, after)

    def legal_action_mask(self, state: ChessState) -> Tensor:
        """bool [B, 4672]. In a finished game: the moves that the position alone would allow."""
        return bb.unpack_bits(state.moves, self._bool_bits)

    def legal_actions(self, state: ChessState) -> tuple[Tensor, Tensor]:
        """Rows int64 [n] and actions int64 [n] that legal_action_mask allows: row after row,
        actions ascending.

        The host has to learn n, so this waits for a GPU.
        """
        return self._listed(state.moves)

    def winning_candidates(self, state: ChessState, static: bool = False) -> tuple[Tensor, Tensor]:
        """Of `legal_actions`, those that may give check: every mate is among them. static: these
        first, then others (see top_candidates).
        """
        checks = self._checks.may_check(state)
        if not static:
            return self._listed(checks)
        return top_candidates(
            bb.unpack_bits(checks, self._float_bits) + bb.unpack_bits(state.moves, self._float_bits)
        )

    def _listed(self, moves: Tensor) -> tuple[Tensor, Tensor]:
        """`moves` int64 [B, 73], from-squares of each plane, in the form of legal_actions."""
        rows, planes = moves.nonzero(as_tuple=True)
        origins = bb.unpack_bits(moves[rows, planes].unsqueeze(1), self._bool_bits)
        which, squares = origins.nonzero(as_tuple=True)
        return rows[which], planes[which] * 64 + squares

    def forcing_actions(self, state: ChessState) -> tuple[Tensor, Tensor]:
        """Of `legal_actions`, those that leave the opponent one to FEW_REPLIES replies."""
        rows, actions = self.legal_actions(state)
        replies = bb.count_bits(self.step(select(state, rows), actions).moves).sum(1)
        kept = ((replies > 0) & (replies <= FEW_REPLIES)).nonzero().squeeze(1)
        return rows[kept], actions[kept]

    def observe(self, state: ChessState) -> Tensor:
        """float32 [B, 27, 8, 8], zeros and ones: what the network sees.

        The planes, in order: 12 kinds of pieces; the en-passant square; squares attacked by the
        mover, by the opponent; the rights to castle (own king's side, own queen's side, the
        opponent's two); this position has occurred before; the mover is in check; all ones; and the
        half-move clock as a thermometer.
        """
        flags = torch.cat(
            (
                (state.castling_rights.unsqueeze(1) & self._rooks) != 0,
                state.repetitions.unsqueeze(1) > 1,
                state.flags[:, :1],
                state.halfmove_clock.unsqueeze(1) >= self._marks,
            ),
            1,
        )
        planes = torch.cat((state.words[:, PIECES:CLOCK], flags * bb.EVERYWHERE), 1)
        return bb.unpack_bits(planes, self._float_bits).view(-1, *self.observation_shape)

    def pack(self, state: ChessState) -> Tensor:
        """int64 [B, 5]: the positions with their repetition counts, but without the keys of earlier
        positions.
        """
        return packing.pack(state, self._packing)

    def unpack(self, packed: Tensor) -> ChessState:
        """The states in the words int64 [B, 5] of `pack`: repetition counts are kept, earlier
        positions are not.
        """
        return self.from_position(*packing.unpack(packed, self._packing))

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, 5], half of the positions mirrored among those in which neither side
        may castle.

        chance: float32 [B] in [0, 1). The second result, int64 [B], is the row of `action_images`
        that holds the images of a position's actions.
        """
        flip = (chance < 0.5) & symmetry.may_mirror(packed)
        return torch.where(flip.unsqueeze(1), symmetry.mirror_packed(packed), packed), flip.long()

    def guessed_chances(self, state: ChessState) -> Tensor:
        """float32 [B, 3]: the mover's chances to win, draw and lose, by material: what becomes of a
        piece more in the hands of a network that has just begun to learn.
        """
        return self.material.chances(state.pieces)

    def starts(self, count: int, kind: str, generator: torch.Generator) -> ChessState:
        """`count` start positions of a kind in `start_shares` (see the module starts); `generator`
        is a CPU generator.
        """
        if kind == "standard":
            return self.init(count)
        if kind == "few-piece":
            return starts.few_piece(self, count, generator)
        state = random_plies(self, count, starts.MAX_RANDOM_PLIES, generator)
        return self.from_position(state.position)

    def to_text(self, state: ChessState) -> list[str]:
        """Each position as White sees it: eight lines, White's pieces in capitals."""
        return [str(board) for board in boards_from_state(state)]

    def _state(
        self, squares: Tensor, counts: Tensor, history: Tensor, count_repetitions: bool = True
    ) -> ChessState:
        """Everything that follows from a position and from the keys int64 [B, 100] of those before
        it.

        squares int64 [14, B]: rights, pieces, en-passant square. counts int64 [5, B]: clock,
        player, plies played, repetitions, which are filled in here unless they are known, and ply.
        """
        pieces = squares[PIECES:EP_SQUARE]
        legal = self._generator.legal_moves(pieces, squares[RIGHTS], squares[EP_SQUARE])
        key = self._key(torch.cat((squares[:EP_SQUARE], legal.ep_from, counts[1:2]))).unsqueeze(1)
        history = history.scatter(1, counts[0].clamp(max=HISTORY - 1).unsqueeze(1), key)
        if count_repetitions:
            torch.sum(history == key, 1, out=counts[3])
        ending, flags, rewards = self._referee.judge(
            pieces, legal.moves, legal.in_check, counts[:4]
        )
        words = torch.cat((squares, legal.attacks, counts, ending.unsqueeze(0), legal.moves))
        return ChessState(words.t(), history, flags, rewards)

    def _key(self, words: Tensor) -> Tensor:
        """int64 [B]: a hash of `words` [16, B], all that makes two positions the same (FIDE Laws,
        9.2.3).
        """
        first, second = self._hash_multipliers
        words = words * first
        return ((words ^ (words >> 32)) * second).sum(0)


def _random_odd_numbers() -> Tensor:
    """Fixed odd int64 multipliers [2, 16, 1] for the position key."""
    generator = torch.Generator().manual_seed(2718281828)
    return torch.randint(-(2**63), 2**63 - 1, (2, 16, 1), generator=generator) | 1
