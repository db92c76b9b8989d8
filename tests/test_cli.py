"""The command line: jobs from a shell; bad input is one sentence on stderr and exit code 2."""

import dataclasses
import os
import subprocess
import sys
from typing import TextIO

import pytest

from chessnn_colab.__main__ import build_parser, field_types, main
from chessnn_colab.config import TrainConfig
from chessnn_colab.settings import GROUPS

TINY = (
    "--iterations 1 --positions-per-iteration 52 --boards 2 --max-plies 12 --channels 8 --blocks 1 --candidates 2 "
    "--survivors 1 --batch-size 32 --device cpu --pool inline --workers 2"
).split()
HUGE = "1" * 25  # more than any integer of torch holds


def shell(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "chessnn_colab", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "CHESSNN_UI": "text"},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("cli") / "run")
    done = shell("train", "--run", folder, *TINY)
    assert done.returncode == 0, done.stderr
    for line in (
        "Primary training device: cpu",
        "Generating 52 positions on 2 workers",
        "Positions per worker: [26, 26]",
        "| 2/2 workers done | 52/52 positions",
        "Completed 52/52 positions in ",
        "Buffer: ",
    ):
        assert line in done.stdout
    return folder


def test_every_field_of_the_config_is_an_option():
    options = vars(build_parser().parse_args(["train", "--gpus", "0,1", "--from", "other"]))
    assert set(TrainConfig.__dataclass_fields__) <= set(options)
    assert options["gpus"] == (0, 1) and options["from_checkpoint"] == "other"
    assert {bool, float, int, str, tuple[int, ...]} == set(field_types())


def test_help_shows_the_settings_in_groups_with_a_sentence_each(capsys):
    assert len(dataclasses.fields(TrainConfig)) <= 46
    for field in dataclasses.fields(TrainConfig):
        text = field.metadata["help"]
        assert text.endswith(".") and text.strip(), field.name
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    places = [shown.index(f"{group}: --") for group in GROUPS]
    assert places == sorted(places)
    first = shown[places[0] : places[1]]
    for flag in ("--game", "--run", "--minutes", "--iterations", "--preset", "--device"):
        assert flag in first
    assert "The seed of weights, games and batches. (default: 0)" in shown
    assert "in 5 % of the time." in shown


def test_a_run_without_a_name_goes_to_its_games_own_folder():
    assert TrainConfig(game=2048, device="cpu").run == "runs/2048"
    assert TrainConfig().run == "runs/chess" and TrainConfig(game="gomoku:9").run == "runs/gomoku-9"
    assert TrainConfig(run="runs/mine", game="gomoku:9").run == "runs/mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--run", "RUN/config.json", *TINY],
        ["train", "--run", "NEW", "--workers", "0"],
        ["train", "--run", "NEW", *TINY, "--copy-to", ""],
        ["train", "--run", "NEW", "--device", "cuda:99"],
        ["train", "--run", "NEW", *TINY, "--from", "NOWHERE"],
        ["evaluate", "NOWHERE"],
        ["evaluate", "RUN", "--device", "cpu", "--games", "3"],
        ["evaluate", "RUN", "--device", "cpu", "--opponent", "RUN@5"],
        ["evaluate", "RUN", "--device", "cpu", "--opponent", "engine:/no/such/engine"],
        ["evaluate", "RUN", "--device", "cpu", "--search", "policy", "--candidates", "3"],
        ["evaluate", "RUN", "--device", "cpu", "--save", "RUN/config.json"],
        ["evaluate", "RUN", "--device", "cpu", "--save", "RUN/config.json/below"],
        ["evaluate", "RUN", "--device", "cpu", "--calibration", "--games", "0"],
        ["evaluate", "RUN", "--device", "cpu", "--calibration", "--candidates", "3"],
        ["evaluate", "RUN", "--device", "cpu", "--calibration", "--solve", "off"],
        ["evaluate", "RUN", "--device", "cpu", "--calibration", "--opponent", "greedy"],
        ["check-device", "--game", "chess9"],
        ["bench", "device", "--out", "RUN/config.json"],
        ["bench", "device", "--minutes", "nan"],
        ["watch", "NOWHERE"],
        ["uci", "NOWHERE"],
        ["bench", "rules", "--boards", "0"],
        ["evaluate", "RUN", "--seed", HUGE],
        ["evaluate", "RUN", "--calibration", "--seed", HUGE],
        ["evaluate", "RUN", "--games", HUGE],
        ["evaluate", "RUN", "--search", "tree", "--num-simulations", HUGE],
        ["train", "--run", "NEW", "--seed", HUGE],
        ["train", "--run", "NEW", "--num-simulations", "400"],
        ["plan", "--gpus", HUGE],
        ["bench", "coffee"],
        ["bench", "rules", "--seconds", "0"],
        ["bench", "network", "--preset", "tpu"],
        ["check-device", "--device", "cuda:99"],
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, arguments, capsys, tmp_path):
    names = {"RUN": run, "NEW": str(tmp_path / "new"), "NOWHERE": str(tmp_path / "nowhere")}
    arguments = [names.get(word, word.replace("RUN", run)) for word in arguments]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("chessnn_colab: ") and len(captured.err.strip().splitlines()) == 1
    )
    assert "Traceback" not in captured.err
    assert not captured.out or arguments[0] == "train"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "arguments", [["trian"], ["train", "--iteratons", "3"], ["train", "--iterations", "three"], []]
)
def test_argparse_refuses_the_rest_with_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage:" in capsys.readouterr().err


def into(stdout: TextIO, buffered: str) -> tuple[int, str]:
    """The exit code and the errors of a command. buffered: "" where Python keeps what is short
    until it ends, as it does by default; "1" where it keeps nothing.
    """
    command = [sys.executable, "-m", "chessnn_colab", "plan", "--gpus", "1"]
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    done = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, env=environment
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a file that takes nothing is Linux's")
def test_output_that_cannot_be_written_is_one_sentence(buffered):
    with open("/dev/full", "w") as full:
        code, said = into(full, buffered)
    assert code == 2 and said == "chessnn_colab: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_goes_away_is_in_the_exit_code(buffered):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        assert into(pipe, buffered) == (141, "")
