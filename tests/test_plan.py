"""The plan of a run: what its arithmetic promises, and that a run does as planned."""

import json

import pytest

from chessnn_colab import check, devices
from chessnn_colab.__main__ import main
from chessnn_colab.config import TrainConfig
from chessnn_colab.devices import Inventory, WorkerPlan, inventory
from chessnn_colab.plan import made_up_machine, plan_run
from chessnn_colab.presets import LEAST_REUSE, MOST_REUSE, SPIKE_PRICES, Rates, stated_rates
from chessnn_colab.training import train

from .counts import full
from .small_run import tiny

CORES = Inventory((), False, 2)


def plan_of(gpus: int, **settings):
    machine = made_up_machine(gpus, "T4") if gpus else CORES
    return plan_run(TrainConfig(**settings), "cuda:0" if gpus else "cpu", machine)


@pytest.mark.parametrize("gpus", [0, 1, 2, 8, 64])
def test_what_is_played_is_learned_and_few_wait(gpus):
    plan = plan_of(gpus, minutes=60, preset="t4" if gpus else "cpu")
    assert plan.window > plan.positions_per_iteration and plan.idle_share < 0.15
    assert plan.draws_per_position == pytest.approx(plan.reuse, rel=0.01)
    assert LEAST_REUSE <= plan.reuse <= MOST_REUSE and plan.learners == max(gpus, 1)
    assert plan.others_idle_share < 0.15
    alone = plan_of(1, minutes=60, preset="t4")
    if gpus:
        assert plan.positions == pytest.approx(gpus * alone.positions, rel=0.05)


def test_one_learner_for_many_players_learns_less_often_from_each_position():
    one, all_learn = (plan_of(8, preset="t4", learner_gpu=who) for who in ("one", "all"))
    assert one.reuse == LEAST_REUSE < all_learn.reuse
    assert one.idle_share > 0.3 and one.positions < all_learn.positions
    assert one.others_idle_share > one.idle_share > 0.15 > all_learn.others_idle_share > 0


def test_every_worker_of_a_cluster_has_a_gpu_of_its_own():
    machine, device = made_up_machine(1, "T4"), "cuda:0"
    one, eight = (
        stated_rates("t4", device, machine, WorkerPlan((device,) * workers, 1), workers)
        for workers in (1, 8)
    )
    assert eight == pytest.approx([8 * rate for rate in one])


def test_a_run_does_as_planned(tmp_path):
    """Several processes play, and the window is full before the run ends."""
    config = tiny(
        tmp_path / "run",
        game="tictactoe",
        boards=8,
        max_plies=2,
        workers=full(4, 8),
        positions_per_iteration=2400,
        replay_capacity=5000,
        iterations=3,
        pool="local",
    )
    plan = plan_run(config, "cpu", inventory())
    reports = list(train(config))
    for report in reports:
        assert report.window > report.plies, "all that was played is learned from"
        assert report.draws_per_position == pytest.approx(plan.draws_per_position, rel=0.02)
    assert reports[-1].buffer_size == pytest.approx(plan.window, rel=0.02)


def test_a_cluster_counts_every_gpu_though_all_have_one_name(monkeypatch):
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    from chessnn_colab.workers import ray as cluster

    monkeypatch.setattr(cluster, "join_cluster", lambda address: {"CPU": 64.0, "GPU": 8.0})
    machine = made_up_machine(8, "T4")
    local, far = (
        plan_run(TrainConfig(preset="t4", minutes=60, pool=pool), "cuda:0", machine)
        for pool in ("local", "ray")
    )
    assert (far.devices, far.learners) == (8, 8)
    assert far.idle_share == pytest.approx(local.idle_share)


def test_every_gpu_that_plays_is_counted_however_its_workers_are_dealt():
    for gpus in (2, 4):
        machine = made_up_machine(gpus, "T4")
        plans = [
            TrainConfig(workers=workers).worker_plan("cuda:0", machine)
            for workers in (gpus, gpus + 1, 2 * gpus)
        ]
        assert len({stated_rates("t4", "cuda:0", machine, plan, gpus) for plan in plans}) == 1


def test_a_machine_made_up_has_the_memory_that_it_is_said_to_have(monkeypatch):
    planned = plan_of(2, minutes=60)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (1, 1))  # of the GPU that is here
    assert plan_of(2, minutes=60) == planned and planned.preset != "cpu"
    # torch shows 14.56 to 14.76 GiB of a T4, which is less than a100 needs.
    assert plan_of(8, minutes=600).preset == "t4"


