"""Many short iterations: memory and file descriptors stay where they are, here and in the
workers.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .counts import only_in_full

psutil = pytest.importorskip("psutil")
ROOT = Path(__file__).parents[1]

EVERY = 4  # iterations between two looks

SCRIPT = f"""
import ctypes, gc, json, sys
import psutil
from chessnn_colab.config import TrainConfig
from chessnn_colab.training import train

EVERY = {EVERY}

def measured():
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):  # what was freed goes back: RSS then counts what is still held
        ctypes.CDLL(None).malloc_trim(0)
    own = psutil.Process()
    workers = [child for child in own.children() if "spawn_main" in " ".join(child.cmdline())]
    handles = sum(process.num_fds() for process in (own, *workers))
    return own.memory_info().rss, sum(worker.memory_info().rss for worker in workers), handles, own.num_threads()

if __name__ == "__main__":
    config = TrainConfig(run=sys.argv[1], iterations=int(sys.argv[2]), channels=8, blocks=1, boards=8, workers=2,
                         positions_per_iteration=208, max_plies=12, batch_size=32, replay_capacity=1000, device="cpu",
                         candidates=2, survivors=1, checkpoint_every=0)
    print(json.dumps([measured() for report in train(config) if report.iteration % EVERY == 0]))
"""


@pytest.mark.skipif(not hasattr(psutil.Process, "num_fds"), reason="counts file descriptors")
@pytest.mark.timeout(900)
@only_in_full
def test_nothing_leaks(tmp_path):
    """RSS grows by less than 1 MB in 100 iterations, by a straight line through all but the first
    fifth.
    """
    iterations = 300
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run"), str(iterations)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    rows = np.array(json.loads(done.stdout.splitlines()[-1]))[iterations // EVERY // 5 :]
    slopes = np.polyfit(EVERY * np.arange(len(rows)), rows[:, :2] / 2**20, 1)[0] * 100
    print(
        f"\nmeasured: {slopes[0]:.2f} MB per 100 iterations here, {slopes[1]:.2f} in two workers, descriptors flat, "
        f"{iterations} iterations"
    )
    # Over few iterations the workers' first steps count for much: nothing trims their memory.
    assert slopes[0] < 1 and slopes[1] < 1, slopes
    assert (rows[:, 2] == rows[0, 2]).all() and (rows[:, 3] == rows[0, 3]).all(), rows[:, 2:]
