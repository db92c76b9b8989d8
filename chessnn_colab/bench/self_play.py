"""How much of the bare network's speed self-play keeps, what learning takes beside it, and what it holds in memory."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..actor import Actor
from .clock import Clock, random_observations, seconds_a_call
from ..devices import inventory, plan_workers
from ..games.base import finished
from ..games.chess.rules import Chess, ChessState
from ..learner import Learner
from ..network import SpikingNetwork, actor_copy, build_network, to_arrays
from ..network_config import preset
from ..records import GameRecords
from ..replay import Replay
from ..search import Root, SearchConfig
from ..selfplay import Lockstep, SelfPlay, SelfPlayConfig, play_games
from ..config import TrainConfig
from ..workers.local import LocalPool

TREE_SIMULATIONS = 32
SAMPLE_REUSE = 4  # at which the learner's share is measured
MEMORY_BOARDS = 1024
ROUNDED = 512  # numbers of logits asked for are rounded up to so many, since hardly two are the same


def bench_self_play(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Self-play with the training search, beside the network alone."""
    return measure(device, preset_name, seconds, dtype, TrainConfig().search_config())


def bench_tree(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Self-play with the tree, TREE_SIMULATIONS a move, beside the network alone."""
    return measure(device, preset_name, seconds, dtype, SearchConfig(search="tree", num_simulations=TREE_SIMULATIONS))


def bench_policy(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Self-play that samples the policy and looks no further: as many moves as evaluations."""
    return measure(device, preset_name, seconds, dtype, SearchConfig(search="policy"))


def measure(device: str, preset_name: str, seconds: float, dtype: torch.dtype, search: SearchConfig) -> dict[str, Any]:
    """Self-play beside the same folded network on its own, same batches, same threads.

    Only evaluations of unfinished positions count, so what is evaluated in vain lowers search_efficiency.
    """
    config = SelfPlayConfig(boards=128 if device == "cpu" else 512)  # on the CPU: as two workers' 64
    game = Chess(config.max_plies, device)
    network = TimedNetwork(actor_copy(build_network(preset(preset_name), device).eval(), dtype), device)
    actor = CountingActor(game, network, search, config.discount)
    parts: list[GameRecords] = []

    def collect(_: int, plies: int, records: GameRecords) -> bool:
        parts.append(records)
        return time.monotonic() < deadline

    play_games(actor, config, config.boards, 1, lambda *_: False)  # warm up
    network.calls.clear()
    actor.evaluations, network.clock, clock = 0, Clock(device), Clock(device)
    deadline = time.monotonic() + seconds
    clock.time(play_games, actor, config, config.boards * 2, 0, collect)
    records = GameRecords.concatenate(parts)
    moves, evaluations = records.num_positions, int(actor.evaluations)
    bare = network.rows / bare_seconds(network, device)
    return {
        "moves_per_second": moves / clock.seconds,
        "games_per_second": int((records.endings > 0).sum()) / clock.seconds,
        "evaluations_per_second": evaluations / clock.seconds,
        "bare_evaluations_per_second": bare,
        "search_efficiency": evaluations / clock.seconds / bare,
        "network_share": network.clock.seconds / clock.seconds,
        "overhead_us_per_evaluation": 1e6 * (clock.seconds / evaluations - 1 / bare),
        "bytes_per_position": records.nbytes / moves,
        "boards": config.boards,
        "evaluations_per_move": evaluations / moves,
    }


class CountingActor(Actor):
    """An actor that counts what is worth counting: evaluations of unfinished positions that legal moves led to."""

    evaluations: torch.Tensor | int = 0

    def root(self, state: ChessState, *columns: int) -> Root:
        self.evaluations = self.evaluations + (~finished(state)).sum()
        return super().root(state, *columns)

    def play(self, before: ChessState, action: torch.Tensor):
        rows = torch.arange(len(action), device=action.device)
        legal = (before.moves[rows, action >> 6] >> (action & 63)) & 1
        step, after = super().play(before, action)
        self.evaluations = self.evaluations + (legal * ~finished(after.state)).sum()
        return step, after


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
def bare_seconds(timed: TimedNetwork, device: str) -> float:
    """How long the same calls take the network alone: the same parts on batches of the same sizes, nothing between."""
    seconds, network, actions = 0.0, timed.network, timed.network.config.actions
    for (part, batch, asked), calls in timed.calls.items():
        inputs = (random_observations(device, batch),)
        if part != "rates_and_wdl":
            inputs = network.rates_and_wdl(*inputs)[:1]
        if part == "prior_logits_at":  # as many of each position, spread over the actions
            places = torch.arange(asked, device=device)
            inputs += (places * batch // max(1, asked), places * 577 % actions)
        call_seconds = seconds_a_call(partial(getattr(network, part), *inputs), device, min(1.0, 0.1 + 0.001 * calls))
        seconds += calls * call_seconds
    return seconds


def bench_learner(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """The learner's share of a round in which every position is learned from SAMPLE_REUSE times.

    The planned workers play for `seconds`; then the learner updates from those games for as long.
    """
    machine, precision = inventory(), str(dtype).removeprefix("torch.")
    plan = plan_workers(machine, device)
    config = TrainConfig(preset=preset_name, precision=precision).for_device(device, machine, plan)
    network = build_network(config.network_config(), device)
    settings = {
        "network": network.config.to_dict(),
        "search": asdict(config.search_config()),
        "self_play": asdict(config.selfplay_config()),
        "precision": precision,
    }
    clock, learning = Clock("cpu"), Clock(device)
    with LocalPool(SelfPlay, settings, plan) as pool:
        pool.set_weights(0, to_arrays(network))
        pool.play([config.boards] * len(plan.devices), 1, None, time.monotonic() + 1)  # warm up
        chunks = clock.time(pool.play, [10_000] * len(plan.devices), 0, None, time.monotonic() + seconds)
    records = GameRecords.concatenate([GameRecords.from_arrays(arrays) for worker in chunks for arrays in worker])
    replay, learner = Replay(config.replay_capacity), Learner(network, Chess(device=device), config.learner_config())
    replay.add(records)
    generator = np.random.default_rng(0)
    for warm in (True, False):
        learning = Clock(device)
        deadline = time.monotonic() + (1 if warm else seconds)
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


def bench_memory(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Resident size with MEMORY_BOARDS games in lockstep, whole histories with them, as the plies go by."""
    config = SelfPlayConfig(boards=MEMORY_BOARDS)
    network = actor_copy(build_network(preset(preset_name), device).eval(), dtype)
    actor = Actor(Chess(config.max_plies, device), network, TrainConfig().search_config(), config.discount)
    before = resident_bytes()
    lockstep = Lockstep(actor, config, 4 * MEMORY_BOARDS, 0)
    sizes, deadline = [], time.monotonic() + seconds
    while (time.monotonic() < deadline or len(sizes) < 2) and lockstep.active == MEMORY_BOARDS:
        lockstep.play_block()
        sizes.append(resident_bytes())
    mebi = 2.0**20
    return {
        "resident_mib": sizes[-1] / mebi,
        "of_that_lockstep_mib": (sizes[-1] - before) / mebi,
        "growth_mib": (sizes[-1] - sizes[len(sizes) // 2]) / mebi,
        "boards": MEMORY_BOARDS,
        "blocks": len(sizes),
    }


def resident_bytes() -> int:
    """What this process holds in memory now; where the system does not say, the most it has held."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
