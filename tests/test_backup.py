"""The copy of a run in a slow folder: verified, never half a checkpoint, restorable, and never in
training's way.
"""

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError, ConfigError, RunError
from chessnn_colab.runs import backup, files
from chessnn_colab.runs.backup import Backup, restore_run
from chessnn_colab.runs.folder import RunFolder

from .damage import last_under_kills, no_space

CONFIG = {"game": "chess", "minutes": 5}


def save(run: RunFolder, iteration: int, value: int | None = None) -> None:
    """What a training run writes at a save, in its order."""
    weights = {"a": np.full(1000, iteration if value is None else value)}
    run.save_game_sample(iteration, "1. e4 *", ".txt" if iteration == 2 else ".pgn")
    run.append_report({"iteration": iteration})
    run.save_snapshot(iteration, weights, {"game": "chess"})
    run.save_checkpoint(iteration, {"weights": weights, "replay": weights}, {"game": "chess"})
    run.prune()


@pytest.fixture
def run(tmp_path):
    with RunFolder.create_or_open(tmp_path / "run", CONFIG) as run:
        save(run, 0)
        yield run


@pytest.fixture
def drive(tmp_path) -> Path:
    (tmp_path / "drive").mkdir()
    return tmp_path / "drive" / "run"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that belongs to a run, by its path in it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def assert_complete(run: RunFolder, drive: Path) -> None:
    """The copy has every file and the newest checkpoint; of older checkpoints it may have others
    than the run.
    """
    one, other = (
        {name: data for name, data in contents(folder).items() if "checkpoints" not in name}
        for folder in (run.path, drive)
    )
    latest = RunFolder.open(drive).latest_checkpoint()
    assert one == other and latest.messages == () and latest.iteration == run.checkpoints()[-1]


def first_copy(run: RunFolder, drive: Path) -> Backup:
    """A backup that has made its first copy."""
    opened = Backup(run, drive)
    opened.update()
    opened.wait()
    return opened


def copy(run: RunFolder, drive: Path) -> list[str]:
    opened = Backup(run, drive)
    return opened.update() + opened.close()


def test_the_copy_is_the_run(run, drive):
    opened = Backup(run, drive)
    (run.tensorboard_folder / "events").write_bytes(b"curves")
    (run.path / "ratings.json").write_text("{}")
    assert opened.update() == []
    for iteration in (1, 2, 3):
        save(run, iteration)
        assert opened.update() == []
        opened.wait()  # a copy that lags behind may leave checkpoints out
    assert opened.close() == []
    assert contents(drive) == contents(run.path)
    assert RunFolder.open(drive).checkpoints() == [2, 3]
    assert RunFolder.open(drive).latest_checkpoint().checkpoint.groups["weights"]["a"][0] == 3


def test_what_a_copy_deletes_takes_no_room_in_the_drives_trash(run, drive, monkeypatch):
    deleted = []
    original = Path.unlink

    def unlink(path, *given, **named):
        if path.parent == drive / "checkpoints" and path.suffix == ".safetensors":
            deleted.append((path.name, path.stat().st_size))
        original(path, *given, **named)

    monkeypatch.setattr(Path, "unlink", unlink)
    opened = Backup(run, drive)
    for iteration in (1, 2, 3):
        save(run, iteration)
        opened.update()
        opened.wait()
    opened.close()
    assert deleted == [("000001.safetensors", 0)]


def test_a_second_session_copies_only_what_is_new(run, drive, monkeypatch):
    copy(run, drive)
    save(run, 1)
    copied = []
    original = backup.copy_verified
    monkeypatch.setattr(
        backup, "copy_verified", lambda one, other: (copied.append(one.name), original(one, other))
    )
    assert copy(run, drive) == []
    assert copied == ["000001.safetensors", "000001.pgn", "metrics.jsonl", "000001.safetensors"]
    assert contents(drive) == contents(run.path)


def test_a_checkpoint_saved_again_is_copied_again(run, drive):
    opened = first_copy(run, drive)
    save(run, 0, value=7)
    opened.update()
    assert opened.close() == []
    assert RunFolder.open(drive).latest_checkpoint().checkpoint.groups["replay"]["a"][0] == 7


