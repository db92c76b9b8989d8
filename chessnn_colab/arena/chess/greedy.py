"""The fixed player that takes the most valuable piece it can."""

from torch import Tensor

from ...games.base import select
from ...games.chess.rules import ChessState
from ..players import ScoringPlayer


class GreedyPlayer(ScoringPlayer):
    """The move that leaves it with the most material. A random one of the best, if there are
    several.
    """

    name = "greedy"

    def scores(self, state: ChessState) -> Tensor:
        rows, actions = self.game.legal_actions(state)
        children = self.game.step(select(state, rows), actions)
        scores = state.rewards.new_zeros(len(state.ply), self.game.num_actions)
        # The opponent sees the children.
        scores[rows, actions] = -self.game.material.balance(children.pieces)
        return scores
