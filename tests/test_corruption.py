"""Damage to a checkpoint, a snapshot or a line of JSON is found by what reads it, and the error
names the file.
"""

import json

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError, RunError
from chessnn_colab.runs.checkpoint import load_checkpoint
from chessnn_colab.runs.folder import RunFolder

from .damage import damaged_copies, flipped
from .test_checkpoint import make_groups

VALUES = {"preset": "cpu", "channels": None, "minutes": 5.0, "gpus": [0, 1], "text": "of é"}
REPORTS = [{"iteration": iteration, "policy_loss": 3.5 / (iteration + 1)} for iteration in range(5)]


@pytest.fixture
def run(tmp_path) -> RunFolder:
    with RunFolder.create_or_open(tmp_path / "run", VALUES) as run:
        yield run


def test_every_cut_of_the_config_is_named(run):
    path = run.path / "config.json"
    data = path.read_bytes().rstrip()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(RunError, match="config.json"):
            RunFolder.open(run.path)
            pytest.fail(str(length))


def test_every_cut_of_the_reports_drops_the_last_line(run):
    """A kill leaves the beginning of a last line, which does not count."""
    path = run.path / "metrics.jsonl"
    for report in REPORTS:
        run.append_report(report)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert run.read_reports() == REPORTS[: data[:length].count(b"\n")]
    path.write_bytes(data.replace(b'"iteration": 2', b'"iteration": x'))
    with pytest.raises(RunError, match="line 3 of .*metrics.jsonl"):
        run.read_reports()


@pytest.mark.parametrize("group", ["weights", "optimizer", "replay"])
def test_a_flipped_bit_in_any_group_is_found(run, group):
    path = run.save_checkpoint(3, make_groups(), {})
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    places = [entry["data_offsets"] for name, entry in header.items() if name.startswith(group)]
    for begin, end in places:
        for place in {begin, end - 1} if end > begin else ():
            path.write_bytes(flipped(data, 8 * (8 + length + place)))
            with pytest.raises(CheckpointError, match="000003.safetensors cannot be used"):
                run.latest_checkpoint()


@pytest.mark.parametrize("kind", ["checkpoints", "snapshots"])
def test_every_damage_of_a_checkpoint_or_snapshot_is_found(run, kind):
    metadata = {"text": VALUES["text"]}
    if kind == "checkpoints":
        path = run.save_checkpoint(3, make_groups(), metadata)
    else:
        path = run.save_snapshot(3, make_groups()["weights"], metadata)
    data = path.read_bytes()
    for what, damaged in damaged_copies(data, seed=3):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{kind}/000003.safetensors cannot be used"):
            load_checkpoint(path)
            pytest.fail(what)
    path.write_bytes(data)
    weights = load_checkpoint(path).groups["weights"]
    np.testing.assert_array_equal(weights["strided"], np.arange(20)[::3])
