"""Threads of the CPU: the fastest number for a call, and afterwards the number from before."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from chessnn_colab.budget import Budget
from chessnn_colab.cpu import TRIED_CALLS, ThreadTrial, use_threads
from chessnn_colab.learner import Losses
from chessnn_colab.learning import learn
from chessnn_colab.report import Progress


def counts_tried(trial: ThreadTrial, seconds: dict[int, float], calls: int) -> list[int]:
    """The number of threads of each call, where a call with N threads takes seconds[N]."""
    counts = []
    for _ in range(calls):
        counts.append(trial.count)
        trial.took(seconds[trial.count])
    return counts


@pytest.mark.parametrize(
    "seconds, tried, kept",
    [
        ({8: 1.0, 4: 1.6}, [8, 4], 8),  # an idle machine
        ({8: 4.0, 4: 2.0, 2: 3.0}, [8, 4, 2], 4),  # a neighbour on some of the cores
        ({8: 9.0, 4: 7.0, 2: 5.0, 1: 3.0}, [8, 4, 2, 1], 1),  # neighbours on all of them
        ({3: 2.0, 1: 1.0}, [3, 1], 1),
        ({1: 1.0}, [1], 1),
    ],
)
def test_threads_are_halved_while_that_is_faster(seconds, tried, kept):
    counts = counts_tried(ThreadTrial(max(seconds)), seconds, TRIED_CALLS * len(tried) + 20)
    assert counts[: TRIED_CALLS * len(tried)] == [
        count for count in tried for _ in range(TRIED_CALLS)
    ]
    assert set(counts[TRIED_CALLS * len(tried) :]) == {kept}


def test_one_slow_call_decides_nothing():
    trial = ThreadTrial(2)
    for seconds in (9.0, 1.0, 1.0, 1.5, 1.5, 1.5):  # the first one loads what it needs
        trial.took(seconds)
    assert trial.count == 2


def test_threads_are_given_back_even_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), use_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


def threads_of_updates(monkeypatch, budget: Budget) -> list[int]:
    """How many threads each of twelve updates of 32 positions has where torch has four, and two are
    fastest.
    """
    counts, now = [], [0.0]
    monkeypatch.setattr("chessnn_colab.learning.time.perf_counter", lambda: now[0])

    def update(*args):
        learner.updates += 1
        counts.append(torch.get_num_threads())
        now[0] += {4: 2.0, 2: 1.0, 1: 1.5}[counts[-1]]
        return Losses(*torch.zeros(len(Losses._fields)))

    learner = SimpleNamespace(
        update=update,
        updates=0,
        reestimate_norms=lambda batches: counts.append(torch.get_num_threads()),
        device=torch.device("cpu"),
        learning_rate=0.001,
        config=SimpleNamespace(warm_up=0),
    )
    batch = {"positions": np.zeros(32), "policy_weights": np.ones((32, 1), np.float16)}

    class Replay(list):
        def sample(self, size, generator):
            return dict(batch)

    replay = Replay([batch])
    with use_threads(4):
        learn(learner, replay, 12, 32, budget, Progress(), np.random.default_rng(0))
        assert torch.get_num_threads() == 4
    return counts


def test_updates_within_minutes_use_the_threads_that_are_fastest_just_now(monkeypatch):
    *updates, norms = threads_of_updates(monkeypatch, Budget(1.0, None))
    assert updates == [4] * 3 + [2] * 3 + [1] * 3 + [2] * 3 and norms == 2


def test_a_run_by_iterations_keeps_its_threads_so_that_a_seed_gives_the_same_weights(monkeypatch):
    assert set(threads_of_updates(monkeypatch, Budget(None, 3))) == {4}
