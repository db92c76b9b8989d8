"""How much of the bare network's speed self-play keeps, what learning takes beside it, and what it holds in memory."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..actor import ROOT_ACTIONS, Actor
from ..devices import inventory, plan_workers
from ..games.base import Game, State, finished
from ..learner import Learner, LearnerConfig
from ..network import SpikingNetwork, actor_copy, build_network, to_arrays
from ..records import GameRecords
from ..replay import Replay
from ..rounds import joined
from ..search import Root, SearchConfig
from ..selfplay import Lockstep, SelfPlay, play_games
from ..selfplay_config import SelfPlayConfig, SettledSelfPlay
from ..workers.local import LocalPool
from .clock import Clock, Setting, random_observations, seconds_per_call

TREE_SIMULATIONS = 32
GAMES_A_BOARD = 4  # more than are played in the time
SAMPLE_REUSE = 4  # at which the learner's share is measured
WARM_UP_SECONDS = 1.0  # of the learner's share
MEMORY_BOARDS = 1024
ROUNDED = 512  # numbers of logits asked for are rounded up to so many, since hardly two are the same


def bench_self_play(setting: Setting) -> dict[str, Any]:
    """Self-play with the training search, beside the network alone."""
    return measure(setting, setting.config.part(SearchConfig))


def bench_tree(setting: Setting) -> dict[str, Any]:
    """Self-play with the tree, TREE_SIMULATIONS per move, beside the network alone."""
    return measure(setting, SearchConfig(search="tree", num_simulations=TREE_SIMULATIONS))


def bench_policy(setting: Setting) -> dict[str, Any]:
    """Self-play that samples the policy and looks no further: as many moves as evaluations."""
    return measure(setting, SearchConfig(search="policy"))


def measure(setting: Setting, search: SearchConfig) -> dict[str, Any]:
    """Self-play beside the same folded network on its own, same batches, same threads.

    Only evaluations of unfinished positions count, so an evaluation in vain lowers search_efficiency.
    """
    device, game = setting.device, setting.game
    # As many boards as two workers have.
    boards = setting.boards or (128 if device == "cpu" else 512)
    config = SelfPlayConfig(game=game.name, boards=boards).settled(game)
    network = TimedNetwork(actor_copy(setting.network(), setting.dtype), device)
    actor = CountingActor(game, network, search)

    def begin() -> None:
        network.calls.clear()
        actor.evaluations, actor.counting, network.clock = 0, Clock(device), Clock(device)

    pace = played(actor, config, setting.seconds, begin)
    seconds, a_move = pace.seconds - actor.counting.seconds, int(actor.evaluations) / pace.moves
    network_share = network.clock.seconds / seconds
    if device != "cpu":  # clocks that wait for every part keep a device from working ahead
        pace = played(Actor(game, network.network, search), config, setting.seconds)
        seconds = pace.seconds
    moves = pace.moves / seconds
    bare = network.rows / bare_seconds(network, game, setting.seconds)
    return {
        "moves_per_second": moves,
        "games_per_second": pace.games / seconds,
        "evaluations_per_second": moves * a_move,
        "bare_evaluations_per_second": bare,
        "search_efficiency": moves * a_move / bare,
        "network_share": network_share,
        "overhead_us_per_evaluation": 1e6 * (1 / (moves * a_move) - 1 / bare),
        "bytes_per_position": pace.records.nbytes / pace.records.num_positions,
        "boards": boards,
        "evaluations_per_move": a_move,
    }


class Pace(NamedTuple):
    """What self-play did in a time."""

    moves: int
    games: int
    seconds: float
    records: GameRecords  # with those from before that time


def played(actor: Actor, config: SettledSelfPlay, seconds: float, begin: Callable[[], None] = lambda: None) -> Pace:
    """Self-play for about `seconds`, from its second block of plies on: start positions and warming up do not count.

    begin: called when they do.
    """
    marks: list[tuple[float, int, int]] = []
    parts: list[GameRecords] = []

    def going_on() -> bool:
        return len(marks) < 2 or marks[-1][0] - marks[0][0] < seconds

    def collect(games: int, plies: int, records: GameRecords) -> bool:
        parts.append(records)
        if not marks:
            begin()
        if going_on():
            marks.append((time.perf_counter(), plies, games))
        return going_on()

    play_games(actor, config, GAMES_A_BOARD * config.boards, 0, collect)
    (began, plies, games), *_, (ended, all_plies, all_games) = marks
    return Pace(all_plies - plies, all_games - games, ended - began, GameRecords.concatenate(parts))


class CountingActor(Actor):
    """An actor that counts the evaluations worth having: of unfinished positions that legal moves led to."""

    evaluations: torch.Tensor | int = 0

    def __init__(self, game: Game, network: Any, search: SearchConfig):
        super().__init__(game, network, search)
        self.counting = Clock(str(game.device))  # what counting itself takes

    def root(self, state: State, most: int = ROOT_ACTIONS, least: int = 1) -> Root:
        self.counting.time(self._count, ~finished(state))
        return super().root(state, most, least)

    def play(self, before: State, action: torch.Tensor):
        step, after = super().play(before, action)
        self.counting.time(self._count_legal, before, action, after.state)
        return step, after

    def _count(self, wanted: torch.Tensor) -> None:
        self.evaluations = self.evaluations + wanted.sum()

    def _count_legal(self, before: State, action: torch.Tensor, after: State) -> None:
        wanted = ~finished(after)
        if not self.on_cpu:  # a CPU asks about legal actions alone
            wanted &= self.game.legal_action_mask(before).gather(1, action.unsqueeze(1)).squeeze(1)
        self._count(wanted)


class TimedNetwork:
    """A network that remembers which parts of it were called on how many rows, and how long that took."""

    def __init__(self, network: SpikingNetwork, device: str):
        self.network, self.clock = network, Clock(device)
        self.calls: Counter[tuple[str, int, int]] = Counter()  # by part, rows of the batch and logits asked for

    @property
    def rows(self) -> int:
        """Positions evaluated, finished and illegal ones included."""
        return sum(batch * calls for (part, batch, _), calls in self.calls.items() if part == "rates_and_wdl")

    def rates_and_wdl(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self._timed("rates_and_wdl", len(observation), 0, observation)

    def prior_logits(self, rates: torch.Tensor) -> torch.Tensor:
        return self._timed("prior_logits", len(rates), 0, rates)

    def prior_logits_at(self, rates: torch.Tensor, rows: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        return self._timed(
            "prior_logits_at", len(rates), ROUNDED * math.ceil(len(rows) / ROUNDED), rates, rows, actions
        )

    def _timed(self, part: str, batch: int, asked: int, *inputs: torch.Tensor):
        self.calls[part, batch, asked] += 1
        return self.clock.time(getattr(self.network, part), *inputs)


@torch.no_grad()
def bare_seconds(timed: TimedNetwork, game: Game, limit: float) -> float:
    """How long the same calls take the network alone: the same parts on batches of the same sizes, nothing between.

    Each size is measured for its share of the calls in `limit` seconds.
    """
    seconds, network, actions, device = 0.0, timed.network, timed.network.config.actions, str(game.device)
    for (part, batch, asked), calls in timed.calls.items():
        inputs = (random_observations(game, batch),)
        if part != "rates_and_wdl":
            inputs = network.rates_and_wdl(*inputs)[:1]
        if part == "prior_logits_at":  # as many of each position, spread over the actions
            places = torch.arange(asked, device=device)
            inputs += (places * batch // max(1, asked), places * 577 % actions)
        share = limit * calls / timed.calls.total()
        seconds += calls * seconds_per_call(partial(getattr(network, part), *inputs), device, share)
    return seconds


def bench_learner(setting: Setting) -> dict[str, Any]:
    """The learner's share of a round in which every position is learned from SAMPLE_REUSE times.

    The planned workers play for `seconds`; then the learner updates from those games for as long.
    """
    machine, device, seconds = inventory(), setting.device, setting.seconds
    plan = plan_workers(machine, device)
    config = setting.config.for_device(device, machine, plan)
    network = build_network(setting.network_config, device)
    clock = Clock("cpu")
    with LocalPool(SelfPlay, config.job_settings(network.config), plan) as pool:
        pool.set_weights(0, to_arrays(network))
        games = [2 * GAMES_A_BOARD * config.boards] * len(plan.devices)
        pool.play(games, 1, None, time.monotonic() + WARM_UP_SECONDS)
        chunks = clock.time(pool.play, games, 0, None, time.monotonic() + seconds)
    records = joined(chunks, setting.game)
    replay, learner = Replay(config.replay_capacity), Learner(network, setting.game, config.part(LearnerConfig))
    replay.add(records)
    generator = np.random.default_rng(0)
    for warm in (True, False):
        learning = Clock(device)
        deadline = time.monotonic() + (WARM_UP_SECONDS if warm else seconds)
        while time.monotonic() < deadline:
            batch = replay.sample(config.batch_size, generator)
            learning.time(learner.update, batch, None, generator, count=config.batch_size)
    playing, learned = clock.seconds / records.num_positions, SAMPLE_REUSE / learning.rate
    return {
        "learner_share": learned / (learned + playing),
        "sample_reuse": SAMPLE_REUSE,
        "update_ms": 1000 * config.batch_size / learning.rate,
        "batch": config.batch_size,
        "moves_per_second": 1 / playing,
        "workers": len(plan.devices),
    }


def bench_memory(setting: Setting) -> dict[str, Any]:
    """Resident size with MEMORY_BOARDS games in lockstep, their whole histories included, as the plies go by."""
    boards = setting.boards or MEMORY_BOARDS
    config = SelfPlayConfig(game=setting.game.name, boards=boards)
    network = actor_copy(setting.network(), setting.dtype)
    actor = Actor(setting.game, network, setting.config.part(SearchConfig))
    before = resident_bytes()
    lockstep = Lockstep(actor, config, 4 * boards, 0)
    sizes, deadline = [], time.monotonic() + setting.seconds
    while (time.monotonic() < deadline or len(sizes) < 2) and lockstep.active == boards:
        lockstep.play_block()
        sizes.append(resident_bytes())
    mebi = 2.0**20
    return {
        "resident_mib": sizes[-1] / mebi,
        "of_that_lockstep_mib": (sizes[-1] - before) / mebi,
        "growth_mib": (sizes[-1] - sizes[len(sizes) // 2]) / mebi,
        "boards": boards,
        "blocks": len(sizes),
    }


def resident_bytes() -> int:
    """The memory of this process now; where the system does not say, the most it has held."""
    import resource  # Windows has none, and the other benches need none

    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
