"""A disk that is really full: a small one, filled to every page, and one without room for another
name.
"""

import dataclasses
import os
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError, ChessnnError, RunError
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.tensorboard import TensorBoard
from chessnn_colab.training import train

from .sample_reports import make_report
from .small_run import tiny
from .test_training import Listener

PAGE = 4096


def mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return (
        shutil.which("mount") is not None
        and subprocess.run(command, capture_output=True).returncode == 0
    )


@pytest.fixture
def disk(tmp_path, request):
    """A disk of its own, of the size that the test's parameter says (1 MiB)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, getattr(request, "param", "size=1m")):
        pytest.skip("mounting a small disk needs Linux and root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int = 0) -> None:
    """Take all room on the disk but `leave` bytes."""
    filler = disk / "filler"
    with open(filler, "ab", buffering=0) as file:
        file.truncate(0)
        try:
            while True:
                file.write(b"x" * PAGE)
        except OSError:
            file.truncate(max(file.tell() - leave, 0))


def arrays(value: int) -> dict[str, np.ndarray]:
    return {"a": np.full(3 * PAGE // 8, value)}


def test_a_checkpoint_finds_the_disk_full_at_every_page(disk):
    groups = {value: {"weights": arrays(value), "replay": arrays(value)} for value in (1, 2)}
    save_checkpoint(disk / "000001", groups[1], {"value": 1})
    refused = 0
    for leave in range(0, 40 * PAGE, PAGE):
        fill(disk, leave)
        try:
            save_checkpoint(disk / "000001", groups[2], {"value": 2})
        except CheckpointError as error:
            assert "000001: No space left on device" in str(
                error
            ) and "make room there or choose another" in str(error)
            assert load_checkpoint(disk / "000001").metadata == {"value": 1}
            assert sorted(os.listdir(disk)) == ["000001", "filler"]
            refused += 1
        else:
            break
    assert refused > 6
    assert load_checkpoint(disk / "000001").groups["weights"]["a"][0] == 2


# What writes a file of a run, 1 first and then 2, and the error that it raises.
WRITERS = {
    "snapshot": (CheckpointError, lambda run, value: run.save_snapshot(1, arrays(value), {})),
    "metrics": (
        RunError,
        lambda run, value: run.append_report({"iteration": value, "text": "e" * 3 * PAGE}),
    ),
    "sample game": (
        RunError,
        lambda run, value: run.save_game_sample(1, "1. e4 e5 " * PAGE * value, ".pgn"),
    ),
    "config": (RunError, lambda run, value: run.settle({"text": "x" * PAGE * value}, {"text"})),
}


def kept(run: RunFolder) -> tuple:
    """The reports and all other files of a run. A report that found no room leaves a torn line."""
    files = {path for path in run.path.rglob("*") if path.is_file()}
    files.discard(run.path / "metrics.jsonl")
    return run.read_reports(), {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_other_file_finds_the_disk_full(disk, kind):
    error, write = WRITERS[kind]
    run = RunFolder.create_or_open(disk / "run", {})
    write(run, 1)
    before = kept(run)
    for leave in (0, PAGE):
        fill(disk, leave)
        with pytest.raises(error, match="No space left on device"):
            write(run, 2)
        (disk / "filler").unlink()
        assert kept(run) == before
    write(run, 2)


@pytest.mark.parametrize("disk", ["size=1m,nr_inodes=12"], indirect=True)
def test_a_disk_without_room_for_another_name(disk):
    save_checkpoint(disk / "000001", {"weights": arrays(1)}, {"value": 1})
    places = iter(range(100))
    with pytest.raises(OSError, match="No space left"):
        while True:
            (disk / f"name{next(places)}").touch()
    with pytest.raises(CheckpointError, match="000001: No space left on device"):
        save_checkpoint(disk / "000001", {"weights": arrays(2)}, {"value": 2})
    assert load_checkpoint(disk / "000001").metadata == {"value": 1}
    (disk / "name0").unlink()
    save_checkpoint(disk / "000001", {"weights": arrays(2)}, {"value": 2})


def test_curves_without_room_are_one_sentence(disk, monkeypatch):
    monkeypatch.setattr(
        threading, "excepthook", lambda _: None
    )  # TensorBoard's own thread ends in a traceback
    board = TensorBoard(disk, 0)
    fill(disk)
    with pytest.raises(RunError, match="cannot write the curves in .*No space left on device"):
        for iteration in range(1, 50):
            board.write(make_report(iteration))
    board.close()


@pytest.mark.parametrize("disk", ["size=8m"], indirect=True)
def test_training_ends_in_one_sentence_and_goes_on_when_there_is_room(disk):
    """Twice: without any room the sample game is refused; with a little, the snapshot."""
    config = tiny(disk / "run", iterations=1, positions_per_iteration=12, max_plies=6)
    for leave in (0, 20 * PAGE):
        listener = Listener(report=lambda leave=leave: fill(disk, leave))
        with pytest.raises(ChessnnError, match="No space left on device"):
            list(train(dataclasses.replace(config, iterations=9), listener))
        (disk / "filler").unlink()
    listener = Listener()
    (report,) = train(config, listener)
    assert report.iteration == 3 and "Resuming" in listener.messages()
    assert [report["iteration"] for report in RunFolder.open(disk / "run").read_reports()] == [
        1,
        2,
        3,
    ]
