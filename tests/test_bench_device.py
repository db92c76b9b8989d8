"""`bench device` on a CPU, in small sizes: so that it works on the day a GPU is there."""

import json
import math
import time
from pathlib import Path

import pytest

from chessnn_colab.__main__ import main
from chessnn_colab.bench import device
from chessnn_colab.bench.device import PARTS, measured, watched

from .counts import only_in_full

SMALL = "bench device --device cpu --game tictactoe --boards 32 --seconds 0.3 --minutes 60 --out"


def written(folder: Path) -> dict:
    return json.loads((folder / "device.json").read_text(encoding="utf-8"))


@pytest.mark.timeout(900)
@only_in_full
def test_every_part_runs_and_is_written_down(tmp_path):
    assert main([*SMALL.split(), str(tmp_path)]) == 0
    found = written(tmp_path)
    assert list(found) == list(PARTS)
    assert not [figures["error"] for figures in found.values() if "error" in figures]
    assert "torch.float32 0.00" in found["check"]["gradient's largest difference from the CPU's"]
    train = found["train"]
    assert train["positions/s, self-play and learning"] > 0
    assert 0 < train["s to the first bar"] <= train["s to the first report"]
    assert "evaluations per move" in train["against random"]
    assert found["ply"]["us of the host per launch"] == "needs a GPU"
    assert found["ply"]["positions/s, two-rung, 16 boards, launch by launch"] > 0
    assert found["precision"]["share of best moves that are the CPU's, torch.float32"] == 1
    assert found["workers"]["speedup"] > 0
    assert found["learner"]["updates/s together"] > 0
    table = (tmp_path / "device.md").read_text(encoding="utf-8")
    assert "| ply | positions/s, tree, 32 boards, by graph | needs CUDA |" in table
    assert all(f"| {part} | seconds |" in table for part in PARTS)


@pytest.fixture
def answers(monkeypatch) -> dict:
    """What each part answers, in no time."""
    given = {part: {"value": 1.0} for part in PARTS}
    monkeypatch.setattr(device, "measured", lambda command, limit: given[command[1]])
    return given


@pytest.mark.parametrize("longer, takes", [("", 60), ("--seconds 1", 60), ("--seconds 80", 150)])
def test_a_part_that_measures_longer_may_take_longer(tmp_path, monkeypatch, longer, takes):
    limits = []
    monkeypatch.setattr(device, "measured", lambda command, limit: limits.append(limit) or {})
    monkeypatch.setattr(device, "PARTS", {"ply": (20, 60)})
    command = f"bench device --device cpu --minutes 60 {longer} --out {tmp_path}"
    assert main(command.split()) == 0
    assert limits == [takes * device.PATIENCE]


def test_a_part_that_fails_is_written_down_and_the_next_one_goes_on(tmp_path, answers, capsys):
    answers["check"] = {"error": "CUDA error: an illegal | memory access", "printed": ["seen"]}
    arguments = ["bench", "device", "--device", "cpu", "--out", str(tmp_path)]
    assert main([*arguments, "--parts", "check,ply"]) == 0
    assert written(tmp_path)["check"]["printed"] == ["seen"]
    row = "| check | error | CUDA error: an illegal / memory access |"
    table = (tmp_path / "device.md").read_text(encoding="utf-8")
    assert row in table and row in capsys.readouterr().out and "| ply | value | 1.000 |" in table
    answers["check"] = answers["ply"] = {"value": 2.0}
    assert main([*arguments, "--parts", "check"]) == 0
    found = written(tmp_path)
    assert found["check"]["value"] == 2 and "error" not in found["check"]
    assert found["ply"]["value"] == 1


def test_parts_that_would_not_fit_are_named_with_the_command_to_go_on(tmp_path, answers, capsys):
    place = ["--device", "cpu", "--out", str(tmp_path)]
    settings = ["--game", "gomoku", "--seconds", "0.5"]
    assert main(["bench", "device", "--minutes", "1", *settings, *place]) == 0
    assert list(written(tmp_path)) == ["check", "precision"]
    command = f"bench device --parts train,ply,workers,learner --out '{tmp_path}'"
    same = "--device=cpu --preset=auto --precision=auto --game=gomoku --seconds=0.5"
    assert f"{command} {same}\n" in capsys.readouterr().out


def test_an_interrupt_names_what_is_left(tmp_path, monkeypatch, capsys):
    def interrupted(command, limit):
        raise KeyboardInterrupt

    monkeypatch.setattr(device, "measured", interrupted)
    assert main(["bench", "device", "--parts", "ply,workers", "--out", str(tmp_path)]) == 0
    assert "Not measured: ply,workers." in capsys.readouterr().out


def test_a_part_that_does_not_exist_is_a_sentence(tmp_path, capsys):
    assert main(["bench", "device", "--parts", "check,speed", "--out", str(tmp_path)]) == 2
    assert "parts='speed': expected one of check, train, ply" in capsys.readouterr().err


def test_a_wrong_setting_is_a_sentence_and_the_figures_stay(tmp_path, answers, capsys):
    answers["ply"] = {"value": 3.0}
    arguments = ["bench", "device", "--device", "cpu", "--parts", "ply", "--out", str(tmp_path)]
    assert main(arguments) == 0
    answers["ply"] = {"error": "preset='h200'"}
    assert main([*arguments, "--preset", "h200"]) == 2
    assert "preset='h200': expected one of" in capsys.readouterr().err
    assert written(tmp_path)["ply"]["value"] == 3


def test_the_process_of_a_part_finds_the_package_from_anywhere(tmp_path, monkeypatch):
    """As beside a notebook that carries the package; of a failure the line that names it is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    failed = measured(["bench", "nothing"], 60)
    assert failed["error"].startswith("chessnn_colab: bench='nothing': expected one of all, rules")
    assert failed["printed"] == [failed["error"]] and failed["seconds"] > 0
    assert measured(["bench", "rules"], 0.1) == {"error": "it took longer than 0 s"}


def test_a_driver_that_does_not_know_a_figure_breaks_nothing(tmp_path, monkeypatch):
    """As of a MIG device."""
    driver = tmp_path / "nvidia-smi"
    figures: dict = {}
    with monkeypatch.context() as here:
        here.setenv("PATH", str(tmp_path))
        with watched(figures):
            pass
    assert figures == {}
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    lines = "10, [N/A], 1\\n50, [N/A], 100\\n70, [N/A], 300"
    driver.write_text(f"#!/bin/sh\nprintf '{lines}\\n'; touch {tmp_path}/said; exec sleep 60\n")
    driver.chmod(0o755)
    with watched(figures):
        while not (tmp_path / "said").exists():
            time.sleep(0.01)
    assert figures["nvidia-smi, utilization.gpu"] == 60
    assert math.isnan(figures["nvidia-smi, clocks.sm"])
