"""Damage to any file of a run is found by what reads it, and said with the file's name.

test_checkpoint does the same to a checkpoint and a snapshot that stand alone, with more kinds of arrays in them.
"""

import json

import numpy as np
import pytest

from chessnn_colab.durable import write_atomically
from chessnn_colab.errors import CheckpointError, RunError
from chessnn_colab.runs.folder import RunFolder, find_checkpoint
from chessnn_colab.sealed_json import decode_sealed, encode_sealed

from .damage import damaged_copies

CONFIG = {"preset": "cpu", "channels": None, "minutes": 5.0, "gpus": [0, 1]}
RATINGS = {
    "anchor": "random",
    "players": [
        {"snapshot": None, "rating": 0.0},
        {"snapshot": 0, "rating": 12.5},
        {"snapshot": 3, "rating": 431.25},
        {"snapshot": 9, "rating": 700.0},
    ],
}
REPORTS = [
    {"iteration": iteration, "policy_loss": 3.5 / (iteration + 1), "endings": {"checkmate": iteration}}
    for iteration in range(5)
]


@pytest.fixture
def run(tmp_path) -> RunFolder:
    with RunFolder.create_or_open(tmp_path / "run", CONFIG) as run:
        for report in REPORTS:
            run.append_report(report)
        for iteration in (0, 3):
            run.save_snapshot(iteration, {"a": np.zeros(2)}, {})
        write_atomically(run.path / "ratings.json", encode_sealed(RATINGS))
        yield run


def read(run: RunFolder, name: str):
    return {
        "config.json": lambda: RunFolder.open(run.path).config,
        "metrics.jsonl": run.read_reports,
        "ratings.json": run.best_snapshot,
    }[name]()


@pytest.mark.parametrize("name", ["config.json", "ratings.json"])
def test_every_damage_is_refused_and_the_file_named(run, name):
    whole, path = read(run, name), run.path / name
    data = path.read_bytes()
    for what, damaged in damaged_copies(data, seed=1):
        if damaged == data[:-1]:  # the last line end is all that is gone
            continue
        path.write_bytes(damaged)
        with pytest.raises(RunError, match=name):
            read(run, name)
            pytest.fail(f"{name}: {what}")
    path.write_bytes(data)
    assert read(run, name) == whole


def test_every_damage_of_the_reports_is_refused_or_is_a_torn_last_line(run):
    """A kill leaves the beginning of a last line, which does not count; nothing else may pass."""
    path = run.path / "metrics.jsonl"
    data = path.read_bytes()
    for what, damaged in damaged_copies(data, seed=2):
        path.write_bytes(damaged)
        whole_lines = damaged.count(b"\n")
        if data.startswith(damaged):
            assert run.read_reports() == REPORTS[:whole_lines], what
            continue
        with pytest.raises(RunError, match="metrics.jsonl"):
            run.read_reports()
            pytest.fail(what)


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "optimizer.safetensors", "replay.safetensors", "state.json", "manifest.json"]
)
def test_every_damage_of_a_runs_only_checkpoint_is_laid_to_its_file(run, name):
    """Damage to a size or a hash in the manifest is laid to the file that it is of."""
    groups = {group: {"a": np.arange(99)} for group in ("weights", "optimizer", "replay")}
    path = run.save_checkpoint(3, groups, {}) / name
    data, said = path.read_bytes(), "" if name == "manifest.json" else name
    for what, damaged in damaged_copies(data, seed=3):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"000003 cannot be used: .*{said}"):
            find_checkpoint(run.path)
            pytest.fail(f"{name}: {what}")
    path.write_bytes(data)
    assert find_checkpoint(run.path).weights["a"][98] == 98


def test_every_damage_of_a_runs_snapshot_is_laid_to_it(run):
    path = run.snapshots()[-1]
    for what, damaged in damaged_copies(path.read_bytes(), seed=4):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="snapshots/000003.safetensors cannot be used"):
            find_checkpoint(path)
            pytest.fail(what)


def test_ratings_can_only_name_what_is_there(run):
    assert run.best_snapshot() == run.path / "snapshots" / "000003.safetensors", "9 is not here"
    (run.path / "ratings.json").unlink()
    assert run.best_snapshot() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"players": 3}',
        b"\xff\xfe",
        b'{"players": [{"snapshot": 3, "rating": "high"}]}',
    ],
)
def test_what_is_no_rating_is_refused(run, content):
    (run.path / "ratings.json").write_bytes(content)
    with pytest.raises(RunError, match="ratings.json cannot be read"):
        run.best_snapshot()


def test_a_file_written_by_hand_needs_no_seal():
    assert decode_sealed(b'{"preset": "cpu"}') == {"preset": "cpu"}
    assert decode_sealed(encode_sealed({"seal of": "approval"})) == {"seal of": "approval"}
    sealed = encode_sealed(CONFIG)
    with pytest.raises(ValueError, match="remove the line with its seal"):
        decode_sealed(sealed.replace(b"cpu", b"t4"))
    assert json.loads(sealed)["seal"].startswith("sha256:")