@pytest.mark.parametrize("broken", ["000001.safetensors", "000001.pgn"])
def test_a_copy_that_reads_back_otherwise_is_refused_and_made_again(
    run, drive, monkeypatch, broken
):
    """As from a disk that lies: every write of one file is cut short, once."""
    opened = first_copy(run, drive)
    left = [1]
    original = files.copy_flushed

    def cut_short(source, target):
        digest = original(source, target)
        if source.name == broken and left:
            left.pop()
            os.truncate(target, target.stat().st_size - 1)
        return digest

    monkeypatch.setattr(files, "copy_flushed", cut_short)
    save(run, 1)
    said = opened.update()  # the copy may have failed already when it looks
    opened.wait()
    assert not left and RunFolder.open(drive).checkpoints() == [0]
    assert not list(drive.rglob("*.tmp"))
    (message,) = said + opened.close()
    assert "Copying to" in message and "The next save tries again" in message
    assert contents(drive) == contents(run.path)


def test_a_drive_that_goes_away_is_said_and_copied_to_when_it_is_back(run, drive):
    opened = first_copy(run, drive)
    drive.parent.rename(drive.parent.with_name("unmounted"))
    save(run, 1)
    said = opened.update()
    opened.wait()
    save(run, 2)
    said += opened.update()
    opened.wait()
    assert "No such file" in said[0] and str(drive) in said[0]
    assert not drive.parent.exists(), "nothing was written where the drive should be"
    drive.parent.with_name("unmounted").rename(drive.parent)
    save(run, 3)
    opened.update()
    opened.close()
    assert_complete(run, drive)


def test_a_drive_that_stays_away_does_not_stop_the_end(run, drive):
    opened = first_copy(run, drive)
    shutil.rmtree(drive)
    save(run, 1)
    messages = opened.update() + opened.close()
    assert "failed: " in messages[0] and "is not complete. Train with it again" in messages[-1]
    assert not drive.exists()
    save(run, 2)  # the run itself goes on


def test_a_slow_drive_does_not_hold_up_training_and_keeps_what_it_reads(run, drive, monkeypatch):
    """The folder takes until we let it; meanwhile checkpoints come and go, but not the one being
    copied.
    """
    go = threading.Event()
    original = backup.copy_verified

    def slow(source, target):
        if source.parent.name == "checkpoints":
            assert go.wait(60)
        original(source, target)

    monkeypatch.setattr(backup, "copy_verified", slow)
    opened = Backup(run, drive)
    opened.update()
    for iteration in range(1, 6):
        save(run, iteration)
        assert opened.update() == []
    assert run.checkpoints() == [0, 4, 5]
    with monkeypatch.context() as patch:
        patch.setattr(backup, "CLOSE_SECONDS", 0.1)
        assert opened.close()[-1].endswith("Train with it again to complete it")
    go.set()
    opened._thread.join()
    assert RunFolder.open(drive).checkpoints() == [0]
    save(run, 6)
    assert run.checkpoints() == [5, 6]
    assert copy(run, drive) == []
    assert_complete(run, drive)


def test_two_processes_cannot_copy_to_one_folder(run, drive):
    fcntl = pytest.importorskip("fcntl")
    RunFolder.create_or_open(drive, CONFIG).close()
    with open(
        drive / ".lock"
    ) as other:  # the lock is per opening of the file, so this stands for another process
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RunError, match=f"in use by process {os.getpid()} on "):
            Backup(run, drive)
    assert copy(run, drive) == []


def test_a_copy_opened_elsewhere_in_this_process_is_left_alone(run, drive):
    opened = first_copy(run, drive)
    with RunFolder.create_or_open(drive, CONFIG):
        save(run, 1)
        said = opened.update()  # the copy may have failed already when it looks
        assert "opened for writing elsewhere" in (said + opened.close())[0]
    assert RunFolder.open(drive).checkpoints() == [0]


# --- the right folder


