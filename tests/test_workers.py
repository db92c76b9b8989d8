"""The pool: numpy over pipes, deaths noticed, games neither lost nor doubled, nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.devices import WorkerPlan
from chessnn_colab.errors import WorkerError
from chessnn_colab.worker_process import exit_in_words
from chessnn_colab.workers import MAX_RESTARTS, InlinePool, LocalPool, worker_seed
from tests.toy_job import ToyJob

PLAN = WorkerPlan(("left", "right"), threads=1)


def pool_of(kind=LocalPool, plan: WorkerPlan = PLAN, **settings):
    pool = kind(ToyJob, settings, plan)
    pool.set_weights(4, {"add": np.array([1])})
    return pool


def games(worker: list[dict]) -> list[list[int]]:
    return [arrays["game"].tolist() for arrays in worker]


def share(index: int, count: int, seed: int) -> list[list[int]]:
    return [[game, worker_seed(seed, index) % 1000, 5] for game in range(count)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").is_dir() else True


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


@pytest.mark.parametrize("kind", [LocalPool, InlinePool])
def test_games_come_back_as_numpy_in_order_and_progress_in_the_calling_thread(kind):
    updates = []
    with pool_of(kind) as pool:
        assert pool.descriptions == ["toy on left", "toy on right"]
        received = pool.play([3, 2], 7, lambda *update: updates.append((*update, threading.get_ident())))
        assert [games(worker) for worker in received] == [share(0, 3, 7), share(1, 2, 7)]
        assert all(isinstance(arrays["game"], np.ndarray) for worker in received for arrays in worker)
        assert [games(worker) for worker in pool.play([1, 1], 8)] == [share(0, 1, 8), share(1, 1, 8)]
    assert {update[3] for update in updates} == {threading.get_ident()}
    assert (0, 3, 30) in {update[:3] for update in updates} and (1, 2, 20) in {update[:3] for update in updates}


def test_order_does_not_depend_on_arrival():
    with pool_of(plan=WorkerPlan(("left", "right", "third"), 1)) as pool:
        received = pool.play([8, 1, 4], 3)
    assert [games(worker) for worker in received] == [share(0, 8, 3), share(1, 1, 3), share(2, 4, 3)]


@pytest.mark.parametrize("kind", [LocalPool, InlinePool])
def test_a_deadline_brings_what_there_is(kind):
    with pool_of(kind, seconds=0.05) as pool:
        started = time.monotonic()
        received = pool.play([1000, 1000], 0, None, started + 1.0)
        assert time.monotonic() - started < 10
    assert all(1 <= len(worker) < 1000 for worker in received if worker) and received[0]


def test_what_a_job_raises_arrives_with_its_traceback_and_the_others_games():
    with pool_of(seconds=0.02, trouble={"left": "raises"}) as pool:
        with pytest.raises(WorkerError, match="worker 0 failed") as caught:
            pool.play([5, 5], 1)
    assert "ValueError: a bad move" in str(caught.value) and "toy_job.py" in str(caught.value)
    kept = games(caught.value.games[1])
    assert kept == share(1, 5, 1)[:len(kept)] and games(caught.value.games[0]) == share(0, 1, 1)


def test_a_job_that_sends_no_numpy_is_an_error():
    with pool_of(trouble={"left": "not numpy"}) as pool, pytest.raises(WorkerError, match="expected numpy.ndarray"):
        pool.play([2, 2], 0)


def test_a_job_that_cannot_start_says_why():
    with pytest.raises(WorkerError, match="(?s)could not start.*no such chip"):
        pool_of(trouble={"right": "cannot start"})


def test_a_killed_worker_is_replaced_and_no_game_lost_or_doubled(tmp_path):
    drops = []
    with pool_of(trouble={"right": "dies once"}, mark=str(tmp_path / "died")) as pool:
        received = pool.play([4, 4], 2, lambda *update: drops.append(update))
        assert [games(worker) for worker in received] == [share(0, 4, 2), share(1, 4, 2)]
        assert len({int(arrays["pid"][0]) for arrays in received[1]}) == 1, "one life's games only"
        assert (1, 0, 0) in drops, "the display starts the share again"
        assert [games(worker) for worker in pool.play([1, 1], 3)] == [share(0, 1, 3), share(1, 1, 3)]


def test_a_worker_killed_between_rounds_is_replaced_in_the_next():
    with pool_of() as pool:
        first = pool.play([1, 1], 0)
        os.kill(int(first[0][0]["pid"][0]), signal.SIGKILL)
        assert [games(worker) for worker in pool.play([2, 2], 1)] == [share(0, 2, 1), share(1, 2, 1)]


@pytest.mark.parametrize("trouble, words", [("dies", "killed by signal 9: probably out of memory"), ("exits", "exit code 7")])
def test_a_crash_loop_ends_with_its_cause_and_keeps_the_others_games(trouble, words):
    with pool_of(trouble={"left": trouble}) as pool:
        with pytest.raises(WorkerError, match=words) as caught:
            pool.play([3, 3], 5)
    assert str(MAX_RESTARTS) in str(caught.value)
    assert games(caught.value.games[1]) == share(1, 3, 5) and caught.value.games[0] == []


def test_workers_ignore_the_interrupt_that_a_notebook_sends_to_everyone():
    with pool_of(seconds=0.1) as pool:
        first = pool.play([1, 1], 0)
        pids = [int(worker[0]["pid"][0]) for worker in first]
        timer = threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGINT) for pid in pids])
        timer.start()
        received = pool.play([8, 8], 1)
        assert [int(worker[-1]["pid"][0]) for worker in received] == pids


def test_an_interrupt_of_the_caller_leaves_a_pool_that_closes():
    pool = pool_of(seconds=0.05)

    def interrupt(*_):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        pool.play([50, 50], 0, interrupt)
    assert pool.received[0] or pool.received[1]
    pids = [life.process.pid for life in pool._lives]
    started = time.monotonic()
    pool.close(), pool.close()
    assert time.monotonic() - started < 8
    assert not any(alive(pid) for pid in pids)


def test_messages_of_an_interrupted_round_are_not_taken_for_the_next():
    with pool_of(seconds=0.02) as pool:
        def interrupt(*_):
            raise KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            pool.play([10, 10], 0, interrupt)
        assert [games(worker) for worker in pool.play([2, 2], 9)] == [share(0, 2, 9), share(1, 2, 9)]


PARENT = """
import sys, numpy as np
from chessnn_colab.devices import WorkerPlan
from chessnn_colab.workers import LocalPool
from tests.toy_job import ToyJob
if __name__ == "__main__":
    pool = LocalPool(ToyJob, {"seconds": 0.1}, WorkerPlan(("one",), 1))
    pool.set_weights(0, {"add": np.array([0])})
    print(pool._lives[0].process.pid, flush=True)
    pool.play([10_000], 0)
"""


def test_a_worker_dies_with_its_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parent.parent)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": root})
    worker = int(parent.stdout.readline())
    assert alive(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone_within(worker, 2.0)


def test_only_numpy_goes_down():
    with pool_of() as pool, pytest.raises(WorkerError, match="expected numpy.ndarray"):
        pool.set_weights(1, {"add": [1]})


def test_a_closed_pool_says_so():
    pool = pool_of(plan=WorkerPlan(("left",), 1))
    pool.close()
    with pytest.raises(WorkerError, match="closed"):
        pool.play([1], 0)


@pytest.mark.parametrize("code, words", [(-9, "signal 9"), (-11, "signal 11"), (3, "exit code 3")])
def test_exit_codes_in_words(code, words):
    assert words in exit_in_words(code)
