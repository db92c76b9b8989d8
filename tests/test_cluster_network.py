"""A cluster across a network: two hosts in network namespaces, each with its own address. Then
their link goes down.

Needs Linux, root and iproute2; elsewhere it is skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from .counts import only_in_full

pytest.importorskip("ray", reason="the extra [cluster] is not installed")

ROOT = Path(__file__).parents[1]
HEAD, NODE = "10.77.0.1", "10.77.0.2"
RAY = [sys.executable, "-m", "ray.scripts.scripts"]

# What these tests do not need: the dashboard, the log monitor, the autoscaler, statistics, workers
# that wait for tasks.
LEAN = [
    "--include-dashboard=false",
    "--include-log-monitor=false",
    "--no-monitor",
    "--disable-usage-stats",
]

DRIVER = """
import json, subprocess, sys
from types import SimpleNamespace
import numpy as np
from chessnn_colab.workers import ray as cluster
from tests.toy_job import ToyJob
cluster.SILENCE_SECONDS = 5.0
messages, cut = [], []

def cut_the_link(share, games, plies):
    if games == 3 and not cut:
        cut.append(games)
        subprocess.run(["ip", "link", "set", "link0", "down"], check=True)

def source():
    import chessnn_colab
    return chessnn_colab.__file__

plan = SimpleNamespace(devices=("cpu", "cpu"), threads=1)  # a WorkerPlan, without waiting for the import of torch
pool = cluster.RayPool(ToyJob, {"seconds": 0.2}, plan, address=sys.argv[1], on_message=messages.append)
pool.set_weights(4, {"add": np.array([1])})
said = {"places": sorted(node["NodeManagerAddress"] for node in cluster.ray.nodes() if node["Alive"])}
said["source"] = cluster.ray.get(cluster.ray.remote(source).options(num_cpus=0).remote())
said["before"] = [len(share) for share in pool.play([4, 4], 1)]
said["after"] = [len(share) for share in pool.play([10, 10], 2, cut_the_link)]
said["messages"] = messages
with open(sys.argv[2], "w") as file:
    json.dump(said, file)
pool.close()
"""

# Both hosts learn together; then their link goes down, and this process is to learn itself.
LEARNING_DRIVER = """
import json, subprocess, sys
import numpy as np
from chessnn_colab.devices import WorkerPlan
from chessnn_colab.in_flight import Share
from chessnn_colab.learning import learn_here
from chessnn_colab.network import to_arrays
from chessnn_colab.ranks import Ranks
from chessnn_colab.selfplay import SelfPlay
from chessnn_colab.workers import ray as cluster
from tests.rank_job import CONFIG, batches_of, new_learner, replay_of
cluster.SILENCE_SECONDS = 5.0
learner, messages, cut = new_learner(), [], []
settings = CONFIG.job_settings(learner.network.config)
pool = cluster.RayPool(SelfPlay, settings, WorkerPlan(("cpu",) * 2, 1), address=sys.argv[1], on_message=messages.append)
pool.set_weights(0, to_arrays(learner.network))
replay = replay_of(pool.play([Share(200, {})] * 2, 0))
places = {slot.process._place[0] for slot in pool._slots}
ranks = Ranks(pool, (0, 1), messages.append)
losses = ranks.learn(learner, batches_of(replay, 30), lambda done: None)
alone = learn_here(new_learner(), batches_of(replay, 30), False, lambda done: None).numpy()
said = {"places": len(places), "updates": learner.updates, "messages": list(messages)}
said["losses"], said["alone"] = losses.tolist(), alone.tolist()

def cut_the_link(done):
    if done >= 2 and not cut:
        cut.append(done)
        subprocess.run(["ip", "link", "set", "link0", "down"], check=True)

