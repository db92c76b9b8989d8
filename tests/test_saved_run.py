"""Files whose hashes hold and whose contents are no run's: each ends in an error that names the
file.
"""

from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.config import TrainConfig
from chessnn_colab.errors import CheckpointError
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import load_network
from chessnn_colab.training import train

from .small_run import tiny

WEIGHT, MOMENT = "stem.conv.weight", "0.exp_avg"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("saved") / "run"
    assert len(list(train(tiny(run, iterations=1)))) == 1
    return run


def changed(holder: dict, name: str, value: object) -> dict:
    """`holder` with `name` set, or gone where the value is None."""
    rest = {key: old for key, old in holder.items() if key != name}
    return rest if value is None else {**rest, name: value}


def with_nan(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flat[3] = np.nan
    return array


NETWORKS = {
    "no network": None,
    "text": "small",
    "an unknown setting": {"chanels": 8},
    "channels in words": {"channels": "eight"},
    "true": {"blocks": True},
    "nan": {"score_limit": float("nan")},
    "others' jumps": {"jumps": [[0.5, 1]] * 73},
    "huge": {"channels": 10**12},
    "large": {"channels": 10_000},
    "too many steps": {"steps": 10_001},
    "many": {"blocks": 300},
    "another": {"blocks": 2},
    "an activation in a list": {"activation": ["relu"]},
    "a long activation": {"activation": "x" * 10_000},
}


@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_a_snapshot_of_no_network(trained, tmp_path, kind):
    snapshot = load_checkpoint(trained / "snapshots" / "000001.safetensors")
    network = NETWORKS[kind]
    if isinstance(network, dict):
        network = {**snapshot.metadata["network"], **network}
    refuse_snapshot(
        trained,
        tmp_path,
        snapshot.groups["weights"],
        changed(snapshot.metadata, "network", network),
    )


WEIGHTS = {
    "none": lambda weights: {},
    "one fewer": lambda weights: changed(weights, WEIGHT, None),
    "one more": lambda weights: {**weights, "more": np.zeros(1)},
    "another shape": lambda weights: changed(weights, WEIGHT, np.zeros((8, 27, 1, 1), np.float32)),
    "a number more": lambda weights: changed(weights, WEIGHT, np.zeros((8, 27, 3, 4), np.float32)),
    "nan": lambda weights: changed(weights, WEIGHT, with_nan(weights[WEIGHT])),
    "truths": lambda weights: changed(weights, WEIGHT, weights[WEIGHT] > 0),
}


@pytest.mark.parametrize("kind", sorted(WEIGHTS))
def test_a_snapshot_of_no_weights(trained, tmp_path, kind):
    snapshot = load_checkpoint(trained / "snapshots" / "000001.safetensors")
    refuse_snapshot(trained, tmp_path, WEIGHTS[kind](snapshot.groups["weights"]), snapshot.metadata)


def refuse_snapshot(trained: Path, tmp_path: Path, weights: dict, metadata: dict) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "config.json").write_bytes((trained / "config.json").read_bytes())
    save_checkpoint(tmp_path / "snapshots" / "000001.safetensors", {"weights": weights}, metadata)
    with pytest.raises(CheckpointError, match="000001.safetensors cannot be used") as caught:
        load_network(str(tmp_path), device="cpu")
    assert len(str(caught.value)) < 700


STATES = {
    "no iteration": ("iteration", None),
    "an iteration in words": ("iteration", "one"),
    "a negative": ("iteration", -1),
    "another's iteration": ("iteration", 7),
    "no seconds": ("seconds", None),
    "nan seconds": ("seconds", float("nan")),
    "true games": ("total_games", True),
    "too many": ("updates", 10**40),
    "a correction too long": ("correction", [1.0, 0.0, 0.0]),
    "a correction in words": ("correction", ["1.0", "0.0"]),
    "an infinite correction": ("correction", [1.0, float("inf")]),
}


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_checkpoint_whose_state_is_wrong(trained, tmp_path, kind):
    checkpoint = load_checkpoint(trained / "checkpoints" / "000001.safetensors")
    refuse_resume(trained, tmp_path, checkpoint.groups, changed(checkpoint.metadata, *STATES[kind]))


def replaced(group: str, name: str, change) -> "callable":
    return lambda groups: {
        **groups,
        group: changed(groups[group], name, change(groups[group][name])),
    }


GROUPS = {
    "no weights": lambda groups: changed(groups, "weights", None),
    "no optimizer": lambda groups: changed(groups, "optimizer", None),
    "no games in flight": lambda groups: changed(groups, "games", None),
    "games in flight of nobody": replaced("games", "rows.number", lambda array: array + 100),
    "no replay": lambda groups: changed(groups, "replay", None),
    "weights not numbers": replaced("weights", WEIGHT, with_nan),
    "half the moments": replaced("optimizer", MOMENT, lambda array: None),
    "moments of another": replaced("optimizer", MOMENT, lambda array: array[:4]),
    "moments not numbers": replaced("optimizer", MOMENT, with_nan),
    "moments in whole numbers": replaced("optimizer", MOMENT, lambda array: array.astype(np.int64)),
    "no actions": replaced("replay", "policy_actions", lambda array: None),
    "too few actions": replaced("replay", "policy_actions", lambda array: array[1:]),
    "actions of another game": replaced(
        "replay", "policy_actions", lambda array: array + np.uint16(60_000)
    ),
    "actions in fractions": replaced(
        "replay", "policy_actions", lambda array: array.astype(np.float32)
    ),
    "positions of another game": replaced("replay", "positions", lambda array: array[:, :4].copy()),
    "flat positions": replaced("replay", "positions", lambda array: array[:, 0].copy()),
    "weights above one": replaced("replay", "policy_weights", lambda array: array + np.float16(2)),
    "an array more": lambda groups: {**groups, "replay": {**groups["replay"], "more": np.zeros(1)}},
}


@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_a_checkpoint_whose_arrays_are_wrong(trained, tmp_path, kind):
    checkpoint = load_checkpoint(trained / "checkpoints" / "000001.safetensors")
    refuse_resume(trained, tmp_path, GROUPS[kind](checkpoint.groups), checkpoint.metadata)


def refuse_resume(trained: Path, run: Path, groups: dict, metadata: dict) -> None:
    (run / "config.json").write_bytes((trained / "config.json").read_bytes())
    (run / "checkpoints").mkdir()
    save_checkpoint(run / "checkpoints" / "000001.safetensors", groups, metadata)
    path = run / "checkpoints" / "000001.safetensors"
    before = path.read_bytes()
    values = {**RunFolder.open(run).config, "run": str(run)}
    with pytest.raises(CheckpointError, match="000001.safetensors cannot be used") as caught:
        list(train(TrainConfig.from_dict(values)))
    assert len(str(caught.value)) < 700
    assert path.read_bytes() == before


def test_starting_from_a_snapshot_without_weights(trained, tmp_path):
    snapshot = load_checkpoint(trained / "snapshots" / "000001.safetensors")
    save_checkpoint(
        tmp_path / "other.safetensors", changed(snapshot.groups, "weights", None), snapshot.metadata
    )
    config = tiny(tmp_path / "run", from_checkpoint=str(tmp_path / "other.safetensors"))
    with pytest.raises(
        CheckpointError, match="other.safetensors cannot be used: it has no 'weights'"
    ):
        list(train(config))
