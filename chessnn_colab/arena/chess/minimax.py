"""The fixed player that looks two plies ahead, with material and piece-square tables. It plays many
games at once.
"""

import torch
from torch import Tensor

from ...games.base import finished, select
from ...games.chess import bitboards as bb
from ...games.chess.endings import CHECKMATE
from ...games.chess.rules import Chess, ChessState
from ..players import ScoringPlayer

MATE = 1_000_000.0
PIECE_VALUES = (100, 310, 325, 500, 900, 0)  # P N B R Q K, centipawns
CHILDREN_AT_ONCE = (
    512  # positions after one ply, whose replies (about thirty each) are in memory together
)
CACHED_CHILDREN = 128  # on a CPU, so that they stay in its cache


class MinimaxPlayer(ScoringPlayer):
    """The move that leaves it best off after the opponent's best reply. A random one of the best,
    if there are several.

    It looks at every line of two plies, so it chooses what alpha-beta of depth 2 chooses. Mate is
    worth more than everything else, and a draw by the rules is worth 0. It does not look deeper at
    captures.
    """

    name = "minimax"

    def __init__(self, game: Chess):
        super().__init__(game)
        self._bits = bb.bits_of(torch.float32, game.device)
        self._tables = tables().to(game.device)

    def scores(self, state: ChessState) -> Tensor:
        """float32 [B, 4672], centipawns: what each legal action is worth to the mover after the
        best reply; else 0.
        """
        rows, actions = self.game.legal_actions(state)
        size = CACHED_CHILDREN if rows.device.type == "cpu" else CHILDREN_AT_ONCE
        values = [
            self._after_best_reply(self.game.step(select(state, some), action))
            for some, action in zip(rows.split(size), actions.split(size))
        ]
        scores = torch.zeros(len(state.ply), self.game.num_actions, device=rows.device)
        scores[rows, actions] = torch.cat(values)
        return scores

    def _after_best_reply(self, child: ChessState) -> Tensor:
        """float32 [N]: what positions are worth to the player who has just moved, after the other's
        best reply.
        """
        unfinished = (~finished(child)).nonzero().squeeze(1)
        rows, replies = self.game.legal_actions(select(child, unfinished))
        rows = unfinished[rows]
        after = self.game.step(select(child, rows), replies)
        worth = torch.where(
            after.terminated,
            torch.where(after.ending == CHECKMATE, -MATE, 0.0),
            self.evaluate(after),
        )
        worst = torch.full(child.ply.shape, MATE, device=rows.device).scatter_reduce(
            0, rows, worth, "amin"
        )
        drawn = child.terminated & (child.ending != CHECKMATE)
        settled = worst.masked_fill(drawn, 0)
        return torch.where(child.truncated, -self.evaluate(child), settled)

    def evaluate(self, state: ChessState) -> Tensor:
        """float32 [B], centipawns: material and squares, the mover's minus the opponent's."""
        return bb.unpack_bits(state.pieces, self._bits).flatten(1) @ self._tables


def tables() -> Tensor:
    """float32 [768], centipawns: what a piece is worth on each square.

    First the mover's six kinds, then the opponent's, which are negative and have their ranks
    reversed.
    """
    own = torch.tensor(
        [
            [value + bonus(kind, square % 8, square // 8) for square in range(64)]
            for kind, value in enumerate(PIECE_VALUES)
        ],
        dtype=torch.float32,
    )
    other = own.view(6, 8, 8).flip(1).reshape(6, 64)
    return torch.cat((own, -other)).flatten()


def bonus(kind: int, file: int, rank: int) -> int:
    """The bonus of a piece for standing on a square, in centipawns. rank: 0 is the first as its
    own side counts.
    """
    centre = int(3.5 - max(abs(file - 3.5), abs(rank - 3.5)))  # 0 at the rim to 3 in the middle
    sheltered = 20 if rank == 0 and file in (1, 2, 6) else 0
    return {
        0: 6 * (rank - 1) + (12 if file in (3, 4) and rank in (3, 4) else 0),
        1: 12 * centre - 18,
        2: 6 * centre - 6,
        3: 15 if rank == 6 else 0,
        4: 3 * centre - 3,
        5: sheltered - 12 * min(rank, 3),
    }[kind]
