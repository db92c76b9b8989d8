"""What every pool of workers promises, whoever runs the processes. Subclasses say how to make a
pool.
"""

import math
import os
import re
import signal
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from chessnn_colab.devices import WorkerPlan
from chessnn_colab.errors import WorkerError
from chessnn_colab.text import silent
from chessnn_colab.workers.pool import MAX_RESTARTS, Pool
from chessnn_colab.workers.protocol import worker_seed
from chessnn_colab.workers.shares import PlayCall

from .counts import full
from .toy_job import ToyJob

# What goes wrong in the pool that the tests share, by (seed of the call, share).
RAISES, NOT_NUMPY, SAYS, DIES_ONCE, DIES, LARGE = range(21, 27)
TROUBLE = {
    (RAISES, 0): "raises",
    (NOT_NUMPY, 0): "not numpy",
    (SAYS, 1): "says",
    (DIES_ONCE, 1): "dies once",
    (DIES, 0): "dies",
    (LARGE, 0): "large",
    (LARGE, 1): "large",
}


def games(worker: list[dict]) -> list[list[int]]:
    return [arrays["game"].tolist() for arrays in worker]


def share(index: int, count: int, seed: int) -> list[list[int]]:
    return [[game, worker_seed(seed, index) % 1000, 5] for game in range(count)]


def shares(counts: list[int], seed: int) -> list[list[list[int]]]:
    """The games of one call of play."""
    return [share(index, count, seed) for index, count in enumerate(counts)]


def played(pool, counts: list[int], seed: int, *more) -> list[list[list[int]]]:
    return [games(worker) for worker in pool.play(counts, seed, *more)]


def pid_of(worker: list[dict]) -> int:
    return int(worker[-1]["pid"][0])


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.fixture(scope="class")
def shared_pool(request, tmp_path_factory):
    mark = tmp_path_factory.mktemp("pool") / "died"
    with request.cls().pool_of(seconds=0.02, trouble=TROUBLE, mark=str(mark)) as pool:
        yield pool


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def pool(shared_pool, messages) -> Pool:
    """The shared pool, with both workers there and all former deaths forgiven."""
    while any(slot.deaths or not slot.ready for slot in shared_pool._slots):
        shared_pool.play([1, 1], 0)
    shared_pool._say = messages.append
    return shared_pool


