"""check_device: the advice for every case from made-up facts, and one real look at this machine's CPU."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from chessnn_colab import advice as advice_module
from chessnn_colab import check
from chessnn_colab.__main__ import main
from chessnn_colab.advice import (
    DriverGpu,
    Facts,
    advice,
    driver_files,
    find_place,
    first_output,
    gather_facts,
    parse_driver_gpus,
    supported,
    versions,
)
from chessnn_colab.check import check_device, spawn_round_trip, time_network
from chessnn_colab.devices import Gpu, Inventory, inventory
from chessnn_colab.errors import ConfigError, DeviceError
from chessnn_colab.games.chess.rules import Chess

NO_GPU = Inventory((), False, 2)
T4 = Inventory((Gpu(0, "Tesla T4", 15 * 2**30, (7, 5)),), False, 2)
P100 = Inventory((Gpu(0, "Tesla P100", 16 * 2**30, (6, 0)),), False, 4)
B200 = Inventory((Gpu(0, "NVIDIA B200", 180 * 2**30, (10, 0)),), False, 16)
DRIVER_T4 = DriverGpu("Tesla T4", "550.54.15", (7, 5))
CPU_BUILD = Facts("local", "2.13.0+cpu", None, NO_GPU)
CUDA_BUILD = Facts("local", "2.11.0+cu128", "12.8", T4, (DRIVER_T4,), ("sm_75", "sm_80", "sm_86", "sm_90", "sm_120"))


# Advice


@pytest.mark.parametrize(
    "facts",
    [CPU_BUILD, CUDA_BUILD, replace(CUDA_BUILD, place="Colab"), replace(CPU_BUILD, machine=Inventory((), True, 8))],
)
def test_no_advice_where_all_is_well(facts):
    assert advice(facts) == ()


@pytest.mark.parametrize(
    "facts, words",
    [
        (replace(CPU_BUILD, place="Colab"), ["No GPU in this Colab runtime", "Runtime > Change runtime type"]),
        (replace(CUDA_BUILD, place="Colab", machine=NO_GPU, driver_gpus=()), ["Runtime > Change runtime type"]),
        (replace(CPU_BUILD, place="Kaggle"), ["Settings > Accelerator > GPU T4 x2"]),
    ],
)
def test_advice_to_ask_for_a_gpu(facts, words):
    [text] = advice(facts)
    assert all(word in text for word in words)


@pytest.mark.parametrize(
    "gpu, install",
    [
        (DRIVER_T4, "torch torchvision --index-url https://download.pytorch.org/whl/cu126"),
        (
            replace(DRIVER_T4, driver="580.65.06"),
            "torch torchvision --index-url https://download.pytorch.org/whl/cu130",
        ),
        (
            DriverGpu("Tesla P100", "580.65.06", (6, 0)),
            '"torch<2.15" torchvision --index-url https://download.pytorch.org/whl/cu126',
        ),
        (DriverGpu("NVIDIA H200", ""), "torch torchvision --index-url https://download.pytorch.org/whl/cu130"),
        (DriverGpu("NVIDIA H200", "[N/A]"), "torch torchvision --index-url https://download.pytorch.org/whl/cu130"),
    ],
)
@pytest.mark.parametrize("place", ["local", "Colab"])
def test_a_cpu_build_of_torch_beside_a_gpu_gets_the_wheel_that_fits(gpu, install, place):
    [text] = advice(replace(CPU_BUILD, place=place, driver_gpus=(gpu,)))
    assert text == (
        f"This machine has {gpu.name}, but torch 2.13.0+cpu is a build without CUDA: "
        f"pip install --force-reinstall {install}, then restart the runtime (kernel)."
    )


def test_a_driver_too_old_for_any_torch():
    [text] = advice(replace(CPU_BUILD, driver_gpus=(DriverGpu("Tesla T4", "470.82.01", (7, 5)),)))
    assert "NVIDIA driver 470.82.01, too old" in text and "update the driver" in text


def test_a_gpu_that_the_driver_shows_and_torch_does_not():
    hidden = replace(CUDA_BUILD, machine=NO_GPU)
    [text] = advice(hidden)
    assert "torch 2.11.0+cu128 (CUDA 12.8) cannot use it: update the NVIDIA driver" in text and "cu126" in text
    [text] = advice(replace(hidden, visible_devices=""))
    assert "CUDA_VISIBLE_DEVICES='' hides it from torch: unset it" in text


def test_a_gpu_that_this_torch_no_longer_supports():
    [text] = advice(replace(CUDA_BUILD, machine=P100))
    assert text.startswith(
        "Tesla P100 (compute capability 6.0) is not supported by torch 2.11.0+cu128, which has code for sm_75, sm_80"
    )
    assert '"torch<2.15"' in text and "cu126" in text and 'device="cpu"' in text and "Kaggle" not in text
    [text] = advice(replace(CUDA_BUILD, machine=P100, place="Kaggle"))
    assert "choose another GPU (Settings > Accelerator > GPU T4 x2)" in text


def test_a_gpu_that_this_torch_does_not_support_yet():
    [text] = advice(replace(CUDA_BUILD, machine=B200))
    assert "compute capability 10.0" in text and "cu130" in text and "torch<" not in text


@pytest.mark.parametrize(
    "capability, architectures, runs",
    [
        ((7, 5), ("sm_75", "sm_80"), True),
        ((8, 9), ("sm_75", "sm_86"), True),  # same major version, older minor
        ((8, 0), ("sm_75", "sm_86"), False),  # code for a newer minor version does not run
        ((6, 0), ("sm_75", "sm_90"), False),
        ((12, 0), ("sm_90", "sm_120"), True),
        ((12, 1), ("sm_90", "compute_120"), True),  # PTX is compiled for what comes after
        ((9, 0), ("sm_80", "compute_120"), False),
        ((9, 0), ("sm_90a",), True),
        ((10, 3), ("sm_100f",), False),
    ],
)
def test_supported(capability, architectures, runs):
    assert supported(capability, architectures) is runs


# Facts


@pytest.mark.parametrize(
    "environment, place",
    [
        ({"COLAB_RELEASE_TAG": "release-colab_20260801"}, "Colab"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "Kaggle"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive", "COLAB_RELEASE_TAG": "release-colab_20260801"}, "Kaggle"),
        ({}, "local"),
    ],
)
def test_places(environment, place):
    assert find_place(environment) == place


def test_what_nvidia_smi_prints_is_read():
    assert parse_driver_gpus("Tesla T4, 550.54.15, 7.5\nTesla T4, 550.54.15, 7.5\n") == (DRIVER_T4, DRIVER_T4)
    assert parse_driver_gpus("Tesla K80, 470.82.01\n\n") == (DriverGpu("Tesla K80", "470.82.01"),)
    assert parse_driver_gpus("NVIDIA H200, 580.1, [N/A]") == (DriverGpu("NVIDIA H200", "580.1"),)
    assert parse_driver_gpus("") == ()


def test_programs_that_are_missing_or_fail_print_nothing():
    assert first_output(["/does/not/exist"]) is None
    assert first_output(["false"]) is None
    assert first_output(["echo", "T4"]) == "T4\n"


def test_an_old_nvidia_smi_is_asked_for_less(monkeypatch):
    monkeypatch.setattr(
        advice_module, "first_output", lambda command: None if "compute_cap" in command[1] else "Tesla K80, 470.82.01\n"
    )
    assert advice_module.driver_gpus() == (DriverGpu("Tesla K80", "470.82.01"),)


def test_the_drivers_files_count_only_beside_the_device_node(tmp_path):
    (tmp_path / "0000:00:04.0").mkdir()
    (tmp_path / "0000:00:04.0" / "information").write_text("Model: \t\t Tesla T4\nIRQ: 11\n")
    assert driver_files(tmp_path, tmp_path) == (DriverGpu("Tesla T4", ""),)
    assert driver_files(tmp_path, tmp_path / "none") == ()


def test_facts_of_this_machine():
    facts = gather_facts({"CUDA_VISIBLE_DEVICES": "0"})
    assert (facts.place, facts.visible_devices) == ("local", "0")
    assert facts.ram_bytes is None or facts.ram_bytes > 2**28
    assert {"Python", "torch", "CUDA build", "spikingjelly", "ipywidgets"} <= set(versions())


def test_memory_that_the_system_does_not_tell(monkeypatch):
    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown, raising=False)
    assert advice_module.ram_bytes() is None


# The report


@pytest.fixture(scope="module")
def report():
    return check_device("cpu", workers=2, games=3)


def test_the_report_prints_what_was_found(report):
    text = str(report)
    for words in (
        "cpu (CPU)",
        "cpu: works",
        "place",
        "spikingjelly",
        "cores",
        "RAM",
        "on cpu",
        "forward",
        "training",
        "a process and back in",
        "2 on cpu",
        "3 on 2 workers (CPU)",
        "games/s",
        "plies on average",
        "came back as ndarray and trained as Tensor",
    ):
        assert words in text
    assert report.speeds[0].forward_us > 0 and report.speeds[0].training_us > 0 and report.spawn_seconds > 0


def test_the_report_is_json(report):
    read = json.loads(json.dumps(report.to_dict()))
    assert read["choice"]["device"] == "cpu"
    assert read["plan"]["devices"] == ["cpu", "cpu"]
    assert read["facts"]["machine"]["cores"] >= 1


def test_a_game_for_one_player_has_neither_wins_nor_draws(report):
    found = {name: value for name, value in report.workers.items() if not name.endswith("_wins")}
    assert dict(check._lines_of_games({**found, "stopped": 3}))["results"] == "3 stopped at the ply cap"
    assert dict(check._lines_of_games(report.workers))["results"].count(", ") == 3


def test_games_went_the_whole_way(report):
    found = report.workers
    assert (found["workers"], found["games"], found["arrays"], found["tensors"]) == (2, 3, "ndarray", "Tensor")
    assert found["white_wins"] + found["draws"] + found["black_wins"] + found["stopped"] == 3
    assert found["average_plies"] == pytest.approx(found["positions"] / 3)
    assert math.isfinite(found["loss"])


def test_a_network_that_does_not_run_is_reported(monkeypatch):
    def broken(config, device):
        raise RuntimeError("no kernel image is available\nmore")

    monkeypatch.setattr(check, "build_network", broken)
    speed = time_network("cpu")
    assert str(speed) == "the network does not run: RuntimeError: no kernel image is available"


def test_a_process_that_says_nothing_is_reported():
    seconds, problem = spawn_round_trip(str)
    assert seconds is None
    assert "did not answer (exit code 0)" in problem and 'pool="inline"' in problem


def test_only_a_device_asked_for_is_timed(monkeypatch):
    machine = Inventory(T4.gpus, True, 2)
    monkeypatch.setattr(check, "gather_facts", lambda: replace(CUDA_BUILD, machine=machine))
    monkeypatch.setattr(check, "spawn_round_trip", lambda: (None, "it did not answer"))
    monkeypatch.setattr(check, "time_network", lambda device, game: check.Speed(device, None, None, "not tried"))
    found = check_device("cpu")
    assert [speed.device for speed in found.speeds] == ["cpu"]
    assert "it did not answer" in str(found) and "none: ready to train" in str(found)
    monkeypatch.setattr("chessnn_colab.devices.try_device", lambda device: None)
    assert [speed.device for speed in check_device().speeds] == ["cuda:0", "mps", "cpu"]


@pytest.mark.parametrize(
    "settings, error",
    [
        ({"device": "cuda:99"}, DeviceError),
        ({"device": "toaster"}, DeviceError),
        ({"workers": 0}, ConfigError),
        ({"workers": -1}, ConfigError),
        ({"workers": 1, "games": 0}, ConfigError),
        ({"games": 4}, ConfigError),
    ],
)
def test_settings_that_cannot_be(settings, error):
    with pytest.raises(error):
        check_device(**settings)


@pytest.mark.parametrize(
    "arguments", [["--device", "cuda:99"], ["--workers", "0"], ["--games", "4"], ["--workers", "1", "--games", "-1"]]
)
def test_the_command_says_one_sentence_and_exits_with_two(arguments, capsys):
    assert main(["check-device", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("chessnn_colab: ")


WAITING = "import chessnn_colab as c, os; print(c.TORCH_CAME_FIRST, os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.parametrize(
    "code, set_by_user, expected",
    [
        (WAITING, {}, "False 1000"),
        (f"import torch; {WAITING}", {}, "True 1000"),
        (WAITING, {"GOMP_SPINCOUNT": "7"}, "False 7"),
        (f"import torch; {WAITING}", {"OMP_WAIT_POLICY": "PASSIVE"}, "False None"),
    ],
)
def test_threads_wait_as_the_user_says_or_else_for_a_short_while(code, set_by_user, expected):
    unset = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, **set_by_user}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == expected, done.stderr


def test_torch_imported_first_has_its_advice():
    [text] = advice(replace(CPU_BUILD, torch_came_first=True))
    assert "import chessnn_colab first" in text and "GOMP_SPINCOUNT" in text


def test_the_probe_passes_what_works_and_names_what_does_not(monkeypatch):
    probe = check.probe.__wrapped__
    probe("cpu")
    probe("cpu", "tictactoe")
    step = Chess.step
    monkeypatch.setattr(
        Chess, "step", lambda game, *given: step(game, *given) if game is not broken[-1] else garbled(game)
    )
    broken, made = [None], []

    def make(name, max_plies=None, device="cpu"):
        made.append(Chess(device=device))
        broken.append(made[-1])  # the last one made is the device's
        return made[-1]

    def garbled(game):
        return game.init(check.PROBE_BOARDS)

    monkeypatch.setattr(check, "make_game", make)
    with pytest.raises(RuntimeError, match="the rules of chess come out wrong there, after 1 random plies"):
        probe("cpu")
    monkeypatch.setattr(Chess, "step", step)
    losses = iter([4.0, 4.1])
    monkeypatch.setattr(check, "_probe_loss", lambda *_: next(losses))
    with pytest.raises(RuntimeError, match="an update comes out wrong there: its loss is 4.1, on the CPU 4.0"):
        probe("cpu")


def test_mps_needs_a_torch_that_shifts_rightly(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert inventory().mps
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.6.0"))
    found = inventory()
    assert not found.mps and "install torch 2.7 or newer" in found.problems[-1]
