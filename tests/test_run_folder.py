"""The run folder: one writer, reports that survive kills, the newest checkpoint that can be
read.
"""

import errno
import math
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError, ConfigError, RunError
from chessnn_colab.runs import folder, metrics
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.opening import open_run
from chessnn_colab.runs.run_list import list_runs

from .damage import last_under_kills, no_space

ROOT = Path(__file__).parents[1]
CONFIG = {"game": "chess", "minutes": 5, "channels": 32, "blocks": 3, "gpus": (0, 1)}
OPENINGS = (RunFolder.open, lambda path: RunFolder.create_or_open(path, CONFIG))


def groups(value: int = 0) -> dict[str, dict[str, np.ndarray]]:
    return {"weights": {"a": np.full(5, value)}}


@pytest.fixture
def run(tmp_path):
    with RunFolder.create_or_open(tmp_path / "run", CONFIG) as run:
        yield run


def break_checkpoint(run: RunFolder, iteration: int) -> None:
    path = run.checkpoints_folder / f"{iteration:06d}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


# --- bad paths


def test_a_path_that_cannot_be_a_run_folder(tmp_path):
    (tmp_path / "file").write_text("precious")
    cases = [
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "run", "lies beneath .*file, which is a file"),
        (tmp_path / "file" / "far" / "run", "lies beneath"),
        ("", "cannot be a run folder"),
        ("bad\0name", "cannot be a run folder"),
        ("x" * 5000, "cannot be a run folder"),
        ("~nobody-of-that-name/run", "cannot be a run folder"),
    ]
    for path, message in cases:
        for use in OPENINGS:
            with pytest.raises(RunError, match=message):
                use(path)
    assert (tmp_path / "file").read_text() == "precious"
    assert os.listdir(tmp_path) == ["file"]


