"""The measurements: every figure is there, and what they compare with is the same work."""

import json
import re
from functools import partial

import pytest
import torch
from torch import nn

from chessnn_colab import ranks
from chessnn_colab.__main__ import main
from chessnn_colab.bench import neighbour, table, workers
from chessnn_colab.bench import network as network_bench
from chessnn_colab.bench.network import plain_network
from chessnn_colab.bench.self_play import bench_self_play
from chessnn_colab.bench.setting import Setting, random_positions
from chessnn_colab.config import TrainConfig
from chessnn_colab.devices import Inventory
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingLayer, actor_copy, build_network
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.search import SearchConfig

SELF_PLAY_FIGURES = [
    "moves_per_second",
    "search_efficiency",
    "overhead_us_per_evaluation",
    "evaluations_per_second",
]
FIGURES = {
    "rules": ["positions_per_second"],
    "network": ["evaluations_per_second", "plain_evaluations_per_second", "speedup"],
    "self-play": SELF_PLAY_FIGURES,
    "tree": SELF_PLAY_FIGURES,
    "workers": ["moves_per_second", "speedup"],
    "learner": ["learner_share", "updates/s alone"],
}

# A difference of what was measured at two times, between which other work may come or go.
MAY_BE_NEGATIVE = ("overhead_us_per_evaluation",)


def test_bench_all_ends_in_json_with_every_figure(capsys, monkeypatch):
    monkeypatch.setattr(network_bench, "TURNS", 1)
    monkeypatch.setattr(network_bench, "BATCH", 64)
    small_tree = SearchConfig(search="tree", num_simulations=8)
    monkeypatch.setitem(table.BENCHES, "tree", partial(bench_self_play, search=small_tree))
    monkeypatch.setattr(workers, "WARM_UP_SECONDS", 0.2)
    monkeypatch.setattr(workers, "inventory", lambda: Inventory((), False, 1))
    arguments = "bench all --seconds 0.2 --boards 32 --json --device cpu"
    assert main(arguments.split()) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["device"] == "cpu" and set(FIGURES) < set(result)
    for name, figures in FIGURES.items():
        assert all(isinstance(result[name][figure], float) for figure in figures), name
        wrong = [figure for figure in figures if result[name][figure] <= 0]
        assert {*wrong} <= {*MAY_BE_NEGATIVE}, name
    assert 0 < result["learner"]["learner_share"] < 1
    assert 0 < result["tree"]["evaluations_per_move"] <= 9


@pytest.mark.parametrize("levels, steps", [(4, 1), (4, 3), (1, 2)])
def test_the_network_that_network_benchs_with_is_the_same_network(levels, steps):
    network = build_network(
        NetworkConfig(channels=8, blocks=2, levels=levels, steps=steps), "cpu", seed=1
    )
    game = Chess()
    observation = game.observe(random_positions(game, 64))
    network.train()(observation)  # a past for the batch norms
    plain, ours = plain_network(network), actor_copy(network.eval())
    assert any(isinstance(module, nn.BatchNorm2d) for module in plain.modules())
    assert not any(isinstance(module, SpikingLayer) for module in plain.modules())
    with torch.no_grad():
        theirs, found = plain(observation), ours(observation)
    # A membrane within a rounding of a threshold may fall either way.
    close = (theirs.prior_logits - found.prior_logits).abs().amax(1) < 1e-4
    assert close.float().mean() > 0.9 and found.prior_logits.std() > 0


@pytest.mark.parametrize("game, parts", [("tictactoe", 4), ("2048", 3)])
def test_a_busy_neighbour_is_measured_beside_every_part(capsys, monkeypatch, game, parts):
    """In a game for one player there is no match."""
    monkeypatch.setattr(neighbour, "CYCLES", 1)
    monkeypatch.setattr(neighbour, "FIRST_GAMES_SECONDS", 0.3)
    monkeypatch.setattr(workers, "WARM_UP_SECONDS", 0.1)
    monkeypatch.setattr(neighbour, "MATCH_GAMES", 2)
    monkeypatch.setattr(neighbour, "inventory", lambda: Inventory((), False, 1))
    arguments = f"bench neighbour --game {game} --seconds 0.3 --json --device cpu"
    assert main(arguments.split()) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    for part in ("rules", "self_play", "learner", "match")[:parts]:
        assert result[f"{part}_per_second"] > 0
        for suffix in ("", "_two"):
            assert result[f"{part}_ratio{suffix}"] > 0


def test_the_pace_of_one_learner_is_not_said_to_be_that_of_several(monkeypatch, capsys):
    def no_store(host):
        raise OSError("no port is free")

    monkeypatch.setattr(ranks, "new_store", no_store)
    monkeypatch.setattr(workers, "WARM_UP_SECONDS", 0.2)
    monkeypatch.setattr(workers, "inventory", lambda: Inventory((), False, 2))
    arguments = "bench learner --game tictactoe --seconds 0.3 --boards 32 --json --device cpu"
    assert main(arguments.split()) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["updates/s alone"] > 0
    assert "cannot learn together (no port is free)" in figures["updates/s together"]


def small_benches(monkeypatch, *interrupted: str) -> None:
    """Three benches that take no time; those in `interrupted` are stopped by Ctrl-C."""

    def measuring_what(name):
        def bench(setting):
            if name in interrupted:
                raise KeyboardInterrupt
            return {"figure": float(len(name))}

        return bench

    monkeypatch.setattr(
        table, "BENCHES", {name: measuring_what(name) for name in ("rules", "network", "tree")}
    )


def test_bench_says_how_much_is_to_come_and_which_bench_is_done(monkeypatch, capsys):
    small_benches(monkeypatch)
    assert main(["bench", "all", "--device", "cpu", "--json"]) == 0
    captured = capsys.readouterr()
    first, *done = captured.err.splitlines()
    assert first.startswith("0/3 measurements")
    for line, name in zip(done, ("rules", "network", "tree")):
        assert f"bench {name}: completed" in line
    figures = json.loads(captured.out)
    assert figures["tree"] == {"figure": 4.0} and "not_measured" not in figures


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_ctrl_c_keeps_the_figures_of_the_benches_that_were_done(more, monkeypatch, capsys):
    small_benches(monkeypatch, "network")
    assert main(["bench", "all", "--device", "cpu", *more]) == 130
    captured = capsys.readouterr()
    assert (
        captured.err.splitlines()[-1] == "chessnn_colab: interrupted; not measured: network, tree"
    )
    if more:
        figures = json.loads(captured.out)
        assert figures["rules"] == {"figure": 5.0} and figures["device"] == "cpu"
        assert "network" not in figures and figures["not_measured"] == ["network", "tree"]
    else:
        assert re.search(r"^rules figure +5\.000$", captured.out, re.MULTILINE)
        assert "network figure" not in captured.out


def test_a_network_that_spikingjelly_refuses_is_measured_alone(monkeypatch):
    """As on MPS: there is nothing to compare it with."""
    network = build_network(NetworkConfig(channels=8, blocks=1), "cpu").eval()
    setting = Setting("cpu", TrainConfig(precision="float32"), 0.05, boards=16)
    monkeypatch.setattr(Setting, "network", lambda _: network)
    assert {"speedup", "plain_evaluations_per_second"} < network_bench.bench_network(setting).keys()
    network.portable = True
    assert network_bench.bench_network(setting).keys() == {"evaluations_per_second"}
