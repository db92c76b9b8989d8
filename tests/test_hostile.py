"""Files made to harm, through every loader of a run: nothing in them is executed, and each is refused in a sentence."""

import io
import os
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from chessnn_colab.errors import ChessnnError
from chessnn_colab.evaluation import load_network
from chessnn_colab.mirror import restore_run
from chessnn_colab.records import GameRecords
from chessnn_colab.run_folder import RunFolder, find_checkpoint
from chessnn_colab.train_config import TrainConfig
from chessnn_colab.training import train
from chessnn_colab.uci import Engine

from .damage import Payload
from .small_run import make_run
from .test_checkpoint import rewrite_manifest


def payloads(marker: str) -> dict[str, bytes]:
    """Contents that execute code in loaders that are careless, each as its own format has it."""
    array, torch_file, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(array, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    torch.save({"weights": Payload(marker)}, torch_file)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.npy", array.getvalue())
        file.writestr("../../escaped.npy", b"outside")
    return {"pickle": pickle.dumps(Payload(marker)), "old pickle": pickle.dumps(Payload(marker), 0),
            "npy": array.getvalue(), "npz": archive.getvalue(), "torch": torch_file.getvalue(),
            "yaml": f"!!python/object/apply:os.mkdir ['{marker}']".encode(),
            "code": f"__import__('os').mkdir('{marker}')".encode()}


def loaders(run: Path, tmp_path: Path) -> dict:
    """Everything that reads a file of a run."""
    def play_uci():
        Engine(str(run), device="cpu")

    def from_checkpoint():
        next(train(TrainConfig(run=str(tmp_path / "next"), from_checkpoint=str(run), device="cpu", channels=8, blocks=1,
                               iterations=1, pool="inline")))
    return {
        "checkpoint": lambda: RunFolder.open(run).latest_checkpoint(),
        "any": lambda: find_checkpoint(run),
        "snapshot": lambda: load_network(str(run), 0, "cpu"),
        "reports": lambda: RunFolder.open(run).read_reports(),
        "best": lambda: RunFolder.open(run).best_snapshot(),
        "restore": lambda: restore_run(tmp_path / "restored", run),
        "from": from_checkpoint,
        "uci": play_uci,
    }


# The loaders that read each file, which must refuse it.
READERS = {
    "checkpoints/000000/weights.safetensors": ["checkpoint", "any", "from"],
    "checkpoints/000000/state.json": ["checkpoint", "any", "from"],
    "checkpoints/000000/manifest.json": ["checkpoint", "any", "restore", "from"],
    "snapshots/000000.safetensors": ["snapshot", "uci"],
    "metrics.jsonl": ["reports"],
    "ratings.json": ["best"],
    "config.json": ["checkpoint", "any", "reports", "best", "snapshot", "uci", "from"],
}


@pytest.fixture
def run(tmp_path) -> Path:
    path = Path(make_run(tmp_path / "run", (0,)))
    with RunFolder.create_or_open(path, {}) as run:
        arrays = {"weights": {"a": np.zeros(1)}}
        run.save_checkpoint(0, arrays, {"game": "chess", "network": {}})
        run.append_report({"iteration": 0})
    return path


@pytest.mark.parametrize("name", sorted(READERS))
def test_nothing_in_a_hostile_file_is_executed(run, tmp_path, name):
    marker = tmp_path / "executed"
    original = (run / name).read_bytes() if (run / name).exists() else None
    for kind, content in payloads(str(marker)).items():
        (run / name).write_bytes(content + (b"\n" if name == "metrics.jsonl" else b""))
        if name.startswith("checkpoints/") and not name.endswith("manifest.json"):
            rewrite_manifest(run / "checkpoints" / "000000")  # the damage itself does not show
        for reader, load in loaders(run, tmp_path).items():
            if reader in READERS[name]:
                with pytest.raises(ChessnnError):
                    load()
                    pytest.fail(f"{reader} took {kind} for {name}")
            elif kind == "pickle":
                with suppress(ChessnnError):
                    load()
            assert not marker.exists(), (reader, kind, name)
    assert not list(tmp_path.rglob("escaped*"))
    if original is not None:
        (run / name).write_bytes(original)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"metrics.jsonl", "ratings.json"}))
def test_a_link_to_somewhere_that_never_ends_is_refused(run, tmp_path, name):
    """As a named pipe or /dev/zero: what is no plain file is not read."""
    if not os.path.exists("/dev/zero"):
        pytest.skip("needs /dev/zero")
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    for reader in READERS[name]:
        with pytest.raises(ChessnnError):
            loaders(run, tmp_path)[reader]()
            pytest.fail(reader)


def test_a_file_of_games_is_not_executed_either(tmp_path):
    marker = tmp_path / "executed"
    for kind, content in payloads(str(marker)).items():
        (tmp_path / "games.npz").write_bytes(content)
        with pytest.raises(ChessnnError):
            GameRecords.load(tmp_path / "games.npz")
            pytest.fail(kind)
    assert not marker.exists()
