"""Damage to a checkpoint or a snapshot is found by what reads it, and the error names the file."""

import json

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError
from chessnn_colab.runs.checkpoint import load_checkpoint
from chessnn_colab.runs.folder import RunFolder

from .damage import damaged_copies, flipped
from .test_checkpoint import make_groups


@pytest.fixture
def run(tmp_path) -> RunFolder:
    with RunFolder.create_or_open(tmp_path / "run", {}) as run:
        yield run


@pytest.mark.parametrize("group", ["weights", "optimizer", "replay"])
def test_a_flipped_bit_in_any_group_is_found(run, group):
    run.save_checkpoint(3, make_groups(), {})
    path = run.checkpoint_path(3)
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
    metadata = {"text": "of é"}
    if kind == "checkpoints":
        run.save_checkpoint(3, make_groups(), metadata)
        path = run.checkpoint_path(3)
    else:
        run.save_snapshot(3, make_groups()["weights"], metadata)
        path = run.snapshots()[3]
    data = path.read_bytes()
    for what, damaged in damaged_copies(data, seed=3):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{kind}/000003.safetensors cannot be used"):
            load_checkpoint(path)
            pytest.fail(what)
    path.write_bytes(data)
    weights = load_checkpoint(path).groups["weights"]
    np.testing.assert_array_equal(weights["strided"], np.arange(20)[::3])
