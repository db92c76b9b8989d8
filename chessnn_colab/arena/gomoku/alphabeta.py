"""The fixed player that looks two or four plies ahead, with a pattern evaluation. It plays many games at once.

Every five cells in a row are a window. A window with stones of one colour only is worth the more the more stones it
has, and one with both colours is worth nothing. What a move changes is the sum over its windows, so a product of
matrices values all moves of many positions together. Only the most promising moves of a position are followed, but
every move of the last ply. Among these lines the choice is that of alpha-beta, which would find it one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...games.gomoku.lines import DIRECTIONS, FIVE
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import BLACK, EMPTY, GomokuState
from ..players import Player, one_of_the_best

WIN = 1e6
TAKEN = -1e8  # what a cell that is taken is worth
WORTH = (0.0, 1.0, 8.0, 60.0, 400.0, WIN)  # of a window with so many stones, for whoever has just moved
TO_MOVE = (0.0, 2.0, 16.0, 150.0, 20_000.0, WIN)  # the same for whoever is to move: he adds one at once
WIDTHS = {2: (20,), 4: (14, 10, 10)}  # depth -> moves that are followed at each ply but the last
POSITIONS_AT_ONCE = 4096  # whose moves are valued together
# A window's code: own + 6 theirs + 36 own beside it + 108 theirs beside it. Beside: the cells next to its two ends.
OWN, THEIRS, OWN_BESIDE, THEIRS_BESIDE = 1, 6, 36, 108
NUMBER_OF_CODES = 324


class AlphaBetaPlayer(Player):
    """The best move after `depth` plies. A random one of the best, if there are several."""

    def __init__(self, game: Gomoku, depth: int):
        self.game, self.depth = game, depth
        self.name = f"alphabeta{depth}"
        self.tables = Windows(game)

    def choose(self, state: GomokuState, generator: torch.Generator, boards: Sequence[Any] | None = None) -> Tensor:
        return one_of_the_best(self.scores(state).round(), generator)

    def scores(self, state: GomokuState) -> Tensor:
        """float32 [B, size * size]: what each move is worth to the mover after `depth` plies; TAKEN for taken cells
        and for moves that are not followed."""
        colours = (state.current_player + BLACK).to(torch.int8).unsqueeze(1)
        board = torch.where(state.board == EMPTY, 0, torch.where(state.board == colours, 1, -1)).to(torch.int8)
        boards_at_once = max(1, POSITIONS_AT_ONCE // self._positions())
        parts = [self._search(part, 0) for part in board.split(boards_at_once)]
        return torch.cat(parts)

    def _positions(self) -> int:
        """Positions whose moves are valued for one root."""
        total = level = 1
        for width in WIDTHS[self.depth]:
            level *= width
            total += level
        return total

    def _search(self, board: Tensor, ply: int) -> Tensor:
        """float32 [N, cells]: the worth of the mover's moves on `board` int8 [N, cells], 1 the mover's stones, -1 the
        opponent's."""
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
        value = torch.where(full, 0.0, -0.999 * replies)  # the quicker of two wins, the later of two losses
        value = torch.where(won, WIN, value)
        value = torch.where(promise > TAKEN / 2, value, TAKEN)
        return torch.full_like(gain, TAKEN).scatter(1, moves, value)


class Windows:
    """All windows of a board, and what a stone on each cell changes in them."""

    def __init__(self, game: Gomoku):
        cells, self.exact = game.num_actions, game.exact
        inside, beside = (
            torch.zeros(len(places), cells + 1).scatter_(1, places, 1.0)[:, :cells]
            for places in window_cells(game.size)
        )
        self._inside, self._beside = inside.to(game.device), beside.to(game.device)  # [windows, cells], ones and zeros
        self._changes = torch.cat((inside, beside) if self.exact else (inside,)).to(game.device)
        waiting, moving = window_worth(WORTH), window_worth(TO_MOVE)
        sides = [
            self._deltas(waiting - swapped(waiting), side) for side in ((OWN, OWN_BESIDE), (THEIRS, THEIRS_BESIDE))
        ]
        self._order = torch.stack(sides, 1).to(game.device)  # [codes, 2 sides, changes]
        self._base = (waiting - swapped(moving)).to(game.device)  # [codes]
        self._last = self._deltas(waiting - swapped(moving), (OWN, OWN_BESIDE)).to(game.device)  # [codes, changes]

    def gains(self, board: Tensor) -> tuple[Tensor, Tensor]:
        """Two float32 [N, cells]: what a stone on each cell is worth to the mover, and what one of the opponent's would
        be worth to him."""
        found = self._order[self.codes(board)]  # [N, windows, 2 sides, changes]
        both = found.permute(0, 2, 3, 1).flatten(2) @ self._changes
        return both[:, 0], -both[:, 1]

    def worth_after(self, board: Tensor) -> Tensor:
        """float32 [N, cells]: what the position is worth to the mover after a stone of his on each cell."""
        codes = self.codes(board)
        return self._base[codes].sum(1, keepdim=True) + self._last[codes].transpose(1, 2).flatten(1) @ self._changes

    def codes(self, board: Tensor) -> Tensor:
        """int64 [N, windows]."""
        own, theirs = (board == 1).to(torch.float32), (board == -1).to(torch.float32)
        codes = (own * OWN + theirs * THEIRS) @ self._inside.t()
        if self.exact:
            codes = codes + (own * OWN_BESIDE + theirs * THEIRS_BESIDE) @ self._beside.t()
        return codes.to(torch.int64)

    def _deltas(self, worth: Tensor, steps: Sequence[int]) -> Tensor:
        """float32 [codes, changes]: how `worth` [codes] changes with a stone that adds one of `steps` to a code: inside
        the window and, where six do not win, beside it."""
        after = torch.arange(NUMBER_OF_CODES).unsqueeze(1) + torch.tensor(steps[: 1 + self.exact])
        return worth[after.clamp(max=NUMBER_OF_CODES - 1)] - worth.unsqueeze(1)


def swapped(worth: Tensor) -> Tensor:
    """float32 [codes]: the same worth with own and theirs exchanged."""
    own, theirs, beside, theirs_beside = _parts()
    return worth[theirs * OWN + own * THEIRS + theirs_beside * OWN_BESIDE + beside * THEIRS_BESIDE]


def window_worth(table: Sequence[float]) -> Tensor:
    """float32 [codes]: what a window is worth to the owner of `own`, by how many stones it has; nothing when the
    opponent has one in it, or, where six do not win, when a stone of his own stands beside it."""
    own, theirs, beside, _ = _parts()
    return torch.where((theirs == 0) & (beside == 0), torch.tensor(table)[own.clamp(max=FIVE)], 0.0)


def _parts() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """int64 [codes] each: own stones, theirs, own beside, theirs beside."""
    codes = torch.arange(NUMBER_OF_CODES)
    return codes % 6, codes // THEIRS % 6, codes // OWN_BESIDE % 3, codes // THEIRS_BESIDE


def window_cells(size: int) -> tuple[Tensor, Tensor]:
    """int64 [windows, 5], the cells of every window, and int64 [windows, 2], the cells beside it, size * size beyond
    the border."""

    def cell(row: int, column: int) -> int:
        return row * size + column if 0 <= row < size and 0 <= column < size else size**2

    inside, beside = [], []
    for row in range(size):
        for column in range(size):
            for down, right in DIRECTIONS:
                line = [cell(row + step * down, column + step * right) for step in range(-1, FIVE + 1)]
                if size**2 not in line[1:-1]:
                    inside.append(line[1:-1])
                    beside.append([line[0], line[-1]])
    return torch.tensor(inside), torch.tensor(beside)
