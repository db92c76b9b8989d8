"""Devices: which one is chosen and why, and the worker plan, all from machines made up here."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from chessnn_colab import devices
from chessnn_colab.config import TrainConfig
from chessnn_colab.cpu import usable_cores
from chessnn_colab.devices import (
    Gpu,
    Inventory,
    detect_device,
    inventory,
    plan_workers,
    playing_device,
    try_device,
)
from chessnn_colab.errors import DeviceError
from chessnn_colab.memory import usable_memory
from chessnn_colab.presets import SIZES, kind_of


def machine(
    gpus: int = 0, mps: bool = False, cores: int = 4, problems: tuple[str, ...] = ()
) -> Inventory:
    return Inventory(
        tuple(Gpu(i, "Tesla T4", 15 * 2**30, (7, 5)) for i in range(gpus)), mps, cores, problems
    )


def breaks(*broken: str):
    """A probe under which these devices fail and all others work."""

    def probe(device: str) -> None:
        if device in broken:
            raise RuntimeError("no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")

    return probe


WORKS = breaks()
KINDS = ("CPU", "M2", "T4", "A100", "H200")  # whose figures a Size states, in this order


# Detection


@pytest.mark.parametrize(
    "there, device, name",
    [
        (machine(gpus=2, mps=True), "cuda:0", "GPU 0: Tesla T4"),
        (machine(mps=True), "mps", "Apple GPU (MPS)"),
        (machine(), "cpu", "CPU"),
    ],
)
def test_cuda_then_mps_then_cpu(there, device, name):
    choice = detect_device(machine=there, probe=WORKS)
    assert (choice.device, choice.name) == (device, name)
    assert choice.reasons[-1] == f"{device}: works"


def test_why_not_cuda_is_said():
    assert (
        detect_device(machine=machine(), probe=WORKS).reasons[0]
        == "cuda: no GPU that this torch can see"
    )
    too_old = "cuda: The NVIDIA driver on your system is too old"
    assert detect_device(machine=machine(problems=(too_old,)), probe=WORKS).reasons == (
        too_old,
        "cpu: works",
    )


@pytest.mark.parametrize("asked", [{"requested": "cuda"}, {"requested": "auto", "gpus": (0,)}])
def test_why_a_wanted_gpu_is_missing_is_said(asked):
    too_old = "cuda: The NVIDIA driver on your system is too old"
    with pytest.raises(DeviceError, match=f"is not there: .*; {too_old}"):
        detect_device(machine=machine(problems=(too_old,)), probe=WORKS, **asked)


@pytest.mark.parametrize(
    "there, broken, device",
    [
        (machine(gpus=2), ["cuda:0"], "cuda:1"),
        (machine(gpus=1, mps=True), ["cuda:0"], "mps"),
        (machine(gpus=2, mps=True), ["cuda:0", "cuda:1", "mps"], "cpu"),
    ],
)
def test_broken_devices_are_passed_over_with_their_reason(there, broken, device):
    choice = detect_device(machine=there, probe=breaks(*broken))
    assert choice.device == device
    assert choice.reasons[:-1] == tuple(
        f"{name}: there, but broken: no kernel image is available" for name in broken
    )


def test_a_machine_where_nothing_works_is_an_error():
    with pytest.raises(
        DeviceError,
        match="'auto' does not work: cuda:0: there, but broken: .*; cpu: there, but broken",
    ):
        detect_device(machine=machine(gpus=1), probe=breaks("cuda:0", "cpu"))


@pytest.mark.parametrize(
    "requested, device",
    [
        ("cpu", "cpu"),
        ("mps", "mps"),
        ("cuda", "cuda:0"),
        ("cuda:1", "cuda:1"),
        (torch.device("cuda", 1), "cuda:1"),
    ],
)
def test_a_requested_device_is_used(requested, device):
    choice = detect_device(requested, machine(gpus=2, mps=True), WORKS)
    assert choice.device == device
    assert choice.reasons == (f"{device}: works",)


NOT_THERE = "cuda:2 mps gpu cuda: cuda:x cuda:-1 cpu:0".split()


@pytest.mark.parametrize("requested", [*NOT_THERE, "", "cuda:" + "9" * 30, None])
def test_a_device_that_is_not_there_is_an_error(requested):
    with pytest.raises(DeviceError) as caught:
        detect_device(requested, machine(gpus=2), WORKS)
    assert (
        str(caught.value)
        == f"device {str(requested)!r} is not there: expected auto or one of cuda:0, cuda:1, cpu"
    )


def test_a_requested_device_that_is_broken_is_an_error():
    with pytest.raises(DeviceError) as caught:
        detect_device("cuda:1", machine(gpus=2), breaks("cuda:1"))
    assert str(caught.value) == (
        "device 'cuda:1' does not work: cuda:1: there, but broken: no kernel image is available; "
        "choose another of cuda:0, cuda:1, cpu, or auto"
    )


def test_gpus_keeps_the_choice_to_these():
    assert detect_device("auto", machine(gpus=3), WORKS, gpus=[2, 1]).device == "cuda:2"
    assert detect_device("cuda", machine(gpus=3), WORKS, gpus=[1]).device == "cuda:1"
    assert detect_device("cuda:0", machine(gpus=3), WORKS, gpus=[1, 2]).device == "cuda:0"
    assert detect_device("auto", machine(gpus=3), breaks("cuda:1"), gpus=[1]).device == "cpu"


def test_try_device_computes():
    try_device("cpu")
    with pytest.raises(RuntimeError):  # a device that accepts tensors and computes nothing
        try_device("meta")


def test_try_device_notices_wrong_numbers(monkeypatch):
    monkeypatch.setattr(devices.F, "conv2d", lambda *_: torch.zeros(1))
    with pytest.raises(RuntimeError, match="computed 8 and 0.0, expected 8 and 324"):
        try_device("cpu")


def test_a_gpu_that_is_full_is_in_use_and_not_broken(monkeypatch):
    def full(device):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (500_000_000, 14_700_000_000))
    with pytest.raises(DeviceError, match="cuda:0: in use: 14.2 of 14.7 GB taken"):
        detect_device("cuda:0", machine(gpus=1), full)

    def unknown(device):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", unknown)
    choice = detect_device("auto", machine(gpus=1), lambda d: full(d) if d != "cpu" else None)
    assert choice.troubles == ["cuda:0: in use: all of its memory is taken"]


@pytest.mark.parametrize(
    "free, reason", [(15e9, "there, but broken: GET was unable"), (5e8, "in use")]
)
def test_a_library_that_does_not_fit_is_not_taken_for_memory_that_is_taken(
    free, reason, monkeypatch
):
    def broken(device):
        if device != "cpu":
            raise RuntimeError("GET was unable to find an engine to execute this computation")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(free), int(15.8e9)))
    (trouble,) = detect_device("auto", machine(gpus=1), broken).troubles
    assert trouble.startswith(f"cuda:0: {reason}")


# The inventory


def test_gpus_that_cannot_be_asked_are_problems_and_the_rest_are_found(monkeypatch):
    def properties(index):
        if index == 0:
            raise RuntimeError("CUDA error: unknown error\nmore")
        warnings.warn(
            "\n    Found GPU1 Tesla P100 which is of cuda capability 6.0.\n    More.",
            UserWarning,
            stacklevel=1,
        )
        return SimpleNamespace(name="Tesla P100", total_memory=16 * 2**30, major=6, minor=0)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    found = inventory()
    assert found.gpus == (Gpu(1, "Tesla P100", 16 * 2**30, (6, 0)),)
    assert found.problems == (
        "cuda: Found GPU1 Tesla P100 which is of cuda capability 6.0.",
        "cuda:0: there, but broken: CUDA error: unknown error",
    )


@pytest.mark.parametrize(
    "text, limit",
    [
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("6400000 100000", 64),
        ("max 100000", None),
        ("", None),
    ],
)
def test_a_containers_share_of_the_cpu_counts(tmp_path, text, limit):
    unlimited = usable_cores(tmp_path / "none")
    (tmp_path / "cpu.max").write_text(text)
    assert usable_cores(tmp_path / "cpu.max") == min(unlimited, limit or unlimited)


@pytest.mark.parametrize("text, limit", [("4096", 4096), (str(2**60), None), ("max", None)])
def test_a_containers_share_of_the_memory_counts(tmp_path, text, limit):
    unlimited = usable_memory(tmp_path / "none")
    (tmp_path / "memory.max").write_text(text)
    assert usable_memory(tmp_path / "memory.max") == (limit or unlimited)


# The worker plan


def named(planned: str) -> list[str]:
    """ "0 1" for the GPUs, other devices by name."""
    return [f"cuda:{word}" if word.isdigit() else word for word in planned.split()]


@pytest.mark.parametrize(
    "there, settings, planned",
    [
        (machine(gpus=4), {}, "0 1 2 3"),
        (machine(gpus=2), {"device": "cuda:0"}, "0 1"),
        (machine(gpus=2), {"device": "cuda:1"}, "1"),
        (machine(gpus=4), {"gpus": [0, 2]}, "0 2"),
        (machine(gpus=4), {"gpus": (3,), "workers": 2}, "3 3"),
        (machine(gpus=2), {"workers": 5}, "0 1 0 1 0"),
        (machine(gpus=4), {"workers": 2}, "0 1"),
        (machine(cores=2), {"workers": 3}, "cpu cpu cpu"),
        (machine(gpus=4), {"gpus": [1, 2], "device": "cuda:0"}, "1 2"),
        (machine(gpus=2, cores=3), {"selfplay_device": "cpu"}, "cpu cpu cpu"),
        (machine(gpus=3), {"selfplay_device": "cuda:0"}, "0"),
        (machine(gpus=3), {"selfplay_device": "cuda:1", "gpus": [0, 1]}, "1"),
        (machine(gpus=1), {"selfplay_device": "cuda", "device": "cpu"}, "0"),
        (machine(mps=True), {}, "mps"),
        (machine(cores=4), {}, "cpu cpu cpu cpu"),
        (machine(gpus=2, mps=True, cores=2), {"device": "cpu"}, "cpu cpu"),
        (machine(cores=200), {}, "cpu " * devices.MAX_CPU_WORKERS),
    ],
)
def test_plans(there, settings, planned):
    plan = plan_workers(there, **settings)
    assert list(plan.devices) == named(planned)
    assert plan.notes == ()


def test_a_plan_that_differs_from_what_was_asked_says_so():
    plan = plan_workers(machine(mps=True), workers=4)
    assert plan.devices == ("mps",) and plan.notes == ("MPS takes one worker, not 4",)


@pytest.mark.parametrize(
    "there, settings, threads",
    [
        (machine(cores=4), {}, 1),
        (machine(cores=4), {"workers": 1}, 4),
        (machine(cores=2), {"workers": 8}, 1),
        (machine(gpus=2, cores=8), {}, 4),
        (machine(mps=True, cores=8), {}, 1),
    ],
)
def test_workers_share_the_cores(there, settings, threads):
    assert plan_workers(there, **settings).threads == threads


@pytest.mark.parametrize(
    "there, settings, message",
    [
        (
            machine(gpus=2),
            {"gpus": [0, 5, -1]},
            "cuda:5, cuda:-1 is not there: this machine shows cuda:0, cuda:1, cpu",
        ),
        (machine(), {"gpus": [0]}, "cuda:0 is not there: this machine shows cpu"),
        (
            machine(gpus=2),
            {"gpus": [1], "device": "cpu"},
            r"gpus=\[1\] but the device is cpu: leave gpus out, or use cuda",
        ),
        (machine(gpus=2), {"selfplay_device": "cpu:foo"}, "device 'cpu:foo' is not there"),
        (machine(), {"selfplay_device": "mps"}, "device 'mps' is not there"),
    ],
)
def test_devices_that_are_not_there_are_device_errors(there, settings, message):
    with pytest.raises(DeviceError, match=message):
        plan_workers(there, **settings)


@pytest.mark.parametrize(
    "error, is_memory",
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory"
            ),
            True,
        ),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (MemoryError(), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("out of memory, says a stranger"), False),
    ],
)
def test_out_of_memory_is_known_on_every_device(error, is_memory):
    assert devices.out_of_memory(error) == is_memory


def test_too_large_a_tensor_is_out_of_memory_here():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50, dtype=torch.uint8)
    assert devices.out_of_memory(caught.value)


@pytest.mark.parametrize("avx", [True, False, None])
@pytest.mark.parametrize("amx", [True, False, None])
def test_a_cpu_convolves_in_bfloat16_where_it_has_units_for_it(avx, amx, monkeypatch):
    for unit, there in (("avx512_bf16", avx), ("amx_tile", amx)):
        name = f"_is_{unit}_supported"
        if there is None:  # an older torch
            monkeypatch.delattr(torch.cpu, name, raising=False)
        else:
            monkeypatch.setattr(torch.cpu, name, lambda there=there: there, raising=False)
    assert devices.choose_dtype("auto", "cpu") is (torch.bfloat16 if avx or amx else torch.float32)


def test_a_precision_by_name_and_that_of_a_mac():
    assert devices.choose_dtype("float32", "cpu") is torch.float32
    assert devices.choose_dtype("auto", "mps") is torch.float32


CARDS = Inventory(
    tuple(
        Gpu(index, "GPU", gib * 2**30, capability)
        for index, gib, capability in ((0, 15, (7, 5)), (1, 80, (8, 0)), (2, 80, (9, 0)))
    ),
    True,
    4,
)


@pytest.mark.parametrize(
    "device, gpus, minutes, preset, reason",
    [
        ("cuda:0", (0,), 5, "cpu", "with t4 make about 2.5 million positions"),
        ("cuda:0", (0,), None, "t4", "20 minutes with t4 make about 10.1 million positions"),
        ("cuda:1", (1,), 60, "a100", "it pays from 27 million on"),
        ("cuda:2", (2,), 20, "a100", "20 minutes with a100"),
        ("cuda:2", (2,), 240, "h100", "240 minutes with h100"),
        ("cuda:0", None, 60, "t4", "make about 90.9 million"),  # three play, as slow ones
        ("mps", None, 240, "cpu", "no Apple GPU has been measured"),
        ("cpu", None, 240, "cpu", "cores are too slow"),
    ],
)
def test_the_preset_fits_the_gpus_that_learn_or_play_and_the_minutes(
    device, gpus, minutes, preset, reason
):
    plan = plan_workers(CARDS, device, gpus=gpus)
    config = TrainConfig(gpus=gpus, minutes=minutes)
    said = []
    assert config.resolve(device, CARDS, plan, say=said.append).preset == preset
    assert said[0].startswith(f"Preset {preset}: ") and reason in said[0]
    cores = plan_workers(CARDS, device, gpus=gpus, selfplay_device="cpu")
    assert config.resolve(device, CARDS, cores).preset == "cpu", "cores play"
    session = TrainConfig(gpus=gpus, minutes=1, total_minutes=minutes or 20)
    assert session.resolve(device, CARDS, plan).preset == preset, "one of several sessions"


def test_the_estimates_are_those_that_docs_speed_multiplies_out():
    text = (Path(__file__).parent.parent / "docs" / "speed.md").read_text(encoding="utf-8")
    for name, size in SIZES.items():
        for kind, ply, update in zip(KINDS, size.plies, size.updates):
            (row,) = [line for line in text.splitlines() if line.startswith(f"| {kind} | {name} |")]
            cells = row.split(" | ")
            shown = [float(cells[place].removesuffix(" ms")) for place in (3, 5)]
            assert shown == [ply, update]


@pytest.mark.parametrize(
    "free, preset, reason",
    [
        (20e9, "a100", "240 minutes with a100"),
        (1.4e9, "cpu", "t4 needs 6 GB of a GPU, and 1.4 GB are free"),
    ],
)
def test_the_preset_fits_the_memory_that_is_free(free, preset, reason, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: asked.append("what this process keeps"))
    monkeypatch.setattr(
        torch.cuda, "mem_get_info", lambda device: asked.append(device) or (int(free), int(80e9))
    )
    plan = plan_workers(CARDS, "cuda:2", gpus=(2,))
    said = []
    config = TrainConfig(gpus=(2,), minutes=240)
    assert config.resolve("cuda:2", CARDS, plan, say=said.append).preset == preset
    assert asked == ["what this process keeps", 2] and reason in said[0]


def test_a_gpu_with_the_memory_of_its_cpu_is_no_a100():
    names = {"NVIDIA GB10": (12, 1), "NVIDIA Thor": (11, 0), "RTX PRO 6000": (12, 0)}
    kinds = [KINDS[kind_of(Gpu(0, name, 119 * 2**30, it))] for name, it in names.items()]
    assert kinds == ["T4", "T4", "A100"]


@pytest.mark.parametrize("kept, words", [("cpu", "would get a100"), ("a100", "")])
def test_a_run_that_keeps_another_network_says_so(kept, words, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(20e9), int(80e9)))
    plan = plan_workers(CARDS, "cuda:2", gpus=(2,))
    said = []
    config = TrainConfig(gpus=(2,), minutes=240)
    saved = {"game": "chess", "preset": kept}
    assert config.resolve("cuda:2", CARDS, plan, saved, said.append).preset == kept
    assert words in " ".join(said) and bool(words) == any("keeps its network" in s for s in said)


def test_matches_of_an_apple_gpu_are_played_on_its_cpu():
    assert playing_device("mps") == playing_device(torch.device("mps")) == "cpu"
    assert playing_device("cuda:1") == "cuda:1"
