"""Gomoku's rules in plain Python, cell by cell: the reference that the rules on tensors are checked
against.
"""

from collections.abc import Sequence

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def runs(stones: set[tuple[int, int]]) -> list[int]:
    """The lengths of all maximal lines of stones, a single stone too, in every direction."""
    found = []
    for row, column in stones:
        for down, right in DIRECTIONS:
            if (row - down, column - right) not in stones:
                length = 1
                while (row + length * down, column + length * right) in stones:
                    length += 1
                found.append(length)
    return found


def has_five(stones: set[tuple[int, int]], exact: bool) -> bool:
    return any(length == 5 if exact else length >= 5 for length in runs(stones))


def winner(board: Sequence[int], size: int, exact: bool) -> int:
    """1 or 2 when that colour has five on a board of 0, 1 and 2, else 0."""
    cells = [divmod(cell, size) for cell in range(size**2)]
    for colour in (1, 2):
        if has_five({cell for cell, stone in zip(cells, board) if stone == colour}, exact):
            return colour
    return 0


def fives(own: set[int], theirs: set[int], size: int, exact: bool) -> set[int]:
    """The empty cells where one more own stone completes five."""
    place = {divmod(cell, size) for cell in own}
    return {
        cell
        for cell in set(range(size**2)) - own - theirs
        if has_line_through(place, divmod(cell, size), exact)
    }


def has_line_through(stones: set[tuple[int, int]], cell: tuple[int, int], exact: bool) -> bool:
    """Whether a stone on `cell` completes five among `stones`."""
    for down, right in DIRECTIONS:
        length = 1
        for sign in (1, -1):
            row = cell[0] + sign * down
            column = cell[1] + sign * right
            while (row, column) in stones:
                length = length + 1
                row = row + sign * down
                column = column + sign * right
        if length == 5 or (length > 5 and not exact):
            return True
    return False
