"""Gomoku puzzles: positions with known answers.

`data/tactics.txt` has sixty of each kind:

- win-in-one: complete five;
- block-in-one: the opponent would complete five, so take that cell;
- open-three: make a four that no reply stops;
- double-threat: a move after which every reply allows such a four, or five at once.

Its lines are "kind; moves; answers", cells of a board of 9x9. tools/make_gomoku_tactics.py made and
solved them. They stand in the middle of a larger board, where the answers are the same: it solved
them for every size and both rules.
"""

from ...games.gomoku.notation import parse_cell
from ...games.gomoku.rules import Gomoku
from ..game import Puzzle, data_lines

SUITE_SIZE = 9  # of the boards in the file, and the smallest that has puzzles


def load_puzzles(game: Gomoku) -> list[Puzzle]:
    """The package's puzzles, kind by kind, in the middle of a board of 9x9 or larger."""
    puzzles = []
    for line in data_lines(__file__, "tactics.txt"):
        kind, *cells = line.split("; ")
        actions, answers = (
            [on_board(parse_cell(cell, SUITE_SIZE), game.size) for cell in part.split()]
            for part in cells
        )
        puzzles.append(Puzzle(kind, actions, frozenset(answers)))
    return puzzles


def on_board(action: int, size: int) -> int:
    """An action of the file's board in the middle of a board of this size."""
    margin = (size - SUITE_SIZE) // 2
    row, column = divmod(action, SUITE_SIZE)
    return (row + margin) * size + column + margin
