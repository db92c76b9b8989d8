"""Puzzles of any game: positions with known answers, and how many of them a player, or a run's networks, solve."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..cpu import use_threads
from ..devices import detect_device, playing_device
from ..games.base import Game
from ..games.registry import make_game
from ..runs.shared import networks
from ..search import SearchConfig
from .evaluate import network_player, run_game
from .players import GamesChance, Player
from .registry import match_kit
from .standing import Part, Standing, Watch, left, unwatched

AT_ONCE = 100  # puzzles in one batch


@dataclass(frozen=True)
class Suite:
    """Puzzles of one game."""

    game: Game
    kinds: Sequence[str]  # of each puzzle
    # Puzzles by number: a state with a row for each, and a board object for each, for players that want boards.
    start: Callable[[Sequence[int]], tuple[Any, Sequence[Any]]]
    is_right: Callable[[int, int], bool]  # a puzzle's number and an action, 0 or more

    @use_threads(1)
    def solved_share(
        self, player: Player, seed: int = 0, on_puzzles: Callable[[int], None] = lambda solved: None
    ) -> dict[str, float]:
        """Kind of puzzle -> the share of them whose first move `player` finds, from 0 to 1.

        on_puzzles is called with the number solved so far, after every AT_ONCE puzzles.
        """
        chance, found = GamesChance([], self.game.device), []
        for first in range(0, len(self.kinds), AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, len(self.kinds)))
            chance.games = [random.Random(f"{seed}: puzzle {number}") for number in numbers]
            state, boards = self.start(numbers)
            actions = player.choose(state, chance, boards if player.wants_boards else None).tolist()
            found += [action >= 0 and self.is_right(number, action) for number, action in zip(numbers, actions)]
            on_puzzles(sum(found))
        solved: dict[str, list[bool]] = {}
        for kind, right in zip(self.kinds, found):
            solved.setdefault(kind, []).append(right)
        return {kind: sum(right) / len(right) for kind, right in solved.items()}

    def number_solved(self, player: Player) -> int:
        """How many of the puzzles `player` solves."""
        counts: list[int] = [0]
        self.solved_share(player, on_puzzles=counts.append)
        return counts[-1]


def solved_over_run(
    run: str,
    search: SearchConfig,
    snapshots: Sequence[int] | None = None,
    seed: int = 0,
    device: str = "auto",
    watch: Watch = unwatched,
) -> dict[int, dict[str, float]]:
    """Iteration -> the share of its game's puzzles that this network of `run` solves, by kind.

    snapshots: the iterations; None is all of them. watch is told how far it is. KeyboardInterrupt ends it: the answer
    then has the snapshots that were done before. Raises ConfigError for a game without puzzles, RunError for a snapshot
    that is not there.
    """
    game = make_game(run_game(run), device=playing_device(detect_device(device).device))
    suite: Suite = match_kit(game.name).require("puzzles")(game)
    snapshots = sorted(networks(run)) if snapshots is None else snapshots
    total = len(suite.kinds)
    parts = {iteration: Part(f"iteration {iteration}", 0, total) for iteration in snapshots}
    shares: dict[int, dict[str, float]] = {}
    started = time.monotonic()

    def tell(iteration: int, solved: int) -> None:
        done = min(parts[iteration].done + AT_ONCE, total)
        parts[iteration] = Part(parts[iteration].name, done, total, f"{solved} solved")
        seconds, all_done = time.monotonic() - started, sum(part.done for part in parts.values())
        watch(Standing(tuple(parts.values()), "puzzle", seconds, left(all_done, total * len(parts), seconds)))

    with suppress(KeyboardInterrupt):  # who called sees by the number of shares that it was interrupted
        for iteration in snapshots:
            player = network_player(run, iteration, game, search)
            shares[iteration] = suite.solved_share(player, seed, functools.partial(tell, iteration))
    return shares
