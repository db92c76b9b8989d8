"""A run from beginning to end: reports, files, resuming, budgets, interrupts. Tiny networks, real
everything else.
"""

import dataclasses
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from chessnn_colab import budget as budgets
from chessnn_colab import config as config_module
from chessnn_colab import cpu, device_probe, presets, training
from chessnn_colab.budget import Budget
from chessnn_colab.chances import Correction
from chessnn_colab.config import TrainConfig, saved_config
from chessnn_colab.cpu import use_threads
from chessnn_colab.devices import Gpu, Inventory, WorkerPlan, inventory
from chessnn_colab.errors import CheckpointError, ChessnnError, ConfigError, RunError
from chessnn_colab.games.chess.pgn import game_from_pgn
from chessnn_colab.games.chess.rules import ENDINGS
from chessnn_colab.graphs import Replays
from chessnn_colab.learning import learn
from chessnn_colab.network import to_arrays
from chessnn_colab.replay import ReplayBuffer, window_size
from chessnn_colab.report import Report
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import load_network
from chessnn_colab.selfplay import SelfPlay
from chessnn_colab.training import train
from chessnn_colab.workers.pool import MAX_RESTARTS, Pool

from .counts import full
from .small_run import tiny


def weights(run, iteration=None) -> dict[str, np.ndarray]:
    return to_arrays(load_network(str(run), iteration, "cpu")[0])


def in_flight(run) -> int:
    """The plies of the games in flight in the run's latest checkpoint."""
    groups = RunFolder.open(run).latest_checkpoint().checkpoint.groups
    return len(groups["games"].get("rows.number", ()))


def assert_same(first: dict, second: dict) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


class Listener:
    """Remembers what a run tells its progress; `on` maps an event to something to do."""

    def __init__(self, **on):
        self.events, self.on = [], on

    def __getattr__(self, name):
        def heard(*args):
            self.events.append((name, *args))
            if name in self.on:
                self.on[name]()

        return heard

    def count(self, name: str) -> int:
        return sum(event[0] == name for event in self.events)

    def messages(self) -> str:
        return "\n".join(event[1] for event in self.events if event[0] == "message")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    reports = list(train(tiny(folder, iterations=3)))
    return folder, reports


def test_a_report_an_iteration_and_it_adds_up(run):
    _, reports = run
    assert [report.iteration for report in reports] == [1, 2, 3]
    for report in reports:
        assert report.games == sum(report.endings.values()) >= 6
        stopped = report.endings["truncated"]
        assert sum(report.wins.values()) + report.draws + stopped == report.games
        assert report.positions_played == 132
        assert sum(report.wins.values()) == report.endings["checkmate"]
        assert report.plies == pytest.approx(report.games * report.average_plies)
        assert set(report.endings) == set(ENDINGS[1:])
        for name in (
            "loss",
            "policy_loss",
            "value_loss",
            "entropy",
            "positions_per_second",
            "seconds_learning",
        ):
            assert math.isfinite(getattr(report, name)) and getattr(report, name) > 0, name
        assert (
            all(0 <= rate <= 1 for rate in report.firing_rates.values())
            and len(report.firing_rates) == 3
        )
        assert game_from_pgn(report.sample_game)
        chances, actions, probabilities = report.opinions[-1][1:4]
        assert sum(chances) == pytest.approx(1) and sum(probabilities) == pytest.approx(1)
        assert len(actions) == 26 and len(report.opinions[-1][4]) == 64, "of 1. e4 e5 2. Nf3 Qh4"
    assert [[of[0] for of in report.opinions] for report in reports] == [[0, 1], [2], [3]]
    assert reports[-1].total_games == sum(report.games for report in reports)
    assert reports[-1].total_positions == sum(report.plies for report in reports)
    assert reports[-1].buffer_size == min(400, reports[-1].total_positions)


