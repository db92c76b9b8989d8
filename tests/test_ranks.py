"""Workers that learn together: their steps are those of one learner, whatever happens to a worker."""

import dataclasses
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from chessnn_colab import ranks as ranks_module
from chessnn_colab.config import TrainConfig
from chessnn_colab.data_parallel import Group, process_group, slice_of, sum_over_ranks
from chessnn_colab.device_probe import batch_of
from chessnn_colab.devices import WorkerPlan
from chessnn_colab.games.base import start_positions
from chessnn_colab.in_flight import Share
from chessnn_colab.learner import Learner
from chessnn_colab.learner_state import learner_state, optimizer_arrays
from chessnn_colab.learning import Batches, learn_here
from chessnn_colab.network import to_arrays
from chessnn_colab.plan import made_up_machine, plan_run
from chessnn_colab.ranks import Ranks, new_store
from chessnn_colab.replay import ReplayBuffer
from chessnn_colab.report import Progress, Report
from chessnn_colab.selfplay import SelfPlay
from chessnn_colab.training import train
from chessnn_colab.workers.local import LocalPool
from chessnn_colab.workers.shares import LearnCall

from .rank_job import (
    CONFIG,
    RECORDS,
    RankJob,
    batches_of,
    learned_by_rank,
    new_learner,
    replay_of,
    told,
)

WORKERS = (0, 1, 2)


def nothing(done: int) -> None:
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def shared_pool(folder):
    settings = CONFIG.job_settings(new_learner().network.config)
    plan = WorkerPlan(("cpu",) * len(WORKERS), 1)
    with LocalPool(RankJob, {**settings, "folder": str(folder)}, plan, logs=folder) as pool:
        pool.set_weights(0, to_arrays(new_learner().network))
        yield pool


@pytest.fixture(scope="module")
def replay(shared_pool) -> ReplayBuffer:
    return replay_of(shared_pool.play([Share(200, {})] * 3, 0))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def pool(shared_pool, said, monkeypatch) -> LocalPool:
    """All workers are there."""
    while len(shared_pool.ready_slots(WORKERS)) < len(WORKERS):
        shared_pool.wait()
    monkeypatch.setattr(shared_pool, "_say", said.append)
    return shared_pool


@pytest.fixture
def ranks(pool, said):
    return Ranks(pool, WORKERS, said.append)


@pytest.fixture
def batches(replay) -> Batches:
    return batches_of(replay, 5)


def at_update(number: int, act: Callable[[], None]) -> Callable[[int], None]:
    """Calls `act` once, when so many updates are made."""
    left = [act]

    def on_update(done: int) -> None:
        if done >= number and left:
            left.pop()()

    return on_update


def gradients(learner: Learner) -> np.ndarray:
    """Of the only update made, of which AdamW's first moment is a tenth."""
    moments = optimizer_arrays(learner.optimizer)
    return np.concatenate([moments[name].ravel() for name in moments if name.endswith("exp_avg")])


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_make_the_steps_of_one_learner(ranks, replay, batches, folder, count):
    """Three have slices of 10, 11 and 11 positions."""
    ranks._workers = WORKERS[:count]
    one, several = new_learner(), new_learner()
    losses = learn_here(one, batches_of(replay, 1), False, nothing)
    found = ranks.learn(several, batches_of(replay, 1), nothing)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    difference = np.linalg.norm(gradients(one) - gradients(several))
    assert difference < 1e-5 * np.linalg.norm(gradients(one))
    for name, array in to_arrays(one.network).items():
        if "running" in name:
            np.testing.assert_allclose(
                to_arrays(several.network)[name], array, rtol=0.05, atol=0.01
            )

    updates: list[int] = []
    ranks.learn(several, batches, updates.append)
    assert several.updates == 6 and updates[-1] == 5 and updates == sorted(updates)
    own = to_arrays(several.network)
    for rank in range(count):
        with np.load(folder / f"rank-{rank}.npz") as weights:
            assert all(np.array_equal(weights[name], own[name]) for name in own)


@pytest.mark.parametrize(
    "settings, tolerance",
    [
        ({"spike_penalty": 3.0}, 1e-5),
        ({"precision": "bfloat16"}, 0.01),
        ({"precision": "float16"}, 0.01),
    ],
)
def test_ranks_learn_as_one_does_with_a_price_and_in_half_precision(
    ranks, replay, settings, tolerance
):
    """In half precision a slice's gradients are rounded before they are summed. Of 192 positions
    three pay for the spikes of all, one of each slice.
    """
    one, several, plain = new_learner(**settings), new_learner(**settings), new_learner()
    losses = learn_here(one, batches_of(replay, 1, 192), False, nothing)
    learn_here(plain, batches_of(replay, 1, 192), False, nothing)
    found = ranks.learn(several, batches_of(replay, 1, 192), nothing)
    np.testing.assert_allclose(found, losses, rtol=tolerance)
    assert one.updates == several.updates == 1, "no gradient was too large"
    size = np.linalg.norm(gradients(one))
    assert np.linalg.norm(gradients(one) - gradients(several)) < tolerance * size
    assert np.linalg.norm(gradients(several) - gradients(plain)) > 1e-5 * size


