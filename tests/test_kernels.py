"""Training in a real Jupyter kernel: interrupted, restarted, killed. No worker outlives it, and the
run can be resumed.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from .counts import full

psutil = pytest.importorskip("psutil")  # comes with ipykernel
manager = pytest.importorskip("jupyter_client.manager")

ROOT = Path(__file__).parents[1]
CELL = """
import os, sys
os.environ["CHESSNN_UI"] = "text"
sys.path.insert(0, {root!r})
from chessnn_colab.config import TrainConfig
from chessnn_colab.training import train
from chessnn_colab.views.progress import make_progress
config = TrainConfig(run={run!r}, channels=8, blocks=1, boards=8, positions_per_iteration={positions}, max_plies=160,
                     batch_size=32, replay_capacity=400000, device="cpu", workers=2, iterations={iterations},
                     checkpoint_every=0)
for report in train(config, make_progress()):
    pass
"""
SETTINGS = {"positions": 320_000, "iterations": 5}


class Kernel:
    """A kernel and what it prints."""

    def __init__(self, folder: Path):
        self.manager = manager.KernelManager()
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, run: Path, **settings) -> None:
        self.client.execute(CELL.format(root=str(ROOT), run=str(run), **{**SETTINGS, **settings}))

    def read_until(self, words: str, seconds: float = 90.0) -> str:
        """The text printed up to `words`; "idle" is the end of the cell."""
        text, deadline = "", time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=seconds)
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                text += content["text"]
            assert kind != "error", content["traceback"]
            if words in text or (kind == "status" and words == content["execution_state"]):
                return text
        raise AssertionError(f"{words!r} did not come: {text}")

    def children(self) -> list:
        """Its worker processes; multiprocessing's own little helper stays as long as the kernel
        does.
        """
        found = psutil.Process(self.manager.provisioner.pid).children(recursive=True)
        return [process for process in found if "spawn_main" in " ".join(process.cmdline())]

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One kernel for all tests; the last one kills it."""
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.close()


def running(process) -> bool:
    try:
        return (
            process.status() != psutil.STATUS_ZOMBIE
        )  # a zombie has ended, whether or not anybody asks for it
    except psutil.NoSuchProcess:
        return False


def outlive(workers: list, seconds: float) -> list:
    """The workers that still run after `seconds`."""
    return [
        process for process in psutil.wait_procs(workers, timeout=seconds)[1] if running(process)
    ]


def workers_at_play(kernel: Kernel, run: Path) -> list:
    kernel.run(run)
    kernel.read_until("Positions per worker")
    workers = kernel.children()
    assert len(workers) == 2
    return workers


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [0.0, 1.0][: full(1, 2)])
def test_an_interrupted_cell_leaves_no_child_and_the_next_one_goes_on(kernel, tmp_path, after):
    run = tmp_path / "run"
    workers = workers_at_play(kernel, run)
    time.sleep(after)
    kernel.manager.interrupt_kernel()
    interrupted = time.monotonic()
    text = kernel.read_until("idle")
    assert "Interrupted: everything up to iteration 0 is kept" in text
    assert (
        not outlive(workers, max(interrupted + 5 - time.monotonic(), 0)) and not kernel.children()
    )
    kernel.run(run, positions=160, iterations=1)
    text = kernel.read_until("idle")
    assert "Resuming" in text and "Iteration 1 |" in text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["restart", "kill -9"])
def test_no_worker_outlives_its_kernel(kernel, tmp_path, how):
    workers = workers_at_play(kernel, tmp_path / "run")
    if how == "restart":
        kernel.manager.restart_kernel(now=True)
    else:
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
    assert not outlive(workers, 2.0)
    if how == "restart":
        kernel.client.wait_for_ready(timeout=60)
