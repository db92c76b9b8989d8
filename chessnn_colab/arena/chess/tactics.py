"""Chess puzzles: positions with known answers, and how many of them a player solves.

The suite, `data/tactics.txt`, has a hundred each of mates in one, mates in two and hanging pieces. Its lines are
"kind; FEN; all solving moves". tools/make_tactics.py made it and solved every position exhaustively.
"""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

import chess

from ...cpu import one_thread
from ...devices import detect_device
from ...games.chess.notation import board_from_fen, move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...runs.shared import networks
from ...search import SearchConfig
from ..evaluate import network_player
from ..players import GamesChance, Player
from ..standing import Part, Standing, Watch, left, unwatched

AT_ONCE = 100  # puzzles in one batch

NUM_PUZZLES = 300  # in the package's suite


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
def solved_share(
    player: Player,
    suite: Sequence[Puzzle],
    game: Chess,
    seed: int = 0,
    on_puzzles: Callable[[int], None] = lambda solved: None,
) -> dict[str, float]:
    """Kind of puzzle -> the share of them whose first move `player` finds, from 0 to 1.

    on_puzzles is called with the number solved so far, after every AT_ONCE puzzles.
    """
    boards = [board_from_fen(puzzle.fen) for puzzle in suite]
    chance, found = GamesChance([], game.device), []
    for first in range(0, len(suite), AT_ONCE):
        some = boards[first : first + AT_ONCE]
        chance.games = [random.Random(f"{seed}: puzzle {first + place}") for place in range(len(some))]
        state = state_from_boards(some, game)
        actions = player.choose(state, chance, some if player.wants_boards else None).tolist()
        for puzzle, board, action in zip(suite[first:], some, actions):
            found.append(action >= 0 and move_from_action(action, board) in puzzle.solutions)
        on_puzzles(sum(found))
    solved: dict[str, list[bool]] = {}
    for puzzle, right in zip(suite, found):
        solved.setdefault(puzzle.kind, []).append(right)
    return {kind: sum(right) / len(right) for kind, right in solved.items()}


def puzzles_solved(player: Player, game: Chess) -> int:
    """How many of the package's NUM_PUZZLES puzzles `player` solves."""
    suite = load_suite()
    kinds = Counter(puzzle.kind for puzzle in suite)
    return sum(round(share * kinds[kind]) for kind, share in solved_share(player, suite, game).items())


def solved_over_run(
    run: str,
    search: SearchConfig,
    snapshots: Sequence[int] | None = None,
    seed: int = 0,
    device: str = "auto",
    watch: Watch = unwatched,
) -> dict[int, dict[str, float]]:
    """Iteration -> `solved_share` of that network of `run`. snapshots: the iterations to look at; None is all of them.

    watch is told how far it is. KeyboardInterrupt ends it: the answer then has the snapshots that were done before.
    Raises RunError for a snapshot that is not there.
    """
    if snapshots is None:
        snapshots = sorted(networks(run))
    suite, game = load_suite(), Chess(device=detect_device(device).device)
    parts = {iteration: Part(f"iteration {iteration}", 0, len(suite)) for iteration in snapshots}
    shares: dict[int, dict[str, float]] = {}
    started = time.monotonic()

    def tell(iteration: int, solved: int) -> None:
        done = min(parts[iteration].done + AT_ONCE, len(suite))
        parts[iteration] = Part(parts[iteration].name, done, len(suite), f"{solved} solved")
        seconds, all_done = time.monotonic() - started, sum(part.done for part in parts.values())
        seconds_left = left(all_done, len(suite) * len(parts), seconds)
        watch(Standing(tuple(parts.values()), "puzzle", seconds, seconds_left))

    try:
        for iteration in snapshots:
            player = network_player(run, iteration, game, search)
            shares[iteration] = solved_share(player, suite, game, seed, functools.partial(tell, iteration))
    except KeyboardInterrupt:
        pass
    return shares