class PoolContract:
    """`devices` are those of the class, since Ray knows no "left"."""

    devices = ("left", "right")
    kills = 6  # in a short run of the test that kills at random

    def make(self, factory, settings, plan, **more) -> Pool:
        raise NotImplementedError

    def pool_of(
        self, plan: WorkerPlan | None = None, messages: list | None = None, **settings
    ) -> Pool:
        say = messages.append if messages is not None else silent
        pool = self.make(
            ToyJob, settings, plan or WorkerPlan(self.devices, 1), timeout=60.0, on_message=say
        )
        pool.set_weights(4, {"add": np.array([1])})
        return pool

    def test_who_has_started_is_told_while_the_others_start(self):
        told = []
        plan = WorkerPlan(self.devices, 1)
        with self.make(ToyJob, {}, plan, on_start=told.append) as pool:
            assert told[0] == [""] * len(self.devices)
            assert all(set(started) <= {"", *pool.descriptions} for started in told)

    def test_games_come_back_as_numpy_in_order_and_progress_in_the_calling_thread(self, pool):
        """Share 1 is complete long before share 0."""
        updates = []
        assert pool.descriptions == [f"toy on {device}" for device in self.devices]
        received = pool.play(
            [8, 1], 7, lambda *update: updates.append((*update, threading.get_ident()))
        )
        assert [games(worker) for worker in received] == shares([8, 1], 7)
        assert all(
            isinstance(arrays["game"], np.ndarray) for worker in received for arrays in worker
        )
        assert {update[3] for update in updates} == {threading.get_ident()}
        assert (0, 8, 80) in {update[:3] for update in updates} and (1, 1, 10) in {
            update[:3] for update in updates
        }

    def test_a_deadline_brings_what_there_is(self, pool):
        received = pool.play([1000, 1000], 0, deadline=time.monotonic() + 0.5)
        assert all(1 <= len(worker) < 1000 for worker in received)

    def test_what_a_job_raises_arrives_with_its_traceback_and_the_others_games(
        self, pool, messages
    ):
        with pytest.raises(
            WorkerError, match=r"worker . \(toy on .*\) failed; its log is "
        ) as caught:
            pool.play([5, 5], RAISES)
        assert "ValueError: a bad move" in str(caught.value) and "toy_job.py" in str(caught.value)
        one, other = [games(worker) for worker in pool.call.received]
        assert pool.call.in_flight[0] is None is not pool.call.in_flight[1]
        assert (
            one == share(0, 1, RAISES)
            and other == share(1, 5, RAISES)[: len(other)]
            and len(other) > 1
        )
        assert played(pool, [1, 1], 3) == shares([1, 1], 3)
        assert messages == [], "the error has said it all"

    def test_only_numpy_goes_up_and_down(self, pool):
        with pytest.raises(WorkerError, match="expected numpy.ndarray"):
            pool.play([2, 2], NOT_NUMPY)
        with pytest.raises(WorkerError, match="expected numpy.ndarray"):
            pool.set_weights(1, {"add": [1]})

    def test_a_job_that_cannot_start_says_why(self):
        with pytest.raises(WorkerError, match="(?s)could not start.*no such chip"):
            self.pool_of(trouble={"start": "cannot start"})

    def test_what_a_job_says_reaches_the_caller(self, pool, messages):
        pool.play([2, 2], SAYS)
        assert len(messages) == 1 and messages[0].endswith(": half the boards")

    def test_a_killed_worker_is_reported_at_once_with_its_log_and_no_game_is_lost_or_doubled(
        self, pool, messages
    ):
        updates = []
        received = pool.play(
            [4, 4], DIES_ONCE, lambda *update: updates.append((*update, len(messages)))
        )
        assert [games(worker) for worker in received] == shares([4, 4], DIES_ONCE)
        left = [int(games_left["in flight"][0]) for games_left in pool.call.in_flight]
        assert left == [worker_seed(DIES_ONCE, index) % 1000 for index in (0, 1)]
        assert len({int(arrays["pid"][0]) for arrays in received[1]}) == 1, (
            "games of one process only"
        )
        again = updates.index((1, 0, 0, 0))  # the display starts the share again
        assert {said for *_, said in updates[again + 1 :]} == {1}, "before anything else comes in"
        (message,) = messages
        expected = (
            r"worker . \(toy on \w+\) .*(killed by signal 9|died).*; its log is (\S+).*"
            r"\. A new worker takes its place, and its 4 games are played again"
        )
        found = re.fullmatch(expected, message)
        assert found and "plays 4 games" in Path(found[2]).read_text(), message

    def test_a_worker_killed_between_calls_is_replaced_in_the_next(self, pool, messages):
        os.kill(pid_of(pool.play([1, 1], 0)[0]), signal.SIGKILL)
        assert played(pool, [2, 2], 1) == shares([2, 2], 1)
        assert len(messages) == 1 and "; its log is " in messages[0]

    def test_games_are_neither_lost_nor_doubled_under_kill_9_at_random(self):
        """A game is known by its share, its number in it, and the seed of the call. No worker is
        killed so often in a row that the pool gives up on it."""
        random, kills, call = np.random.default_rng(0), 0, 0
        with self.pool_of(seconds=0.002) as pool:
            while kills < full(self.kills, 100):
                call += 1
                at, before = int(random.integers(1, 40)), kills

                def kill(index, games_done, plies, at=at, before=before):
                    nonlocal kills
                    deaths = max(slot.deaths for slot in pool._slots)
                    if (
                        games_done >= at
                        and kills == before
                        and pool.call.received[index]
                        and deaths < MAX_RESTARTS
                    ):
                        kills += 1
                        os.kill(pid_of(pool.call.received[index]), signal.SIGKILL)

                received = pool.play([40, 30], call, kill)
                assert [games(worker) for worker in received] == shares([40, 30], call), (call, at)

    def test_a_hung_worker_is_replaced(self, pool, monkeypatch):
        """SIGSTOP, as from a debugger or a driver that hangs, perhaps in the middle of a
        message. A share lasts long enough that the worker cannot end it before it stops.
        """
        stopped, said = [], []

        def stop(index, games_done, plies):
            if games_done == 2 and not stopped:
                stopped.append(time.monotonic())
                os.kill(pid_of(pool.call.received[index]), signal.SIGSTOP)

        monkeypatch.setattr(pool, "timeout", 2.0)
        monkeypatch.setattr(pool, "_say", lambda text: said.append((text, time.monotonic())))
        received = pool.play([40, 40], LARGE, stop)
        assert [games(worker) for worker in received] == shares([40, 40], LARGE)
        message, at = said[0]
        assert "hung: it said nothing for 2 s; its log is " in message
        assert at - stopped[0] < full(math.inf, 2.0 + 1.0)

    def test_a_worker_without_a_share_may_be_silent(self, pool, monkeypatch):
        processes = [slot.process for slot in pool._slots]
        monkeypatch.setattr(pool, "timeout", 0.0)
        pool.wait()
        assert [slot.process for slot in pool._slots] == processes

    def test_a_share_that_always_kills_its_worker_ends_with_its_cause(self, pool, messages):
        with pytest.raises(WorkerError, match="killed by signal 9|died") as caught:
            pool.play([3, 3], DIES)
        assert f"{MAX_RESTARTS} restarts did not help" in str(caught.value)
        assert games(pool.call.received[1]) == share(1, 3, DIES)
        assert len(messages) == MAX_RESTARTS and all("; its log is " in text for text in messages)

    def test_a_share_whose_games_an_interrupt_swallowed_is_not_finished(self):
        pool = self.pool_of()
        receive = PlayCall.receive
        swallowed = []

        def interrupted(call, slot, share, kind, *body):
            if kind == "games" and not swallowed:
                swallowed.append(share)
                raise KeyboardInterrupt
            receive(call, slot, share, kind, *body)

        with mock.patch.object(PlayCall, "receive", interrupted):
            with pytest.raises(KeyboardInterrupt):
                pool.play([3, 3], 0)
            pool.stop()
        assert pool.call.in_flight[swallowed[0]] is None and pool.call.in_flight.count(None) < 2
        pool.close()

    def test_an_interrupt_of_the_caller_leaves_a_pool_that_closes_and_says_so(self):
        pool = self.pool_of(seconds=0.05)
        with pytest.raises(KeyboardInterrupt):
            pool.play([50, 50], 0, interrupt)
        assert pool.call.received[0] or pool.call.received[1]
        assert played(pool, [2, 2], 9) == shares([2, 2], 9), "and of this call alone"
        processes = [slot.process for slot in pool._slots]
        pool.close()
        pool.close()
        assert all(process.wait(0) for process in processes)
        with pytest.raises(WorkerError, match="closed"):
            pool.play([1, 1], 0)
