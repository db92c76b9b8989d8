"""Workers at play: their pace, what sending games costs, and what learning takes beside them."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..budget import Budget
from ..devices import WorkerPlan, inventory, plan_workers
from ..in_flight import Share
from ..iteration import concatenate_worker_games, with_unfinished
from ..learner import Learner
from ..learning import Together, learn
from ..network import SpikingNetwork, to_arrays
from ..ranks import Ranks
from ..records import GameRecords
from ..replay import ReplayBuffer
from ..report import Progress
from ..selfplay import SelfPlay
from ..workers.local import LocalPool
from .setting import Figures, Setting

MANY_UPDATES = 1_000_000  # more than are made in the time
WARM_UP_SECONDS = 1.0


class Played(NamedTuple):
    """The games that the workers played in a time."""

    records: GameRecords
    seconds: float

    @property
    def moves_per_second(self) -> float:
        """Of all workers together."""
        return self.records.num_positions / self.seconds


@contextmanager
def started_workers(
    setting: Setting, plan: WorkerPlan, network: SpikingNetwork
) -> Iterator[tuple[LocalPool, Callable[[float], Played]]]:
    """Workers with the network's weights, warmed up; gives their pool and a function that has them
    play for so many seconds.
    """
    config = setting.config.resolve(setting.device, inventory(), plan)
    shares = [Share(sys.maxsize, {})] * len(plan.devices)
    with LocalPool(SelfPlay, config.job_settings(network.config), plan) as pool:
        pool.set_weights(0, to_arrays(network))

        def play(seconds: float, seed: int = 0) -> Played:
            started = time.monotonic()
            chunks = pool.play(shares, seed, deadline=started + seconds)
            ended = time.monotonic()
            in_flight = [games for games in pool.call.in_flight if games]
            records = concatenate_worker_games(chunks, setting.game)
            return Played(with_unfinished(records, in_flight, setting.game), ended - started)

        play(WARM_UP_SECONDS, seed=1)
        yield pool, play


def bench_workers(setting: Setting) -> Figures:
    """Moves per second of one worker and of the planned number, two at least; one torch thread each
    on the CPU.
    """
    machine = inventory()
    most = max(len(plan_workers(machine, setting.device).devices), 2)
    network = setting.network()
    rates = {}
    for count in (1, most):
        plan = plan_workers(machine, setting.device, workers=count)
        if setting.device == "cpu":
            plan = replace(plan, threads=1)
        with started_workers(setting, plan, network) as (_, play):
            rates[count] = play(setting.seconds).moves_per_second
    return {"workers": rates, "speedup": rates[most] / rates[1], "moves_per_second": rates[most]}


def bench_learner(setting: Setting) -> Figures:
    """Updates per second of one learner and of the workers that learn together (on a CPU all, with
    one thread each), and the faster one's share of an iteration with the default reuse.

    The planned workers play for `seconds`; then each way learns from those games for half as long.
    It includes how an iteration's learning begins and ends. GPUs learn together where a training
    would let them (TrainConfig.learners).
    """
    plan = plan_workers(inventory(), setting.device)
    network = setting.network()
    with started_workers(setting, plan, network) as (pool, play):
        played = play(setting.seconds)
        learning = Learning(setting, plan, network, played.records)
        ways: dict[str, Together | None] = {"updates/s alone": None}
        several = setting.device == "cpu" or setting.config.learners(setting.device, plan) > 1
        said = []
        if several and plan.devices[1:]:
            ways["updates/s together"] = Ranks(pool, range(len(plan.devices)), said.append).learn
        for way in ways.values():
            learning.updates_per_second(WARM_UP_SECONDS, way)
        rates = {
            name: learning.updates_per_second(setting.seconds / 2, way)
            for name, way in ways.items()
        }
    config = learning.config
    learned_per_second = config.batch_size * max(rates.values())
    to_playing = config.sample_reuse * played.moves_per_second / learned_per_second
    # Where they do not learn together, one learns in their place, and a sentence says why.
    together = {"updates/s together": said[-1]} if said else {}
    return {
        **rates,
        **together,
        "learner_share": to_playing / (to_playing + 1),
        "batch": config.batch_size,
        "precision": str(learning.learner.precision).removeprefix("torch."),
    }


class Learning:
    """A learner with games in its replay."""

    def __init__(
        self, setting: Setting, plan: WorkerPlan, network: SpikingNetwork, records: GameRecords
    ):
        self.config = setting.config.resolve(setting.device, inventory(), plan)
        self.learner = Learner(network, setting.game, self.config)
        self._replay = ReplayBuffer(records.num_positions)
        self._replay.add(records)
        self._generator = np.random.default_rng(0)

    def updates_per_second(self, seconds: float, together: Together | None = None) -> float:
        """The pace of an iteration of training: the first updates try out the number of threads."""
        started = time.monotonic()
        learned = learn(
            self.learner,
            self._replay,
            MANY_UPDATES,
            self.config.batch_size,
            Budget(seconds / 60, None),
            Progress(),
            self._generator,
            together=together,
        )
        return learned["updates"] / (time.monotonic() - started)
