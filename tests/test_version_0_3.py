"""What 0.3 left on a disk: its snapshots evaluate and play, its runs resume."""

import shutil
from dataclasses import replace
from pathlib import Path

import chess
import pytest
import torch

from chessnn_colab.__main__ import main
from chessnn_colab.arena.chess.choose_move import choose_move
from chessnn_colab.arena.evaluate import evaluate_run, load_network
from chessnn_colab.arena.players import play_search
from chessnn_colab.config import TrainConfig
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.report import Silence
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.training import train


@pytest.fixture
def run(tmp_path) -> str:
    """A copy of the run: `train --iterations 2 --seed 0 --channels 2 --blocks 1` and sizes as small, by 0.3."""
    return shutil.copytree(Path(__file__).parent / "data" / "run_0_3", tmp_path / "run_0_3").as_posix()


def test_its_reports_are_read(run, capsys):
    reports = RunFolder.open(run).read_reports()
    assert [report["iteration"] for report in reports] == [1, 2] and "white_wins" in reports[0]
    assert main(["watch", run]) == 0
    assert "white wins" in capsys.readouterr().out


def test_its_snapshots_evaluate_and_play(run, short_games):
    result = evaluate_run(run, "random", 2, play_search("two-rung", 4, 2), device="cpu")
    assert result.player == "iteration 2" and result.games == 2
    network, _ = load_network(run, 0, "cpu")
    assert choose_move(network, play_search("policy"))(chess.Board()) in chess.Board().legal_moves


def test_it_resumes_and_keeps_its_network(run):
    config = TrainConfig(
        run=run,
        iterations=1,
        games_per_iteration=8,
        boards=4,
        max_plies=24,
        batch_size=32,
        replay_capacity=200,
        pool="inline",
        device="cpu",
        workers=1,
    )
    (report,) = train(config)
    assert report.iteration == 3 and report.total_games == 24 and report.wins.keys() == {"white", "black"}
    assert RunFolder.open(run).config["channels"] == 2 and RunFolder.open(run).config["game"] == "chess"
    assert [path.stem for path in RunFolder.open(run).snapshots()] == ["000000", "000002", "000003"]
    network, _ = load_network(run, 3, "cpu")
    assert RunFolder.open(run).config["policy_head"] == "from" and not network.config.jumps
    explicit = TrainConfig(run=run, preset="cpu").with_saved()
    assert explicit.policy_head == "from" and explicit.levels == 4
    assert RunFolder.open(run).config["levels"] == network.config.levels == 4
    with pytest.raises(ConfigError, match=r"cannot change .*levels \(was 4, now 8"):
        list(train(replace(config, levels=8)))


def test_a_new_run_starts_from_its_weights_and_answers_as_it_did(run, tmp_path):
    """Although a move's logit reads two squares in the new one, and its neurons may fire more spikes."""
    small = {"channels": 2, "blocks": 1, "games_per_iteration": 2, "boards": 2, "max_plies": 8, "batch_size": 8}
    new = str(tmp_path / "new")
    config = TrainConfig(run=new, from_checkpoint=run, iterations=1, pool="inline", device="cpu", **small)
    said, listener = [], Silence()
    listener.message = said.append
    list(train(config, listener))
    assert "up to 8 spikes in a step now, instead of 4" in " ".join(said)
    assert RunFolder.open(new).config["levels"] == 8
    old, grown = load_network(run, 2, "cpu")[0], load_network(new, 0, "cpu")[0]
    assert grown.config.jumps and not old.config.jumps
    observation = Chess().observe(Chess().init(1))
    with torch.no_grad():
        torch.testing.assert_close(grown(observation).prior_logits, old(observation).prior_logits)


def test_a_setting_that_it_did_not_know_cannot_be_given_to_it(run):
    with pytest.raises(ConfigError, match=r"cannot change .*activation \(was not there, now \"?relu"):
        list(train(TrainConfig(run=run, iterations=1, pool="inline", device="cpu", activation="relu")))