def test_the_run_folder_holds_what_the_design_says(run):
    folder, reports = run
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    read = str([Report.from_dict(json.loads(line)) for line in lines])
    assert read.replace("=None", "=nan") == str(reports)  # text, because no NaN equals another
    assert json.loads((folder / "config.json").read_text())["channels"] == 8
    assert len(list((folder / "tensorboard").iterdir())) == 1
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "000002.safetensors",
        "000003.safetensors",
    ]
    assert list(RunFolder.open(folder).snapshots()) == [0, 1, 2, 3]
    assert (folder / "games" / "000003.pgn").read_text().strip() == reports[-1].sample_game.strip()


def test_same_seed_same_weights_other_seed_others(run, tmp_path):
    list(train(tiny(tmp_path / "again", iterations=3)))
    assert_same(weights(run[0]), weights(tmp_path / "again"))
    list(train(tiny(tmp_path / "other", iterations=1, seed=1)))
    assert any(
        not np.array_equal(array, weights(run[0], 1)[name])
        for name, array in weights(tmp_path / "other").items()
    )


def test_worker_processes_play_what_the_inline_pool_plays(run, tmp_path):
    list(train(tiny(tmp_path / "local", iterations=1, pool="local")))
    assert_same(weights(run[0], 1), weights(tmp_path / "local"))


def test_a_run_whose_workers_are_killed_is_the_run_that_nobody_disturbed(tmp_path, monkeypatch):
    """Games in flight and all, bit for bit: workers are killed at random, none so often in a row
    that the pool gives up on it.
    """
    iterations, random = full(2, 400), np.random.default_rng(0)
    list(train(tiny(tmp_path / "undisturbed", iterations=iterations)))
    before = {process.pid for process in multiprocessing.active_children()}
    killed: list[int] = []
    pools: list[Pool] = []
    open_pool = TrainConfig.open_pool

    def opened(*args):
        pools.append(open_pool(*args))
        return pools[-1]

    def kill():
        if len(killed) == killer.count("start_selfplay") or random.random() < 0.5:
            return
        deaths = [slot.deaths for slot in pools[-1]._slots] + pools[-1].call.deaths
        if max(deaths) == MAX_RESTARTS:
            return
        workers = [each for each in multiprocessing.active_children() if each.pid not in before]
        killed.append(random.choice(workers).pid)
        os.kill(killed[-1], signal.SIGKILL)

    monkeypatch.setattr(TrainConfig, "open_pool", opened)
    killer = Listener(worker_update=kill)
    list(train(tiny(tmp_path / "disturbed", iterations=iterations, pool="local"), killer))
    assert len(killed) >= full(1, 100) and "killed by signal 9" in killer.messages()
    assert_same(weights(tmp_path / "undisturbed"), weights(tmp_path / "disturbed"))
    assert in_flight(tmp_path / "undisturbed") == in_flight(tmp_path / "disturbed") > 0


def test_the_price_of_spikes_rises_with_the_positions(tmp_path, monkeypatch):
    """With those of the run whose weights it began from, too."""
    prices = []

    def noted(learner, *rest):
        prices.append(learner.config.spike_penalty)
        return learn(learner, *rest)

    monkeypatch.setattr(training, "learn", noted)
    monkeypatch.setattr(presets, "PRICE_RISES_AFTER", 200)
    first = tiny(tmp_path / "run", iterations=3, spike_penalty=0.5)
    later = dataclasses.replace(first, run=str(tmp_path / "later"), from_checkpoint=first.run)
    played = [report.total_positions for report in train(first)]
    played += [played[-1] + report.total_positions for report in train(later)]
    assert prices == [0.5 * min(max(count / 200, 1), 3) for count in played]
    assert prices[0] == 0.5 < prices[2] < prices[3] < prices[-1] == 1.5
    assert RunFolder.open(later.run).config["spike_penalty"] == 0.5


def test_games_that_the_cap_ends_count_when_chances_are_corrected(tmp_path, monkeypatch):
    """Without them the network would say too few draws: long games are mostly drawn."""
    counted = []

    def noted(correction, said, played):
        counted.append(len(said))
        return correction

    monkeypatch.setattr(Correction, "after", noted)
    reports = list(train(tiny(tmp_path)))
    assert counted == [report.plies for report in reports]
    assert all(report.endings["truncated"] for report in reports)


