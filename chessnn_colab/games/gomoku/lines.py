"""Lines on a square board: how long the run of stones through a cell is, and whether anybody has five.

The run through a cell is read from a code of eleven bits, the stones on the eleven cells around it in one direction,
and a table of all codes. That costs a handful of operations for a batch, whatever its size.
"""

from __future__ import annotations

import torch
from torch import Tensor

FIVE = 5
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows and columns to the next cell of a line
REACH = FIVE  # cells looked at to each side: one more than four, to tell five from six
CODES = 2 ** (2 * REACH + 1)


class LineTables:
    """The tables of one board size and rule on one device.

    size: rows and columns; exact: whether only exactly five in a row win.
    """

    def __init__(self, size: int, exact: bool, device: torch.device | str):
        self.cells = line_cells(size).flatten(1).to(device)  # int64 [size * size, 44]
        self.run_of_code = runs_through_the_middle().to(device)  # int64 [2048]
        self.win_of_code = wins_a_game(self.run_of_code, exact)  # bool [2048]
        self._weights = 2 ** torch.arange(2 * REACH + 1, device=device)

    def wins(self, stones: Tensor, cell: Tensor) -> Tensor:
        """bool [B]: whether the stone on `cell` int64 [B] completes five among `stones` bool [B, size * size]."""
        return self.win_of_code[self._codes(_with_border(stones).gather(1, self.cells[cell]))].any(1)

    def runs(self, stones: Tensor) -> Tensor:
        """int64 [B, size * size, 4]: how long the run of `stones` bool [B, size * size] through each cell would be in
        each direction with a stone on that cell, at most 11."""
        return self.run_of_code[self._everywhere(stones)]

    def completes(self, stones: Tensor) -> Tensor:
        """bool [B, size * size]: the cells where one more of `stones` bool [B, size * size] would complete five."""
        return self.win_of_code[self._everywhere(stones)].any(2)

    def room(self, obstacles: Tensor) -> Tensor:
        """bool [B, size * size, 4]: whether a line of five through each cell fits between `obstacles` bool [B, size *
        size] and the border, in each direction."""
        codes = self._everywhere(obstacles, border=True)
        return self.run_of_code[CODES - 1 - codes] >= FIVE

    def _everywhere(self, stones: Tensor, border: bool = False) -> Tensor:
        """int64 [B, size * size, 4]: the code of each cell, with or without a stone beyond the border."""
        around = _with_border(stones, border)[:, self.cells.flatten()]
        return self._codes(around).view(len(stones), -1, len(DIRECTIONS))

    def _codes(self, around: Tensor) -> Tensor:
        """int64 [B, n]: the codes of `around` bool [B, n * 11]."""
        return (around.unflatten(1, (-1, 2 * REACH + 1)) * self._weights).sum(2)


def _with_border(stones: Tensor, border: bool = False) -> Tensor:
    """bool [B, size * size + 1]: the last column stands for all cells beyond the border."""
    return torch.cat((stones, stones.new_full((len(stones), 1), border)), 1)


def line_cells(size: int) -> Tensor:
    """int64 [size * size, 4, 11]: the cells before, on and after each cell in each direction; size * size beyond the
    border."""
    offsets = torch.arange(-REACH, REACH + 1)
    place = torch.arange(size**2).view(-1, 1, 1)
    steps = torch.tensor(DIRECTIONS).view(1, -1, 2, 1)
    rows, columns = place // size + steps[:, :, 0] * offsets, place % size + steps[:, :, 1] * offsets
    inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
    return torch.where(inside, rows * size + columns, size**2)


def runs_through_the_middle() -> Tensor:
    """int64 [2048]: how many bits in a row, the middle one counted as set, each code of eleven bits has."""
    bits = (torch.arange(CODES).unsqueeze(1) >> torch.arange(2 * REACH + 1)) & 1
    after, before = bits[:, REACH + 1 :], bits[:, :REACH].flip(1)
    return 1 + after.cumprod(1).sum(1) + before.cumprod(1).sum(1)


def wins_a_game(runs: Tensor, exact: bool) -> Tensor:
    """bool like `runs`: which lengths win."""
    return runs == FIVE if exact else runs >= FIVE


def completed_fives(stones: Tensor, exact: bool) -> Tensor:
    """bool [B]: whether `stones` bool [B, size, size] have a line that wins, wherever it is.

    Shifted copies of the whole board are joined, with an empty column between its rows.
    """
    size = stones.shape[1]
    flat = torch.cat((stones, torch.zeros_like(stones[:, :, :1])), 2).flatten(1)
    found = torch.zeros_like(flat[:, 0])
    for rows, columns in DIRECTIONS:
        step = rows * (size + 1) + columns
        two = flat[:, :-step] & flat[:, step:]
        four = two[:, : -2 * step] & two[:, 2 * step :]
        five = four[:, :-step] & flat[:, 4 * step :]
        if exact:
            beside = torch.cat((torch.zeros_like(flat[:, :step]), five, torch.zeros_like(flat[:, :step])), 1)
            five = five & ~beside[:, 2 * step :] & ~beside[:, : -2 * step]
        found = found | five.any(1)
    return found
