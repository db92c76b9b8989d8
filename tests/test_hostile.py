"""Files made to harm, through every loader of a run: nothing in them is executed, and each is refused in a sentence."""

import hashlib
import io
import json
import os
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from chessnn_colab.durable import BLANK_SEAL, seal
from chessnn_colab.errors import CheckpointError, ChessnnError
from chessnn_colab.arena.evaluate import load_network
from chessnn_colab.runs.backup import restore_run
from chessnn_colab.records import GameRecords
from chessnn_colab.runs.folder import RunFolder, find_checkpoint
from chessnn_colab.runs.snapshot import load_snapshot
from chessnn_colab.config import TrainConfig
from chessnn_colab.training import train
from chessnn_colab.arena.chess.uci import Engine

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
    return {
        "pickle": pickle.dumps(Payload(marker)),
        "old pickle": pickle.dumps(Payload(marker), 0),
        "npy": array.getvalue(),
        "npz": archive.getvalue(),
        "torch": torch_file.getvalue(),
        "yaml": f"!!python/object/apply:os.mkdir ['{marker}']".encode(),
        "code": f"__import__('os').mkdir('{marker}')".encode(),
    }


def loaders(run: Path, tmp_path: Path) -> dict:
    """Everything that reads a file of a run."""

    def play_uci():
        Engine(str(run), device="cpu")

    def from_checkpoint():
        next(
            train(
                TrainConfig(
                    run=str(tmp_path / "next"),
                    from_checkpoint=str(run),
                    device="cpu",
                    channels=8,
                    blocks=1,
                    iterations=1,
                    pool="inline",
                )
            )
        )

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


CHECKPOINT_FILES = [name for name in READERS if name.startswith("checkpoints/")]


def known_as(name: str) -> str:
    """What an error calls a file: a part of a checkpoint goes by the checkpoint's name."""
    return Path(name).parent.name if name in CHECKPOINT_FILES else Path(name).name


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
        if name in CHECKPOINT_FILES and not name.endswith("manifest.json"):
            rewrite_manifest(run / "checkpoints" / "000000")  # the damage itself does not show
        for reader, load in loaders(run, tmp_path).items():
            if reader in READERS[name]:
                with pytest.raises(ChessnnError, match=known_as(name)):
                    load()
                    pytest.fail(f"{reader} took {kind} for {name}")
            elif kind == "pickle":
                with suppress(ChessnnError):
                    load()
            assert not marker.exists(), (reader, kind, name)
    assert not list(tmp_path.rglob("escaped*"))
    if original is not None:
        (run / name).write_bytes(original)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def silent(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    """Eight gigabytes, none of them on the disk; reading them would take as much memory."""
    path.touch()
    os.truncate(path, 2**33)


def in_a_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize("make", [endless, silent, huge, in_a_loop, os.mkdir])
@pytest.mark.parametrize("name", sorted(READERS))
def test_what_cannot_be_read_to_its_end_is_refused(run, tmp_path, name, make):
    (run / name).unlink(missing_ok=True)
    make(run / name)
    for reader in READERS[name]:
        with pytest.raises(ChessnnError, match=known_as(name)):
            loaders(run, tmp_path)[reader]()
            pytest.fail(reader)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize("make", [endless, silent, in_a_loop, os.mkdir])
@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_what_cannot_be_read_to_its_end_is_not_restored(run, tmp_path, name, make):
    (run / name).unlink()
    make(run / name)
    with pytest.raises(CheckpointError, match="can be restored"):
        restore_run(tmp_path / "restored", run)
    assert RunFolder.open(tmp_path / "restored").checkpoints() == []


@pytest.mark.parametrize("name", ["../../../escaped.safetensors", "..", "snapshots/../../escaped.safetensors"])
def test_a_checkpoint_restores_nothing_outside_itself(run, tmp_path, name):
    secret = tmp_path / "escaped.safetensors"
    secret.write_bytes(b"precious")
    manifest = run / "checkpoints" / "000000" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["files"][name] = {"bytes": 8, "sha256": hashlib.sha256(b"precious").hexdigest()}
    manifest.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    with pytest.raises(CheckpointError, match="manifest.json is not as it was written"):
        restore_run(tmp_path / "restored", run)
    assert secret.read_bytes() == b"precious" and list(tmp_path.rglob("escaped*")) == [secret]


STRANGE_JSON = {
    "deep list": b"[" * 100_000,
    "deep dict": b'{"players":' * 100_000,
    "no number": b'{"iteration": NaN, "players": NaN, "files": NaN, "format": NaN, "version": NaN}',
    "infinity": b'{"iteration": 1e999, "players": [{"snapshot": 0, "rating": 1e999}], "version": -Infinity}',
    "long number": b'{"iteration": %b, "players": [{"snapshot": 0, "rating": %b}]}' % (b"9" * 5000, b"9" * 5000),
    "large number": b'{"iteration": %b, "players": [{"snapshot": 0, "rating": %b}]}' % (b"9" * 4000, b"9" * 4000),
    "long text": b'{"format": "%b", "version": 1, "files": {}, "players": [{"snapshot": 0, "rating": "%b"}]}'
    % (b"x" * 500_000, b"x" * 300_000),
    "no text": b"\0" * 500_000,
    "half a letter": b'{"iteration": "\\ud800", "format": "\\ud800", "files": {}, "players": ["\\udfff"]}',
    "sizes that are none": b'{"files": {"state.json": {"bytes": "1", "sha256": 0}}, "players": [[]], "seal": []}',
}


@pytest.mark.parametrize("kind", sorted(STRANGE_JSON))
@pytest.mark.parametrize("name", [name for name in READERS if ".json" in name])
def test_strange_json_is_only_data_or_an_error_of_a_few_lines(run, tmp_path, name, kind):
    (run / name).write_bytes(STRANGE_JSON[kind] + b"\n")
    if name.endswith("state.json"):
        rewrite_manifest((run / name).parent)
    for reader in ("checkpoint", "any", "reports", "best", "snapshot", "restore"):
        try:
            loaders(run, tmp_path)[reader]()
        except ChessnnError as error:
            assert reader in (*READERS[name], "restore"), reader
            assert str(error).isprintable() and len(str(error)) < 1500, str(error)[:2000]


ABSURD_ARRAYS = {
    "more than there is": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]},
    "beyond the end": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]},
    "nothing, many times": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]},
    "a product that overflows": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]},
    "dimensions": {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]},
    "negative": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
    "backwards": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
    "objects": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    "no kind numpy has": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
    "no array": [[]],
}


