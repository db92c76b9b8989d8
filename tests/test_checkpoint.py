"""Checkpoints and snapshots: what is saved comes back, and a save is all or nothing.

For damage see test_corruption, for files made to harm test_hostile, for a disk that is really full test_full_disk.
"""

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from chessnn_colab.errors import CheckpointError
from chessnn_colab.files import encode_sealed
from chessnn_colab.runs.checkpoint import clear_interrupted_saves, load_checkpoint, remove_checkpoint, save_checkpoint
from chessnn_colab.runs.snapshot import load_snapshot, save_snapshot

from .damage import KILLS

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
        "optimizer": {"0.exp_avg": np.full((3, 2), value, np.float32), "0.step": np.array(value, np.float32)},
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
            assert other[group][name].dtype == array.dtype and other[group][name].shape == array.shape, name
            np.testing.assert_array_equal(other[group][name], array, err_msg=name)


def rewrite_manifest(folder: Path) -> None:
    """Make the manifest, as version 0.3 wrote it, agree with whatever is in the folder: what an attacker would do."""
    files = {}
    for path in folder.iterdir():
        if path.name != "manifest.json":
            data = path.read_bytes()
            files[path.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = {"files": files, "format": "chessnn_colab checkpoint", "version": 1}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


@pytest.fixture
def folder(tmp_path) -> Path:
    save_checkpoint(tmp_path / "000012", make_groups(), METADATA)
    return tmp_path / "000012"


def test_a_checkpoint_gives_back_what_was_saved(folder):
    loaded = load_checkpoint(folder, game="chess")
    assert_same_groups(make_groups(), loaded.groups)
    assert loaded.metadata == METADATA
    loaded.groups["weights"]["stem.weight"][0] = 0  # writable
    assert os.listdir(folder.parent) == ["000012"]


def test_saving_again_replaces_the_whole_folder(folder):
    save_checkpoint(folder, {"weights": {"a": np.zeros(1)}}, {"game": "chess"})
    assert sorted(os.listdir(folder)) == ["manifest.json", "state.json", "weights.safetensors"]
    assert os.listdir(folder.parent) == ["000012"]
    assert load_checkpoint(folder).metadata == {"game": "chess"}


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_checkpoint(folder)


def test_an_extra_file_is_named_and_the_systems_own_is_not(folder):
    (folder / ".DS_Store").write_bytes(b"finder")
    load_checkpoint(folder)
    (folder / "other.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="other.safetensors is not in its manifest"):
        load_checkpoint(folder)


def test_another_game_and_another_format_are_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match="of the game 'chess', expected 'gomoku'"):
        load_checkpoint(folder, game="gomoku")
    manifest = {"format": "chessnn_colab checkpoint", "version": 2, "files": {}}
    (folder / "manifest.json").write_bytes(encode_sealed(manifest))
    with pytest.raises(CheckpointError, match="format 2, this version reads format 1"):
        load_checkpoint(folder)
    save_snapshot(tmp_path / "s.safetensors", {}, {"game": "2048"})
    with pytest.raises(CheckpointError, match="of the game '2048', expected 'chess'"):
        load_snapshot(tmp_path / "s.safetensors", game="chess")


def test_no_checkpoint_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "none", tmp_path / "file", tmp_path / "file" / "below", tmp_path / "bad\0name"):
        with pytest.raises(CheckpointError, match="no checkpoint at"):
            load_checkpoint(path)
    with pytest.raises(CheckpointError, match="manifest.json is missing"):
        load_checkpoint(tmp_path)


def test_a_save_does_not_touch_what_is_not_ours(tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("precious")
    for path in (tmp_path / "file", tmp_path / "home"):
        with pytest.raises(CheckpointError, match="is not a checkpoint"):
            save_checkpoint(path, make_groups(), METADATA)
    with pytest.raises(CheckpointError, match="cannot save checkpoint"):
        save_checkpoint(tmp_path / "file" / "below", make_groups(), METADATA)
    assert (tmp_path / "file").read_text() == (tmp_path / "home" / "letter").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["file", "home"]


@pytest.mark.parametrize(
    "groups, metadata, message",
    [
        ({"weights": {"a": [1, 2]}}, {}, "weights.a: expected a numpy array, got list"),
        ({"weights": {"a": np.array([object()])}}, {}, "cannot save weights"),
        ({"weights": {"__metadata__": np.zeros(1)}}, {}, "keeps that name"),
        ({"../weights": {}}, {}, "checkpoint group"),
        ({"weights": {}}, {"seed": np.int64(3)}, "cannot save metadata"),
    ],
)
def test_data_that_cannot_be_saved_leaves_the_old_checkpoint(folder, groups, metadata, message):
    with pytest.raises(CheckpointError, match=message):
        save_checkpoint(folder, groups, metadata)
    assert_same_groups(make_groups(), load_checkpoint(folder).groups)
    assert os.listdir(folder.parent) == ["000012"]


def failing(original, at: int):
    """`original`, but call number `at` finds the disk full."""
    calls = iter(range(at + 1))

    def call(*arguments, **named):
        if next(calls, at) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*arguments, **named)

    return call


