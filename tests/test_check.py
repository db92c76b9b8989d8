"""check_device: the advice for every case from made-up facts, and one real look at this machine."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch

from chessnn_colab import check, device_probe
from chessnn_colab.advice import Facts, advice, driver_gpu, find_place, gather_facts, versions
from chessnn_colab.check import Speed, check_device, time_network
from chessnn_colab.config import TrainConfig
from chessnn_colab.devices import Gpu, Inventory
from chessnn_colab.plan import plan_run
from chessnn_colab.presets import Rates

NO_GPU = Inventory((), False, 2)
T4 = Inventory((Gpu(0, "Tesla T4", 15 * 2**30, (7, 5)),), False, 2)
P100 = Inventory((Gpu(0, "Tesla P100", 16 * 2**30, (6, 0)),), False, 4)
B200 = Inventory((Gpu(0, "NVIDIA B200", 180 * 2**30, (10, 0)),), False, 16)
MAC = Inventory((), True, 8)
CPU_BUILD = Facts("local", "2.13.0+cpu", None, NO_GPU)
CUDA_BUILD = Facts("local", "2.11.0+cu128", "12.8", T4, "Tesla T4", "550.54.15")
NO_CODE = ("cuda:0: there, but broken: CUDA error: no kernel image is available for execution",)


# Advice


@pytest.mark.parametrize(
    "facts",
    [
        CPU_BUILD,
        CUDA_BUILD,
        replace(CUDA_BUILD, place="Colab"),
        replace(CPU_BUILD, torch_version="2.14.0", machine=MAC),
    ],
)
def test_no_advice_where_all_is_well(facts):
    assert advice(facts) == ()


@pytest.mark.parametrize(
    "facts, words",
    [
        (replace(CPU_BUILD, place="Colab"), "No GPU in this Colab runtime: Runtime > Change"),
        (
            replace(CUDA_BUILD, place="Colab", machine=NO_GPU, driver_gpu=""),
            "Runtime > Change runtime type > T4 GPU",
        ),
        (replace(CPU_BUILD, place="Kaggle"), "Settings > Accelerator > GPU T4 x2"),
        (replace(CPU_BUILD, torch_came_first=True), "import chessnn_colab first, or set GOMP_"),
        (replace(CPU_BUILD, machine=MAC), 'pip install --upgrade "torch>=2.14"'),
    ],
)
def test_each_problem_has_one_advice(facts, words):
    [text] = advice(facts)
    assert words in text


@pytest.mark.parametrize(
    "driver, wheel", [("550.54.15", "cu126"), ("580.65.06", "cu130"), ("[N/A]", "cu130")]
)
@pytest.mark.parametrize("place", ["local", "Colab"])
def test_a_cpu_build_of_torch_beside_a_gpu_gets_the_wheel_for_its_driver(driver, wheel, place):
    [text] = advice(replace(CPU_BUILD, place=place, driver_gpu="Tesla T4", driver=driver))
    assert text == (
        "This machine has Tesla T4, but torch 2.13.0+cpu is a build without CUDA: pip install "
        "--force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/"
        f"{wheel}, then restart the runtime (kernel)."
    )


def test_a_gpu_that_the_driver_shows_and_torch_does_not():
    hidden = replace(CUDA_BUILD, machine=NO_GPU)
    [text] = advice(hidden)
    assert "torch 2.11.0+cu128 (CUDA 12.8) cannot use it: update the NVIDIA driver" in text
    [text] = advice(replace(hidden, visible_devices=""))
    assert "CUDA_VISIBLE_DEVICES='' hides it from torch: unset it" in text
    [text] = advice(replace(hidden, visible_devices="0"))
    assert "update the NVIDIA driver" in text, "that value need not be the reason"


@pytest.mark.parametrize(
    "machine, place, install",
    [
        (P100, "local", 'pip install --force-reinstall "torch<2.15"'),
        (P100, "Kaggle", 'Settings > Accelerator > GPU T4 x2, or pip install --force-reinstall "'),
        (B200, "local", "pip install --force-reinstall torch torchvision --index-url"),
    ],
)
def test_a_gpu_that_torch_has_no_code_for(machine, place, install):
    facts = replace(CUDA_BUILD, machine=machine, place=place)
    [text] = advice(facts, NO_CODE)
    name = machine.gpus[0].name
    assert text.startswith(f"torch 2.11.0+cu128 has no code for {name}: {install}")
    assert 'or use device="cpu"' in text and advice(facts) == ()


# Facts


@pytest.mark.parametrize(
    "variables, place",
    [
        (["COLAB_RELEASE_TAG"], "Colab"),
        (["KAGGLE_KERNEL_RUN_TYPE"], "Kaggle"),
        (["KAGGLE_KERNEL_RUN_TYPE", "COLAB_RELEASE_TAG"], "Kaggle"),
        ([], "local"),
    ],
)
def test_places(variables, place, monkeypatch):
    monkeypatch.setattr(os, "environ", dict.fromkeys(variables, "set"))
    assert find_place() == place


@pytest.mark.parametrize(
    "printed, found",
    [
        ("Tesla T4, 550.54.15\nTesla T4, 550.54.15\n", ("Tesla T4", "550.54.15")),
        ("NVIDIA H200 MIG 1g.18gb, [N/A]\n", ("NVIDIA H200 MIG 1g.18gb", "[N/A]")),
        ("", ("", "")),
        (subprocess.TimeoutExpired("nvidia-smi", 20), ("", "")),
        (FileNotFoundError(), ("", "")),
    ],
)
def test_the_gpu_that_nvidia_smi_lists(monkeypatch, printed, found):
    def run(command, **_):
        if isinstance(printed, Exception):
            raise printed
        return subprocess.CompletedProcess(command, 0, printed, "")

    monkeypatch.setattr(subprocess, "run", run)
    assert driver_gpu() == found


def test_facts_of_this_machine(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert gather_facts().visible_devices == "0"
    assert {"Python", "torch", "CUDA build", "spikingjelly", "ipywidgets"} <= set(versions())


# The report


@pytest.mark.parametrize(
    "exact, words",
    [(True, "plays in int8"), (False, "without int8: that needs AVX2, no AMX, and exact sums")],
)
def test_the_report_is_a_table_and_plain_data(exact, words, monkeypatch):
    monkeypatch.setattr(check, "is_exact", lambda: exact)
    report = check_device("cpu")
    text = str(report)
    assert f"cores, {words}\n" in text
    assert "20 minutes make about" in text, "the plan in one line"
    for words in (
        "cpu (CPU)",
        "cpu: works",
        "spikingjelly",
        "cores",
        "positions a second",
        "workers",
    ):
        assert words in text
    assert "compared" not in text, "a CPU is compared with nothing"
    read = json.loads(json.dumps(asdict(report)))
    assert read["choice"]["device"] == "cpu" and set(read["plan"]["devices"]) == {"cpu"}
    assert read["facts"]["machine"]["cores"] == report.facts.machine.cores


@pytest.mark.parametrize("game", ["chess", "gomoku:7", "2048", "tictactoe"])
@pytest.mark.parametrize("cores, players", [(2, 2), (64, 16)])
def test_a_ply_and_an_update_are_timed(game, cores, players, monkeypatch):
    """Each takes a second here; as many play as a run has workers."""

    def a_second(call, device):
        call()
        return 1.0

    monkeypatch.setattr(check, "seconds_per_call", a_second)
    monkeypatch.setattr(check, "usable_cores", lambda: cores)
    monkeypatch.setattr(check, "TIMED_BATCH", 32)
    assert time_network("cpu", game) == Speed("cpu", Rates(players * 64, 32))


def test_a_network_that_does_not_run_is_reported(monkeypatch):
    def broken(config, device):
        raise RuntimeError("no kernel image is available\nmore")

    monkeypatch.setattr(check, "build_network", broken)
    speed = time_network("cpu")
    assert str(speed) == "the network does not run: no kernel image is available"


def test_every_device_is_compared_and_timed(monkeypatch):
    machine, given_back = Inventory(T4.gpus, True, 2), []
    facts = replace(CUDA_BUILD, torch_version="2.14.0", machine=machine)
    paces = {"cuda:0": None, "mps": Rates(40, 40), "cpu": Rates(200, 600)}
    monkeypatch.setattr(check, "gather_facts", lambda: facts)
    monkeypatch.setattr(device_probe, "probe", lambda device, **_: None)
    monkeypatch.setattr(torch.mps, "empty_cache", lambda: given_back.append("mps"))
    monkeypatch.setattr(
        check, "time_network", lambda device, game: Speed(device, paces[device], "broken")
    )
    found = check_device()
    assert [speed.device for speed in found.speeds] == ["cuda:0", "mps", "cpu"]
    assert given_back == ["mps"] and "none: ready to train" in str(found)
    assert found.line == f"Training will use {found.choice}: ready to train"
    assert "with the CPU: 24 random plies on 64 boards bit for bit, every gradient" in str(found)
    assert found.outlook == plan_run(TrainConfig(), "cuda:0", machine).line
    found = check_device("cpu")
    assert [speed.device for speed in found.speeds] == ["cpu"]
    assert found.outlook == plan_run(TrainConfig(), "cpu", machine, paces["cpu"]).line


def test_without_a_working_gpu_the_outlook_is_the_cpus(monkeypatch):
    facts = replace(CUDA_BUILD, machine=Inventory(T4.gpus, False, 2))
    paces = {"cuda:0": None, "cpu": Rates(200, 600)}
    games = []

    def timed(device, game):
        games.append(game)
        return Speed(device, paces[device], "broken")

    def only_the_cpu(device, **_):
        if device != "cpu":
            raise RuntimeError("broken")

    monkeypatch.setattr(check, "gather_facts", lambda: facts)
    monkeypatch.setattr(device_probe, "probe", only_the_cpu)
    monkeypatch.setattr(check, "time_network", timed)
    found = check_device(game=2048)  # as a cell may have it, without quotes
    assert found.choice.device == "cpu" and set(games) == {"2048"}
    planned = plan_run(TrainConfig(game="2048"), "cpu", facts.machine, paces["cpu"])
    assert found.outlook == planned.line


WAITING = (
    "import chessnn_colab as c, os; print(c.TORCH_CAME_FIRST, os.environ.get('GOMP_SPINCOUNT'))"
)


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
        [sys.executable, "-c", code],
        env={**environment, **set_by_user},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == expected, done.stderr


def test_a_mac_is_there_where_torch_says_so(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert gather_facts().machine.mps
