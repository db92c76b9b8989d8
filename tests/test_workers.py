"""The pool of this machine: numpy over pipes, deaths noticed, games neither lost nor doubled,
nothing left behind.
"""

import os
import re
import signal
import subprocess
import sys
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
from chessnn_colab.workers.shares import PlayCall

from .counts import full
from .pool_contract import (  # noqa: F401 (fixtures)
    PoolContract,
    games,
    messages,
    pid_of,
    played,
    pool,
    share,
    shared_pool,
    shares,
)
from .toy_job import ToyJob


@pytest.fixture(scope="module", autouse=True)
def logs(tmp_path_factory):
    TestLocalPool.logs = tmp_path_factory.mktemp("logs")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
        if Path("/proc").is_dir()
        else True
    )


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def pids_that_play(pool: LocalPool, seconds: float) -> set[int]:
    """The processes of a call in which every worker plays. One that has just been started may come
    too late for the first call: the others have played its games.
    """
    deadline = time.monotonic() + seconds
    pids: set[int] = set()
    while len(pids) < len(pool.descriptions) and time.monotonic() < deadline:
        pids = {pid_of(worker) for worker in pool.play([40, 40], 2)}
    return pids


class TestLocalPool(PoolContract):
    def make(self, factory, settings, plan, **more):
        return LocalPool(factory, settings, plan, logs=self.logs, **more)

    def test_a_worker_that_always_dies_is_an_error_in_the_end(self, messages):
        """The other one takes its games over, so no call fails at first; but nothing is swept under
        the rug.
        """
        killed = r"worker 0 \(toy on left\) was killed by signal 9 \(SIGKILL: probably out of memory\); its log is "
        pool = self.pool_of(messages=messages, trouble={"left": "dies"}, seconds=0.01)
        with pool, pytest.raises(WorkerError, match=killed) as caught:
            for call in range(100):
                received = pool.play([3, 40], call)
                assert [games(worker) for worker in received] == shares([3, 40], call)
        assert "3 restarts did not help" in str(caught.value)
        assert len(messages) == MAX_RESTARTS and all(re.match(killed, text) for text in messages)

    def test_a_worker_whose_device_does_not_work_stops_the_start(self):
        with pytest.raises(
            WorkerError,
            match="(?s)worker 0 .right. could not start.*right does not work: no kernel",
        ):
            self.pool_of(plan=WorkerPlan(("right",), 1), trouble={"right": "broken"})

    def test_a_device_that_fails_in_the_middle_is_tried_again_in_a_new_process(
        self, messages, tmp_path
    ):
        with self.pool_of(
            messages=messages, trouble={(1, 1): "device once"}, mark=str(tmp_path / "failed")
        ) as pool:
            received = pool.play([3, 3], 1)
        assert [games(worker) for worker in received] == shares([3, 3], 1)
        assert (
            "lost its device: RuntimeError: CUDA error: unspecified launch failure; its log is "
            in messages[0]
        )

    def test_a_worker_that_cannot_come_back_leaves_the_work_to_the_others(
        self, pool, messages, monkeypatch
    ):
        def no_more_processes(*_):
            raise OSError(11, "Resource temporarily unavailable")

        with monkeypatch.context() as patch:
            patch.setattr(pool, "_new_process", no_more_processes)
            os.kill(pool._slots[0].process.process.pid, signal.SIGKILL)
            assert played(pool, [3, 3], 1) == shares([3, 3], 1)
        assert "Resource temporarily unavailable; its log is " in messages[-1]
        assert "1 of 2 workers continue" in messages[-1]
        pids = pids_that_play(pool, seconds=60.0)
        assert len(pids) == 2, "the next call starts all again"
        with monkeypatch.context() as patch:
            patch.setattr(pool, "_new_process", no_more_processes)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            for call in (3, 4):
                with pytest.raises(WorkerError, match="no worker is left"):
                    pool.play([3, 3], call)

    def test_a_worker_whose_device_never_works_again_is_left_alone(self, messages):
        """So that no iteration of a long night loads torch once more, and says so."""

        def tried() -> int:
            return sum("could not start" in text for text in messages)

        with self.pool_of(messages=messages, trouble={}) as pool:
            pool._settings["trouble"]["left"] = "broken"
            os.kill(pool._slots[0].process.process.pid, signal.SIGKILL)
            deadline = time.monotonic() + 60
            while tried() < MAX_RESTARTS and time.monotonic() < deadline:
                assert played(pool, [3, 3], 1) == shares([3, 3], 1)
            for call in range(2, 5):
                assert pool._slots[0].process is None, "it is not tried once more"
                assert played(pool, [3, 3], call) == shares([3, 3], call)
        assert tried() == MAX_RESTARTS and "1 of 2 workers continue" in messages[-1]

    def test_a_worker_that_dies_at_its_start_is_tried_again(self, messages, tmp_path):
        with self.pool_of(
            messages=messages, trouble={"start": "dies once"}, mark=str(tmp_path / "died")
        ) as pool:
            assert played(pool, [1, 1], 0) == shares([1, 1], 0)
        assert messages and all("was killed by signal 9" in text for text in messages)

    def test_but_not_for_ever(self):
        with pytest.raises(
            WorkerError, match="SIGKILL: probably out of memory.*3 restarts did not help"
        ):
            self.pool_of(plan=WorkerPlan(("left",), 1), trouble={"start": "dies"})

    def test_a_start_that_hangs_is_given_up(self, monkeypatch):
        monkeypatch.setattr(supervision, "READY_SECONDS", 0.05)
        with pytest.raises(WorkerError, match=r"worker . \(\w+\) did not start within"):
            self.pool_of()

    def test_a_stop_that_is_not_heard_ends_the_call_all_the_same(self, pool, messages, monkeypatch):
        monkeypatch.setattr(PlayCall, "stop_seconds", 1.0)

        def stop(index, games_done, plies):
            if (index, games_done) == (0, 2):
                os.kill(pid_of(pool.call.received[0]), signal.SIGSTOP)

        received = pool.play([1000, 1000], 1, stop, time.monotonic() + 0.5)
        assert games(received[0]) == share(0, 2, 1), "what it had handed over counts"
        assert "did not stop within 1 s; its log is " in messages[0]

    @pytest.mark.parametrize("number", [signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)])
    def test_workers_ignore_what_a_notebook_or_a_closed_terminal_sends_to_everyone(
        self, pool, number
    ):
        pids = [pid_of(worker) for worker in pool.play([1, 1], 0)]

        def interrupt_them(index, games_done, plies):
            if (index, games_done) == (0, 2):
                for pid in pids:
                    os.kill(pid, number)

        assert [pid_of(worker) for worker in pool.play([20, 20], 1, interrupt_them)] == pids

    def test_each_worker_writes_a_log_and_an_error_quotes_its_end(self, tmp_path):
        logs = tmp_path / "logs"
        with LocalPool(
            ToyJob, {"trouble": {(5, 0): "exits"}}, WorkerPlan(("left", "right"), 1), logs=logs
        ) as pool:
            pool.set_weights(1, {"add": np.array([1])})
            with pytest.raises(WorkerError, match="exit code 7") as caught:
                pool.play([3, 3], 5)
        assert sorted(os.listdir(logs)) == ["worker-0.log", "worker-1.log"]
        text = (logs / "worker-0.log").read_text()
        assert "started on toy on left, 1 threads" in text and "plays 3 games" in text
        assert f"its log is {logs}/worker-" in str(caught.value)
        assert "the end of its log:" in str(caught.value) and "plays 3 games" in str(caught.value)

    def test_a_log_that_cannot_be_written_stops_nobody(self, tmp_path):
        (tmp_path / "logs").write_text("a file")
        with LocalPool(ToyJob, {}, WorkerPlan(("left",), 1), logs=tmp_path / "logs") as pool:
            pool.set_weights(4, {"add": np.array([1])})
            assert games(pool.play([2], 0)[0]) == share(0, 2, 0)


