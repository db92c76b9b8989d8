"""Which device there is, why, and how many workers it wants. CUDA, then Apple's MPS, then the CPU."""

from __future__ import annotations

import ctypes
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

import torch
from torch.nn import functional as F

from .errors import ConfigError, DeviceError

MAX_CPU_WORKERS = 16
LEARNER_GPU = ("shared", "own")
DEVICE_FAILURE = ("stop", "cpu")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
CPU_QUOTA = Path(
    "/sys/fs/cgroup/cpu.max"
)  # a container's share of the CPU: "microseconds-of-work period", or "max period"


@dataclass(frozen=True)
class Gpu:
    """One CUDA device, by the index torch gives it (CUDA_VISIBLE_DEVICES has been applied)."""

    index: int
    name: str
    memory: int  # bytes
    capability: tuple[int, int]


@dataclass(frozen=True)
class Inventory:
    """What a machine has; tests make their own."""

    gpus: tuple[Gpu, ...]
    mps: bool
    cores: int  # this process may use
    problems: tuple[str, ...] = ()  # what torch said of GPUs that it cannot use


@dataclass(frozen=True)
class DeviceChoice:
    """The device to use, and a line of reason for each one tried."""

    device: str
    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class WorkerPlan:
    """Where self-play runs: a device for each worker, torch threads for each, and what to tell the user."""

    devices: tuple[str, ...]
    threads: int
    notes: tuple[str, ...] = ()
    device_failure: str = "stop"  # what a worker whose device does not work does, one of DEVICE_FAILURE
    workers_a_gpu: int = 1


def inventory() -> Inventory:
    """Look at this machine. Raises nothing: a GPU that cannot even be asked for its name is one of the problems."""
    gpus: list[Gpu] = []
    problems: list[str] = []
    with warnings.catch_warnings(record=True) as caught:  # of a driver or a GPU that is too old torch only warns
        warnings.simplefilter("always")
        for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
            try:
                found = torch.cuda.get_device_properties(index)
            except Exception as error:  # whatever a broken driver raises
                problems.append(f"cuda:{index}: there, but broken: {_first_line(error)}")
                continue
            gpus.append(Gpu(index, found.name, found.total_memory, (found.major, found.minor)))
    warned = [f"cuda: {_first_line(warning.message)}" for warning in caught]
    return Inventory(
        tuple(gpus), torch.backends.mps.is_available(), usable_cores(), (*dict.fromkeys(warned), *problems)
    )


