"""Which network plays when somebody opens the board: the one asked for, the newest trained run of
chess, or the one that is shipped.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from chessnn_colab.errors import CheckpointError
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.networks import find_network, load_network
from tests.small_run import CONFIG, make_run


def test_without_any_run_the_shipped_network_is_taken_and_said(tmp_path):
    found = find_network("", tmp_path / "runs")
    assert Path(found.run).name == "strongest.safetensors" and Path(found.run).is_file()
    assert "strongest network that comes with the package" in found.sentence
    asked = find_network(str(tmp_path / "nothing"), tmp_path)
    assert (
        asked.run == found.run
        and "nothing" in asked.sentence
        and "comes with the package" in asked.sentence
    )


def test_the_newest_trained_run_of_chess_is_taken_and_what_is_asked_for_comes_first(tmp_path):
    for number, name in enumerate(("old", "young")):
        run = make_run(tmp_path / name, (1, 2))
        os.utime(tmp_path / name / "config.json", (number, number))
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").write_text("no run")
    assert find_network("", tmp_path) == (run, f"This is the newest trained run of chess, {run}.")
    for name, iterations, game, config in (
        ("untrained", (0,), "chess", CONFIG),
        ("gomoku", (1,), "gomoku:9", replace(CONFIG, planes=5, height=9, width=9, actions=81)),
    ):
        make_run(tmp_path / name, iterations, game, config)
    make_run(tmp_path / "damaged", (1, 2))
    os.truncate(tmp_path / "damaged/snapshots/000002.safetensors", 1000)
    assert find_network("", tmp_path).run == run
    old = str(tmp_path / "old")
    assert (
        find_network(old, tmp_path).run == old
        and find_network(f"{old}@1", tmp_path).run == f"{old}@1"
    )


def test_the_file_of_a_checkpoint_is_refused_because_its_weights_are_not_those_that_play(tmp_path):
    run = Path(make_run(tmp_path / "run", (1,)))
    checkpoint = load_checkpoint(run / "snapshots/000001.safetensors")
    file = tmp_path / "checkpoint.safetensors"
    groups = {**checkpoint.groups, "optimizer": {}}
    save_checkpoint(file, groups, checkpoint.metadata)
    with pytest.raises(CheckpointError, match="it is a run's checkpoint: name the run's folder"):
        load_network(file)


def test_a_run_without_the_network_asked_for_says_what_it_has(tmp_path):
    run = make_run(tmp_path / "run", (1, 2))
    found = find_network(f" {run}@7 ", tmp_path)
    assert (
        found.run == run
        and "expected one of 1, 2" in found.sentence
        and "newest trained run" in found.sentence
    )
    with open(tmp_path / "broken.safetensors", "w") as file:
        file.write("no")
    assert "broken" in find_network(str(tmp_path / "broken.safetensors"), tmp_path).sentence