def test_the_inline_pool_plays_the_same_games(messages):
    with InlinePool(
        ToyJob, {"trouble": {(7, 1): "says"}}, WorkerPlan(("left", "right"), 1), messages.append
    ) as pool:
        pool.set_weights(4, {"add": np.array([1])})
        assert played(pool, [3, 2], 7) == shares([3, 2], 7)
        assert messages == ["worker 1: half the boards"]
        started = time.monotonic()
        assert len(pool.play([1000, 1000], 0, deadline=started - 1)[0]) == 1, (
            "a deadline is heard between games"
        )


PARENT = """
import numpy as np
from types import SimpleNamespace
from chessnn_colab.workers.local import LocalPool
from tests.toy_job import ToyJob
if __name__ == "__main__":
    plan = SimpleNamespace(devices=("one",), threads=1)  # a WorkerPlan, without waiting for the import of torch
    pool = LocalPool(ToyJob, {"seconds": 0.1}, plan)
    pool.set_weights(0, {"add": np.array([0])})
    print(pool._slots[0].process.process.pid, flush=True)
    pool.play([10_000], 0)
"""


def test_a_worker_dies_with_its_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parent.parent)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    worker = int(parent.stdout.readline())
    assert alive(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone_within(worker, full(30.0, 2.0))


def test_a_worker_ends_at_a_message_that_it_cannot_read():
    """From another machine's numpy, for example; else it would wait for good."""
    code = (
        "import multiprocessing as m, time; from chessnn_colab.workers.process import _Parent; "
        "ours, its = m.Pipe(); parent = _Parent(its); ours.send_bytes(b'cno_module\\nname\\n.'); "
        "time.sleep(60)"
    )
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 1 and "No module named 'no_module'" in done.stderr


@pytest.mark.parametrize(
    "error, blamed",
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), True),
        (RuntimeError("CUDA driver error: device not ready"), True),
        (RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`"), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("cuDNN error, says a stranger"), False),
    ],
)
def test_a_device_is_blamed_for_its_faults_and_not_for_the_jobs(error, blamed):
    assert worker_process.blames_device(error) == blamed


def test_a_script_without_a_main_guard_ends_with_an_error_however_large_the_settings(tmp_path):
    """A process that dies before it reads its settings does not keep the pool waiting."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from chessnn_colab.devices import WorkerPlan\n"
        "from chessnn_colab.workers.local import LocalPool\n"
        "from tests.toy_job import ToyJob\n"
        "LocalPool(ToyJob, {'mark': 'x' * 1_000_000}, WorkerPlan(('cpu',), 1))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, str(script)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1 and "WorkerError: worker 0 (cpu) " in ended.stderr
