"""Tactics: positions with known answers, and how many of them a player finds.

The suite, `data/tactics.txt`, has a hundred each of mates in one, mates in two and hanging pieces. tools/make_tactics.py
made it, and solved every position exhaustively; its lines are "kind; FEN; all solving moves".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Sequence

import chess
import torch

from ..evaluate import load_network
from ...games.chess.rules import Chess
from ...games.chess.notation import board_from_fen, move_from_action, state_from_boards
from ..players import NetworkPlayer, Player
from ...runs.folder import RunFolder
from ...search import SearchConfig


@dataclass(frozen=True)
class Puzzle:
    """A position and every move that solves it."""

    kind: str  # "mate-in-one", "mate-in-two" or "hanging-piece"
    fen: str
    solutions: frozenset[chess.Move]


def load_suite() -> list[Puzzle]:
    """The package's puzzles, kind by kind."""
    text = resources.files(__package__).joinpath("data/tactics.txt").read_text(encoding="utf-8")
    puzzles = []
    for line in text.splitlines():
        kind, fen, moves = line.split("; ")
        puzzles.append(Puzzle(kind, fen, frozenset(map(chess.Move.from_uci, moves.split()))))
    return puzzles


def solved_share(player: Player, suite: Sequence[Puzzle], game: Chess, seed: int = 0) -> dict[str, float]:
    """The share of each kind's puzzles whose first move `player` finds, 0 to 1."""
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
    """`solved_share` of the networks of `run`, by iteration; snapshots: which, or all of them.

    Raises RunError for a snapshot that is not there.
    """
    if snapshots is None:
        snapshots = sorted(int(path.stem) for path in RunFolder.open(run).snapshots())
    suite, shares = load_suite(), {}
    for iteration in snapshots:
        network, _ = load_network(run, iteration, device)
        game = Chess(device=str(next(network.parameters()).device))
        shares[iteration] = solved_share(NetworkPlayer(game, network, search), suite, game, seed)
    return shares
