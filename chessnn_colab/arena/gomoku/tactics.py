"""Gomoku puzzles: positions with known answers, and how many of them a player solves.

The suite, `data/tactics.txt`, has sixty of each kind:

- win-in-one: complete five;
- block-in-one: the opponent would complete five, so take that cell;
- open-three: make a four that no reply stops;
- double-threat: a move after which every reply allows such a four, or five at once.

Its lines are "kind; moves; answers", cells of a board of 9x9. tools/make_gomoku_tactics.py made and
solved them. They stand in the middle of a larger board, where the answers are the same: it solved
them for every size and both rules.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import torch

from ...errors import ConfigError
from ...games.gomoku.notation import parse_cell
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import GomokuState
from ..game import Suite
from .board import GomokuBoard

SUITE_SIZE = 9  # of the boards in the file, and the smallest that has puzzles
NUM_PUZZLES = 240
KINDS = ("win-in-one", "block-in-one", "open-three", "double-threat")


@dataclass(frozen=True)
class Puzzle:
    """A position and every move that solves it."""

    kind: str  # one of KINDS
    actions: tuple[int, ...]  # from the empty board to the position
    solutions: frozenset[int]


@functools.cache
def load_suite(size: int = SUITE_SIZE) -> tuple[Puzzle, ...]:
    """The package's puzzles, kind by kind, in the middle of a board of this size. Raises
    ConfigError below 9.
    """
    if size < SUITE_SIZE:
        raise ConfigError(
            f"no puzzles for a board of {size}x{size}: expected {SUITE_SIZE}x{SUITE_SIZE} or larger"
        )
    text = (
        resources.files(__package__ or "").joinpath("data/tactics.txt").read_text(encoding="utf-8")
    )
    puzzles = []
    for line in text.splitlines():
        kind, *cells = line.split("; ")
        moves, answers = (
            [on_board(parse_cell(cell, SUITE_SIZE), size) for cell in part.split()]
            for part in cells
        )
        puzzles.append(Puzzle(kind, tuple(moves), frozenset(answers)))
    return tuple(puzzles)


def on_board(action: int, size: int) -> int:
    """An action of the file's board in the middle of a board of this size."""
    margin = (size - SUITE_SIZE) // 2
    row, column = divmod(action, SUITE_SIZE)
    return (row + margin) * size + column + margin


def make_suite(game: Gomoku, puzzles: Sequence[Puzzle] | None = None) -> Suite:
    """`puzzles` on the device of `game`; None is all of the package's. Raises ConfigError for a
    board without any.
    """
    puzzles = load_suite(game.size) if puzzles is None else puzzles

    def start(numbers: Sequence[int]) -> tuple[GomokuState, Sequence[GomokuBoard]]:
        lines = [puzzles[number].actions for number in numbers]
        boards = [GomokuBoard(game.size, game.exact, list(line)) for line in lines]
        stones = torch.zeros(len(lines), game.num_actions, dtype=torch.int64, device=game.device)
        for row, line in enumerate(lines):
            stones[row, list(line[::2])], stones[row, list(line[1::2])] = 1, 2
        return game.position(stones.view(-1, game.size, game.size)), boards

    def is_right(number: int, action: int) -> bool:
        return action in puzzles[number].solutions

    return Suite(game, [puzzle.kind for puzzle in puzzles], start, is_right)
