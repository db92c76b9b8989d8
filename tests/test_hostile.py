"""Files made to harm, through every loader of a run: nothing in them is executed, and each is
refused in a sentence.
"""

import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from chessnn_colab.arena.chess.uci import Engine
from chessnn_colab.arena.evaluate import evaluate_run, find_player
from chessnn_colab.arena.players import play_search
from chessnn_colab.arena.puzzles import solved_over_run
from chessnn_colab.arena.registry import match_game
from chessnn_colab.errors import CheckpointError, ChessnnError
from chessnn_colab.runs.backup import restore_run
from chessnn_colab.runs.checkpoint import FORMAT, load_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import card_of, load_network, run_game
from chessnn_colab.training import train

from .small_run import make_run, tiny


class Payload:
    """Unpickling this makes the folder `marker`."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_the_payload_would_work_on_a_careless_loader(tmp_path):
    pickle.loads(pickle.dumps(Payload(str(tmp_path / "executed"))))
    assert (tmp_path / "executed").exists()


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
        "absurd header": (2**62).to_bytes(8, "little") + b"{}",
    }


def loaders(run: Path, tmp_path: Path) -> dict:
    """Everything that reads a file of a run."""

    def play_uci():
        Engine(str(run))

    def from_checkpoint():
        next(train(tiny(tmp_path / "next", from_checkpoint=str(run))))

    return {
        "checkpoint": lambda: RunFolder.open(run).latest_checkpoint(),
        "snapshot": lambda: load_network(str(run), 0, "cpu"),
        "reports": lambda: RunFolder.open(run).read_reports(),
        "restore": lambda: restore_run(tmp_path / "restored", run, print),
        "from": from_checkpoint,
        "uci": play_uci,
    }


def file_loaders(file: str) -> dict:
    """Everything that reads a shared network."""
    game = match_game("chess")
    return {
        "load": lambda: load_network(file, device="cpu"),
        "game": lambda: run_game(file),
        "player": lambda: find_player(file, game),
        "card": lambda: card_of(file),
        "uci": lambda: Engine(file),
        "evaluate": lambda: evaluate_run(file, games=2, device="cpu"),
        "tactics": lambda: solved_over_run(file, play_search("policy"), device="cpu"),
    }


# The loaders that read each file, which must refuse it.
READERS = {
    "checkpoints/000000.safetensors": ["checkpoint", "restore"],
    "snapshots/000000.safetensors": ["snapshot", "uci", "from"],
    "metrics.jsonl": ["reports"],
    "config.json": ["checkpoint", "reports", "snapshot", "uci", "from"],
}
CHECKPOINT = "checkpoints/000000.safetensors"


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    path = Path(make_run(tmp_path_factory.mktemp("hostile") / "run", (0,)))
    with RunFolder.create_or_open(path, {}) as run:
        run.save_checkpoint(0, {"weights": {"a": np.zeros(1)}}, {"game": "chess", "network": {}})
        run.append_report({"iteration": 0})
    return path


@pytest.fixture
def run(original, tmp_path) -> Path:
    return shutil.copytree(original, tmp_path / "run")


@pytest.mark.parametrize("name", sorted(READERS))
def test_nothing_in_a_hostile_file_is_executed(run, tmp_path, name):
    marker = tmp_path / "executed"
    for kind, content in payloads(str(marker)).items():
        (run / name).write_bytes(content + (b"\n" if name == "metrics.jsonl" else b""))
        for reader, load in loaders(run, tmp_path).items():
            if reader in READERS[name]:
                with pytest.raises(ChessnnError, match=Path(name).name):
                    load()
                    pytest.fail(f"{reader} took {kind} for {name}")
            elif kind == "pickle":
                with suppress(ChessnnError):
                    load()
            assert not marker.exists(), (reader, kind, name)
    assert not list(tmp_path.rglob("escaped*"))


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


def refused(file: Path, readers: Iterable[str]) -> None:
    for reader in readers:
        with pytest.raises(ChessnnError, match=file.name) as caught:
            file_loaders(str(file))[reader]()
            pytest.fail(reader)
        assert len(str(caught.value)) < 1500 and str(caught.value).isprintable(), reader


def test_nothing_in_a_hostile_shared_file_is_executed(tmp_path):
    file, marker = tmp_path / "mine.net", tmp_path / "executed"
    for content in payloads(str(marker)).values():
        file.write_bytes(content)
        refused(file, file_loaders(""))
    assert not marker.exists() and not list(tmp_path.rglob("escaped*"))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize("make", [endless, silent, huge, in_a_loop, os.mkdir])
@pytest.mark.parametrize("name", sorted(READERS))
def test_what_cannot_be_read_to_its_end_is_refused(run, tmp_path, name, make):
    (run / name).unlink()
    make(run / name)
    for reader in READERS[name]:
        with pytest.raises(ChessnnError, match=Path(name).name):
            loaders(run, tmp_path)[reader]()
            pytest.fail(reader)
    assert not (tmp_path / "restored").exists()
    make(tmp_path / "mine.net")
    refused(tmp_path / "mine.net", ["load", "game", "player", "evaluate"])


STRANGE_JSON = {
    "deep list": b"[" * 100_000,
    "deep dict": b'{"files":' * 100_000,
    "no number": b'{"iteration": NaN, "files": NaN, "format": NaN, "version": NaN}',
    "infinity": b'{"iteration": 1e999, "version": -Infinity}',
    "long number": b'{"iteration": %b, "version": %b}' % (b"9" * 5000, b"9" * 5000),
    "no text": b"\0" * 500_000,
    "half a letter": b'{"iteration": "\\ud800", "format": "\\ud800", "files": {}}',
    "a seal that is none": b'{"seal": [], "iteration": 0}',
}


@pytest.mark.parametrize("kind", sorted(STRANGE_JSON))
@pytest.mark.parametrize("name", [name for name in READERS if ".json" in name])
def test_strange_json_is_only_data_or_an_error_of_a_few_lines(run, tmp_path, name, kind):
    (run / name).write_bytes(STRANGE_JSON[kind] + b"\n")
    for reader in ("checkpoint", "reports", "snapshot", "restore"):
        try:
            loaders(run, tmp_path)[reader]()
        except ChessnnError as error:
            assert reader in (*READERS[name], "restore"), reader
            assert str(error).isprintable() and len(str(error)) < 1500, str(error)[:2000]


ABSURD_ARRAYS = {
    "more than there is": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]},
    "beyond the end": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]},
    "a product that overflows": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]},
    "negative": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
    "objects": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    "no kind numpy has": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
    "no array": [[]],
}


ARRAY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
ABSURD_METADATA = ["[" * 100_000, "[]", "", '{"game": "%s"}' % ("x" * 500_000)]


def write_sealed(path: Path, array: object, metadata: str = '{"game": "chess"}') -> None:
    """Write a checkpoint whose SHA-256 is right, whatever is in it."""
    described = {"sha256": "0" * 64, "format": FORMAT, "groups": '["weights"]'}
    described["metadata"] = metadata
    header = json.dumps({"__metadata__": described, "weights/a": array}).encode()
    data = len(header).to_bytes(8, "little") + header + b"\0" * 8
    digest = hashlib.sha256(data).hexdigest()
    path.write_bytes(data.replace(b"0" * 64, digest.encode(), 1))


@pytest.mark.parametrize("kind", sorted(ABSURD_ARRAYS))
def test_an_absurd_array_under_a_hash_that_holds_is_refused(tmp_path, kind):
    path = tmp_path / "000000.safetensors"
    write_sealed(path, ARRAY)
    assert load_checkpoint(path, "chess").groups["weights"]["a"].shape == (2,)
    write_sealed(path, ABSURD_ARRAYS[kind])
    with pytest.raises(CheckpointError, match="000000.* cannot be used"):
        load_checkpoint(path, "chess")


@pytest.mark.parametrize("metadata", ABSURD_METADATA, ids=["deep", "list", "nothing", "game"])
def test_absurd_metadata_under_a_hash_that_holds_is_refused(tmp_path, metadata):
    write_sealed(tmp_path / "000000.safetensors", ARRAY, metadata)
    with pytest.raises(CheckpointError, match="000000") as caught:
        load_checkpoint(tmp_path / "000000.safetensors", "chess")
    assert len(str(caught.value)) < 1500
