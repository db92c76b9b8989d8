"""What every pool of workers promises, whoever runs the processes. Subclasses say how to make a pool."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from chessnn_colab.devices import WorkerPlan
from chessnn_colab.errors import WorkerError
from chessnn_colab.workers.pool import MAX_RESTARTS
from chessnn_colab.workers.protocol import worker_seed

from .counts import full
from .toy_job import ToyJob


def games(worker: list[dict]) -> list[list[int]]:
    return [arrays["game"].tolist() for arrays in worker]


def share(index: int, count: int, seed: int) -> list[list[int]]:
    return [[game, worker_seed(seed, index) % 1000, 5] for game in range(count)]


def pid_of(worker: list[dict]) -> int:
    return int(worker[-1]["pid"][0])


def interrupt(*_):
    raise KeyboardInterrupt


class PoolContract:
    """`plan` has two devices: those of the class, since Ray knows no "left"."""

    devices = ("left", "right")
    kills = 6  # in a short run of the test that kills at random

    def make(self, factory, settings, plan, **more):
        raise NotImplementedError

    def pool_of(self, plan: WorkerPlan | None = None, messages: list | None = None, timeout: float = 60.0, **settings):
        say = messages.append if messages is not None else None
        pool = self.make(ToyJob, settings, plan or WorkerPlan(self.devices, 1), timeout=timeout, on_message=say)
        pool.set_weights(4, {"add": np.array([1])})
        return pool

    def test_games_come_back_as_numpy_in_order_and_progress_in_the_calling_thread(self):
        updates = []
        with self.pool_of() as pool:
            assert pool.descriptions == [f"toy on {device}" for device in self.devices]
            received = pool.play([3, 2], 7, lambda *update: updates.append((*update, threading.get_ident())))
            assert [games(worker) for worker in received] == [share(0, 3, 7), share(1, 2, 7)]
            assert all(isinstance(arrays["game"], np.ndarray) for worker in received for arrays in worker)
            assert [games(worker) for worker in pool.play([1, 1], 8)] == [share(0, 1, 8), share(1, 1, 8)]
        assert {update[3] for update in updates} == {threading.get_ident()}
        assert (0, 3, 30) in {update[:3] for update in updates} and (1, 2, 20) in {update[:3] for update in updates}

    def test_the_caller_may_work_while_the_workers_play(self):
        updates = []
        with self.pool_of(seconds=0.02) as pool:
            pool.begin([6, 6], 1, lambda *update: updates.append(update))
            assert updates == []
            deadline = time.monotonic() + 30
            while (0, 6, 60) not in updates or (1, 6, 60) not in updates:
                assert time.monotonic() < deadline
                pool.pump()
            assert [games(worker) for worker in pool.finish()] == [share(0, 6, 1), share(1, 6, 1)]

    def test_a_deadline_brings_what_there_is(self):
        with self.pool_of(seconds=0.05) as pool:
            started = time.monotonic()
            received = pool.play([1000, 1000], 0, None, started + 1.0)
            assert time.monotonic() - started < 10
        assert all(1 <= len(worker) < 1000 for worker in received if worker) and received[0]

    def test_what_a_job_raises_arrives_with_its_traceback_and_the_others_games(self):
        with self.pool_of(seconds=0.02, trouble={0: "raises"}) as pool:
            with pytest.raises(WorkerError, match="worker . failed") as caught:
                pool.play([5, 5], 1)
            assert "ValueError: a bad move" in str(caught.value) and "toy_job.py" in str(caught.value)
            one, other = [games(worker) for worker in caught.value.games]
            assert one == share(0, 1, 1) and other == share(1, 5, 1)[: len(other)] and len(other) > 1

    def test_a_job_that_sends_no_numpy_is_an_error(self):
        with self.pool_of(trouble={0: "not numpy"}) as pool:
            with pytest.raises(WorkerError, match="expected numpy.ndarray"):
                pool.play([2, 2], 0)

    def test_a_job_that_cannot_start_says_why(self):
        with pytest.raises(WorkerError, match="(?s)could not start.*no such chip"):
            self.pool_of(trouble={"start": "cannot start"})

    def test_what_a_job_says_reaches_the_caller(self):
        messages = []
        with self.pool_of(messages=messages, trouble={1: "says"}) as pool:
            pool.play([2, 2], 0)
            assert len(messages) == 1 and messages[0].endswith(": half the boards")
            pool.play([2, 2], 0)
            assert len(messages) == 2

    def test_a_killed_worker_is_replaced_and_no_game_lost_or_doubled(self, tmp_path):
        updates, messages = [], []
        with self.pool_of(messages=messages, trouble={1: "dies once"}, mark=str(tmp_path / "died")) as pool:
            received = pool.play([4, 4], 2, lambda *update: updates.append(update))
            assert [games(worker) for worker in received] == [share(0, 4, 2), share(1, 4, 2)]
            assert len({int(arrays["pid"][0]) for arrays in received[1]}) == 1, "one life's games only"
            assert (1, 0, 0) in updates, "the display starts the share again"
            assert len(messages) == 1 and "its 4 games are played again" in messages[0]
            assert [games(worker) for worker in pool.play([1, 1], 3)] == [share(0, 1, 3), share(1, 1, 3)]

    def test_a_worker_killed_between_calls_is_replaced_in_the_next(self):
        with self.pool_of() as pool:
            os.kill(pid_of(pool.play([1, 1], 0)[0]), signal.SIGKILL)
            assert [games(worker) for worker in pool.play([2, 2], 1)] == [share(0, 2, 1), share(1, 2, 1)]

    def test_an_iteration_completes_whatever_dies(self):
        """Every worker is killed once while it plays."""
        killed = set()

        def kill(index, games_done, plies):
            if games_done == 3 and index not in killed:
                killed.add(index)
                os.kill(pid_of(pool.received[index]), signal.SIGKILL)

        with self.pool_of(seconds=0.02) as pool:
            received = pool.play([8, 8], 2, kill)
            assert killed == {0, 1}
            assert [games(worker) for worker in received] == [share(0, 8, 2), share(1, 8, 2)]

    def test_games_are_neither_lost_nor_doubled_under_kill_9_at_random(self):
        """A game is known by its share, its number in it, and the seed of the call. No worker is killed so often in a
        row that the pool gives up on it."""
        random, kills, call = np.random.default_rng(0), 0, 0
        with self.pool_of(seconds=0.002) as pool:
            while kills < full(self.kills, 100):
                call += 1
                at = int(random.integers(1, 40))

                def kill(index, games_done, plies, left=[1]):
                    nonlocal kills
                    deaths = max(worker.deaths for worker in pool._workers)
                    if games_done >= at and left and pool.received[index] and deaths < MAX_RESTARTS:
                        left.pop()
                        kills += 1
                        os.kill(pid_of(pool.received[index]), signal.SIGKILL)

                received = pool.play([40, 30], call, kill)
                assert [games(worker) for worker in received] == [share(0, 40, call), share(1, 30, call)], (call, at)

    def test_a_hung_worker_is_replaced(self):
        """SIGSTOP, as from a debugger or a driver that hangs, perhaps in the middle of a message."""
        stopped = []

        def stop(index, games_done, plies):
            if games_done == 2 and not stopped:
                stopped.append(time.monotonic())
                os.kill(pid_of(pool.received[index]), signal.SIGSTOP)

        messages, ended = [], []
        with self.pool_of(timeout=2.0, seconds=0.02, big=300_000) as pool:
            pool._say = lambda text: (messages.append(text), ended.append(time.monotonic()))
            received = pool.play([4, 4], 2, stop)
            assert [games(worker) for worker in received] == [share(0, 4, 2), share(1, 4, 2)]
        assert "hung: it said nothing for 2 s" in messages[0]
        assert ended[0] - stopped[0] < 2.0 + 1.0

    @pytest.mark.parametrize("trouble, words", [("dies", "killed by signal 9|died"), ("exits", "exit code 7|died")])
    def test_a_share_that_always_kills_its_worker_ends_with_its_cause(self, trouble, words):
        with self.pool_of(trouble={0: trouble}) as pool:
            with pytest.raises(WorkerError, match=words) as caught:
                pool.play([3, 3], 5)
            assert f"{MAX_RESTARTS} restarts did not help" in str(caught.value)
            assert games(caught.value.games[1]) == share(1, 3, 5)

    def test_an_interrupt_of_the_caller_leaves_a_pool_that_closes(self):
        pool = self.pool_of(seconds=0.05)
        with pytest.raises(KeyboardInterrupt):
            pool.play([50, 50], 0, interrupt)
        assert pool.received[0] or pool.received[1]
        lives = [worker.life for worker in pool._workers]
        started = time.monotonic()
        pool.close(), pool.close()
        assert time.monotonic() - started < 8
        assert all(life.wait(0) for life in lives)

    def test_messages_of_an_interrupted_call_are_not_taken_for_the_next(self):
        with self.pool_of(seconds=0.02) as pool:
            with pytest.raises(KeyboardInterrupt):
                pool.play([1000, 1000], 0, interrupt)
            started = time.monotonic()
            assert [games(worker) for worker in pool.play([2, 2], 9)] == [share(0, 2, 9), share(1, 2, 9)]
            assert time.monotonic() - started < 10, "the interrupted shares are given up"

    def test_only_numpy_goes_down(self):
        with self.pool_of() as pool, pytest.raises(WorkerError, match="expected numpy.ndarray"):
            pool.set_weights(1, {"add": [1]})

    def test_a_closed_pool_says_so(self):
        pool = self.pool_of()
        pool.close()
        with pytest.raises(WorkerError, match="closed"):
            pool.play([1, 1], 0)