def test_a_run_from_other_neurons_says_which(run, tmp_path):
    for name, changes, words in (("same", {}, ""), ("other", {"levels": 4}, "levels=8")):
        listener = Listener()
        config = tiny(tmp_path / name, from_checkpoint=str(run[0]), iterations=1, **changes)
        list(train(config, listener))
        (line,) = [line for line in listener.messages().splitlines() if "Starting from" in line]
        assert line.partition("; they learned with ")[2] == words


def test_resuming_is_exact(run, tmp_path):
    folder = tmp_path / "halves"
    list(train(tiny(folder, iterations=1)))
    listener = Listener()
    list(train(tiny(folder, iterations=2), listener))
    assert "Resuming" in listener.messages()
    assert_same(weights(run[0]), weights(folder))
    reports = RunFolder.open(folder).reports()
    assert [report.iteration for report in reports] == [1, 2, 3]
    assert [of for report in reports for of in report.opinions] == [
        of for report in run[1] for of in report.opinions
    ]


def test_resuming_forgets_what_came_after_the_last_checkpoint(run, tmp_path):
    """Three reports and a checkpoint of the second, as a kill after the third would leave it."""
    folder = tmp_path / "killed"
    list(train(tiny(folder, iterations=3)))
    (folder / "checkpoints" / "000003.safetensors").unlink()
    list(train(tiny(folder, iterations=1)))
    assert [report["iteration"] for report in RunFolder.open(folder).read_reports()] == [1, 2, 3]
    assert_same(weights(run[0]), weights(folder))


def test_leaving_the_loop_keeps_everything(tmp_path):
    for report in train(tiny(tmp_path, iterations=9, checkpoint_every=10_000)):
        if report.iteration == 2:
            break
    (report,) = train(tiny(tmp_path, iterations=1))
    assert report.iteration == 3


def test_beginning_again_while_an_old_generator_lingers(tmp_path):
    """A notebook's traceback can keep a generator alive after its cell was interrupted."""
    lingering = train(tiny(tmp_path, iterations=9, checkpoint_every=0))
    next(lingering)
    (report,) = train(tiny(tmp_path, iterations=1))
    lingering.close()
    assert report.iteration == 2
    assert [report["iteration"] for report in RunFolder.open(tmp_path).read_reports()] == [1, 2]


@pytest.mark.parametrize("changes", [{}, {"pool": "local", "workers": 1}])
def test_interrupt_keeps_everything_and_the_next_call_goes_on(tmp_path, changes):
    def interrupt():
        raise KeyboardInterrupt

    listener = Listener(report=interrupt)
    list(train(tiny(tmp_path, iterations=5, checkpoint_every=10_000, **changes), listener))
    assert "Interrupted: everything up to iteration 1 is kept" in listener.messages()
    assert RunFolder.open(tmp_path).checkpoints() == [0, 1]
    (report,) = train(tiny(tmp_path, iterations=1))
    assert report.iteration == 2


@pytest.mark.parametrize("pool", ["inline", "local"])
def test_interrupt_keeps_the_plies_of_an_iteration_in_which_no_game_ended(tmp_path, pool):
    def interrupt():
        raise KeyboardInterrupt

    config = tiny(tmp_path, positions_per_iteration=32, boards=16, workers=1, pool=pool)
    assert list(train(config, Listener(finish_selfplay=interrupt))) == []
    assert in_flight(tmp_path) == 32


def test_interrupt_during_learning_counts_the_games_and_leaves_the_untrained_snapshot(
    tmp_path, monkeypatch
):
    update = training.Learner.update

    def interrupted(self, *arguments):
        if self.updates == 2:
            raise KeyboardInterrupt
        return update(self, *arguments)

    monkeypatch.setattr(training.Learner, "update", interrupted)
    list(train(tiny(tmp_path, iterations=3, sample_reuse=9.0)))
    checkpoint = RunFolder.open(tmp_path).latest_checkpoint().checkpoint
    assert (
        checkpoint.metadata["total_positions"] == len(checkpoint.groups["replay"]["positions"]) > 0
    )
    assert checkpoint.metadata["updates"] == 2
    assert not np.array_equal(
        weights(tmp_path, 0)["value.2.bias"], checkpoint.groups["weights"]["value.2.bias"]
    )
    monkeypatch.undo()
    begun: list[int] = []
    monkeypatch.setattr(
        training.StrengthProbe, "begin", lambda *arguments: begun.append(arguments[-1]) or ()
    )
    (report,) = train(tiny(tmp_path, iterations=1))
    assert begun == [2], "the probe does not measure it as the network before training"
    assert (
        report.iteration == 1
        and report.total_positions == checkpoint.metadata["total_positions"] + report.plies
    )
    assert [opinion[0] for opinion in report.opinions] == [1], "no network is untrained any more"


