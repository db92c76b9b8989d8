"""Gomoku's rules in plain Python, cell by cell: the reference that the rules on tensors are checked
against.
"""

from collections.abc import Sequence

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def runs_through(stones: set[tuple[int, int]], cell: tuple[int, int]) -> list[int]:
    """In each direction, how long the run of `stones` through `cell` is with one on it."""
    lengths = []
    for down, right in DIRECTIONS:
        length = 1
        for sign in (1, -1):
            row = cell[0] + sign * down
            column = cell[1] + sign * right
            while (row, column) in stones:
                length += 1
                row += sign * down
                column += sign * right
        lengths.append(length)
    return lengths


def has_five(stones: set[tuple[int, int]], cell: tuple[int, int], exact: bool) -> bool:
    """Whether a stone on `cell` completes five among `stones`."""
    return any(length == 5 if exact else length >= 5 for length in runs_through(stones, cell))


def winner(board: Sequence[int], size: int, exact: bool) -> int:
    """1 or 2 when that colour has five on a board of 0, 1 and 2, else 0."""
    for colour in (1, 2):
        stones = {divmod(cell, size) for cell, stone in enumerate(board) if stone == colour}
        if any(has_five(stones, cell, exact) for cell in stones):
            return colour
    return 0


def fives(own: set[int], theirs: set[int], size: int, exact: bool) -> set[int]:
    """The empty cells where one more own stone completes five."""
    stones = {divmod(cell, size) for cell in own}
    empty = set(range(size**2)) - own - theirs
    return {cell for cell in empty if has_five(stones, divmod(cell, size), exact)}