@pytest.mark.parametrize(
    "cause, update", [(signal.SIGKILL, 2), (signal.SIGSTOP, 2), (signal.SIGSTOP, 0)]
)
def test_without_a_lost_rank_the_others_begin_again(
    pool, ranks, replay, said, monkeypatch, cause, update
):
    batches = batches_of(replay, 30)
    if cause == signal.SIGSTOP:
        ranks.learn(new_learner(), batches, nothing)  # the first time a worker is slow
        ranks.seconds = 5.0
        # For one that began to wait for the stopped one later than the other, on a busy machine.
        monkeypatch.setattr(LearnCall, "stop_seconds", 20.0)
    pid = pool._slots[1].process.process.pid
    lose = at_update(update, lambda: os.kill(pid, cause))
    learner = new_learner()
    losses = ranks.learn(learner, batches, lose)
    alone = learn_here(new_learner(), batches, False, nothing)
    assert losses.shape == alone.shape and learner.updates == 30
    np.testing.assert_allclose(losses[:5], alone[:5], rtol=1e-3)
    assert [slot.share for slot in pool._slots] == [None] * 3
    assert "A new worker takes its place" in said[0]
    assert told(said)[1:] == [
        "The learning of this iteration begins again without the worker that is lost"
    ]


def test_an_interrupt_leaves_workers_that_play(pool, ranks, batches, said):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ranks.learn(new_learner(), batches, at_update(2, interrupt))
    assert all(pool.play([Share(200, {})] * 3, 1)) and said == []


def test_workers_that_do_not_meet_leave_it_to_one_learner(ranks, batches, said, monkeypatch):
    """As where ports are closed."""
    monkeypatch.setattr(ranks_module, "new_store", lambda host: SimpleNamespace(port=1))
    ranks.seconds = 1.0
    learner = new_learner()
    for _ in range(2):
        assert ranks.learn(learner, batches, nothing) is None and learner.updates == 0
    (sentence,) = said
    assert (
        sentence.startswith("The workers cannot learn together (") and "(127.0.0.1, 1)" in sentence
    )


def loses_one(pool: LocalPool, reason: str = "") -> Callable[..., None]:
    """In place of Ranks._follow: one is lost each time, after a rank gave this reason."""

    def follow(call, *_):
        call.reason = reason or call.reason
        call.end(call.slots)
        call.lost = 1
        while call.busy:
            pool.wait()

    return follow


def test_a_worker_that_is_always_lost_leaves_it_to_one_learner(
    pool, ranks, batches, said, monkeypatch
):
    monkeypatch.setattr(ranks, "_follow", loses_one(pool))
    ranks.seconds = 1.0  # one that waits for the others to meet hears nothing before
    assert ranks.learn(new_learner(), batches, nothing) is None
    assert len(said) == 4 and "4 times in a row one of them was lost" in said[-1]


def test_ranks_that_met_and_give_up_say_why_one_ended(pool, ranks, batches, said, monkeypatch):
    monkeypatch.setattr(ranks, "_follow", loses_one(pool, "out of memory on cuda:1"))
    monkeypatch.setattr(ranks, "_have_met", True)
    ranks.seconds = 1.0
    assert ranks.learn(new_learner(), batches, nothing) is None
    assert len(said) == 4 and "one of them was lost; what one said: out of memory" in said[-1]


def test_where_one_rank_cannot_meet_the_others_they_try_once(
    pool, ranks, batches, said, monkeypatch
):
    """Those that wait for it in vain are killed."""
    monkeypatch.setattr(ranks, "_follow", loses_one(pool, "no route to host"))
    ranks.seconds = 1.0
    assert ranks.learn(new_learner(), batches, nothing) is None
    (sentence,) = said
    assert "cannot learn together (no route to host)" in sentence


def meet(port: int, rank: int, seconds: float) -> None:
    group = Group(rank, 2, "127.0.0.1", port, seconds)
    with process_group(group, torch.device("cpu")):
        assert float(sum_over_ranks(torch.ones(1))) == 2


def test_a_rank_that_met_nobody_meets_a_new_worker():
    lonely = new_store("127.0.0.1")
    with pytest.raises(RuntimeError):
        meet(lonely.port, 0, 0.5)
    store = new_store("127.0.0.1")
    new = multiprocessing.get_context("spawn").Process(target=meet, args=(store.port, 1, 30.0))
    new.start()
    meet(store.port, 0, 30.0)
    new.join()
    assert new.exitcode == 0