def test_a_drive_that_is_not_there(monkeypatch):
    """Such as Z: on Windows: none of the folders above exists either."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    with pytest.raises(RunError, match="its drive is not there"):
        RunFolder.open("/z/run")


def test_a_run_that_does_not_exist(tmp_path):
    with pytest.raises(RunError, match="no such folder"):
        RunFolder.open(tmp_path / "none")
    with pytest.raises(RunError, match="no config.json"):
        RunFolder.open(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content, words",
    [
        *((damage, "config.json cannot be read") for damage in (b"{", b"[]", b"\xff\xfe", b"")),
        (b'{"seal": "sha256:00"}', "run of an earlier version.*choose another run folder"),
    ],
)
def test_a_config_that_cannot_be_used_is_named_and_left_alone(tmp_path, content, words):
    RunFolder.create_or_open(tmp_path, CONFIG).close()
    (tmp_path / "config.json").write_bytes(content)
    for use in OPENINGS:
        with pytest.raises(RunError, match=words):
            use(tmp_path)
    assert (tmp_path / "config.json").read_bytes() == content


def test_a_report_that_is_not_whole_is_named(tmp_path):
    RunFolder.create_or_open(tmp_path / "run", CONFIG).close()
    (tmp_path / "run" / "metrics.jsonl").write_text('{"iteration": 5}\n')
    with pytest.raises(RunError, match="a line of .*metrics.jsonl is no whole report"):
        RunFolder.open(tmp_path / "run").reports()
    assert "run" in str(list_runs(tmp_path))


def test_a_run_that_lost_its_config_is_not_begun_anew(tmp_path):
    RunFolder.create_or_open(tmp_path, CONFIG).close()
    (tmp_path / "config.json").unlink()
    with pytest.raises(RunError, match="holds a run without config.json"):
        RunFolder.create_or_open(tmp_path, CONFIG)
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / ".lock", "rb") as lock:  # as another process would, once it is put back
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_with_other_things_in_it_keeps_them(tmp_path):
    for name in (".profile.old", ".notes.tmp", "notes.txt"):
        (tmp_path / name).write_text("precious")
    RunFolder.create_or_open(tmp_path, CONFIG).close()
    assert {".profile.old", ".notes.tmp", "notes.txt"} <= set(os.listdir(tmp_path))


def test_a_full_disk_at_the_start_is_an_error_and_unlocks(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(RunError, match="No space left on device"):
            RunFolder.create_or_open(tmp_path / "run", CONFIG)
    RunFolder.create_or_open(tmp_path / "run", CONFIG).close()


# --- config of a resumed run


def test_a_resumed_run_keeps_its_network(tmp_path):
    RunFolder.create_or_open(tmp_path, CONFIG).close()
    before = (tmp_path / "config.json").read_bytes()
    other = {**CONFIG, "minutes": 7, "channels": 64}
    with pytest.raises(ConfigError, match=r"channels \(was 32, now 64\)") as error:
        RunFolder.create_or_open(tmp_path, other, may_change={"minutes"})
    assert "minutes" not in str(error.value)
    assert (tmp_path / "config.json").read_bytes() == before
    with RunFolder.create_or_open(tmp_path, {**CONFIG, "minutes": 7}, may_change={"minutes"}):
        assert RunFolder.open(tmp_path).config["minutes"] == 7


def test_a_setting_that_comes_or_goes_is_a_difference(tmp_path):
    RunFolder.create_or_open(tmp_path, {"a": (1, 2), "b": 5}).close()
    RunFolder.create_or_open(tmp_path, {"a": [1, 2], "b": 5.0}).close()
    with pytest.raises(
        ConfigError, match=r"b \(was 5.0, now not there\), c \(was not there, now 3\)"
    ):
        RunFolder.create_or_open(tmp_path, {"a": (1, 2), "c": 3}, {"a"})
    with pytest.raises(ConfigError, match="plain"):
        RunFolder.create_or_open(tmp_path, {"c": object()})


def test_one_call_opens_all_of_a_run(tmp_path):
    path = tmp_path / "run"
    run, latest = open_run(path)
    assert (run.config, latest) == ({}, None)
    run.close()
    assert not path.exists(), "without settings it leaves no folder"
    with RunFolder.create_or_open(path, CONFIG) as run:
        for iteration in (1, 2):
            run.save_checkpoint(iteration, groups(iteration), {})
        break_checkpoint(run, 2)
    said = []
    run, latest = open_run(path, say=said.append)
    assert run.config["minutes"] == 5 and latest.iteration == 1
    assert len(said) == 1 and "000002" in said[0]
    run.settle({**CONFIG, "minutes": 6}, {"minutes"})
    assert run.changed == () and RunFolder.open(path).config["minutes"] == 6
    run.settle({**CONFIG, "minutes": 6, "of a newer version": None}, {"minutes"})
    run.close()
    (path / "checkpoints" / "000001.safetensors").unlink()
    with pytest.raises(
        CheckpointError, match="no checkpoint of the run .* can be loaded: .*000002"
    ):
        open_run(path)
    RunFolder.lock(path).close()  # it was unlocked


# --- reports


def test_a_line_cut_at_any_byte_is_left_out_and_then_dropped(run):
    run.append_report({"iteration": 1, "loss": 0.5})
    whole = run.path.joinpath("metrics.jsonl").read_bytes()
    for cut in range(1, len(whole)):
        run.path.joinpath("metrics.jsonl").write_bytes(whole + whole[:cut])
        assert len(run.read_reports()) == 1
        run.append_report({"iteration": 2})
        assert [report["iteration"] for report in run.read_reports()] == [1, 2]
    run.path.joinpath("metrics.jsonl").write_bytes(whole[:5])
    run.append_report({"iteration": 2})
    assert [report["iteration"] for report in run.read_reports()] == [2]


def test_only_the_end_of_the_reports_is_read_to_add_one(run, monkeypatch):
    monkeypatch.setattr(metrics, "LONGEST_LINE", 40)
    for iteration in range(9):
        run.append_report({"iteration": iteration})
    with open(run.path / "metrics.jsonl", "ab") as file:
        file.write(b'{"iteration"')
    run.append_report({"iteration": 9})
    assert [report["iteration"] for report in run.read_reports()] == list(range(10))


def test_a_damaged_line_is_named(run):
    for damage in (b"garbage\n", b"[]\n", b'{"iteration": "x"}\n', b"\n", b"\0\0\n"):
        run.path.joinpath("metrics.jsonl").write_bytes(b'{"iteration": 1}\n' + damage)
        with pytest.raises(RunError, match="line 2 of .*metrics.jsonl"):
            run.read_reports()


def test_nan_is_null_on_disk_and_nan_when_read(run):
    run.append_report({"iteration": 1, "value_loss": math.nan, "rates": {"stem": math.inf}})
    assert b"NaN" not in run.path.joinpath("metrics.jsonl").read_bytes()
    report = run.read_reports()[0]
    assert math.isnan(report["value_loss"]) and math.isnan(report["rates"]["stem"])


# --- checkpoints and snapshots


def test_saving_takes_a_small_share_of_the_time(run, monkeypatch):
    start = time.monotonic()
    now = [start]

    def slow(*_):
        now[0] += 10

    monkeypatch.setattr(folder.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(folder, "save_checkpoint", slow)
    assert run.may_save()
    run.save_checkpoint(1, groups(), {})
    for seconds, may_save in ((11, False), (240, False), (260, True)):
        now[0] = start + seconds
        assert run.may_save() == may_save


def test_prune_keeps_the_newest(run):
    for iteration in (1, 2, 3, 1_000_000):
        run.save_checkpoint(iteration, groups(), {})
    run.prune()
    assert run.checkpoints() == [3, 1_000_000]
    run.prune()
    assert sorted(os.listdir(run.checkpoints_folder)) == [
        "000003.safetensors",
        "1000000.safetensors",
    ]


def test_rewind_forgets_what_came_later(run):
    for iteration in (5, 10):
        run.save_checkpoint(iteration, groups(iteration), {})
        run.save_snapshot(iteration, groups()["weights"], {})
        run.save_game_sample(iteration, "*", ".pgn")
        run.save_game_sample(iteration, "X", ".txt")
        run.append_report({"iteration": iteration})
    (run.games_folder / "mine.pgn").write_text("*")
    (run.path / "ratings.json").write_text("{}")
    break_checkpoint(run, 10)
    run.rewind(run.latest_checkpoint().iteration)
    assert run.checkpoints() == [5]
    assert [path.name for path in run.snapshots().values()] == ["000005.safetensors"]
    assert sorted(os.listdir(run.games_folder)) == ["000005.pgn", "000005.txt", "mine.pgn"]
    assert [report["iteration"] for report in run.read_reports()] == [5]
    assert sorted(os.listdir(run.checkpoints_folder)) == ["000005.safetensors", "000010.set-aside"]
    assert not (run.path / "ratings.json").exists(), "it may name a network that is gone the best"


def test_snapshots_are_listed_in_order(run):
    for iteration in (1_000_000, 0, 20):
        run.save_snapshot(iteration, groups()["weights"], {"game": "chess"})
    (run.snapshots_folder / "notes.safetensors").write_bytes(b"")
    assert list(run.snapshots()) == [0, 20, 1_000_000]


def test_snapshots_nearer_than_two_percent_thin_out(run):
    """The newest is kept, and the first; a week of one every two minutes leaves a few hundred."""
    for iteration in range(0, 400, 3):
        run.save_snapshot(iteration, groups()["weights"], {"game": "chess"})
        run.prune()
        assert max(run.snapshots()) == iteration
    kept = list(run.snapshots())
    assert kept[:102] == list(range(0, 306, 3)), "these are two percent apart"
    assert all(after >= 1.02 * before for before, after in zip(kept[:-1], kept[2:-1]))
    assert all(after <= 1.02 * before + 3 for before, after in pairwise(kept))


# --- the lock


SECOND_PROCESS = """
import sys
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.opening import open_run
run = RunFolder.create_or_open(sys.argv[1], {})
run.append_report({"iteration": 1})
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_by_name_until_the_first_is_killed(tmp_path):
    command = [sys.executable, "-c", SECOND_PROCESS, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(RunError, match=f"in use by process {other.pid} on "):
            RunFolder.create_or_open(tmp_path, {})
        assert len(RunFolder.open(tmp_path).read_reports()) == 1  # reading needs no lock
        other.kill()
        other.wait()
        RunFolder.create_or_open(tmp_path, {}).close()


def assert_not_open_for_writing(run: RunFolder) -> None:
    for write in (
        lambda: run.append_report({"iteration": 1}),
        lambda: run.save_checkpoint(1, groups(), {}),
        lambda: run.save_snapshot(1, {}, {}),
        lambda: run.save_game_sample(1, "*", ".pgn"),
        lambda: run.rewind(0),
        run.prune,
    ):
        with pytest.raises(RunError, match="not open for writing"):
            write()


def test_a_later_opening_takes_over_and_one_for_reading_writes_nothing(tmp_path):
    first = RunFolder.create_or_open(tmp_path, CONFIG)
    second = RunFolder.create_or_open(tmp_path, CONFIG)
    second.append_report({"iteration": 1})
    assert_not_open_for_writing(first)
    first.close()
    second.append_report({"iteration": 2})
    second.close()
    second.close()
    assert_not_open_for_writing(RunFolder.open(tmp_path))


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with RunFolder.create_or_open(tmp_path, CONFIG) as run:
        assert len(run.messages) == 1 and "cannot be locked" in run.messages[0]


def test_a_lock_that_is_a_link_leaves_what_it_points_at(tmp_path):
    diary = tmp_path / "diary.txt"
    diary.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(diary)
    with pytest.raises(RunError, match="cannot use .* as a run folder"):
        RunFolder.create_or_open(tmp_path / "run", CONFIG)
    assert diary.read_text() == "precious"


# --- kill -9


KILLED_RUN = """
import os, random, signal, sys, time
import numpy as np
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.opening import open_run

def train_for_ever(path, channel, kill):
    run = RunFolder.create_or_open(path, {})
    latest = run.latest_checkpoint()
    iteration = latest.iteration if latest else 0
    run.rewind(iteration)
    if kill > 0:
        os.write(channel, b"x")
    while True:
        iteration += 1
        weights = {"a": np.full(20_000, iteration)}
        run.append_report({"iteration": iteration})
        run.save_snapshot(iteration, weights, {})
        run.save_checkpoint(iteration, {"weights": weights, "replay": weights}, {})
        run.prune()
        if kill == 0 and iteration == 1:  # so that one is there, however slow the disk
            os.write(channel, b"x")

path, before, kept = sys.argv[1], 0, 2
for kill in range(int(sys.argv[2])):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        train_for_ever(path, writing, kill)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    time.sleep(random.Random(kill).uniform(0.01, 0.08))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    run = RunFolder.open(path)
    latest = run.latest_checkpoint()
    reports = [report["iteration"] for report in run.read_reports()]
    if latest is None:
        continue
    assert latest.messages == () and latest.iteration >= before, latest
    assert (latest.checkpoint.groups["weights"]["a"] == latest.iteration).all()
    assert reports in (list(range(1, latest.iteration + 1)), list(range(1, latest.iteration + 2))), reports
    assert len(run.checkpoints()) <= max(kept, 2) + 1, "a kill before pruning leaves one more"
    before, kept = latest.iteration, len(run.checkpoints())
print("trained to", before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_under_kill_9_always_resumes(tmp_path):
    assert last_under_kills(KILLED_RUN, tmp_path / "run") > 0
