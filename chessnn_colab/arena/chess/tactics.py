"""Chess puzzles: positions with known answers, and how many of them a player solves.

The suite, `data/tactics.txt`, has a hundred each of mates in one, mates in two and hanging pieces.
Its lines are "kind; FEN; all solving moves". tools/make_tactics.py made it and solved every
position exhaustively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import chess

from ...games.chess.notation import board_from_fen, move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...games.chess.state import ChessState
from ..game import Suite

NUM_PUZZLES = 300  # in the package's suite


@dataclass(frozen=True)
class Puzzle:
    """A position and every move that solves it."""

    kind: str  # "mate-in-one", "mate-in-two" or "hanging-piece"
    fen: str
    solutions: frozenset[chess.Move]


def load_suite() -> list[Puzzle]:
    """The package's puzzles, kind by kind."""
    text = (
        resources.files(__package__ or "").joinpath("data/tactics.txt").read_text(encoding="utf-8")
    )
    puzzles = []
    for line in text.splitlines():
        kind, fen, moves = line.split("; ")
        puzzles.append(Puzzle(kind, fen, frozenset(map(chess.Move.from_uci, moves.split()))))
    return puzzles


def make_suite(game: Chess, puzzles: Sequence[Puzzle] | None = None) -> Suite:
    """`puzzles` on the device of `game`; None is all of the package's."""
    puzzles = load_suite() if puzzles is None else puzzles
    boards = [board_from_fen(puzzle.fen) for puzzle in puzzles]

    def start(numbers: Sequence[int]) -> tuple[ChessState, Sequence[chess.Board]]:
        some = [boards[number] for number in numbers]
        return state_from_boards(some, game), some

    def is_right(number: int, action: int) -> bool:
        return move_from_action(action, boards[number]) in puzzles[number].solutions

    return Suite(game, [puzzle.kind for puzzle in puzzles], start, is_right)