def test_a_run_learns_on_its_workers_and_an_interrupt_leaves_none(tmp_path, monkeypatch):
    class Interrupts(Progress):
        def report(self, report: Report) -> None:
            reports.append(report)

        def learning_update(self, done: int, updates: int) -> None:
            if len(reports) == 2 and done > 1:
                interrupted.append(time.monotonic())
                raise KeyboardInterrupt

    monkeypatch.setattr(TrainConfig, "learners", lambda *_: 2)
    monkeypatch.setattr(Learner, "update", None)  # not in this process
    reports, interrupted, before = [], [], multiprocessing.active_children()
    config = dataclasses.replace(CONFIG, run=str(tmp_path), iterations=5)
    list(train(config, Interrupts()))
    assert time.monotonic() - interrupted[0] < 5
    assert [report.updates > 1 for report in reports] == [True, True]
    assert set(multiprocessing.active_children()) <= set(before)


@pytest.mark.parametrize(
    "device, devices, per_gpu, settings, expected, reason",
    [
        ("cuda:0", ("cuda:0", "cuda:1"), 1, {}, 2, ""),
        ("cuda:0", ("cuda:0", "cuda:1"), 1, {"learner_gpu": "one"}, 1, ""),
        ("cuda:0", ("cuda:0",) * 3, 1, {"pool": "ray"}, 3, ""),  # each actor's own GPU
        (
            "cuda:0",
            ("cuda:0", "cuda:1", "cuda:2"),
            1,
            {"batch_size": 2},
            2,
            "Only 2 of 3 GPUs learn",
        ),
        ("cuda:0", ("cuda:0", "cuda:1") * 2, 2, {}, 1, "several workers share a GPU"),
        ("cuda:0", ("cuda:0", "cuda:1") * 2, 2, {"learner_gpu": "one"}, 1, ""),
        ("cuda:0", ("cuda:0",) * 2, 2, {}, 1, ""),
        ("cuda:0", ("cuda:0", "cuda:1"), 1, {"pool": "inline"}, 1, ""),
        ("cpu", ("cuda:0", "cuda:1"), 1, {}, 1, "the run's device is cpu"),
        ("cpu", ("cuda:0",) * 3, 1, {"pool": "ray"}, 1, "device is cpu"),  # a head without a GPU
        ("cpu", ("cpu",) * 2, 1, {}, 1, ""),
        ("mps", ("mps",), 1, {}, 1, ""),
    ],
)
def test_who_learns(device, devices, per_gpu, settings, expected, reason, said):
    plan = WorkerPlan(devices, 1, workers_per_gpu=per_gpu)
    assert TrainConfig(**settings).learners(device, plan, said.append) == expected
    assert len(said) == bool(reason) and reason in "".join(said)


@pytest.mark.parametrize("second", RECORDS)
def test_all_ranks_replay_their_updates_or_none_does(second):
    store = new_store("127.0.0.1")
    with multiprocessing.get_context("spawn").Pool(2) as processes:
        found = processes.starmap(
            learned_by_rank, [(rank, store.port, second) for rank in range(2)], chunksize=1
        )
    alone = new_learner()
    for seed in range(5):
        positions = start_positions(alone.game, 32, torch.Generator().manual_seed(seed))
        alone.update(batch_of(alone.game, positions))
    weights = torch.cat([parameter.detach().flatten() for parameter in alone.parameters]).numpy()
    (replayed, ours), (replayed_there, theirs) = found
    assert replayed == replayed_there == (second == "recorded")
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(ours, weights, atol=2e-3)


@pytest.mark.filterwarnings("ignore:updates run launch by launch")
def test_a_worker_records_its_updates_no_more_once_that_failed():
    alone = new_learner()
    positions = start_positions(alone.game, 32, torch.Generator().manual_seed(0))
    batch = slice_of(batch_of(alone.game, positions), 0, 1)
    job = SelfPlay("cpu", alone.network.config.to_dict(), {}, 1, CONFIG.game)
    tried = []

    def refused(function, inputs):
        tried.append(len(inputs))
        raise RuntimeError("operation not permitted when stream is capturing")

    job._updates.on, job._updates.record = True, refused
    for _ in range(2):
        store = new_store("127.0.0.1")
        group = 0, 1, "127.0.0.1", store.port, 60.0
        job.learn(learner_state(alone), group, [(batch, 1e-3)], lambda done: None)
    (message,) = job.messages
    assert len(tried) == 1 and "updates run launch by launch" in message


def test_gpus_without_nccl_leave_it_to_one_learner_before_anything_starts(said):
    machine = dataclasses.replace(made_up_machine(2, "T4"), nccl=False)
    config = TrainConfig(preset="t4")
    plan = config.worker_plan("cuda:0", machine)
    config.resolve("cuda:0", machine, plan, say=said.append)
    assert said[0] == (
        "One device learns while the GPUs wait: several need NCCL, which this torch lacks"
    )
    assert plan_run(config, "cuda:0", machine).learners == 1