def test_the_untrained_networks_opinion_is_told_once(tmp_path):
    """Also where no game has ended in the first iteration, so that nothing was learned."""
    config = tiny(tmp_path, iterations=3, positions_per_iteration=32, boards=16, workers=1)
    reports = list(train(config))
    assert reports[0].games == reports[0].total_updates == 0
    told = [[opinion[0] for opinion in report.opinions] for report in reports]
    assert told == [[0, 1], [2], [3]]


@pytest.mark.parametrize("pool", ["inline", "local"])
def test_interrupt_while_games_are_handed_over_keeps_each_once(tmp_path, monkeypatch, pool):
    add, calls = ReplayBuffer.add, []

    def interrupted(self, records):
        calls.append(records.num_positions)
        if len(calls) == 1:
            raise KeyboardInterrupt
        add(self, records)

    monkeypatch.setattr(ReplayBuffer, "add", interrupted)
    assert list(train(tiny(tmp_path, iterations=3, pool=pool))) == []
    checkpoint = RunFolder.open(tmp_path).latest_checkpoint().checkpoint
    held = len(checkpoint.groups["replay"]["positions"])
    assert calls == [held, held] and held == checkpoint.metadata["total_positions"] > 0


@pytest.mark.parametrize("pool", ["inline", "local"])
def test_a_tiny_time_budget_still_makes_an_iteration(tmp_path, pool):
    reports = list(
        train(
            tiny(
                tmp_path,
                iterations=None,
                minutes=0.02,
                pool=pool,
                workers=1,
                positions_per_iteration=100_000,
                replay_capacity=None,
                max_plies=400,
            )
        )
    )
    assert len(reports) >= 1 and reports[-1].plies > 0 and reports[0].updates >= 1
    assert RunFolder.open(tmp_path).checkpoints()[-1] == reports[-1].iteration
    assert in_flight(tmp_path) == 0, "the games that the clock stopped are labelled"
    assert reports[-1].total_positions == sum(report.positions_played for report in reports)


def test_budget_by_time(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: now))
    budget = Budget(1.0, None)
    assert not budget.over(1e9), "the first iteration always runs"
    budget.done, budget.started = 1, now - 59
    assert budget.over(30) and not budget.over(1)
    assert budget.learning_rate_factor() == pytest.approx(0.08, abs=0.01)
    budget.started = now - 10
    assert budget.learning_rate_factor() == 1.0
    budget = Budget(1, None, total_minutes=4)
    budget.started, budget.seconds_before = now - 30, 60
    assert budget.learning_rate_factor() == 1.0  # 90 of 240 seconds
    budget.seconds_before = 210
    assert budget.learning_rate_factor() == pytest.approx(0.05)
    budget = Budget(1, None)
    budget.started = now - 10
    # 50 seconds are left; learning takes as long again as playing, or a quarter of it.
    assert budget.play_deadline(1.0) == budget.started + 35
    assert budget.play_deadline(0.25) == budget.started + 50
    budget.reserved = 5.0
    assert budget.deadline == budget.started + 55


