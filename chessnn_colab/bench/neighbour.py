"""What a busy neighbour costs: the pace of each part beside one and beside two processes that never rest.

Idle and busy turns alternate in one run, and every ratio compares turns of one round, so that a machine's slow hour
touches both sides.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..arena.match import play_match
from ..arena.players import NetworkPlayer
from ..cpu import ThreadTrial, use_threads
from ..devices import inventory, plan_workers
from ..games.registry import make_game
from ..learner import Learner, LearnerConfig
from ..learning import most_threads
from ..network import build_network, to_arrays
from ..records import GameRecords
from ..replay import Replay
from ..rounds import joined
from ..selfplay import SelfPlay
from ..workers.local import LocalPool
from .clock import Clock, Setting
from .compare import rules_clocks

ROUNDS = 5
MATCH_GAMES, MATCH_PLIES = 32, 4
BEGUN_GAMES = 512  # given to each worker; the turn ends before they do
SUFFIXES = {1: "", 2: "_two"}  # number of neighbours -> what its figures are called

Pace = Callable[[float], float]  # seconds to measure -> work per second


def bench_neighbour(setting: Setting) -> dict[str, Any]:
    """The pace of rules, self-play on workers, learner and a match: idle, and as ratios beside one and two neighbours.

    `NAME_ratio` is beside one, `NAME_ratio_two` beside two: medians over ROUNDS rounds. A neighbour is a process that
    keeps one core busy.
    """
    machine = inventory()
    plan = plan_workers(machine, setting.device)
    config = setting.config.for_device(setting.device, machine, plan)
    network = build_network(setting.network_config, setting.device)
    with LocalPool(SelfPlay, config.job_settings(network.config), plan) as pool:
        pool.set_weights(0, to_arrays(network))
        games = [BEGUN_GAMES] * len(plan.devices)
        records = joined(pool.play(games, 1, None, time.monotonic() + 2), setting.game)
        paces: dict[str, Pace] = {
            "rules": lambda seconds: _rules_pace(setting, seconds),
            "self_play": lambda seconds: _self_play_pace(setting, pool, games, seconds),
            "learner": _learner_pace(setting, network, records, config.batch_size),
            "match": lambda seconds: _match_pace(setting),
        }
        return _alternated(paces, setting.seconds / (3 * ROUNDS))


def _alternated(paces: dict[str, Pace], seconds: float) -> dict[str, Any]:
    """Idle paces and the ratios, each turn of each part some `seconds` long."""
    found: dict[str, list[list[float]]] = {name: [] for name in paces}
    for _ in range(ROUNDS):
        turns = []
        for count in (0, *SUFFIXES):
            with neighbours(count):
                turns.append({name: pace(seconds) for name, pace in paces.items()})
        for name, rounds in found.items():
            rounds.append([turn[name] for turn in turns])
    figures: dict[str, Any] = {}
    for name, rounds in found.items():
        figures[f"{name}_per_second"] = statistics.median(idle for idle, *_ in rounds)
        for column, suffix in SUFFIXES.items():
            ratios = [turns[column] / turns[0] for turns in rounds]
            figures[f"{name}_ratio{suffix}"] = statistics.median(ratios)
            figures[f"{name}_ratio{suffix}_range"] = [min(ratios), max(ratios)]
    return {**figures, "rounds": ROUNDS}


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """`count` processes that keep a core busy each, until the block ends."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        if processes:
            time.sleep(0.2)  # they have started
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _rules_pace(setting: Setting, seconds: float) -> float:
    mask, step = rules_clocks(setting.game, seconds)
    return mask.count / (mask.seconds + step.seconds)


def _self_play_pace(setting: Setting, pool: LocalPool, games: list[int], seconds: float) -> float:
    started = time.monotonic()
    records = joined(pool.play(games, 0, None, started + seconds), setting.game)
    return records.num_positions / (time.monotonic() - started)


def _learner_pace(setting: Setting, network: Any, records: GameRecords, batch_size: int) -> Pace:
    replay, generator = Replay(records.num_positions), np.random.default_rng(0)
    replay.add(records)
    learner = Learner(network, setting.game, setting.config.part(LearnerConfig))

    def pace(seconds: float) -> float:
        """As a round of training learns: the first updates try out the number of threads."""
        clock, deadline = Clock(setting.device), time.monotonic() + seconds
        threads = ThreadTrial(most_threads(learner, batch_size))
        while time.monotonic() < deadline or not clock.count:
            batch, before = replay.sample(batch_size, generator), clock.seconds
            with use_threads(threads.count):
                clock.time(learner.update, batch, None, generator, count=1)
            if learner.device.type == "cpu":
                threads.took(clock.seconds - before)
        return clock.rate

    return pace


def _match_pace(setting: Setting) -> float:
    game = make_game(setting.config.game, MATCH_PLIES, setting.device)
    player = NetworkPlayer(game, build_network(setting.network_config, setting.device))
    started = time.monotonic()
    result = play_match(game, player, player, MATCH_GAMES)
    return sum(len(played.actions) for played in result.played) / (time.monotonic() - started)