def test_a_folder_that_cannot_be_the_copy(run, drive):
    (drive.parent / "file").write_text("precious")
    for place, words in [
        (run.path, "apart from"),
        (run.path / "copy", "apart from"),
        (run.path.parent, "apart from"),
        (drive.parent / "not" / "mounted", "Mount the drive"),
    ]:
        for use in (
            lambda place: Backup(run, place),
            lambda place: restore_run(run.path, place, print),
        ):
            with pytest.raises(ConfigError, match=words):
                use(place)
    with pytest.raises(RunError, match="is a file"):
        Backup(run, drive.parent / "file")
    assert sorted(os.listdir(drive.parent)) == ["file"]


def test_another_runs_copy_is_not_overwritten(run, drive, tmp_path):
    copy(run, drive)
    before = contents(drive)
    with RunFolder.create_or_open(tmp_path / "other", {**CONFIG, "minutes": 7}) as other:
        save(other, 0, value=5)
        with pytest.raises(ConfigError, match="copy of another run"):
            Backup(other, drive)
    assert contents(drive) == before


def test_a_copy_ahead_of_its_run_is_not_overwritten(run, drive):
    before = contents(run.path)
    save(run, 5)
    copy(run, drive)
    copied = contents(drive)
    for name in contents(run.path).keys() - before.keys():
        (run.path / name).unlink()
    with pytest.raises(RunError, match="is at iteration 5, ahead of the run .* at 0"):
        Backup(run, drive)
    assert contents(drive) == copied


# --- restoring


def restored(run: Path, drive: Path) -> str:
    """Restore a run, and return what is said of it."""
    said = []
    restore_run(run, drive, said.append)
    return "".join(said)


def test_a_lost_run_comes_back_from_its_copy(run, drive):
    for iteration in (1, 2, 3):
        save(run, iteration)
    copy(run, drive)
    kept = contents(run.path)
    run.close()
    assert not restored(run.path, drive), "it has its own"
    shutil.rmtree(run.path)
    message = restored(run.path, drive)
    assert "Restored" in message and "iteration 3" in message
    assert contents(run.path) == {
        name: data for name, data in kept.items() if not name.startswith("checkpoints/000002")
    }


def test_a_copy_does_not_take_the_place_of_later_networks(run, drive):
    save(run, 1)
    copy(run, drive)
    save(run, 2)
    run.close()
    shutil.rmtree(run.path / "checkpoints")
    kept = contents(run.path)
    with pytest.raises(RunError, match="snapshots after iteration 1, at which its copy .* ends"):
        restored(run.path, drive)
    assert contents(run.path) == kept


def test_a_copy_that_lost_its_checkpoints_is_not_begun_anew(run, drive):
    save(run, 1)
    copy(run, drive)
    run.close()
    shutil.rmtree(run.path)
    shutil.rmtree(drive / "checkpoints")
    kept = contents(drive)
    for lost in (None, "snapshots"):  # the reports are still there
        if lost:
            shutil.rmtree(drive / lost)
            kept = contents(drive)
        with pytest.raises(RunError, match="and no checkpoint to go on from"):
            restored(run.path, drive)
        assert not run.path.exists() and contents(drive) == kept


def test_a_copy_without_snapshots_is_a_run_all_the_same(run, drive):
    copy(run, drive)
    run.close()
    shutil.rmtree(run.path)
    shutil.rmtree(drive / "snapshots")
    assert "at iteration 0" in restored(run.path, drive)


def test_there_may_be_nothing_to_restore(tmp_path, drive):
    assert not restored(tmp_path / "run", drive)
    RunFolder.create_or_open(drive, CONFIG).close()
    assert not restored(tmp_path / "run", drive)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("later_networks", [False, True])
def test_a_restore_that_was_cut_short_is_done_again(run, drive, monkeypatch, later_networks):
    """Also where the copy has networks after its last checkpoint, as when copying was cut short."""
    save(run, 1)
    copy(run, drive)
    if later_networks:
        save(run, 2)
        shutil.copy(run.path / "snapshots" / "000002.safetensors", drive / "snapshots")
    run.close()
    shutil.rmtree(run.path)

    def full_for_checkpoints(source, target):
        if source.parent.name == "checkpoints":
            no_space()
        original(source, target)

    original = backup.copy_verified
    for fails in (no_space, full_for_checkpoints):
        with monkeypatch.context() as patch:
            patch.setattr(backup, "copy_verified", fails)
            with pytest.raises(RunError, match="No space left on device"):
                restored(run.path, drive)
    assert "iteration 1" in restored(run.path, drive)
    assert RunFolder.open(run.path).latest_checkpoint().iteration == 1