def test_a_run_that_goes_on_with_other_settings_says_which(tmp_path):
    list(train(tiny(tmp_path, iterations=1, num_simulations=4)))
    listener = Listener()
    list(train(tiny(tmp_path, iterations=2, sample_reuse=1.5), listener))
    changed = next(
        text for text in listener.messages().splitlines() if "Its settings have changed: " in text
    )
    assert (
        "num_simulations (was 4, now 32)" in changed
        and ", now 1.5)" in changed
        and "iterations" not in changed
    )
    listener = Listener()
    list(train(tiny(tmp_path, iterations=3, sample_reuse=1.5), listener))
    assert "have changed" not in listener.messages()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_training_that_is_told_to_end_keeps_everything(tmp_path, number):
    """As a cluster's scheduler tells it, or a person at a terminal."""
    options = (
        "--game tictactoe --iterations 1000000 --checkpoint-every 1000000 --positions-per-iteration 128 "
        "--workers 1 --no-measure-strength --device cpu"
    )
    train_command = ["-m", "chessnn_colab", "train", "--run", str(tmp_path)]
    command = [sys.executable, *train_command, *options.split()]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        deadline = time.monotonic() + 90
        metrics = tmp_path / "metrics.jsonl"
        while time.monotonic() < deadline and not (
            metrics.is_file() and metrics.read_bytes().count(b"\n") > 1
        ):
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(120) == 130
    assert RunFolder.open(tmp_path).checkpoints()[-1] >= 1, "no checkpoint was due before"


def test_a_full_disk_is_told_when_the_caller_leaves_the_loop(tmp_path, monkeypatch):
    listener = Listener()
    reports = train(tiny(tmp_path, iterations=5, checkpoint_every=10_000), listener)
    next(reports)

    def full(*_):
        raise CheckpointError("cannot write: No space left on device")

    monkeypatch.setattr(RunFolder, "save_checkpoint", full)
    reports.close()
    assert "No space left on device" in listener.messages()


def test_torch_takes_no_more_threads_than_the_container_has_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(cpu, "usable_cores", lambda: 1)
    with use_threads(2):
        list(train(tiny(tmp_path, iterations=1)))
        assert torch.get_num_threads() == 1


def test_a_device_that_is_passed_over_is_named(tmp_path, monkeypatch):
    """As a GPU whose rules come out wrong."""

    def broken(device):
        raise RuntimeError("the rules of chess come out wrong there, after 3 random plies")

    machine = Inventory((Gpu(0, "a GPU", 8 * 2**30, (7, 5)),), False, 2)
    monkeypatch.setattr(training, "inventory", lambda: machine)
    monkeypatch.setattr(
        device_probe, "probe", lambda device, **_: None if device == "cpu" else broken(device)
    )
    listener = Listener()
    list(train(tiny(tmp_path, iterations=1, device="auto"), listener))
    assert (
        "cuda:0: there, but broken: the rules of chess come out wrong there" in listener.messages()
    )
    assert "Primary training device: cpu (CPU)" in listener.messages()
    assert listener.messages().startswith("Trying the GPU, and comparing it with the CPU")
    assert "Preset" not in listener.messages(), "the preset was asked for"


def test_from_another_runs_weights(run, tmp_path):
    list(train(tiny(tmp_path, iterations=1, from_checkpoint=str(run[0]))))
    assert_same(weights(tmp_path, 0), weights(run[0], 3))
    listener = Listener()
    list(train(tiny(tmp_path, iterations=1, from_checkpoint="no run"), listener))
    words = "goes on with its own weights: 'no run' (from_checkpoint, --from) is for a new run"
    assert words in listener.messages()


