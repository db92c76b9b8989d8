"""How many of its game's puzzles a player solves, and the networks of a run."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from ..cpu import use_threads
from ..devices import detect_device, playing_device
from ..games.base import Game
from ..games.registry import make_game
from ..runs.networks import networks, run_game
from ..search import SearchConfig
from .evaluate import network_player
from .game import Puzzle
from .players import GamesChance, Player
from .progress import Bar, MatchProgress, Watch, unwatched
from .registry import arena_game

AT_ONCE = 100  # puzzles in one batch


@use_threads(1)
def solved_puzzles(
    game: Game,
    puzzles: Sequence[Puzzle],
    player: Player,
    on_puzzles: Callable[[int, int], None] = lambda tried, solved: None,
) -> list[bool]:
    """For each puzzle, whether the first move of `player` is right.

    on_puzzles is called with the numbers tried and solved so far, after every AT_ONCE puzzles.
    """
    chance = GamesChance(game.device)
    states = arena_game(game.name).states
    solved = []
    for first in range(0, len(puzzles), AT_ONCE):
        some = puzzles[first : first + AT_ONCE]
        chance.games = [random.Random(f"0: puzzle {first + row}") for row in range(len(some))]
        boards = [puzzle.board for puzzle in some]
        state = states(boards, game)
        actions = player.choose(state, chance, boards if player.wants_boards else ()).tolist()
        solved += [action in puzzle.solutions for action, puzzle in zip(actions, some)]
        on_puzzles(len(solved), sum(solved))
    return solved


def solved_share(
    game: Game,
    puzzles: Sequence[Puzzle],
    player: Player,
    on_puzzles: Callable[[int, int], None] = lambda tried, solved: None,
) -> dict[str, float]:
    """Kind of puzzle -> the share that `player` solves, from 0 to 1 (see solved_puzzles)."""
    results = {}
    for puzzle, right in zip(puzzles, solved_puzzles(game, puzzles, player, on_puzzles)):
        results.setdefault(puzzle.kind, []).append(right)
    return {kind: sum(right) / len(right) for kind, right in results.items()}


def solved_over_run(
    run: str,
    search: SearchConfig,
    snapshots: Sequence[int] | None = None,
    device: str = "auto",
    watch: Watch = unwatched,
) -> dict[int, dict[str, float]]:
    """Iteration -> the share of its game's puzzles that this network of `run` solves, by kind.

    snapshots: the iterations; None is all of them. watch gets the progress. KeyboardInterrupt
    ends it: the result then has the snapshots that were finished before. Raises ConfigError for a
    game without puzzles, RunError for a snapshot that is not there.
    """
    game = make_game(run_game(run), device=playing_device(detect_device(device).device))
    puzzles = arena_game(game.name).require("puzzles")(game)
    snapshots = sorted(networks(run)) if snapshots is None else snapshots
    total = len(puzzles)
    bars = {iteration: Bar(f"iteration {iteration}", 0, total) for iteration in snapshots}
    shares = {}
    started = time.monotonic()

    def show(iteration: int, tried: int, solved: int) -> None:
        bars[iteration] = replace(bars[iteration], done=tried, note=f"{solved} solved")
        seconds = time.monotonic() - started
        all_done = sum(bar.done for bar in bars.values())
        left = seconds * (total * len(bars) / all_done - 1)
        watch(MatchProgress(tuple(bars.values()), "puzzle", seconds, left))

    # The caller sees by the number of shares whether it was interrupted.
    with suppress(KeyboardInterrupt):
        for iteration in snapshots:
            player = network_player(run, iteration, game, search)
            shares[iteration] = solved_share(game, puzzles, player, partial(show, iteration))
    return shares
