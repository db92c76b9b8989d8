"""GameRecords: nothing is lost on the way, and arrays that do not fit are refused."""

import numpy as np
import pytest

from chessnn_colab.errors import RecordsError
from chessnn_colab.records import GameRecords


def make_records(lengths=(3, 1, 4), seed=0) -> GameRecords:
    random = np.random.default_rng(seed)
    total, games = sum(lengths), len(lengths)
    weights = random.random((total, 16))
    chances = random.dirichlet(np.ones(3), (2, total)).astype(np.float16)
    return GameRecords(
        positions=random.integers(-(2**63), 2**63, (total, 5), dtype=np.int64),
        actions=random.integers(0, 4672, total).astype(np.uint16),
        policy_actions=random.integers(0, 4672, (total, 16)).astype(np.uint16),
        policy_weights=(weights / weights.sum(1, keepdims=True)).astype(np.float16),
        root_values=chances[0],
        value_targets=chances[1],
        game_lengths=np.array(lengths, np.int32),
        endings=random.integers(0, 7, games).astype(np.uint8),
        results=random.integers(-1, 2, games).astype(np.int8),
    )


@pytest.mark.parametrize(
    "name, array",
    [
        ("positions", np.zeros((8, 5), np.int32)),
        ("positions", np.zeros((7, 5), np.int64)),
        ("policy_weights", np.zeros((8, 15), np.float16)),
        ("policy_weights", np.full((8, 16), np.nan, np.float16)),
        ("policy_weights", np.full((8, 16), 1.5, np.float16)),
        ("root_values", np.full((8, 3), np.nan, np.float16)),
        ("root_values", np.full((8, 2), 0.5, np.float16)),
        ("value_targets", np.full((8, 3), 1.5, np.float16)),
        ("value_targets", np.zeros(8, np.float16)),  # as in version 0.8
        ("value_targets", np.full(8, np.inf, np.float32)),
        ("game_lengths", np.array([3, 1, 5], np.int32)),
        ("game_lengths", np.array([-1, 5, 4], np.int32)),
        ("endings", np.zeros(2, np.uint8)),
        ("results", np.array([0, 2, 0], np.int8)),
        ("results", np.array([None, None, None], object)),
    ],
)
def test_arrays_that_do_not_fit_are_named(name, array):
    with pytest.raises(RecordsError, match=name):
        GameRecords.from_arrays({**make_records().to_arrays(), name: array})


def test_missing_and_unknown_arrays_are_named():
    arrays = make_records().to_arrays()
    del arrays["endings"]
    with pytest.raises(RecordsError, match=r"missing or unknown arrays \['endings', 'rewards'\]"):
        GameRecords.from_arrays({**arrays, "rewards": np.zeros(3)})