@pytest.mark.parametrize("function, calls", [("fsync", 7), ("rename", 2), ("mkdir", 1)])
def test_a_full_disk_at_any_step_keeps_the_old_checkpoint(folder, monkeypatch, function, calls):
    for at in range(calls):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, failing(getattr(os, function), at))
            with pytest.raises(CheckpointError, match="000012: No space left on device.*saved before stands"):
                save_checkpoint(folder, make_groups(2), {})
        assert_same_groups(make_groups(), load_checkpoint(folder).groups)
        assert set(os.listdir(folder.parent)) <= {"000012", ".000012.old"}


def test_an_interrupt_leaves_nothing_half_written(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(folder, make_groups(2), {})
        with pytest.raises(KeyboardInterrupt):
            save_snapshot(folder.parent / "s.safetensors", {}, {})
    assert os.listdir(folder.parent) == ["000012"]
    assert load_checkpoint(folder).metadata == METADATA


def test_a_removed_checkpoint_is_gone(folder):
    remove_checkpoint(folder)
    remove_checkpoint(folder)
    assert os.listdir(folder.parent) == []


KILLED_SAVES = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint

def save_for_ever(folder, generation, channel):
    while True:
        generation += 1
        groups = {name: {"a": np.full(30_000, generation)} for name in ("weights", "optimizer", "replay")}
        save_checkpoint(folder, groups, {"generation": generation})
        os.write(channel, generation.to_bytes(8, "little"))

folder, generation = Path(sys.argv[1]), 0
for kill in range(int(sys.argv[2])):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        save_for_ever(folder, generation, writing)
    os.close(writing)
    finished = int.from_bytes(os.read(reading, 8), "little")
    time.sleep(random.Random(kill).uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while said := os.read(reading, 8):
        finished = int.from_bytes(said, "little")
    os.close(reading)
    loaded = load_checkpoint(folder)
    generation = loaded.metadata["generation"]
    assert generation in (finished, finished + 1), (generation, finished)
    assert all((group["a"] == generation).all() for group in loaded.groups.values())
    print("loadable", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_checkpoint_saved_under_kill_9_always_loads(tmp_path):
    command = [sys.executable, "-c", KILLED_SAVES, str(tmp_path / "000001"), str(KILLS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["loadable"] * KILLS


def test_a_kill_between_the_two_renames_loses_nothing(folder, monkeypatch):
    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda old, new: kill() if str(old).endswith(".tmp") else os.replace(old, new))
        with pytest.raises(Killed):
            save_checkpoint(folder, make_groups(2), {})
    assert not folder.exists()
    assert_same_groups(make_groups(), load_checkpoint(folder).groups)
    clear_interrupted_saves(folder.parent)
    assert os.listdir(folder.parent) == ["000012"]
    assert_same_groups(make_groups(), load_checkpoint(folder).groups)


def test_strange_array_names_are_only_names(tmp_path):
    weights = {name: np.zeros(1) for name in ("../../x", "__reduce__", "sha256", '"sha256":"' + "0" * 64 + '"', "")}
    save_snapshot(tmp_path / "s.safetensors", weights, METADATA)
    assert load_snapshot(tmp_path / "s.safetensors").groups["weights"].keys() == weights.keys()
    assert os.listdir(tmp_path) == ["s.safetensors"]


def test_a_snapshot_gives_back_what_was_saved(tmp_path):
    path = tmp_path / "000000.safetensors"
    save_snapshot(path, make_groups()["weights"], METADATA)
    save_snapshot(path, make_groups(2)["weights"], METADATA)
    loaded = load_snapshot(path, game="chess")
    assert_same_groups({"weights": make_groups(2)["weights"]}, loaded.groups)
    assert loaded.metadata == METADATA
    assert os.listdir(tmp_path) == [path.name]
    assert safetensors.numpy.load_file(path).keys() == loaded.groups["weights"].keys()  # any safetensors reader can


def test_a_file_that_is_not_a_snapshot_is_refused(tmp_path):
    path = tmp_path / "s.safetensors"
    for content in (b"", b"{}", safetensors.numpy.save({"a": np.zeros(1)})):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a snapshot of this package"):
            load_snapshot(path)
    for missing in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be used"):
            load_snapshot(missing)