def test_a_run_that_lost_its_checkpoints_is_not_begun_anew(run, tmp_path):
    shutil.copytree(run[0], tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    kept = sorted(path.name for path in (tmp_path / "run").rglob("*"))
    with pytest.raises(RunError, match="has snapshots or reports, and no checkpoint to go on from"):
        list(train(tiny(tmp_path / "run", iterations=1)))
    assert set(kept) <= {path.name for path in (tmp_path / "run").rglob("*")}
    shutil.rmtree(tmp_path / "run" / "snapshots")
    reports = (tmp_path / "run" / "metrics.jsonl").read_text()
    with pytest.raises(RunError, match="has snapshots or reports"):
        list(train(tiny(tmp_path / "run", iterations=1)))
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == reports != ""


def test_a_run_that_ends_drops_the_recordings_of_its_updates(tmp_path, monkeypatch):
    """On a GPU they hold memory until Python collects them, which a next run would lack."""
    dropped = []

    def forget(replays: Replays) -> None:
        dropped.append(replays)

    monkeypatch.setattr(Replays, "forget", forget)
    list(train(tiny(tmp_path, iterations=1)))
    assert len(dropped) == 1


def test_value_targets_go_on_where_the_run_was_that_gave_the_weights(run, tmp_path, monkeypatch):
    seen = []
    set_weights = SelfPlay.set_weights

    def see(job, version, arrays):
        seen.append(version)
        set_weights(job, version, arrays)

    monkeypatch.setattr(SelfPlay, "set_weights", see)
    before = run[1][-1].total_positions
    (first,) = train(tiny(tmp_path / "second", iterations=1, from_checkpoint=str(run[0])))
    (again,) = train(tiny(tmp_path / "second", iterations=1))
    list(train(tiny(tmp_path / "third", iterations=1, from_checkpoint=str(tmp_path / "second"))))
    plies = [0, first.plies, first.plies + again.plies]
    assert seen[::2] == [before + played for played in plies]
    assert again.total_positions == plies[2], "the report counts the run's own positions"


def test_a_run_searches_a_tree(tmp_path):
    (report,) = train(tiny(tmp_path, iterations=1, search="tree", num_simulations=4))
    assert math.isfinite(report.loss) and report.entropy > 0


def test_auto_preset_goes_on_with_the_runs_network(run):
    config = tiny(run[0], preset="auto", channels=None, blocks=None)
    machine = inventory()
    plan = config.worker_plan("cpu", machine)
    config = config.resolve("cpu", machine, plan, saved_config(config.run))
    assert (config.preset, config.channels, config.blocks) == ("cpu", 8, 1)


def test_a_run_of_version_0_17_goes_on(tmp_path):
    """It had a setting more, and no correction of its chances."""
    list(train(tiny(tmp_path, iterations=1)))
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "device_failure": "stop"}))
    path = tmp_path / "checkpoints" / "000001.safetensors"
    groups, metadata = load_checkpoint(path)
    save_checkpoint(path, groups, {k: v for k, v in metadata.items() if k != "correction"})
    drive = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, drive)
    (report,) = train(tiny(tmp_path, iterations=1, copy_to=drive))  # as a Path
    assert report.iteration == 2
    for folder in (tmp_path, drive):
        assert "device_failure" not in json.loads((folder / "config.json").read_text())


def test_another_network_is_refused(run):
    with pytest.raises(ConfigError, match="channels"):
        list(train(tiny(run[0], channels=16)))


def test_games_go_on_with_another_number_of_workers_and_none_is_lost(tmp_path):
    reports = list(train(tiny(tmp_path, positions_per_iteration=72)))
    for workers in (3, 1):
        reports += train(tiny(tmp_path, workers=workers, positions_per_iteration=72))
        assert reports[-1].total_positions + in_flight(tmp_path) == 72 * len(reports)


def test_positions_that_the_replay_loses_are_told(tmp_path):
    """Games that go on from one iteration may end in the next, and so bring more than it plays."""
    listener = Listener()
    sizes = {"positions_per_iteration": 32, "replay_capacity": 32, "max_plies": 30}
    config = tiny(tmp_path, iterations=5, seed=1, **sizes)
    played = [0, *(report.total_positions for report in train(config, listener))]
    lost = [later - before for before, later in pairwise(played) if later - before > 32]
    told = [text for text in listener.messages().split("\n") if "replay keeps" in text]
    assert lost and told == [
        f"{new} new positions, but the replay keeps the latest 32: the network never learns from "
        "those before them. Raise replay_capacity"
        for new in lost
    ]


def test_games_that_end_together_in_a_short_iteration_are_kept(tmp_path):
    """All boards start together, and reach the cap together: far more than an iteration plays."""
    listener = Listener()
    sizes = {"workers": 1, "boards": 16, "positions_per_iteration": 16, "max_plies": 20}
    config = tiny(tmp_path, iterations=22, **sizes)
    reports = list(train(config, listener))
    brought = [
        later.total_positions - before.total_positions for before, later in pairwise(reports)
    ]
    assert max(brought) > 8 * 16
    most = brought.index(max(brought)) + 1
    assert reports[most].buffer_size >= max(brought)
    assert "replay keeps" not in listener.messages()