def usable_cores(quota: Path = CPU_QUOTA) -> int:
    """The cores this process may use: those it may run on, and no more than its container's share of their time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text().split()
        return max(min(cores, int(allowed) // int(period)), 1)
    except (OSError, ValueError):  # no container, or "max"
        return cores


def detect_device(
    requested: str | torch.device = "auto",
    machine: Inventory | None = None,
    probe: Callable[[str], None] | None = None,
    gpus: Sequence[int] | None = None,
) -> DeviceChoice:
    """The best device that works, or the `requested` one ("cpu", "mps", "cuda", "cuda:1").

    Each candidate computes something first; one that is there but broken is passed over, with its reason kept. `gpus`
    keeps "auto" and "cuda" to these GPUs. A requested device that is not there or does not work raises DeviceError.
    """
    machine = machine or inventory()
    probe = probe or try_device
    candidates = _candidates(str(requested), machine, gpus)
    reasons = []
    if str(requested) == "auto":
        reasons = [*machine.problems] or ([] if machine.gpus else ["cuda: no GPU that this torch can see"])
    for device in candidates:
        try:
            probe(device)
        except Exception as error:  # whatever a broken driver raises
            reasons.append(f"{device}: there, but broken: {_first_line(error)}")
            continue
        reasons.append(f"{device}: works")
        return DeviceChoice(device, describe(device, machine), tuple(reasons))
    raise DeviceError(
        f"device {str(requested)!r} does not work: {'; '.join(reasons)}; choose another of "
        f"{', '.join(_present(machine))}, or auto"
    )


def try_device(device: str) -> None:
    """Do a little of everything the project does: matrix and integer work, a convolution, a copy back. Raises."""
    ones = torch.ones(8, 8, device=device)
    board = torch.full((8,), 1 << 40, dtype=torch.int64, device=device)
    picked = ((board << 3) & (1 << 43)).gather(0, torch.arange(8, device=device))
    convolved = F.conv2d(ones.view(1, 1, 8, 8), ones[:3, :3].reshape(1, 1, 3, 3))
    total = float((ones @ ones).sum() + convolved.sum()) + int((picked >> 43).sum())
    if total != 512 + 324 + 8:
        raise RuntimeError(f"computed {total}, expected {512 + 324 + 8}")


def require_device(device: str) -> None:
    """Raise DeviceError, with the reason, when `device` does not work."""
    try:
        try_device(device)
    except Exception as error:  # whatever a broken driver raises
        raise DeviceError(f"{device} does not work: {_first_line(error)}") from error


def out_of_memory(error: BaseException) -> bool:
    """Whether a device, or this machine, has no room for a tensor. CUDA has a type for it, MPS and the CPU have words."""
    return (
        isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError))
        or isinstance(error, RuntimeError)
        and any(words in str(error) for words in ("out of memory", "can't allocate memory"))
    )


def describe(device: str, machine: Inventory | None = None) -> str:
    """A name for people: "GPU 0: Tesla T4", "Apple GPU (MPS)", "CPU"."""
    if device.startswith("cuda"):
        index = int(device.partition(":")[2] or 0)
        names = {gpu.index: gpu.name for gpu in (machine or inventory()).gpus}
        return f"GPU {index}: {names.get(index, 'unknown')}"
    return "Apple GPU (MPS)" if device == "mps" else "CPU"


def choose_dtype(precision: str, device: str | torch.device) -> torch.dtype:
    """The dtype of convolutions for one of PRECISIONS.

    "auto" is the fastest: bfloat16 where there are units for it (GPUs from Ampere on, CPUs with AMX tiles), float16 on
    older CUDA GPUs, else float32. It is a fact of the hardware, not a timing, so that runs repeat. Raises ConfigError for
    an unknown name.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"unknown precision {precision!r}: expected one of {', '.join(PRECISIONS)}")
    if precision != "auto":
        return getattr(torch, precision)
    device = torch.device(device)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
    tiles = getattr(torch.cpu, "_is_amx_tile_supported", None)  # public only in part: absent before torch 2.6
    return torch.bfloat16 if device.type == "cpu" and tiles is not None and tiles() else torch.float32


