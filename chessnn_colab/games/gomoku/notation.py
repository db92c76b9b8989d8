"""Gomoku's cells as people write them, such as h8."""

from ...errors import NotationError

LETTERS = "abcdefghijklmnopqrst"


def cell_name(action: int, size: int) -> str:
    """The name of a cell: a letter for its column from the left, a number for its row from the
    bottom.
    """
    row, column = divmod(action, size)
    return f"{LETTERS[column]}{size - row}"


def parse_cell(text: str, size: int) -> int:
    """The action of a cell's name. Raises NotationError for anything that is not on a board of this
    size.
    """
    names = [cell_name(action, size) for action in range(size**2)]
    name = text.lower()
    if name not in names:
        raise NotationError(f"invalid cell {text!r:.40}: expected a1 to {names[size - 1]}")
    return names.index(name)
