"""Plays matches, in one process or in several, for a CPU with several cores.

Each process plays some of the openings, in every match, with one thread. A game is the same as in a
single process: neither its random numbers nor its moves depend on what shares its batch.
"""

import json
import math
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from ..cpu import use_threads
from ..devices import WorkerPlan, inventory, plan_workers
from ..errors import ConfigError, WorkerError
from ..games.base import Game
from ..games.registry import make_game
from ..in_flight import Arrays, OnArrays
from ..settings import COUNT, COUNT_FROM_ZERO, require
from ..text import counted
from ..workers.local import LocalPool
from .engine_processes import ProcessPlayer
from .match import Key, Match
from .players import Player, Recipe
from .progress import MatchProgress, Watch, unwatched
from .result import MatchGame, MatchResult
from .runner import MatchRunner

# Of a process: games times evaluations per move. Its start takes seconds, and its last few games
# nearly as long as many.
LEAST_EVALUATIONS = 100 * 48
LEAST_SECONDS = 30.0  # in less time the start counts for too much
NEWS_SECONDS = 1.0  # between two messages about the plies, while no game ends


def play_match(
    game: Game, player: Player, opponent: Player, games: int, seed: int = 0
) -> MatchResult:
    """Play one match (see play_matches)."""
    return play_matches(game, [Match(player, opponent, games)], seed)[0]


@use_threads(1)
def play_matches(
    game: Game,
    matches: Sequence[Match],
    seed: int = 0,
    watch: Watch = unwatched,
    seconds: float = math.inf,
    processes: int | None = 1,
) -> list[Any]:
    """Play `matches` of `game` (see registry.match_game) side by side. Returns a MatchResult per
    match; in a game for one player, whose matches have no opponent, a SoloGames per match.

    After the last opening of the game's book the first one follows. seconds: start no game that
    would probably not end within this time. Openings start in order, in every match alike, and each
    game that was started is played to its end and counts, so short games are never preferred to
    long ones. Every match plays its first opening, however long that takes. watch gets the progress
    often. KeyboardInterrupt ends the matches: their results, marked as `interrupted`, have the
    games that ended before it.

    processes: how many share the games; None: as many as pay. With more than one a script needs
    `if __name__ == "__main__":`, as it does for training.

    The random numbers of a game follow from the seed, its players' names and its number. Networks
    get rows in multiples of search.ROW_MULTIPLE, for which a CPU computes a row to the same bits in
    any batch (a test), and on a GPU in powers of two. A GPU may choose another algorithm for
    another size, and then another move where two are equally good. Raises ConfigError for a match
    with an opponent in a game for one player, and for one without an opponent in a game for two.
    """
    for match in matches:
        if len(match.players) != game.num_players:
            raise ConfigError(
                f"a match of {counted(len(match.players), 'player')}: expected "
                f"{game.num_players}, as the game {game.name!r} has"
            )
    if processes is None:
        processes = processes_for(matches, seconds, game.device)
    require("processes", processes, COUNT)
    require("seed", seed, COUNT_FROM_ZERO)
    runner = MatchRunner(game, matches, seed, seconds)
    player = runner if processes == 1 else ParallelMatches(runner, processes)
    results = runner.results
    try:
        player.play(watch)
    except KeyboardInterrupt:
        results.interrupted = True
        with suppress(KeyboardInterrupt):  # a second one changes nothing
            watch(player.progress())
    return [results.result(number) for number in range(len(matches))]


