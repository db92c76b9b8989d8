"""GameRecords: nothing is lost on the way, and arrays that do not fit are refused."""

import numpy as np
import pytest

from chessnn_colab.errors import RecordsError
from chessnn_colab.records import GameRecords


def make_records(lengths=(3, 1, 4), policy_width=16, seed=0) -> GameRecords:
    random = np.random.default_rng(seed)
    total, games = sum(lengths), len(lengths)
    weights = random.random((total, policy_width))
    targets = random.uniform(-1, 1, total).astype(np.float16)
    targets[::3] = np.nan
    return GameRecords(
        positions=random.integers(-(2**63), 2**63, (total, 5), dtype=np.int64),
        actions=random.integers(0, 4672, total).astype(np.uint16),
        policy_actions=random.integers(0, 4672, (total, policy_width)).astype(np.uint16),
        policy_weights=(weights / weights.sum(1, keepdims=True)).astype(np.float16),
        root_values=random.uniform(-1, 1, total).astype(np.float16),
        value_targets=targets,
        game_lengths=np.array(lengths, np.int32),
        endings=random.integers(0, 7, games).astype(np.uint8),
        results=random.integers(-1, 2, games).astype(np.int8),
    )


def assert_same(one: GameRecords, other: GameRecords) -> None:
    for name, array in one.to_arrays().items():
        loaded = other.to_arrays()[name]
        assert loaded.dtype == array.dtype, name
        np.testing.assert_array_equal(loaded, array, err_msg=name)


def test_a_position_takes_at_most_128_bytes():
    assert make_records((20,) * 50).bytes_per_position <= 128
    assert GameRecords.empty(5).bytes_per_position == 0


def test_concatenate_and_select_undo_each_other():
    one, other = make_records((3, 1), seed=1), make_records((2, 5, 1), seed=2)
    both = GameRecords.concatenate([one, other])
    assert (both.num_games, both.num_positions) == (5, 12)
    assert_same(one, both.select_games([0, 1]))
    assert_same(other, both.select_games(np.array([2, 3, 4])))
    assert both.select_games([]).num_games == 0
    with pytest.raises(RecordsError, match="expected one or more"):
        GameRecords.concatenate([])


def test_select_keeps_the_order_asked_for():
    records = make_records((3, 1, 4))
    chosen = records.select_games([2, 0, 2])
    assert chosen.game_lengths.tolist() == [4, 3, 4]
    expected = np.concatenate([records.actions[4:8], records.actions[0:3], records.actions[4:8]])
    np.testing.assert_array_equal(chosen.actions, expected)
    assert chosen.offsets.tolist() == [0, 4, 7, 11]


@pytest.mark.parametrize("indices", [[-1], [3], [0, 99]])
def test_a_game_that_is_not_there_is_an_error(indices):
    with pytest.raises(RecordsError, match="of 3 games"):
        make_records().select_games(indices)


def test_widths_that_differ_are_not_joined():
    with pytest.raises(RecordsError, match="widths"):
        GameRecords.concatenate([make_records(policy_width=16), make_records(policy_width=8)])


@pytest.mark.parametrize(
    "name, array",
    [
        ("positions", np.zeros((8, 5), np.int32)),
        ("positions", np.zeros((7, 5), np.int64)),
        ("positions", np.zeros((8, 5), ">i8")),
        ("actions", np.zeros((8, 1), np.uint16)),
        ("actions", [0] * 8),
        ("policy_weights", np.zeros((8, 15), np.float16)),
        ("policy_weights", np.full((8, 16), np.nan, np.float16)),
        ("policy_weights", np.full((8, 16), 1.5, np.float16)),
        ("root_values", np.full(8, np.nan, np.float16)),
        ("value_targets", np.full(8, np.inf, np.float16)),
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
    with pytest.raises(RecordsError, match=r"missing arrays \['endings'\], unknown arrays \['rewards'\]"):
        GameRecords.from_arrays({**arrays, "rewards": np.zeros(3)})
