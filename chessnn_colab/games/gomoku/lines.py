"""Lines on a square board: how long the run of stones through a cell is, and whether anybody has
five.

The run through a cell is read from a code of eleven bits, the stones on the eleven cells around it
in one direction, and a table of all codes. One product of matrices gives the codes of all cells:
float32 holds these sums exactly. So a batch costs a handful of operations, whatever its size.
"""

import itertools

import torch
from torch import Tensor
from torch.nn import functional

FIVE = 5
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows and columns to the next cell of a line
REACH = FIVE  # cells looked at to each side: one more than four, to tell five from six
CODES = 2 ** (2 * REACH + 1)


class LineTables:
    """The tables of one board size and rule on one device.

    size: rows and columns; line: stones in a row that win; exact: whether only exactly so many do.
    """

    def __init__(self, size: int, exact: bool, device: torch.device | str, line: int = FIVE):
        self.size = size
        self.exact = exact
        self.line = line
        cells = line_cells(size)
        weights = 2.0 ** torch.arange(2 * REACH + 1)
        codes = torch.zeros(size**2 + 1, size**2, len(DIRECTIONS))  # the last row: off the board
        codes.scatter_add_(
            0, cells.permute(2, 0, 1), weights.view(-1, 1, 1).expand(-1, *cells.shape[:2])
        )
        self._cells = cells.flatten(1).to(device)  # int64 [size * size, 44]
        self._weights = weights.long().to(device)  # [11]
        # [size * size, size * size * 4]: what a stone adds to each code.
        self._codes = codes[:-1].flatten(1).to(device)
        self.run_of_code = runs_through_the_middle().to(device)  # int64 [2048]
        wins = self.run_of_code == line if exact else self.run_of_code >= line
        self.win_of_code = wins  # bool [2048]

    def wins(self, stones: Tensor, cell: Tensor) -> Tensor:
        """bool [B]: whether the stone on `cell` int64 [B] completes five among `stones` bool [B,
        size * size].
        """
        around = functional.pad(stones, (0, 1)).gather(1, self._cells[cell])
        codes = (around.unflatten(1, (-1, 2 * REACH + 1)) * self._weights).sum(2)
        return self.win_of_code[codes].any(1)

    def runs(self, stones: Tensor) -> Tensor:
        """int64 [B, size * size, 4]: how long the run of `stones` bool [B, size * size] through
        each cell would be in each direction with a stone on that cell, at most 11."""
        return self.run_of_code[self._everywhere(stones)]

    def completes(self, stones: Tensor) -> Tensor:
        """bool [B, size * size]: the cells where one more of `stones` bool [B, size * size] would
        complete five.

        A CPU joins shifted copies of the board, on 15x15 in an eighth of the time. On a GPU each
        copy would be a launch of its own.
        """
        if stones.device.type == "cpu":
            return completing_cells(stones.view(-1, self.size, self.size), self.exact, self.line)
        return self.completes_by_codes(stones)

    def completes_by_codes(self, stones: Tensor) -> Tensor:
        """The same in a handful of operators."""
        return self.win_of_code[self._everywhere(stones)].any(2)

    def _everywhere(self, stones: Tensor) -> Tensor:
        """int64 [B, size * size, 4]: the code of each cell in each direction."""
        codes = stones.float() @ self._codes
        return codes.long().unflatten(1, (-1, len(DIRECTIONS)))


def line_cells(size: int) -> Tensor:
    """int64 [size * size, 4, 11]: the cells before, on and after each cell in each direction; size
    * size beyond the border."""
    offsets = torch.arange(-REACH, REACH + 1)
    place = torch.arange(size**2).view(-1, 1, 1)
    steps = torch.tensor(DIRECTIONS).view(1, -1, 2, 1)
    rows = place // size + steps[:, :, 0] * offsets
    columns = place % size + steps[:, :, 1] * offsets
    inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
    return torch.where(inside, rows * size + columns, size**2)


def runs_through_the_middle() -> Tensor:
    """int64 [2048]: how many bits in a row, the middle one counted as set, each code of eleven bits
    has.
    """
    bits = (torch.arange(CODES).unsqueeze(1) >> torch.arange(2 * REACH + 1)) & 1
    after = bits[:, REACH + 1 :]
    before = bits[:, :REACH].flip(1)
    return 1 + after.cumprod(1).sum(1) + before.cumprod(1).sum(1)


def completing_cells(stones: Tensor, exact: bool, length: int) -> Tensor:
    """bool [B, size * size]: the cells where one more of `stones` bool [B, size, size] makes a line
    that wins.

    All boards lie in one line, an empty column between rows and room between boards: a shift is a
    slice. Through a cell goes a line of five where `a` stones in a row lie before it and 4 - a
    after. length: of the line.
    """
    size = stones.shape[1]
    room = length * (size + 2)  # more than the longest shift
    boards = functional.pad(functional.pad(stones, (0, 1)).flatten(1), (0, room))
    line = functional.pad(boards.flatten(), (room, room))
    found = torch.zeros_like(boards).flatten()
    for rows, columns in DIRECTIONS:
        step = rows * (size + 1) + columns
        before, after = (_stones_in_a_row(line, room, way * step, length, exact) for way in (-1, 1))
        for count in range(length):
            found |= before[count] & after[length - 1 - count]
    return found.view_as(boards)[:, :-room].unflatten(1, (size, size + 1))[:, :, :size].flatten(1)


def _stones_in_a_row(
    line: Tensor, margin: int, step: int, length: int, exact: bool
) -> list[Tensor]:
    """For each number below `length`, bool [n]: whether at least so many stones (`exact`: exactly
    so many) follow each cell in steps of `step`.

    line: bool [n + 2 * margin], the cells with nothing before and after them.
    """
    shifts = [
        line[margin + count * step : len(line) - margin + count * step]
        for count in range(length + exact)
    ]
    rows = list(
        itertools.accumulate(shifts[1:], torch.logical_and, initial=torch.ones_like(shifts[0]))
    )
    return [row & ~longer for row, longer in itertools.pairwise(rows)] if exact else rows