def sealed(array: object, metadata: str = '{"game": "chess"}') -> bytes:
    """A snapshot whose seal holds, whatever is in it."""
    described = {"format": "chessnn_colab snapshot 1", "metadata": metadata, "sha256": BLANK_SEAL.decode()}
    header = json.dumps({"__metadata__": described, "a": array}, separators=(",", ":")).encode()
    data = len(header).to_bytes(8, "little") + header + b"\0" * 8
    return seal(data, data.index(BLANK_SEAL))


@pytest.mark.parametrize("kind", sorted(ABSURD_ARRAYS))
def test_an_absurd_array_under_a_seal_that_holds_is_refused(tmp_path, kind):
    path = tmp_path / "000000.safetensors"
    path.write_bytes(sealed({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}))
    assert load_snapshot(path).weights["a"].shape == (2,)
    path.write_bytes(sealed(ABSURD_ARRAYS[kind]))
    with pytest.raises(CheckpointError, match="000000.safetensors cannot be used"):
        load_snapshot(path)


@pytest.mark.parametrize("metadata", ["[" * 100_000, "NaN", "[]", "", "9" * 5000, '{"game": "%s"}' % ("x" * 500_000)])
def test_absurd_metadata_under_a_seal_that_holds_is_refused(tmp_path, metadata):
    path = tmp_path / "000000.safetensors"
    path.write_bytes(sealed({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, metadata))
    with pytest.raises(CheckpointError, match="000000.safetensors") as caught:
        load_snapshot(path, "chess")
    assert len(str(caught.value)) < 1500


def test_a_file_of_games_is_not_executed_either(tmp_path):
    marker = tmp_path / "executed"
    for kind, content in payloads(str(marker)).items():
        (tmp_path / "games.npz").write_bytes(content)
        with pytest.raises(ChessnnError):
            GameRecords.load(tmp_path / "games.npz")
            pytest.fail(kind)
    assert not marker.exists()
