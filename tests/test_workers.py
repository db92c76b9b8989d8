"""The pool of this machine: numpy over pipes, deaths noticed, games neither lost nor doubled, nothing left behind."""

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
from chessnn_colab.workers import pool as supervision
from chessnn_colab.workers import process as worker_process
from chessnn_colab.workers.local import InlinePool, LocalPool
from chessnn_colab.workers.pool import MAX_RESTARTS
from chessnn_colab.workers.process import exit_in_words

from .pool_contract import PoolContract, games, pid_of, share
from .toy_job import ToyJob


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


class TestLocalPool(PoolContract):
    def make(self, factory, settings, plan, **more):
        return LocalPool(factory, settings, plan, **more)

    def test_order_does_not_depend_on_arrival(self):
        with self.pool_of(plan=WorkerPlan(("left", "right", "third"), 1)) as pool:
            received = pool.play([8, 1, 4], 3)
        assert [games(worker) for worker in received] == [share(0, 8, 3), share(1, 1, 3), share(2, 4, 3)]

    def test_a_worker_that_always_dies_is_an_error_in_the_end(self):
        """The other one takes its games over, so no call fails at first; but nothing is swept under the rug."""
        messages = []
        with self.pool_of(messages=messages, trouble={"left": "dies"}, seconds=0.01) as pool:
            with pytest.raises(WorkerError, match="worker 0 was killed by signal 9: probably out of memory") as caught:
                for call in range(100):
                    received = pool.play([3, 40], call)
                    assert [games(worker) for worker in received] == [share(0, 3, call), share(1, 40, call)]
        assert "3 restarts did not help" in str(caught.value)
        assert len(messages) == MAX_RESTARTS and all("worker 0 was killed by signal 9" in text for text in messages)

    def test_a_worker_whose_device_does_not_work_stops_the_start(self):
        with pytest.raises(WorkerError, match="(?s)worker 1 could not start.*right does not work: no kernel image"):
            self.pool_of(trouble={"right": "broken"})

    def test_or_plays_on_the_cpu_where_that_was_asked_for(self):
        messages, plan = [], WorkerPlan(("left", "right"), 1, device_failure="cpu")
        with self.pool_of(plan=plan, messages=messages, trouble={"right": "broken"}) as pool:
            assert pool.descriptions == ["toy on left", "toy on cpu"]
            assert [games(worker) for worker in pool.play([1, 2], 0)] == [share(0, 1, 0), share(1, 2, 0)]
        (message,) = messages
        assert "cannot use right" in message and "no kernel image" in message and "plays on the CPU" in message

    def test_a_device_that_fails_in_the_middle_is_tried_again_in_a_new_process(self, tmp_path):
        messages = []
        with self.pool_of(messages=messages, trouble={1: "device once"}, mark=str(tmp_path / "failed")) as pool:
            received = pool.play([3, 3], 1)
        assert [games(worker) for worker in received] == [share(0, 3, 1), share(1, 3, 1)]
        assert "lost its device: RuntimeError: CUDA error: unspecified launch failure" in messages[0]

    def test_a_worker_that_cannot_come_back_leaves_the_work_to_the_others(self, monkeypatch):
        messages = []
        with self.pool_of(messages=messages, seconds=0.05) as pool:

            def no_more_processes(*_):
                raise OSError(11, "Resource temporarily unavailable")

            with monkeypatch.context() as patch:
                patch.setattr(pool, "_new_life", no_more_processes)
                os.kill(pool._workers[0].life.process.pid, signal.SIGKILL)
                assert [games(worker) for worker in pool.play([3, 3], 1)] == [share(0, 3, 1), share(1, 3, 1)]
            assert "Resource temporarily unavailable" in messages[-1] and "1 of 2 workers go on" in messages[-1]
            pids = {pid_of(worker) for worker in pool.play([20, 20], 2)}
            assert len(pids) == 2, "the next call begins with all again"
            with monkeypatch.context() as patch:
                patch.setattr(pool, "_new_life", no_more_processes)
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                for call in (3, 4):
                    with pytest.raises(WorkerError, match="no worker is left"):
                        pool.play([3, 3], call)

    def test_a_worker_that_dies_at_its_start_is_tried_again(self, tmp_path):
        messages = []
        with self.pool_of(messages=messages, trouble={"start": "dies once"}, mark=str(tmp_path / "died")) as pool:
            assert [games(worker) for worker in pool.play([1, 1], 0)] == [share(0, 1, 0), share(1, 1, 0)]
        assert messages and all("was killed by signal 9" in text for text in messages)

    def test_but_not_for_ever(self):
        with pytest.raises(WorkerError, match="signal 9: probably out of memory; 3 restarts did not help"):
            self.pool_of(trouble={"start": "dies"})

    def test_a_start_that_hangs_is_given_up(self, monkeypatch):
        monkeypatch.setattr(supervision, "READY_SECONDS", 0.05)
        with pytest.raises(WorkerError, match="worker . did not start within"):
            self.pool_of()

    def test_a_stop_that_is_not_heard_ends_the_call_all_the_same(self, monkeypatch):
        monkeypatch.setattr(supervision, "STOP_SECONDS", 1.0)
        with self.pool_of(seconds=0.02) as pool:

            def stop(index, games_done, plies):
                if (index, games_done) == (0, 2):
                    os.kill(pid_of(pool.received[0]), signal.SIGSTOP)

            started = time.monotonic()
            received = pool.play([1000, 1000], 1, stop, started + 0.5)
            assert time.monotonic() - started < 4
            assert games(received[0]) == share(0, 2, 1), "what it had handed over counts"

    def test_workers_ignore_the_interrupt_that_a_notebook_sends_to_everyone(self):
        with self.pool_of(seconds=0.1) as pool:
            pids = [pid_of(worker) for worker in pool.play([1, 1], 0)]
            timer = threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGINT) for pid in pids])
            timer.start()
            assert [pid_of(worker) for worker in pool.play([8, 8], 1)] == pids

    def test_each_worker_writes_a_log_and_an_error_quotes_its_end(self, tmp_path):
        logs = tmp_path / "logs"
        with LocalPool(ToyJob, {"trouble": {0: "exits"}}, WorkerPlan(("left", "right"), 1), logs=logs) as pool:
            pool.set_weights(1, {"add": np.array([1])})
            with pytest.raises(WorkerError, match="exit code 7") as caught:
                pool.play([3, 3], 5)
        assert sorted(os.listdir(logs)) == ["worker-0.log", "worker-1.log"]
        text = (logs / "worker-0.log").read_text()
        assert "started on toy on left, 1 threads" in text and "plays 3 games" in text
        assert "the end of " in str(caught.value) and "plays 3 games" in str(caught.value)

    def test_a_log_that_cannot_be_written_stops_nobody(self, tmp_path):
        (tmp_path / "logs").write_text("a file")
        with LocalPool(ToyJob, {}, WorkerPlan(("left",), 1), logs=tmp_path / "logs") as pool:
            pool.set_weights(4, {"add": np.array([1])})
            assert games(pool.play([2], 0)[0]) == share(0, 2, 0)

    def test_a_long_log_is_begun_anew(self, tmp_path):
        log = tmp_path / "worker-0.log"
        log.write_bytes(b"x" * (worker_process.MAX_LOG_BYTES + 1))
        LocalPool(ToyJob, {}, WorkerPlan(("left",), 1), logs=tmp_path).close()
        assert log.stat().st_size < 1000


