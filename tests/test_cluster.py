"""The pool on Ray keeps the promises of every pool, on a cluster of a head and a node; and what
only clusters meet.
"""

import dataclasses
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.config import TrainConfig
from chessnn_colab.devices import WorkerPlan, inventory
from chessnn_colab.errors import ConfigError
from chessnn_colab.in_flight import Share
from chessnn_colab.learning import learn_here
from chessnn_colab.network import to_arrays
from chessnn_colab.ranks import Ranks
from chessnn_colab.selfplay import SelfPlay
from chessnn_colab.training import train

from .counts import only_in_full
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
from .rank_job import CONFIG, batches_of, new_learner, replay_of, told
from .small_run import tiny
from .toy_job import ToyJob

ray = pytest.importorskip("ray", reason="the extra [cluster] is not installed")
from ray.cluster_utils import Cluster  # noqa: E402

from chessnn_colab.workers import ray as cluster  # noqa: E402
from chessnn_colab.workers.ray import RayPool, plan_cluster  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def head():
    """A head without room for workers and without the services that these tests do not need; a node
    with room for two pools of two workers."""
    services = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    settings = {"prestart_worker_first_driver": False}
    cluster_ = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": settings, **services}
    )
    cluster_.add_node(num_cpus=4)
    ray.init(address=cluster_.address, log_to_driver=False)
    yield cluster_
    ray.shutdown()
    cluster_.shutdown()


@pytest.mark.usefixtures("head")
class TestRayPool(PoolContract):
    devices = ("cpu", "cpu")
    kills = 2

    def make(self, factory, settings, plan, **more):
        return RayPool(factory, settings, plan, **more)

    def test_a_worker_counts_as_much_as_other_programs(self, pool):
        """Ray's own niceness would let it stand still beside a busy one."""
        received = pool.play([1, 1], 0)
        assert {os.getpriority(os.PRIO_PROCESS, pid_of(worker)) for worker in received} == {0}


def test_a_machine_that_is_lost_is_a_dead_worker_and_the_call_completes(
    head, messages, monkeypatch
):
    """The node disappears without a word, as when its plug is pulled; the other machine plays its
    games too. A game is long enough that the lost worker cannot end its share before it dies.
    """
    monkeypatch.setattr(cluster, "SILENCE_SECONDS", 3.0)
    node, lost = head.add_node(num_cpus=2), []

    def lose(index, games_done, plies):
        if games_done == 2 and not lost:
            lost.append(node)
            head.remove_node(node, allow_graceful=False)

    plan = WorkerPlan(("cpu",) * 3, threads=2)  # two fit the other machine, one is on this
    with RayPool(ToyJob, {"seconds": 0.25}, plan, on_message=messages.append) as pool:
        pool.set_weights(4, {"add": np.array([1])})
        received = pool.play([20, 20, 20], 1, lose)
    assert [games(worker) for worker in received] == shares([20, 20, 20], 1)
    assert (
        len(messages) == 1
        and "; its log is " in messages[0]
        and "its 20 games are played again" in messages[0]
    )


def test_a_stopped_process_is_killed_though_it_hears_neither_the_pool_nor_ray(
    head, messages, monkeypatch
):
    """Its GPU would not be free before. No patience of the pool's is at an end here."""
    monkeypatch.setattr(cluster, "SILENCE_SECONDS", 3.0)
    stopped = []

    def stop(index, games_done, plies):
        if games_done == 2 and not stopped:
            stopped.append(pid_of(pool.call.received[index]))
            os.kill(stopped[0], signal.SIGSTOP)

    with RayPool(
        ToyJob, {"seconds": 0.05}, WorkerPlan(("cpu",) * 2, threads=2), on_message=messages.append
    ) as pool:
        pool.set_weights(4, {"add": np.array([1])})
        received = pool.play([20, 20], 1, stop)
        assert [games(worker) for worker in received] == shares([20, 20], 1)
    assert "did not answer for 3 s" in messages[0]
    deadline = time.monotonic() + 10
    while Path(f"/proc/{stopped[0]}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{stopped[0]}").exists()