@pytest.mark.parametrize(
    "played, iteration, limit, size",
    [
        (250_000, 1, 10**9, 125_000),
        (1_000_000, 1, 10**9, 493_760),
        (6_200_000, 12_800, 10**9, 1_598_310),
        (0, 819_200, 10**9, 4 * 819_200),
        (6_200_000, 12_800, 400_000, 400_000),
    ],
)
def test_the_window_grows_by_katagos_rule(played, iteration, limit, size):
    assert window_size(played, iteration, limit) == pytest.approx(size, rel=1e-4)


def test_the_default_limit_of_the_window_is_the_memorys(monkeypatch):
    monkeypatch.setattr(config_module, "usable_memory", lambda: 2**33)
    plan = WorkerPlan(("cuda",), 1)
    config = TrainConfig(preset="cpu").resolve("cuda", inventory(), plan)
    assert config.replay_capacity == 2**31 // 110


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"preset": "tpu"}, "cpu, t4"),
        ({"minutes": 0}, "minutes=0"),
        ({"workers": 0}, "workers=0"),
        ({"search": "guess"}, "two-rung"),
        ({"precision": "int3"}, "float32"),
        ({"candidates": 2, "survivors": 3}, "survivors=3 of candidates=2: expected .* to 2"),
        ({"address": "auto"}, "only pool='ray' has an address"),
        ({"learner_gpu": "two"}, "learner_gpu='two': expected one of all, one"),
        ({"channels": 0}, "channels=0"),
        ({"gpus": ()}, r"gpus=\(\): expected different GPU numbers"),
        ({"gpus": (0, 0)}, r"gpus=\(0, 0\): expected different GPU numbers"),
        ({"gpus": 0}, "gpus=0: expected different GPU numbers"),
        ({"warm_up": -1}, "warm_up=-1: expected a whole number from 0 to"),
        ({"spike_penalty": -0.1}, "spike_penalty=-0.1: expected a number from 0 up"),
        ({"bootstrap_after": -1}, "bootstrap_after=-1: expected a whole number from 0 to"),
        ({"game": "2048", "bootstrap_after": 0}, "for the game '2048': expected none"),
        (
            {"replay_capacity": 131},
            "replay_capacity=131 with positions_per_iteration=132: expected",
        ),
        ({"workers": 3, "boards": 100}, "=132 for 3 workers of 100 boards: expected 300 or more"),
        ({"replay_capacity": 3e5}, "replay_capacity=300000.0: expected a whole number"),
        ({"search": "policy"}, "search=.policy. in self-play: expected one of two-rung, tree"),
        ({"solve": "some"}, "expected one of off, all"),
        ({"batch_size": 1}, "batch_size=1: expected a whole number from 2 to"),
        ({"minutes": "20"}, "minutes='20': expected more than 0"),
        ({"minutes": 10**400}, "expected more than 0, and at most 9,007"),
        (
            {"workers": 1_000_000_000},
            "workers=1000000000: expected a whole number from 1 to 10,000",
        ),
        ({"value_scale": -0.3}, "value_scale=-0.3: expected a number from 0 up"),
    ],
)
def test_impossible_settings_are_refused(tmp_path, changes, words):
    with pytest.raises(ChessnnError, match=words):
        list(train(tiny(tmp_path / "run", **changes)))
    assert not (tmp_path / "run").exists()


def test_an_unknown_setting_lists_the_known_ones():
    with pytest.raises(ConfigError, match="candidats.*candidates"):
        TrainConfig.from_dict({"candidats": 3})
    config = tiny("somewhere", gpus=(0, 1))
    assert TrainConfig.from_dict(json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_a_cluster_without_ray_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "chessnn_colab.workers.ray", raising=False)
    with pytest.raises(ConfigError, match="pool='ray' needs Ray.*pip install"):
        next(train(tiny(tmp_path / "run", pool="ray", workers=None)))
    assert not (tmp_path / "run").exists()
