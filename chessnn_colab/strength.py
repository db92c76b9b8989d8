"""Strength while a run trains: puzzles, and in long runs a short match, for at most a twentieth of the time.

Whatever is drawn at random here comes from a generator of its own, so a run learns the same with and without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .arena.match import play_match
from .arena.players import NetworkPlayer, Player
from .arena.registry import MatchKit, match_game, match_kit
from .arena.result import wilson_interval
from .budget import Budget
from .games.base import Game
from .network import SpikingNetwork
from .report import TIME_SHARE, Progress, Report, Strength, strength_points
from .search import SearchConfig

MATCH_MINUTES = 20.0  # a game with puzzles has matches too in sessions that are as long as this
MATCH_GAMES = 20
LEAST_SECONDS = 20.0  # a shorter session has no time to measure anything
WARM_UP_ROWS = 100
MOST_POINTS = 60  # of a measure in a session
BY_POLICY, SMALL_SEARCH = SearchConfig(search="policy"), SearchConfig()

Outcome = tuple[float, float, float]  # the share and its 95 % interval


@dataclass
class Measure:
    """One way to measure strength, and what it costs."""

    name: str
    trials: int  # puzzles or games
    search: SearchConfig
    run: Callable[[Player], Outcome]
    cost: float = 0.0  # seconds of the latest measurement
    spent: float = 0.0  # seconds in this session
    measured_at: float = 0.0  # seconds of the session


class StrengthProbe:
    """Measures a network now and then. `measure` is called after every iteration; most calls return nothing.

    wanted: whether to measure at all; None: in a session with a time budget. A game for one player has no measures:
    the points of its own games say how strong the network is.
    """

    def __init__(self, wanted: bool | None, game: str, device: torch.device | str, budget: Budget, progress: Progress):
        self.budget, self.progress = budget, progress
        self.game = match_game(game, device)
        measured = wanted if wanted is not None else budget.seconds is not None
        measured &= self.game.num_players == 2 and (budget.seconds is None or budget.seconds >= LEAST_SECONDS)
        self.measures = measures_of(self.game, match_kit(game), budget.seconds) if measured else []

    def begin(self, network: SpikingNetwork, history: Sequence[Report]) -> tuple[Strength, ...]:
        """Measure the untrained network, if `history` is empty, and learn from it or from `history` what it costs."""
        self._warm_up(network)
        if history:
            costs = {point.measure: point.cost for point in strength_points(history)}
            for measure in self.measures:
                measure.cost = costs.get(measure.name, 0.0)
            points: list[Strength] = []
        else:
            points = [point for measure in list(self.measures) for point in self._first(network, measure)]
        self._reserve()
        return self._said(points)

    def measure(self, network: SpikingNetwork, iteration: int, seconds: float, last: bool) -> tuple[Strength, ...]:
        """What is due after `iteration`, `seconds` of training into the run; at the `last` one all that time allows."""
        due = [measure for measure in self.measures if self._due(measure, last)]
        points = [self._point(network, measure, iteration, seconds) for measure in due]
        self._reserve()
        return self._said([point for point in points if point is not None])

    def _warm_up(self, network: SpikingNetwork) -> None:
        """A device's first calls load and choose kernels; no measure is to cost that. A CPU has no such calls."""
        for measure in self.measures if self.game.device.type != "cpu" else ():
            player = NetworkPlayer(self.game, network, measure.search)
            with self._chance_apart():
                player.choose(self.game.init(WARM_UP_ROWS), torch.Generator(self.game.device))

    def _chance_apart(self) -> AbstractContextManager[None]:
        """While the block runs, what is drawn leaves the run's own chance alone: the encoding "rate" draws."""
        device = self.game.device
        return torch.random.fork_rng([device] if device.type == "cuda" else [])

    def _first(self, network: SpikingNetwork, measure: Measure) -> list[Strength]:
        """The untrained level. A measure that a session cannot pay for twice is left out of it."""
        cheapest = self.measures[0]
        ratio = measure.search.evaluations / cheapest.search.evaluations
        guess = 0.0 if measure is cheapest else cheapest.cost * ratio / 2  # half of a cheap one's time is preparation
        if 2 * guess <= self._allowed(measure, at_end=True):
            point = self._point(network, measure, 0, 0.0)
            if point is not None and (2 * measure.cost <= self._allowed(measure, at_end=True) or measure is cheapest):
                return [point]
        self.measures.remove(measure)
        return []

    def _due(self, measure: Measure, last: bool) -> bool:
        if last:
            return measure.spent + measure.cost <= self._allowed(measure, at_end=True)
        since = self.budget.elapsed - measure.measured_at
        often = self.budget.seconds is not None and since < self.budget.seconds / MOST_POINTS
        return not often and measure.spent + 2 * measure.cost <= self._allowed(measure, at_end=False)

    def _allowed(self, measure: Measure, at_end: bool) -> float:
        """Seconds that `measure` may have taken by now, or by the end of the session."""
        seconds = self.budget.elapsed if self.budget.seconds is None or not at_end else self.budget.seconds
        if self.budget.seconds is None and at_end:  # so many iterations, however long they take: a first look is free
            seconds = max(seconds, 60.0)
        return TIME_SHARE * seconds / len(self.measures)

    def _point(self, network: SpikingNetwork, measure: Measure, iteration: int, seconds: float) -> Strength | None:
        """Measure once; None when it took longer than it may."""
        self.progress.start_measuring(f"{measure.trials} {measure.name}")
        started, expected = time.monotonic(), measure.cost
        limit = started + max(self._allowed(measure, at_end=True) - measure.spent, 1.0)

        def on_move(now: float) -> None:
            if now > limit:
                raise _TimeUp
            self.progress.measuring_update(min((now - started) / expected, 1.0) if expected else 0.0)

        player = _Timed(NetworkPlayer(self.game, network, measure.search), on_move)
        with self._chance_apart():
            try:
                outcome = measure.run(player)
            except _TimeUp:
                outcome = None
        measure.cost = time.monotonic() - started
        measure.spent += measure.cost
        measure.measured_at = self.budget.elapsed
        if outcome is None:
            return None
        return Strength(measure.name, iteration, seconds, *outcome, measure.trials, measure.cost)

    def _reserve(self) -> None:
        """Keep time for the last measurement."""
        ends = [measure for measure in self.measures if self._due(measure, last=True)]
        self.budget.reserved = sum(measure.cost for measure in ends)

    def _said(self, points: Sequence[Strength]) -> tuple[Strength, ...]:
        if points:
            self.progress.measured(points)
        return tuple(points)


