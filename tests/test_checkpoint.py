"""Checkpoints and snapshots: what is saved comes back, and a save is all or nothing.

For damage see test_corruption, for files made to harm test_hostile, for a disk that is really full
test_full_disk.
"""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from chessnn_colab.errors import CheckpointError, RunError
from chessnn_colab.runs import checkpoint
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint

from .damage import no_space

ROOT = Path(__file__).parents[1]
METADATA = {
    "game": "chess",
    "iteration": 12,
    "rng": {"state": 2**127 + 1, "has_uint32": 0},
    "config": {"channels": 32, "encoding": "direct", "minutes": None},
    "text": 'quotes "sha256":"' + "0" * 64 + '" and \u2654',
}


def make_groups(value: int = 1) -> dict[str, dict[str, np.ndarray]]:
    random = np.random.default_rng(value)
    return {
        "weights": {
            "stem.weight": random.standard_normal((4, 3, 3, 3)).astype(np.float32),
            "norm.num_batches_tracked": np.array(7 + value, np.int64),
            "head.weight": np.asfortranarray(random.standard_normal((6, 4)).astype(np.float32)),
            "strided": np.arange(20, dtype=np.int32)[::3],
        },
        "optimizer": {
            "0.exp_avg": np.full((3, 2), value, np.float32),
            "0.step": np.array(value, np.float32),
        },
        "replay": {
            "positions": random.integers(-(2**63), 2**63, (9, 5), dtype=np.int64),
            "weights": random.random((9, 4)).astype(np.float16),
            "actions": np.arange(9, dtype=np.uint16),
            "none": np.zeros((0, 5), np.int8),
            "flags": np.array([True, False]),
        },
        "empty": {},
    }


def assert_same_groups(one, other) -> None:
    assert one.keys() == other.keys()
    for group in one:
        assert one[group].keys() == other[group].keys()
        for name, array in one[group].items():
            assert (
                other[group][name].dtype == array.dtype and other[group][name].shape == array.shape
            ), name
            np.testing.assert_array_equal(other[group][name], array, err_msg=name)


@pytest.fixture
def file(tmp_path) -> Path:
    save_checkpoint(tmp_path / "000012.safetensors", make_groups(), METADATA)
    return tmp_path / "000012.safetensors"


def test_a_checkpoint_gives_back_what_was_saved(file):
    loaded = load_checkpoint(file, game="chess")
    assert_same_groups(make_groups(), loaded.groups)
    assert loaded.metadata == METADATA
    loaded.groups["weights"]["stem.weight"][0] = 0  # writable
    assert os.listdir(file.parent) == [file.name]


def test_any_reader_of_safetensors_opens_it(file):
    arrays = safetensors.numpy.load_file(file)
    expected = {
        f"{group}/{name}": array
        for group, members in make_groups().items()
        for name, array in members.items()
    }
    assert_same_groups({"all": expected}, {"all": arrays})


def test_another_game_and_another_format_are_refused(file, monkeypatch):
    with pytest.raises(CheckpointError, match="of the game 'chess', expected 'gomoku'"):
        load_checkpoint(file, game="gomoku")
    monkeypatch.setattr(checkpoint, "FORMAT", "chessnn_colab checkpoint 3")
    with pytest.raises(CheckpointError, match="checkpoint 2', this version reads .*checkpoint 3'"):
        load_checkpoint(file)


def test_no_memory_for_a_checkpoint_is_no_damage(file, monkeypatch):
    """Else an older one would be taken, and what came after it be lost."""

    def full(data):
        raise MemoryError

    monkeypatch.setattr("safetensors.numpy.load", full)
    with pytest.raises(RunError, match=f"no memory for {file}: end other programs"):
        load_checkpoint(file)


def test_what_is_no_checkpoint_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (
        tmp_path,
        tmp_path / "none",
        tmp_path / "file",
        tmp_path / "file" / "below",
        tmp_path / "bad\0name",
    ):
        with pytest.raises(CheckpointError, match="cannot be used"):
            load_checkpoint(path)
    for content in (b"", b"{}", safetensors.numpy.save({"a": np.zeros(1)})):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(CheckpointError, match="not a checkpoint of this package"):
            load_checkpoint(tmp_path / "file")


def test_a_save_does_not_touch_what_is_not_ours(tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("precious")
    for path in (tmp_path / "home", tmp_path / "file" / "below"):
        with pytest.raises(CheckpointError, match="cannot save checkpoint"):
            save_checkpoint(path, make_groups(), METADATA)
    assert (tmp_path / "home" / "letter").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["file", "home"]


@pytest.mark.parametrize(
    "groups, metadata, message",
    [
        (
            {"weights": {"a": np.array([object()])}},
            {},
            "cannot save weights.a: numbers of type object",
        ),
        ({"../weights": {}}, {}, "checkpoint group"),
        ({"weights": {}}, {"seed": np.int64(3)}, "cannot save metadata"),
    ],
)
def test_data_that_cannot_be_saved_leaves_the_old_checkpoint(file, groups, metadata, message):
    with pytest.raises(CheckpointError, match=message):
        save_checkpoint(file, groups, metadata)
    assert_same_groups(make_groups(), load_checkpoint(file).groups)
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_at_any_step_keeps_the_old_checkpoint(file, monkeypatch, function):
    with monkeypatch.context() as patch:
        patch.setattr(os, function, no_space)
        with pytest.raises(
            CheckpointError, match="000012.*: No space left on device.*saved before stands"
        ):
            save_checkpoint(file, make_groups(2), {})
    assert_same_groups(make_groups(), load_checkpoint(file).groups)
    assert os.listdir(file.parent) == [file.name]


def test_an_interrupt_leaves_nothing_half_written(file, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(file, make_groups(2), {})
    assert os.listdir(file.parent) == [file.name]
    assert load_checkpoint(file).metadata == METADATA


def test_saving_takes_little_memory_beside_the_arrays(tmp_path):
    """A full ring of positions is written in two parts, neither of which is copied."""
    ring = np.arange(2_000_000).reshape(-1, 4)
    tracemalloc.start()
    save_checkpoint(tmp_path / "large", {"replay": {"positions": (ring[9:], ring[:9])}}, {})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
    loaded = load_checkpoint(tmp_path / "large").groups["replay"]["positions"]
    np.testing.assert_array_equal(loaded, np.roll(ring, -9, axis=0))


def test_strange_array_names_are_only_names(tmp_path):
    names = ("../../x", "__reduce__", "__metadata__", "sha256", '"sha256": "' + "0" * 64, "")
    weights = {name: np.zeros(1) for name in names}
    save_checkpoint(tmp_path / "s.safetensors", {"weights": weights}, METADATA)
    loaded = load_checkpoint(tmp_path / "s.safetensors")
    assert loaded.groups["weights"].keys() == weights.keys()
    assert os.listdir(tmp_path) == ["s.safetensors"]
