"""Strength while a run trains: puzzles, and games against stronger and stronger opponents, for at
most 5 % of the time.

It draws its random numbers apart from the run's, so a run learns the same with and without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .arena.game import ArenaGame
from .arena.opponent import opinions_of
from .arena.parallel import play_match
from .arena.players import NetworkPlayer, Player
from .arena.puzzles import solved_puzzles
from .arena.registry import arena_game, match_game
from .arena.result import wilson_interval
from .budget import Budget
from .games.base import Game
from .games.registry import make_game
from .network import SpikingNetwork
from .report import TIME_SHARE, Progress, Report, Strength, strength_points
from .search import SearchConfig
from .text import duration

MATCH_GAMES = 20  # against the strongest opponent
# Against the others, to see when they are beaten. A network that knows nothing mates nobody: the
# few plies keep its games short.
RUNG_GAMES = 8
RUNG_PLIES = 80
BEATEN = 0.9  # this share of the points beats an opponent
LEAST_SECONDS = 20.0  # a shorter session has no time to measure anything
ITERATIONS_SECONDS = 60.0  # what a session without a time budget is taken to last at least
FIRST_SECONDS = 1.0  # the first measurement of a session may take this long in any case
WARM_UP_ROWS = 100
MOST_POINTS = 60  # of a measure in a session
BY_POLICY = SearchConfig(search="policy")
SMALL_SEARCH = SearchConfig(solve="all")

Outcome = tuple[float, float, float]  # the share and its 95 % interval


@dataclass
class Measure:
    """One way to measure strength, and what it costs."""

    name: str
    trials: int  # puzzles or games
    search: SearchConfig
    run: Callable[[Player], Outcome]
    harder: Measure | None = None  # what to measure instead once this opponent is beaten
    cost: float = 0.0  # seconds of the latest measurement
    spent: float = 0.0  # seconds in this session
    measured_at: float = 0.0  # seconds of the session


class StrengthProbe:
    """Measures a network now and then. `measure` is called after every iteration; most calls return
    nothing.

    wanted: whether to measure at all; None: in a session with a time budget. A game for one player
    has no measures: the points of its own games say how strong the network is.
    """

    def __init__(
        self, wanted: bool | None, game: str, device: str, budget: Budget, progress: Progress
    ):
        self.budget = budget
        self.progress = progress
        self.game = match_game(game, device)
        if wanted is None:
            wanted = budget.seconds is not None
        enough_time = budget.seconds is None or budget.seconds >= LEAST_SECONDS
        self.measures = []
        if wanted and enough_time and self.game.num_players == 2:
            self.measures = measures_of(self.game, arena_game(game))
        self._share = TIME_SHARE / max(len(self.measures), 1)  # of the time, for each measure

    def begin(
        self, network: SpikingNetwork, history: Sequence[Report], updates: int = 0
    ) -> tuple[Strength, ...]:
        """Measure the network that a run begins with. One that has made `updates` is resumed: take
        the costs from `history`.

        A measure that does not fit twice into the session's share is left out.
        """
        self._warm_up(network)
        points = []
        if history or updates:
            earlier = strength_points(history)
            for point in earlier:
                self._replace_if_beaten(point)
            costs = {point.measure: point.cost for point in earlier}
            for measure in self.measures:
                measure.cost = costs.get(measure.name, 0.0)
        else:
            least = FIRST_SECONDS
            for measure in list(self.measures):
                limit = max(self._left(measure, at_end=True) / 2, least)
                point = self._point(network, measure, 0, 0.0, limit)
                points.append(point)
                if point is None:
                    self.measures.remove(measure)
                least = 0.0
        return self._finish(points)

    def measure(
        self, network: SpikingNetwork, iteration: int, seconds: float, last: bool
    ) -> tuple[Strength, ...]:
        """Measure what is due after `iteration`, `seconds` of training into the run; after the last
        one, all that time allows.
        """
        points = []
        for measure in list(self.measures):
            if self._due(measure, last, first=iteration == 1):
                limit = self._left(measure, at_end=True)
                point = self._point(network, measure, iteration, seconds, limit)
                points.append(point)
                if point is not None and self._replace_if_beaten(point):
                    score = f"{point.share * point.trials:g} of {point.trials} points"
                    self.progress.message(
                        f"{measure.name}: {score} after {duration(point.seconds)} of training"
                    )
        return self._finish(points)

    def _replace_if_beaten(self, point: Strength) -> bool:
        """Put the next opponent in the place of one that `point` beats. Returns whether it did."""
        for index, measure in enumerate(self.measures):
            beaten = measure.name == point.measure and point.share >= BEATEN
            if beaten and point.iteration and measure.harder is not None:
                self.measures[index] = replace(measure.harder, spent=measure.spent)
                return True
        return False

    def _due(self, measure: Measure, last: bool, first: bool = False) -> bool:
        """True if time allows it; not after the last iteration, it must allow another one too.

        first: after the first iteration, of whose network people want to hear, time may be borrowed
        from the rest of the session.
        """
        at_end = last or first
        interval = (self.budget.seconds or 0.0) / MOST_POINTS
        if not at_end and self.budget.elapsed - measure.measured_at < interval:
            return False
        times = 1 if last else 2
        return times * measure.cost <= self._left(measure, at_end)

    def _left(self, measure: Measure, at_end: bool) -> float:
        """Seconds that `measure` may still take by now, or by the end of the session."""
        seconds = self.budget.elapsed
        if at_end:
            seconds = self.budget.seconds or max(seconds, ITERATIONS_SECONDS)
        return self._share * seconds - measure.spent

    def _point(
        self,
        network: SpikingNetwork,
        measure: Measure,
        iteration: int,
        seconds: float,
        limit: float,
    ) -> Strength | None:
        """Measure once; None when it took longer than `limit` seconds."""
        what = f"{measure.trials} {measure.name}"
        self.progress.measuring_update(what, 0.0)
        started = time.monotonic()

        def on_move() -> None:
            spent = time.monotonic() - started
            if spent > limit:
                raise _TimeUp
            share = min(spent / measure.cost, 1.0) if measure.cost else 0.0
            self.progress.measuring_update(what, share)

        player = _Timed(self.game, network, measure.search)
        player.on_move = on_move
        outcome = None
        with suppress(_TimeUp):
            outcome = measure.run(player)
        measure.cost = time.monotonic() - started
        measure.spent += measure.cost
        measure.measured_at = self.budget.elapsed
        if outcome is None or measure.cost > limit:
            return None
        return Strength(measure.name, iteration, seconds, *outcome, measure.trials, measure.cost)

    def _finish(self, points: Sequence[Strength | None]) -> tuple[Strength, ...]:
        """Reserve time for the last measurement, and report the points."""
        ends = [measure for measure in self.measures if self._due(measure, last=True)]
        self.budget.reserved = sum(measure.cost for measure in ends)
        measured = tuple(point for point in points if point is not None)
        if measured:
            self.progress.measured(measured)
        return measured

    def _warm_up(self, network: SpikingNetwork) -> None:
        """Make a device's first calls, which load and choose kernels, outside of any measurement.
        A CPU has no such calls.
        """
        if self.game.device.type == "cpu":
            return
        for measure in self.measures:
            player = NetworkPlayer(self.game, network, measure.search)
            player.choose(self.game.init(WARM_UP_ROWS), torch.Generator(self.game.device))


def measures_of(game: Game, kit: ArenaGame) -> list[Measure]:
    """What is measured, the cheapest first: puzzles, and games against the weakest opponent."""
    measures = []
    if kit.puzzles is not None:
        puzzles = kit.puzzles(game)
        total = len(puzzles)

        def solved(player: Player) -> Outcome:
            share = sum(solved_puzzles(game, puzzles, player)) / total
            return share, *wilson_interval(share, total)

        ahead = f"puzzles, looking at {SMALL_SEARCH.evaluations - 1} positions"
        measures = [
            Measure("puzzles, by policy", total, BY_POLICY, solved),
            Measure(ahead, total, SMALL_SEARCH, solved),
        ]
    search = SMALL_SEARCH if measures else BY_POLICY
    rung = None
    for name, make_opponent in reversed(list(kit.players.items())):
        rung = games_against(name, make_opponent, game, search, rung)
    return measures if rung is None else [*measures, rung]


def games_against(
    name: str,
    make_opponent: Callable[[Game], Player],
    game: Game,
    search: SearchConfig,
    harder: Measure | None,
) -> Measure:
    """A short match against the fixed player `name`. harder: the measure after it, if there is
    one.
    """
    games = MATCH_GAMES
    if harder is not None:
        games = RUNG_GAMES
        game = make_game(game.name, min(RUNG_PLIES, game.max_plies), game.device)

    def scored(player: Player) -> Outcome:
        result = play_match(game, player, make_opponent(game), games)
        if result.interrupted:
            raise KeyboardInterrupt  # a match keeps its games; here the run itself has to end
        return result.score, *result.interval

    return Measure(f"games against {name}", games, search, scored, harder)


@torch.no_grad()
def opinion_of_position(network: SpikingNetwork, game: Game, iteration: int) -> list[Any]:
    """What the network, in evaluation mode, thinks of the one position of its game (see ArenaGame),
    as [[iteration, the three parts of an Opinion, spikes]]; [] where the game has none.

    spikes: of each square's last neurons, the mover's last rank first, how many thousandths of the
    possible spikes they fire; None of a network without spikes.
    """
    kit = arena_game(game.name)
    if kit.one_position is None:
        return []
    state, _ = kit.start(game, [kit.one_position])
    opinions, rates = opinions_of(network, game, state)
    wdl, *moves = opinions[0]
    spikes = None
    if network.config.activation == "spikes":
        by_square = 1000 / network.config.levels * rates[0].mean(0).flip(0)
        spikes = by_square.flatten().int().tolist()
    return [[iteration, list(wdl), *moves, spikes]]


class _TimeUp(Exception):
    """A measurement takes longer than it may."""


class _Timed(NetworkPlayer):
    """A network that calls `on_move` before each of its moves."""

    on_move: Callable[[], None]

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] = ()) -> Tensor:
        self.on_move()
        return super().choose(state, generator, boards)