@pytest.mark.parametrize(
    "cause", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=only_in_full)]
)
def test_actors_learn_together_and_one_that_is_lost_stops_nobody(head, messages, cause):
    learner = new_learner()
    settings = CONFIG.job_settings(learner.network.config)

    def lose(done):
        if done >= 2 and not messages:
            messages.append("now")
            os.kill(pool._slots[1].process._place[1], cause)

    plan = WorkerPlan(("cpu",) * 3, 1)
    with RayPool(SelfPlay, settings, plan, on_message=messages.append) as pool:
        pool.set_weights(0, to_arrays(learner.network))
        batches = batches_of(replay_of(pool.play([Share(200, {})] * 3, 0)), 30)
        losses = Ranks(pool, (0, 1, 2), messages.append).learn(learner, batches, lose)
    alone = learn_here(new_learner(), batches, False, lambda done: None)
    assert losses is not None, messages
    assert losses.shape == alone.shape and learner.updates == 30
    np.testing.assert_allclose(losses[:5], alone[:5], rtol=1e-3)
    _, lost, *later = told(messages)
    assert lost.startswith("worker 1 ") and lost.endswith("A new worker takes its place")
    assert later == [
        "The learning of this iteration begins again without the worker that is lost"
    ], "and so only one worker is replaced"


def test_gpus_are_rays_to_give_out(tmp_path):
    with pytest.raises(
        ConfigError, match=r"gpus=\(0, 1\) on a Ray cluster, where Ray gives out the GPUs"
    ):
        TrainConfig(run=str(tmp_path), pool="ray", gpus=(0, 1)).worker_plan("cpu", inventory())


@pytest.mark.parametrize("device, plays", [("cpu", "cpu"), ("auto", "cuda:0")])
def test_a_run_that_is_to_be_on_the_cpu_plays_there_too(tmp_path, monkeypatch, device, plays):
    monkeypatch.setattr(cluster, "join_cluster", lambda address: {"CPU": 4.0, "GPU": 2.0})
    config = TrainConfig(run=str(tmp_path), pool="ray", device=device)
    plan = config.worker_plan("cpu", inventory())
    assert set(plan.devices) == {plays}


def test_training_on_a_cluster(head, tmp_path):
    config = tiny(tmp_path / "run", pool="ray")
    reports = list(train(config))
    assert [report.positions_played for report in reports] == [132, 132]
    local = dataclasses.replace(config, run=str(tmp_path / "local"), pool="inline")
    for one, other in zip(reports, train(local)):
        assert (one.plies, one.policy_loss) == (other.plies, other.policy_loss), (
            "the games are those of any other pool"
        )


@pytest.mark.parametrize(
    "resources, settings, devices, threads, gpus",
    [
        ({"CPU": 4.0}, {}, ["cpu"] * 4, 1, 1),
        ({"CPU": 64.0, "GPU": 8.0}, {"workers": 16}, ["cuda:0"] * 16, 4, 2),
        ({"CPU": 64.0, "GPU": 8.0}, {"workers": 3}, ["cuda:0"] * 3, 8, 1),
        ({"CPU": 6.0, "GPU": 8.0}, {"selfplay_device": "cpu"}, ["cpu"] * 6, 1, 1),
        ({}, {}, ["cpu"], 1, 1),
    ],
)
def test_plans(resources, settings, devices, threads, gpus):
    plan = plan_cluster(resources, **settings)
    found = (list(plan.devices), plan.threads, plan.workers_per_gpu, plan.notes)
    assert found == (devices, threads, gpus, ())


def test_more_workers_than_the_cluster_has_room_for():
    plan = plan_cluster({"CPU": 2.0}, workers=9)
    assert len(plan.devices) == 2 and "the cluster has room for 2" in plan.notes[0]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"selfplay_device": "cuda"}, "the cluster has no GPU"),
        (
            {"selfplay_device": "cuda:3"},
            "selfplay_device='cuda:3' on a Ray cluster: expected one of cpu, cuda",
        ),
        (
            {"selfplay_device": "mps"},
            "selfplay_device='mps' on a Ray cluster: expected one of cpu, cuda",
        ),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(ConfigError, match=words):
        plan_cluster({"CPU": 2.0}, **settings)
