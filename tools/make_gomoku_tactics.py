"""Make chessnn_colab/arena/gomoku/data/tactics.txt: Gomoku positions with all their right answers.

    python tools/make_gomoku_tactics.py --each 60 --seed 0

Positions come from games between players that make mistakes, on 9x9. A position is kept when it has
one to four answers, and the same ones on boards of every size from 9 to 17, in whose middle it
stands, with five or more and with exactly five. Beyond 17 nothing changes: no line of five reaches
from the border to a stone.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from chessnn_colab.arena.gomoku.alphabeta import TAKEN, AlphaBetaPlayer, window_cells
from chessnn_colab.arena.gomoku.tactics import SUITE_SIZE, on_board
from chessnn_colab.games.base import finished
from chessnn_colab.games.gomoku.notation import cell_name
from chessnn_colab.games.registry import make_game

MOST_SOLUTIONS = 4
SIZES = range(
    SUITE_SIZE, SUITE_SIZE + 2 * 4 + 1
)  # beyond, no window with a stone touches the border
CHANCE = 60.0  # points by which a move may look better than it is


@functools.cache
def windows(size: int) -> tuple[np.ndarray, np.ndarray]:
    """bool [windows, cells], the cells of each five in a row, and the cells beside it."""
    tables = []
    for places in window_cells(size):
        table = np.zeros((len(places), size**2 + 1), bool)
        np.put_along_axis(table, places.numpy(), True, 1)
        tables.append(table[:, :-1])
    return tables[0], tables[1]


class Solver:
    """Exhaustive answers on one board size with one rule. Positions are sets of cells, as bool
    [cells].
    """

    def __init__(self, size: int, exact: bool):
        inside, beside = windows(size)
        self.inside = inside.astype(np.float32)
        self.beside = beside.astype(np.float32)
        self.exact = exact

    def open_windows(self, own: np.ndarray, theirs: np.ndarray, stones: int) -> np.ndarray:
        """bool [n, cells]: the windows with so many own stones, or more, that may still become a
        five that wins.
        """
        usable = (self.inside @ own >= stones) & (self.inside @ theirs == 0)
        if self.exact:
            usable &= self.beside @ own == 0
        return self.inside[usable].astype(bool)

    def fives(self, own: np.ndarray, theirs: np.ndarray) -> set[int]:
        """The cells that complete five."""
        return set(np.nonzero((self.open_windows(own, theirs, 4) & ~own).any(0))[0].tolist())

    def fours(self, own: np.ndarray, theirs: np.ndarray) -> set[int]:
        """The moves after which five cannot be stopped: two cells would complete it, and the
        opponent has no five.

        None when five can be completed at once.
        """
        if self.fives(own, theirs):
            return set()
        danger = self.fives(theirs, own)
        likely = np.nonzero((self.open_windows(own, theirs, 3) & ~own).any(0))[0].tolist()
        return {
            cell
            for cell in likely
            if danger <= {cell} and len(self.fives(with_stone(own, cell), theirs)) > 1
        }

    def double_threats(self, own: np.ndarray, theirs: np.ndarray) -> set[int]:
        """The moves after which five or an unstoppable four follows whatever the reply. None when
        one is there now.
        """
        danger = self.fives(theirs, own)
        if self.fives(own, theirs) or self.fours(own, theirs) or len(danger) > 1:
            return set()
        likely = (self.open_windows(own, theirs, 2) & ~own).any(
            0
        )  # any other cell makes no new line of three
        cells = sorted(danger) if danger else np.nonzero(likely)[0].tolist()
        return {cell for cell in cells if self.wins_after(with_stone(own, cell), theirs)}

    def wins_after(self, own: np.ndarray, theirs: np.ndarray) -> bool:
        """Whether every reply leaves five or an unstoppable four. A reply away from all lines of
        either side changes nothing, so one of these stands for all."""
        if self.fives(theirs, own) or not (self.fives(own, theirs) or self.fours(own, theirs)):
            return False
        near = self.open_windows(own, theirs, 3).any(0) | self.open_windows(theirs, own, 3).any(0)
        replies = np.nonzero(near & ~(own | theirs))[0].tolist()
        return all(self.follows(own, with_stone(theirs, reply)) for reply in replies)

    def follows(self, own: np.ndarray, theirs: np.ndarray) -> bool:
        return bool(self.fives(own, theirs) or self.fours(own, theirs))


def with_stone(stones: np.ndarray, cell: int) -> np.ndarray:
    after = stones.copy()
    after[cell] = True
    return after


def win_in_one(solver: Solver, own: np.ndarray, theirs: np.ndarray) -> set[int]:
    return solver.fives(own, theirs)


def block_in_one(solver: Solver, own: np.ndarray, theirs: np.ndarray) -> set[int]:
    danger = solver.fives(theirs, own)
    return danger if len(danger) == 1 and not solver.fives(own, theirs) else set()


def open_three(solver: Solver, own: np.ndarray, theirs: np.ndarray) -> set[int]:
    return solver.fours(own, theirs)


def double_threat(solver: Solver, own: np.ndarray, theirs: np.ndarray) -> set[int]:
    return solver.double_threats(own, theirs)


Solve = Callable[[Solver, np.ndarray, np.ndarray], set[int]]
SOLVERS: dict[str, Solve] = {
    "win-in-one": win_in_one,
    "block-in-one": block_in_one,
    "open-three": open_three,
    "double-threat": double_threat,
}


@functools.cache
def solvers() -> list[tuple[int, Solver]]:
    return [(size, Solver(size, exact)) for size in SIZES for exact in (False, True)]


def placed(cells: list[int], size: int) -> np.ndarray:
    stones = np.zeros(size**2, bool)
    stones[[on_board(cell, size) for cell in cells]] = True
    return stones


def solutions(solve: Solve, moves: list[int]) -> list[int]:
    """The answers of a position, if they are few and the same on every board; else none."""
    mover = len(moves) % 2
    found: set[int] = set()
    for number, (size, solver) in enumerate(solvers()):
        there = solve(solver, placed(moves[mover::2], size), placed(moves[1 - mover :: 2], size))
        if not number:
            found = there
        if not 0 < len(found) <= MOST_SOLUTIONS or there != {
            on_board(cell, size) for cell in found
        }:
            return []
    return sorted(found)


def games(seed: int) -> Iterator[list[int]]:
    """The moves of endlessly many games on 9x9, without those of the end."""
    game = make_game(f"gomoku:{SUITE_SIZE}")
    generator = torch.Generator().manual_seed(seed)
    player = AlphaBetaPlayer(game, 2)
    while True:
        state = game.init(64)
        lines = [[] for _ in range(64)]
        for ply in range(40):
            scores = player.scores(state)
            gumbel = -torch.empty_like(scores).exponential_(generator=generator).log()
            chance = CHANCE if ply > 3 else 1000.0
            action = torch.where(
                scores > TAKEN / 2, scores.clamp(-500, 500) + chance * gumbel, TAKEN
            ).argmax(1)
            over = finished(state)
            for line, cell, done in zip(lines, action.tolist(), over.tolist()):
                if not done:
                    line.append(cell)
            state = game.step(state, action)
        yield from lines


def collect(kind: str, count: int, seed: int) -> list[str]:
    """`count` lines of one kind, at most one from each game."""
    lines: dict[frozenset[int], str] = {}
    rng = np.random.default_rng(seed)
    for moves in games(seed):
        for length in rng.permutation(range(6, len(moves))).tolist():
            position = moves[:length]
            if found := solutions(SOLVERS[kind], position):
                cells = [
                    " ".join(cell_name(cell, SUITE_SIZE) for cell in part)
                    for part in (position, found)
                ]
                lines[frozenset(position)] = "; ".join((kind, *cells))
                break
        if len(lines) == count:
            break
    return list(lines.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = (
        Path(__file__).parent.parent / "chessnn_colab" / "arena" / "gomoku" / "data" / "tactics.txt"
    )
    text = ""
    for number, kind in enumerate(SOLVERS):
        lines = collect(kind, options.each, options.seed + 1000 * number)
        text += "".join(f"{line}\n" for line in lines)
        print(f"{kind}: {len(lines)}", flush=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
