"""The fixed player that wins if it can, else blocks, else extends its longest line."""

import torch
from torch import Tensor

from ...games.gomoku.lines import FIVE
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import GomokuState
from ..players import ScoringPlayer

WIN = 1000.0
BLOCK = 100.0


class HeuristicPlayer(ScoringPlayer):
    """Completes five if it can, else takes a cell where the opponent would, else makes its longest
    line longer.

    A line counts only where five in a row still fit between the opponent's stones and the border. A
    random one of the best cells, if there are several; on the empty board any of the cells around
    the centre.
    """

    name = "heuristic"

    def __init__(self, game: Gomoku):
        super().__init__(game)
        self._lines = game.lines
        middle = torch.arange(game.size, device=game.device) - (game.size - 1) / 2
        distance = torch.maximum(middle.abs().unsqueeze(1), middle.abs()).flatten()
        # Decides among lines of one stone only.
        self._central = torch.where(distance <= 1, 0.5, 0.0)

    def scores(self, state: GomokuState) -> Tensor:
        own, theirs = self.game.stones(state).unbind(1)
        runs = self._lines.runs(own)
        room = self._lines.runs(~theirs) >= FIVE  # as long a line as the free cells allow
        # A longer one wins, or is too long to win.
        useful = room & (runs < FIVE)
        length = torch.where(useful, runs, 0).amax(2)
        scores = length + torch.where(length == 1, self._central, 0.0)
        return scores + WIN * self._lines.completes(own) + BLOCK * self._lines.completes(theirs)