def test_the_inline_pool_plays_the_same_games():
    messages = []
    with InlinePool(ToyJob, {"trouble": {1: "says"}}, WorkerPlan(("left", "right"), 1), messages.append) as pool:
        pool.set_weights(4, {"add": np.array([1])})
        assert [games(worker) for worker in pool.play([3, 2], 7)] == [share(0, 3, 7), share(1, 2, 7)]
        assert messages == ["worker 1: half the boards"]
        started = time.monotonic()
        assert len(pool.play([1000, 1000], 0, None, started - 1)[0]) == 1, "a deadline is heard between games"


PARENT = """
import sys, numpy as np
from chessnn_colab.devices import WorkerPlan
from chessnn_colab.workers.local import LocalPool
from tests.toy_job import ToyJob
if __name__ == "__main__":
    pool = LocalPool(ToyJob, {"seconds": 0.1}, WorkerPlan(("one",), 1))
    pool.set_weights(0, {"add": np.array([0])})
    print(pool._workers[0].life.process.pid, flush=True)
    pool.play([10_000], 0)
"""


def test_a_worker_dies_with_its_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parent.parent)
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    worker = int(parent.stdout.readline())
    assert alive(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone_within(worker, 2.0)


@pytest.mark.parametrize("code, words", [(-9, "signal 9"), (-11, "signal 11"), (3, "exit code 3")])
def test_exit_codes_in_words(code, words):
    assert words in exit_in_words(code)