def test_networks_after_the_runs_last_checkpoint_leave_its_copy(run, drive):
    """Else they would come back one day as this run's. They are renamed, not deleted."""
    save(run, 1)
    copy(run, drive)
    save(run, 2)
    shutil.copy(run.path / "snapshots" / "000002.safetensors", drive / "snapshots")
    (run.path / "checkpoints" / "000002.safetensors").unlink()
    run.rewind(1)
    copy(run, drive)
    assert sorted(RunFolder.open(drive).snapshots()) == [0, 1]
    assert (drive / "snapshots" / "000002.set-aside").is_file()


def test_a_damaged_checkpoint_of_the_copy_gives_way_to_the_one_before(run, drive):
    copy(run, drive)
    save(run, 1)
    copy(run, drive)
    run.close()
    for iteration, message in ((1, "at iteration 0"), (0, "no checkpoint of the run")):
        shutil.rmtree(run.path, ignore_errors=True)
        path = drive / "checkpoints" / f"{iteration:06d}.safetensors"
        path.write_bytes(path.read_bytes()[:-1])
        if iteration:
            assert message in restored(run.path, drive)
        else:
            with pytest.raises(CheckpointError, match=f"(?s){message}.*000001.*000000"):
                restored(run.path, drive)


def test_a_run_that_came_back_from_before_a_damaged_checkpoint_is_copied_again(run, drive):
    copy(run, drive)
    save(run, 1)
    copy(run, drive)
    run.close()
    shutil.rmtree(run.path)
    (drive / "checkpoints" / "000001.safetensors").write_text("{")
    assert "at iteration 0" in restored(run.path, drive)
    with RunFolder.create_or_open(run.path, CONFIG) as again:
        again.rewind(0)
        assert copy(again, drive) == []
        save(again, 1, value=7)
        assert copy(again, drive) == []
    latest = RunFolder.open(drive).latest_checkpoint()
    assert (
        latest.iteration == 1
        and latest.messages == ()
        and latest.checkpoint.groups["weights"]["a"][0] == 7
    )


# --- kill -9


KILLED_COPY = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from chessnn_colab.runs.backup import Backup
from chessnn_colab.runs.folder import RunFolder

def train_for_ever(path, drive, channel, kill):
    run = RunFolder.create_or_open(path, {})
    latest = run.latest_checkpoint()
    iteration = latest.iteration if latest else -1
    run.rewind(iteration)
    backup = Backup(run, drive)
    if kill > 0:
        os.write(channel, b"x")
    while True:
        iteration += 1
        weights = {"a": np.full(10_000, iteration)}
        run.append_report({"iteration": iteration})
        run.save_snapshot(iteration, weights, {})
        run.save_checkpoint(iteration, {"weights": weights}, {})
        run.prune()
        assert backup.update() == []
        if kill == 0 and iteration == 2:  # so that 1 is copied, however slow the disk
            os.write(channel, b"x")

path, drive, before = Path(sys.argv[1]), Path(sys.argv[2]), -1
for kill in range(int(sys.argv[3])):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        train_for_ever(path, drive, writing, kill)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    time.sleep(random.Random(kill).uniform(0.01, 0.3))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    copy = RunFolder.open(drive)
    latest = copy.latest_checkpoint()
    if latest is None:
        continue
    assert latest.messages == () and latest.iteration >= before, latest
    assert (latest.checkpoint.groups["weights"]["a"] == latest.iteration).all()
    reports = [report["iteration"] for report in copy.read_reports()]
    assert reports[:latest.iteration + 1] == list(range(latest.iteration + 1)), (reports, latest.iteration)
    before = latest.iteration
print("copied to", before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_copy_under_kill_9_always_loads(tmp_path):
    assert last_under_kills(KILLED_COPY, tmp_path / "run", tmp_path / "copy") > 0