def keep_freed_memory() -> None:
    """Have glibc's malloc keep big freed blocks for this process instead of returning them to the system each time.

    Batches allocate the same tensors over and over; fresh pages for each cost a fifth of the time on a CPU. Does
    nothing where malloc is not glibc's.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS has no mallopt, Windows no CDLL(None)
        return
    # malloc.h: M_TRIM_THRESHOLD -1, M_TOP_PAD -2, M_MMAP_MAX -4
    for option, value in ((-1, 2**30), (-2, 2**26), (-4, 0)):
        mallopt(option, value)


def plan_workers(
    machine: Inventory,
    device: str = "auto",
    workers: int | None = None,
    workers_per_gpu: int = 1,
    gpus: Sequence[int] | None = None,
    selfplay_device: str | None = None,
    learner_gpu: str = "shared",
    device_failure: str = "stop",
) -> WorkerPlan:
    """Who plays where, when `device` trains.

    One worker a GPU by default, since a lockstep batch fills it; `workers_per_gpu` for more. An explicit total of
    `workers` is rounded down to a multiple of the GPUs, with a note; fewer workers than GPUs use the first GPUs. MPS
    has one worker. The CPU has one worker a core, each with one thread. "cuda:0", which "auto" finds too, plays on all
    GPUs; `gpus` picks some, by torch's index (of those CUDA_VISIBLE_DEVICES leaves); selfplay_device="cpu" keeps games
    off the GPU. The learner shares its GPU with a worker; learner_gpu="own" keeps workers off it where there is
    another. device_failure: "stop", or "cpu" to have a worker whose GPU does not work play on the CPU.

    Raises ConfigError for counts below one, DeviceError for devices that are not there.
    """
    for name, value in (("workers", workers), ("workers_per_gpu", workers_per_gpu)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(
                f"{name}={value!r}: expected a whole number from 1 up (leave it out and the machine decides)"
            )
    for name, value, known in (
        ("learner_gpu", learner_gpu, LEARNER_GPU),
        ("device_failure", device_failure, DEVICE_FAILURE),
    ):
        if value not in known:
            raise ConfigError(f"{name}={value!r}: expected one of {', '.join(known)}")
    trains_on = _candidates(str(device), machine, gpus)[0]
    there = _candidates(str(selfplay_device or device), machine, gpus)
    kind = there[0].partition(":")[0]
    if kind == "cuda":
        one = str(selfplay_device or ("" if gpus is not None or trains_on == "cuda:0" else device))
        wanted = [int(one[5:])] if one.startswith("cuda:") else _picked(machine, gpus)
        left = [index for index in wanted if learner_gpu == "shared" or trains_on != f"cuda:{index}"]
        notes = [f"the learner has {trains_on} for itself"] if left != wanted else []
        if not left:
            left, notes = wanted, ["learner_gpu='own': no other GPU to play on, so the learner shares"]
        return _plan_gpus(machine, left, workers, workers_per_gpu, notes, device_failure)
    if gpus is not None and not trains_on.startswith("cuda"):
        raise DeviceError(f"gpus={list(gpus)} but the device is {device}: leave gpus out, or use cuda")
    if kind == "mps":
        notes = (f"MPS takes one worker; {workers} asked for",) if workers and workers > 1 else ()
        return WorkerPlan(("mps",), 1, notes, device_failure)
    count = workers or min(machine.cores, MAX_CPU_WORKERS)
    notes = (f"{count} workers on {machine.cores} cores will take turns",) if count > machine.cores else ()
    return WorkerPlan(("cpu",) * count, max(machine.cores // count, 1) if workers else 1, notes)


def _plan_gpus(
    machine: Inventory,
    wanted: list[int],
    workers: int | None,
    workers_per_gpu: int,
    notes: list[str],
    device_failure: str,
) -> WorkerPlan:
    total = workers or len(wanted) * workers_per_gpu
    if workers and workers_per_gpu > 1:
        notes.append(f"workers={workers} is the total: workers_per_gpu={workers_per_gpu} is not used")
    if total < len(wanted):
        notes.append(f"{total} workers use GPUs {', '.join(map(str, wanted[:total]))} of {len(wanted)}")
        wanted = wanted[:total]
    elif total % len(wanted):
        rounded = total - total % len(wanted)
        notes.append(f"{total} workers on {len(wanted)} GPUs: using {rounded}, the next multiple down")
        total = rounded
    devices = tuple(f"cuda:{wanted[i % len(wanted)]}" for i in range(total))
    return WorkerPlan(devices, max(machine.cores // total, 1), tuple(notes), device_failure, -(-total // len(wanted)))


def _present(machine: Inventory) -> list[str]:
    return [f"cuda:{gpu.index}" for gpu in machine.gpus] + ["mps"] * machine.mps + ["cpu"]


def _picked(machine: Inventory, gpus: Sequence[int] | None) -> list[int]:
    """The numbers in `gpus`, all there and no two the same; of every GPU for None."""
    there = [gpu.index for gpu in machine.gpus]
    if gpus is None:
        return there
    if isinstance(gpus, (int, str)) or not gpus or len(set(gpus)) < len(gpus):
        raise ConfigError(f"gpus={gpus!r}: expected different GPU numbers such as [0, 2] (leave gpus out for all)")
    missing = [index for index in gpus if index not in there]
    if missing:
        raise DeviceError(
            f"GPU {', '.join(map(str, missing))} is not there: this machine shows {', '.join(_present(machine))}"
        )
    return list(gpus)


def _candidates(requested: str, machine: Inventory, gpus: Sequence[int] | None) -> list[str]:
    """The devices that a setting may mean on this machine, best first. Raises DeviceError when there is none."""
    present = _present(machine)
    picked = [f"cuda:{index}" for index in _picked(machine, gpus)]
    if requested == "auto":
        return picked + [device for device in present if not device.startswith("cuda")]
    found = picked if requested == "cuda" else [device for device in present if device == requested]
    if not found:
        raise DeviceError(f"device {requested!r} is not there: expected auto or one of {', '.join(present)}")
    return found


def _first_line(error: Exception | Warning | str) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