def measures_of(game: Game, kit: MatchKit, seconds: float | None) -> list[Measure]:
    """How the strength of a network is measured in a session of so many seconds, the cheapest measure first."""
    measures = []
    if total := kit.num_puzzles:
        suite = kit.require("puzzles")(game)

        def solved(player: Player) -> Outcome:
            share = suite.number_solved(player) / total
            return share, *wilson_interval(share, total)

        ahead = f"puzzles, looking at {SMALL_SEARCH.evaluations - 1} positions"
        measures = [
            Measure("puzzles, by policy", total, BY_POLICY, solved), Measure(ahead, total, SMALL_SEARCH, solved)
        ]  # fmt: skip
    if not measures or (seconds or 0) >= 60 * MATCH_MINUTES:
        name, make_opponent = list(kit.players.items())[-1]

        def scored(player: Player) -> Outcome:
            result = play_match(game, player, make_opponent(game), MATCH_GAMES)
            if result.interrupted:
                raise KeyboardInterrupt  # a match keeps what was played; here the run itself has to end
            return result.score, *result.interval

        search = SMALL_SEARCH if measures else BY_POLICY
        measures.append(Measure(f"games against {name}", MATCH_GAMES, search, scored))
    return measures


class _TimeUp(Exception):
    """A measurement takes longer than it may."""


class _Timed(Player):
    """A player that tells `on_move` the time, time.monotonic(), before each of its moves."""

    def __init__(self, player: Player, on_move: Callable[[float], None]):
        self.player, self.on_move = player, on_move
        self.name, self.evaluations, self.wants_boards = player.name, player.evaluations, player.wants_boards

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] | None = None) -> Tensor:
        self.on_move(time.monotonic())
        return self.player.choose(state, generator, boards)