weights = to_arrays(learner.network)
said["after"] = ranks.learn(learner, batches_of(replay, 400), cut_the_link)
said["as it was"] = all(np.array_equal(array, weights[name]) for name, array in to_arrays(learner.network).items())
said["later"] = messages[len(said["messages"]):]
with open(sys.argv[2], "w") as file:
    json.dump(said, file)
pool.close()
"""


def in_host(host: str, *command: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["ip", "netns", "exec", host, *command], capture_output=True, text=True, timeout=120, **more
    )


@pytest.fixture
def hosts(tmp_path):
    """Two hosts and a link between them; skips where the system does not allow them."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs Linux, root and iproute2")
    names = [f"chessnn-{end}-{os.getpid()}" for end in ("head", "node")]
    try:
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
                pytest.skip("this system allows no network namespaces")
        link = f"ip link add link0 netns {names[0]} type veth peer name link1 netns {names[1]}"
        subprocess.run(link.split(), check=True)
        for name, link, address in zip(names, ("link0", "link1"), (HEAD, NODE)):
            in_host(name, "ip", "address", "add", f"{address}/24", "dev", link)
            in_host(name, "ip", "link", "set", link, "up")
            in_host(name, "ip", "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:  # Ray's processes, and then the names
            pids = subprocess.run(
                ["ip", "netns", "pids", name], capture_output=True, text=True
            ).stdout.split()
            subprocess.run(["kill", "-9", *pids], capture_output=True)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.fixture
def environment(hosts):
    """That of a driver on the first host; Ray runs on both, with a core each."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "a" * 32,
    }
    environment["RAY_prestart_worker_first_driver"] = "0"
    # Ray's sockets are in it, and their paths have a limit. A process that has been killed may
    # still write there.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as short:
        start = [*RAY, "start", "--num-cpus=1"]
        head = [
            *start,
            "--head",
            f"--node-ip-address={HEAD}",
            "--port=6391",
            f"--temp-dir={short}",
            *LEAN,
        ]
        node = [*start, f"--address={HEAD}:6391", f"--node-ip-address={NODE}"]
        for host, command, link in zip(hosts, (head, node), ("link0", "link1")):
            # gloo would take the address of the machine's name, which no namespace has
            done = in_host(host, *command, env={**environment, "GLOO_SOCKET_IFNAME": link})
            assert done.returncode == 0, done
        yield environment


@pytest.mark.timeout(300)
@only_in_full
def test_two_hosts_play_together_and_one_goes_on_when_the_link_goes_down(
    hosts, environment, tmp_path
):
    said = driven(DRIVER, hosts[0], tmp_path, environment)
    assert said["places"] == [HEAD, NODE]
    assert "_ray_pkg_" in said["source"], "the package is sent along"
    assert said["before"] == [4, 4] and said["after"] == [10, 10]
    assert len(said["messages"]) == 1 and "its 10 games are played again" in said["messages"][0]
    assert f" on {NODE}. A new worker takes its place" in said["messages"][0], (
        "and its log is on that host"
    )


@pytest.mark.timeout(300)
@only_in_full
def test_two_hosts_learn_together_and_one_is_left_when_the_link_goes_down(
    hosts, environment, tmp_path
):
    said = driven(LEARNING_DRIVER, hosts[0], tmp_path, environment)
    assert (said["places"], said["updates"], said["messages"]) == (2, 30, [])
    np.testing.assert_allclose(said["losses"][:5], said["alone"][:5], rtol=1e-3)
    assert said["after"] is None and said["as it was"], "this process learns, from where it began"
    assert any("begins again without the worker that is lost" in text for text in said["later"])


def driven(driver: str, host: str, tmp_path: Path, environment: dict) -> dict:
    """What the driver on `host` has to say."""
    script = tmp_path / "driver.py"
    script.write_text(driver)
    command = [sys.executable, str(script), f"{HEAD}:6391", str(tmp_path / "said.json")]
    done = in_host(host, *command, cwd=str(tmp_path), env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((tmp_path / "said.json").read_text())
