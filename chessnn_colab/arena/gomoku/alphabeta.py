"""The fixed player that looks two or four plies ahead, with a pattern evaluation. It plays many
games at once.

Every five cells in a row are a window. A window with stones of one colour only is worth the more
the more stones it has, and one with both colours is worth nothing. What a move changes is the sum
over its windows, so a product of matrices values all moves of many positions together. Only the
most promising moves of a position are followed, but every move of the last ply. Among these lines
the choice is that of alpha-beta, which would find it one by one.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ...games.gomoku.lines import FIVE, REACH, line_cells
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import GomokuState
from ..players import Recipe, ScoringPlayer

WIN = 1e6
TAKEN = -1e8  # what a cell that is taken is worth
# Of a window by its number of stones, for the side that has just moved.
WORTH = (0.0, 1.0, 8.0, 60.0, 400.0, WIN)
# The same for the side to move, which adds a stone at once.
TO_MOVE = (0.0, 2.0, 16.0, 150.0, 20_000.0, WIN)
WIDTHS = {2: (20,), 4: (14, 10, 10)}  # depth -> moves that are followed at each ply but the last
POSITIONS_AT_ONCE = 4096  # of the last ply, whose moves are valued together
# A window's code: own + 6 theirs + 36 own beside it + 108 theirs beside it. Beside: the cells next
# to its two ends.
OWN, THEIRS, OWN_BESIDE, THEIRS_BESIDE = 1, 6, 36, 108
NUMBER_OF_CODES = 324


class AlphaBetaPlayer(ScoringPlayer):
    """The best move after `depth` plies. A random one of the best, if there are several."""

    def __init__(self, game: Gomoku, depth: int):
        super().__init__(game)
        self.depth = depth
        self.name = f"alpha-beta ({depth} plies)"
        self.tables = Windows(game)

    def recipe(self) -> Recipe:
        return AlphaBetaPlayer, {"depth": self.depth}

    def scores(self, state: GomokuState) -> Tensor:
        """float32 [B, size * size]: what each move is worth to the mover after `depth` plies, a
        whole number; TAKEN for taken cells and for moves that are not followed."""
        own, theirs = self.game.stones(state).to(torch.int8).unbind(1)
        board = own - theirs
        boards_at_once = POSITIONS_AT_ONCE // math.prod(WIDTHS[self.depth])
        parts = [self._search(part, 0) for part in board.split(boards_at_once)]
        return torch.cat(parts).round()

    def _search(self, board: Tensor, ply: int) -> Tensor:
        """float32 [N, cells]: the worth of the mover's moves on `board` int8 [N, cells], 1 the
        mover's stones, -1 the opponent's."""
        widths = WIDTHS[self.depth]
        empty = board == 0
        if ply == len(widths):
            return torch.where(empty, self.tables.worth_after(board), TAKEN)
        gain, threat = self.tables.gains(board)
        width = min(widths[ply], board.shape[1])
        promise, moves = torch.where(empty, gain + 0.9 * threat, TAKEN).topk(width, dim=1)
        won = gain.gather(1, moves) > WIN / 2
        child = -board.unsqueeze(1).repeat(1, width, 1)
        child.scatter_(2, moves.unsqueeze(2), -1)
        full = (child != 0).all(2)
        replies = self._search(child.flatten(0, 1), ply + 1).amax(1).view(-1, width)
        # The quicker of two wins, the later of two losses.
        value = torch.where(full, 0.0, -0.999 * replies)
        value = torch.where(won, WIN, value)
        value = torch.where(promise > TAKEN / 2, value, TAKEN)
        return torch.full_like(gain, TAKEN).scatter(1, moves, value)


class Windows:
    """All windows of a board, and what a stone on each cell changes in them."""

    def __init__(self, game: Gomoku):
        cells = game.num_actions
        self.exact = game.exact
        inside, beside = (
            torch.zeros(len(places), cells + 1).scatter_(1, places, 1.0)[:, :cells]
            for places in window_cells(game.size)
        )
        # Ones and zeros, [windows, cells] each.
        self._inside = inside.to(game.device)
        self._beside = beside.to(game.device)
        self._changes = torch.cat((inside, beside) if self.exact else (inside,)).to(game.device)
        own_steps = (OWN, OWN_BESIDE)
        waiting = signed_worth(WORTH, WORTH)
        sides = [self._deltas(waiting, steps) for steps in (own_steps, (THEIRS, THEIRS_BESIDE))]
        self._order = torch.stack(sides, 1).to(game.device)  # [codes, 2 sides, changes]
        last = signed_worth(WORTH, TO_MOVE)
        self._base = last.to(game.device)  # [codes]
        self._last = self._deltas(last, own_steps).to(game.device)  # [codes, changes]

    def gains(self, board: Tensor) -> tuple[Tensor, Tensor]:
        """Two float32 [N, cells]: what a stone on each cell is worth to the mover, and what one of
        the opponent's would be worth to him."""
        found = self._order[self.codes(board)]  # [N, windows, 2 sides, changes]
        both = found.permute(0, 2, 3, 1).flatten(2) @ self._changes
        return both[:, 0], -both[:, 1]

    def worth_after(self, board: Tensor) -> Tensor:
        """float32 [N, cells]: what the position is worth to the mover after a stone of his on each
        cell.
        """
        codes = self.codes(board)
        return (
            self._base[codes].sum(1, keepdim=True)
            + self._last[codes].transpose(1, 2).flatten(1) @ self._changes
        )

    def codes(self, board: Tensor) -> Tensor:
        """int64 [N, windows]."""
        own = (board == 1).float()
        theirs = (board == -1).float()
        codes = (own * OWN + theirs * THEIRS) @ self._inside.t()
        if self.exact:
            codes = codes + (own * OWN_BESIDE + theirs * THEIRS_BESIDE) @ self._beside.t()
        return codes.long()

    def _deltas(self, worth: Tensor, steps: Sequence[int]) -> Tensor:
        """float32 [codes, changes]: how `worth` [codes] changes with a stone that adds one of
        `steps` to a code: inside the window and, where six do not win, beside it."""
        after = torch.arange(NUMBER_OF_CODES).unsqueeze(1) + torch.tensor(steps[: 1 + self.exact])
        return worth[after.clamp(max=NUMBER_OF_CODES - 1)] - worth.unsqueeze(1)


def signed_worth(own_table: Sequence[float], their_table: Sequence[float]) -> Tensor:
    """float32 [codes]: the worth of a window to the owner of `own`, by its number of stones.

    A window with stones of both sides is worth nothing; so is, where six do not win, one with a
    stone of the same side beside it. The opponent's windows count negative.
    """
    codes = torch.arange(NUMBER_OF_CODES)
    own = codes % 6
    theirs = codes // THEIRS % 6
    own_open = (theirs == 0) & (codes // OWN_BESIDE % 3 == 0)
    their_open = (own == 0) & (codes // THEIRS_BESIDE == 0)
    own_worth = torch.where(own_open, torch.tensor(own_table)[own], 0.0)
    return own_worth - torch.where(their_open, torch.tensor(their_table)[theirs], 0.0)


def window_cells(size: int) -> tuple[Tensor, Tensor]:
    """int64 [windows, 5], the cells of every window, and int64 [windows, 2], the cells beside it,
    size * size beyond the border."""
    lines = line_cells(size)[:, :, REACH - 1 :].flatten(0, 1)  # [lines, 7]
    lines = lines[(lines[:, 1:-1] < size**2).all(1)]
    return lines[:, 1:-1], lines[:, :: FIVE + 1]
