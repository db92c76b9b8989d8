"""What a run keeps when something ends it: settings that do not fit, a diverged network, no memory,
an interrupt.
"""

import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from chessnn_colab import training
from chessnn_colab.data_parallel import slice_of
from chessnn_colab.errors import CheckpointError, ConfigError, RunError
from chessnn_colab.learning import learn_here
from chessnn_colab.report import Report
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.training import train

from .small_run import tiny
from .test_training import Listener


def interrupt(*_):
    raise KeyboardInterrupt


def latest(path: Path) -> dict:
    return RunFolder.open(path).latest_checkpoint().checkpoint.metadata


def next_report(path: Path, iteration: int) -> Report:
    """The report of the run's next iteration, which is `iteration`."""
    (report,) = train(tiny(path, iterations=1))
    assert report.iteration == iteration
    return report


def test_a_start_that_fails_leaves_no_settings_behind(tmp_path):
    list(train(tiny(tmp_path / "small", iterations=1)))
    wide = tiny(tmp_path / "new", from_checkpoint=str(tmp_path / "small"), channels=16)
    with pytest.raises(ConfigError, match="weights do not fit"):
        next(train(wide))
    assert not (tmp_path / "new").exists()
    (report,) = train(tiny(tmp_path / "new", from_checkpoint=str(tmp_path / "small"), iterations=1))
    assert report.iteration == 1


def test_a_run_goes_on_when_the_run_that_it_began_from_is_gone(tmp_path):
    (tmp_path / "first").mkdir()
    list(train(tiny(tmp_path / "first" / "run", iterations=1)))
    config = tiny(
        tmp_path / "second", from_checkpoint=str(tmp_path / "first" / "run"), iterations=1
    )
    list(train(config))
    (tmp_path / "first").rename(tmp_path / "elsewhere")
    (report,) = train(config)
    assert report.iteration == 2


def test_games_that_came_are_kept_though_the_replay_was_full(tmp_path):
    heard, done = [], []

    def in_the_third_iteration():
        heard.append(len(done))
        if heard.count(2) == 4:
            raise KeyboardInterrupt

    config = tiny(tmp_path, iterations=5, replay_capacity=132)
    done.extend(train(config, Listener(worker_update=in_the_third_iteration)))
    saved = latest(tmp_path)
    assert (
        saved["iteration"] == len(done) == 2 and saved["total_positions"] > done[-1].total_positions
    )


def test_games_that_came_are_kept_though_showing_their_end_was_interrupted(tmp_path):
    list(train(tiny(tmp_path, iterations=3), Listener(finish_selfplay=interrupt)))
    saved = latest(tmp_path)
    assert saved["iteration"] == 0 and saved["total_games"] >= 6


def test_a_diverged_network_is_not_saved_and_the_run_goes_on_from_before(tmp_path, monkeypatch):
    reports = train(tiny(tmp_path, iterations=5))
    next(reports)
    update = training.Learner.update

    def diverged(self, *arguments):
        losses = update(self, *arguments)
        with torch.no_grad():
            self.network.value[2].bias.fill_(torch.nan)
        return losses

    monkeypatch.setattr(training.Learner, "update", diverged)
    with pytest.raises(
        CheckpointError, match="training has diverged.*less than learning_rate=0.002"
    ):
        list(reports)
    monkeypatch.undo()
    assert latest(tmp_path)["iteration"] == 1
    assert np.isfinite(next_report(tmp_path, 2).loss)


def test_an_interrupt_before_a_report_is_written_leaves_its_iteration_to_the_next_start(
    tmp_path, monkeypatch
):
    reports = train(tiny(tmp_path, iterations=5, checkpoint_every=10_000))
    next(reports)
    monkeypatch.setattr(RunFolder, "append_report", interrupt)
    assert list(reports) == []
    monkeypatch.undo()
    folder = RunFolder.open(tmp_path)
    assert latest(tmp_path)["iteration"] == len(folder.read_reports()) == 1
    next_report(tmp_path, 2)
    assert [entry["iteration"] for entry in folder.read_reports()] == [1, 2]


@pytest.mark.parametrize("end", [ZeroDivisionError, SystemExit(15)])  # as Ray makes of SIGTERM
def test_whatever_ends_a_run_it_is_saved_first(tmp_path, end):
    def fails():
        raise end

    with pytest.raises((ZeroDivisionError, SystemExit)):
        list(train(tiny(tmp_path, checkpoint_every=10_000), Listener(report=fails)))
    assert latest(tmp_path)["iteration"] == 1


def test_a_save_that_would_take_too_much_of_the_time_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(RunFolder, "may_save", lambda run: False)
    list(train(tiny(tmp_path, iterations=2, checkpoint_every=0)))
    assert RunFolder.open(tmp_path).checkpoints() == [0, 2]
    assert [path.stem for path in (tmp_path / "games").iterdir()] == ["000002"], "one for each"


def test_no_memory_to_learn_says_what_to_lower(tmp_path, monkeypatch):
    """A notebook keeps an error with its frames: what they held is free, for the next try."""
    held = []

    def no_room(*_):
        activations = torch.zeros(1)
        held.append(weakref.ref(activations))
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(training.Learner, "update", no_room)
    with pytest.raises(
        ConfigError, match="out of memory on cpu while learning with batch_size=32: set .* lower"
    ) as kept:
        next(train(tiny(tmp_path)))
    assert kept.value.__context__ is not None and held[0]() is None


def test_no_memory_for_a_ranks_slice_names_the_whole_batch():
    def no_room(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    learner = SimpleNamespace(device=torch.device("cpu"), update=no_room)
    batch = slice_of({"positions": np.zeros((4096, 5), np.int64)}, 0, 8)
    with pytest.raises(ConfigError, match="while learning with batch_size=4096: set batch_size"):
        learn_here(learner, [(batch, 0.1)], False, lambda done: None)


def test_an_interrupt_while_it_closes_releases_everything(tmp_path, monkeypatch):
    close, listener = training.TensorBoard.close, Listener()

    def interrupted(board):
        close(board)
        raise KeyboardInterrupt

    monkeypatch.setattr(training.TensorBoard, "close", interrupted)
    reports = train(tiny(tmp_path), listener)
    next(reports)
    with pytest.raises(KeyboardInterrupt):
        reports.close()
    monkeypatch.undo()
    assert listener.events[-1] == ("close",)
    next_report(tmp_path, 2)


def test_the_value_of_the_generator_tells_an_interrupt(tmp_path):
    def told(listener):
        interrupted = yield from train(tiny(tmp_path, iterations=1), listener)
        values.append(interrupted)

    values: list[bool] = []
    list(told(Listener(worker_update=interrupt)))
    list(told(Listener()))
    assert values == [True, False]


def test_a_folder_that_nobody_may_look_into_is_one_clear_error(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)  # root may look everywhere
    with pytest.raises(RunError, match="cannot be a run folder: .*Permission denied"):
        next(train(tiny(tmp_path / "run")))


def test_a_start_that_is_refused_ends_its_progress(tmp_path):
    listener = Listener()
    with pytest.raises(ConfigError, match="5 for 2 workers of 3 boards: expected 6"):
        next(train(tiny(tmp_path / "run", positions_per_iteration=5), listener))
    assert listener.events[-1] == ("close",)
