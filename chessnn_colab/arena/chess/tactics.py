"""Chess puzzles: positions with known answers, and how many of them a player solves.

The suite, `data/tactics.txt`, has a hundred each of mates in one, mates in two and hanging pieces. Its lines are
"kind; FEN; all solving moves". tools/make_tactics.py made it and solved every position exhaustively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import chess
import torch

from ...cpu import one_thread
from ...devices import detect_device
from ...games.chess.notation import board_from_fen, move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...runs.shared import networks
from ...search import SearchConfig
from ..evaluate import network_player
from ..players import Player


@dataclass(frozen=True)
class Puzzle:
    """A position and every move that solves it."""

    kind: str  # "mate-in-one", "mate-in-two" or "hanging-piece"
    fen: str
    solutions: frozenset[chess.Move]


def load_suite() -> list[Puzzle]:
    """The package's puzzles, kind by kind."""
    text = resources.files(__package__ or "").joinpath("data/tactics.txt").read_text(encoding="utf-8")
    puzzles = []
    for line in text.splitlines():
        kind, fen, moves = line.split("; ")
        puzzles.append(Puzzle(kind, fen, frozenset(map(chess.Move.from_uci, moves.split()))))
    return puzzles


@one_thread()
def solved_share(player: Player, suite: Sequence[Puzzle], game: Chess, seed: int = 0) -> dict[str, float]:
    """Kind of puzzle -> the share of them whose first move `player` finds, from 0 to 1."""
    boards = [board_from_fen(puzzle.fen) for puzzle in suite]
    generator = torch.Generator(game.device).manual_seed(seed)
    actions = player.choose(
        state_from_boards(boards, game), generator, boards if player.wants_boards else None
    ).tolist()
    solved: dict[str, list[bool]] = {}
    for puzzle, board, action in zip(suite, boards, actions):
        found = action >= 0 and move_from_action(action, board) in puzzle.solutions
        solved.setdefault(puzzle.kind, []).append(found)
    return {kind: sum(found) / len(found) for kind, found in solved.items()}


def solved_over_run(
    run: str, search: SearchConfig, snapshots: Sequence[int] | None = None, seed: int = 0, device: str = "auto"
) -> dict[int, dict[str, float]]:
    """Iteration -> `solved_share` of that network of `run`. snapshots: the iterations to look at; None is all of them.

    Raises RunError for a snapshot that is not there.
    """
    if snapshots is None:
        snapshots = sorted(networks(run))
    suite, game = load_suite(), Chess(device=detect_device(device).device)
    return {
        iteration: solved_share(network_player(run, iteration, game, search), suite, game, seed)
        for iteration in snapshots
    }