def test_the_reuse_is_chosen_once_and_said():
    machine = made_up_machine(4, "T4")
    config = TrainConfig(preset="t4", learner_gpu="one")
    workers = config.worker_plan("cuda:0", machine)
    said = []
    first = config.resolve("cuda:0", machine, workers, say=said.append)
    assert said[0].startswith(f"Each position is learned from {first.sample_reuse:g} times: 0.8 to")
    saved = {**first.to_dict(), "sample_reuse": 1.3}
    later = config.resolve("cuda:0", machine, workers, saved, said.append)
    assert later.sample_reuse == 1.3 and len(said) == 1
    cores = TrainConfig(preset="cpu").resolve(
        "cpu", CORES, WorkerPlan(("cpu",), 1), say=said.append
    )
    assert cores.sample_reuse == MOST_REUSE and "from 3 times: on a CPU" in said[1]


def resolved_price(saved=None, **settings):
    config = TrainConfig(**settings)
    plan = WorkerPlan(("cpu",), 1)
    return config.resolve("cpu", CORES, plan, saved).spike_penalty


def test_spikes_have_a_price_in_chess_unless_told_otherwise():
    assert resolved_price() == SPIKE_PRICES["chess"] > 0
    assert resolved_price(spike_penalty=0.0) == 0 and resolved_price(spike_penalty=1.0) == 1
    assert resolved_price(activation="relu") == 0 == resolved_price(game="gomoku")


def test_a_resumed_run_keeps_its_price():
    saved = TrainConfig().to_dict()
    for kept in (0.0, 0.3):
        assert resolved_price({**saved, "spike_penalty": kept}) == kept
    saved.pop("spike_penalty")  # of a version that had none
    assert resolved_price(saved) == 0 and resolved_price(saved, spike_penalty=0.1) == 0.1


def test_the_command_prints_it_for_people_and_as_json(capsys):
    command = ["plan", "--gpus", "8", "--preset", "t4", "--minutes", "60"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "of all devices' time, 7.0 % of each that does not measure" in text
    assert "an estimate" in text
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"draws_per_position", "reuse", "idle_share", "window"} < set(found)
    assert found["positions"] > 100e6


def test_a_cpu_is_timed(capsys, monkeypatch):
    rates = Rates(200.0, 600.0)
    monkeypatch.setattr(devices, "inventory", lambda: CORES)
    monkeypatch.setattr(check, "time_network", lambda device, game: check.Speed(device, rates))
    assert main(["plan", "--minutes", "20"]) == 0
    found = capsys.readouterr().out
    assert "plays 200 positions a second, then learns from 600" in found
    plan = plan_run(TrainConfig(minutes=20), "cpu", CORES, rates)
    assert plan.line in found
    hourly = round(3600 * plan.positions_per_iteration / plan.seconds)
    assert f"an hour    {hourly:,} positions" in found
    assert main(["plan", "--minutes", "20", "--preset", "t4"]) == 0
    larger = TrainConfig(minutes=20, preset="t4")
    assert str(plan_run(larger, "cpu", CORES)) in capsys.readouterr().out, "of another network"


def test_a_large_machine_is_planned_for_on_a_small_one(capsys, monkeypatch):
    monkeypatch.setattr("chessnn_colab.config.usable_memory", lambda: 2**32)
    assert main(["plan", "--gpus", "512"]) == 2
    assert "replay_capacity=" in capsys.readouterr().err
    assert main(["plan", "--gpus", "512", "--replay-capacity", "200000000"]) == 0
    assert "window     200.0 million positions at the end" in capsys.readouterr().out


def test_a_named_gpu_is_planned_for_without_a_number(capsys):
    main(["plan", "--gpu", "H200"])
    named = capsys.readouterr().out
    main(["plan", "--gpu", "H200", "--gpus", "1"])
    assert named == capsys.readouterr().out


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--gpu", "V100"], "gpu='V100': expected one of T4, A100, H200"),
        (["--gpus", "0"], "gpus=0: expected a whole number from 1 to 1,000"),
        (["--gpus", "2", "--gpu", "V100"], "gpu='V100': expected one of T4, A100, H200"),
        (["--minutes", "-1"], "minutes=-1.0: expected more than 0"),
        (["--minutes", "1e308"], "minutes=1e+308: expected more than 0, and at most 9,007"),
    ],
)
def test_a_plan_that_is_not_possible(options, sentence, capsys):
    assert main(["plan", *options]) == 2
    assert sentence in capsys.readouterr().err