def processes_for(matches: Sequence[Match], seconds: float, device: torch.device) -> int:
    """How many processes pay for `matches` that may take `seconds`.

    One on a GPU, where nobody has measured more; in a game for one player; and with a program among
    the players, which runs beside this process already and would play worse with more programs on
    the same cores.
    """
    players = [player for match in matches for player in match.players]
    if (
        device.type != "cpu"
        or seconds < LEAST_SECONDS
        or any(match.opponent is None for match in matches)
        or any(isinstance(player, ProcessPlayer) for player in players)
    ):
        return 1
    evaluations = sum(
        match.games * sum(player.evaluations for player in match.players) for match in matches
    )
    openings = max((match.games for match in matches), default=0) // 2
    cores = len(plan_workers(inventory(), "cpu").devices)
    return max(1, min(cores, openings, evaluations // LEAST_EVALUATIONS))


class ParallelMatches:
    """The games of `runner`, shared by several supervised workers.

    When a process dies, a new one plays its share again, as far as the time allows. If that does
    not help, a warning says why, and the games that had ended count, as after an interrupt. If none
    had ended, this process plays all games.
    """

    def __init__(self, runner: MatchRunner, processes: int):
        self.runner = runner
        self.results = runner.results
        openings = runner.openings.waiting
        self.shares = [list(chain(*openings[share::processes])) for share in range(processes)]
        self.news = {}  # the last of each share, see _news

    def play(self, watch: Watch) -> None:
        """Play all games; calls `watch` every second or so."""
        watch(self.progress())  # processes take a while to start

        def on_update(index: int, games: int, plies: int) -> None:
            self._take_in(index, pool.call.received[index])
            watch(self.progress())

        plan = WorkerPlan(("cpu",) * len(self.shares), 1)
        patience = math.inf  # a step of a deep search takes minutes
        try:
            with LocalPool(MatchJob, job_settings(self.runner), plan, patience, _warn) as pool:
                pool.play(self.shares, 0, on_update)
        except WorkerError as error:
            if not any(self.results.ended):
                _warn(f"{error}\nOne process plays all games instead")
                return self.runner.play(watch)
            _warn(f"{error}\nThe games that had ended count")
            self.results.interrupted = True
        self.results.end()
        watch(self.progress())

    def progress(self) -> MatchProgress:
        """The progress of all matches."""
        left = max((news["left"] or 0.0 for news in self.news.values()), default=None)
        running = [key for news in self.news.values() for key in news["running"]]
        return replace(self.runner.progress(running), seconds_left=left)

    def _take_in(self, index: int, received: Sequence[Arrays]) -> None:
        """Take in the last message of a share. There is none when the share of a lost process is
        played again.
        """
        if not received:
            for match, number in self.shares[index]:
                self.results.ended[match].pop(number, None)
            self.news.pop(index, None)
            return
        # Not by str(), in which numpy loses an interrupt in two hundred.
        self.news[index] = news = json.loads(received[-1]["news"].item())
        for match, number, points, ending, actions, reason in news["games"]:
            opening = self.runner.opening(number)
            self.results.ended[match][number] = MatchGame(
                opening, number % 2 == 0, points, ending, tuple(actions), reason
            )
        for player, (seconds, moves) in zip(self.results.times.values(), news["times"]):
            player.seconds += seconds
            player.moves += moves


def job_settings(runner: MatchRunner) -> dict[str, Any]:
    """The settings of MatchJob, all plain data."""
    players = list(runner.results.times)
    return {
        "game": runner.game.name,
        "max_plies": runner.game.max_plies,
        "players": [player.recipe() for player in players],
        "matches": [(*map(players.index, match.players), match.games) for match in runner.matches],
        "seed": runner.seed,
        "ends_at": time.time() + runner.openings.seconds,
    }


class MatchJob:
    """A worker's job (workers.protocol.Job): some of the games of several matches.

    players: of each, a factory and its settings (Player.recipe). matches: (player, opponent, games)
    with the players' numbers. ends_at: the time.time() after which no game should last. seed: of
    the matches.
    """

    def __init__(
        self,
        device: str,
        game: str,
        max_plies: int,
        players: Sequence[Recipe],
        matches: Sequence[tuple[int, int, int]],
        ends_at: float,
        seed: int,
    ):
        self.messages = []
        self.device = device
        self.game = make_game(game, max_plies)
        made = [factory(self.game, **settings) for factory, settings in players]
        self.matches = [Match(made[one], made[other], games) for one, other, games in matches]
        self.ends_at = ends_at
        self.seed = seed

    def describe(self) -> str:
        return self.device

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """The players come with the settings."""

    def play(self, games: Sequence[Key], seed: int, on_progress: OnArrays) -> None:
        """Play these games. Their random numbers follow from the matches' own seed."""
        seconds = max(self.ends_at - time.time(), 0.0)
        runner = MatchRunner(self.game, self.matches, self.seed, seconds, games)
        sent = set()
        sent_at = time.monotonic()
        more = True
        while more:
            more = runner.step()
            new = runner.results.ended_games() - sent
            if new or not more or time.monotonic() > sent_at + NEWS_SECONDS:
                sent |= new
                more &= on_progress(len(sent), 0, _news(runner, sorted(new)))
                sent_at = time.monotonic()


def _news(runner: MatchRunner, ended: Sequence[Key]) -> Arrays:
    """The games that have `ended`, the thinking times since the last news and the progress, as JSON
    for ParallelMatches._take_in.
    """
    games = []
    for match, number in ended:
        game = runner.results.ended[match][number]
        games.append((match, number, game.points, game.ending, game.actions, game.reason))
    times = []
    for player in runner.results.times.values():
        times.append((player.seconds, player.moves))
        player.seconds = 0.0
        player.moves = 0
    left = runner.progress().seconds_left
    news = {"games": games, "times": times, "left": left, "running": runner.running()}
    return {"news": np.array(json.dumps(news))}


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
