"""Choose the device (CUDA, then Apple's MPS, then the CPU), say why, and plan which workers play on which device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from .cpu import usable_cores
from .errors import ConfigError, DeviceError, require_counts, require_one_of

MAX_CPU_WORKERS = 16
LEARNER_GPU = ("shared", "own")
DEVICE_FAILURE = ("stop", "cpu")
# In the messages of MPS, of the CPU, and of cuDNN and cuBLAS.
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")
NO_GPU, WORKS = "cuda: no GPU that this torch can see", ": works"
MPS_TORCH = "2.7"  # before, a scalar shifted by a tensor came out wrong on MPS (pytorch#147889)
PRECISIONS = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Gpu:
    """A CUDA device, by torch's index (which counts what CUDA_VISIBLE_DEVICES leaves)."""

    index: int
    name: str
    memory: int  # bytes
    capability: tuple[int, int]


@dataclass(frozen=True)
class Inventory:
    """What a machine has."""

    gpus: tuple[Gpu, ...]
    mps: bool
    cores: int  # that this process may use
    problems: tuple[str, ...] = ()  # what torch said about GPUs that it cannot use


@dataclass(frozen=True)
class DeviceChoice:
    """The device to use, its name for people, and one line for each device tried that says how it went."""

    device: str
    name: str
    reasons: tuple[str, ...]

    @property
    def troubles(self) -> list[str]:
        """Those of the reasons that tell of a device which is there and was passed over."""
        return [reason for reason in self.reasons if reason != NO_GPU and not reason.endswith(WORKS)]

    def __str__(self) -> str:
        return f"{self.device} ({self.name})" if self.name else self.device


@dataclass(frozen=True)
class WorkerPlan:
    """Where self-play runs: one device per worker, the torch threads of each worker, and notes for the user."""

    devices: tuple[str, ...]
    threads: int
    notes: tuple[str, ...] = ()
    device_failure: str = "stop"  # one of DEVICE_FAILURE: what to do about a worker whose device does not work
    workers_per_gpu: int = 1


def inventory() -> Inventory:
    """Look at this machine. Raises nothing: a GPU that does not even tell its name becomes one of the problems."""
    gpus: list[Gpu] = []
    problems: list[str] = []
    with warnings.catch_warnings(record=True) as caught:  # torch only warns of a driver or GPU that is too old
        warnings.simplefilter("always")
        for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
            try:
                found = torch.cuda.get_device_properties(index)
            except Exception as error:  # whatever a broken driver raises
                problems.append(f"cuda:{index}: there, but broken: {_first_line(error)}")
                continue
            gpus.append(Gpu(index, found.name, found.total_memory, (found.major, found.minor)))
    warned = [f"cuda: {_first_line(warning.message)}" for warning in caught]
    mps = torch.backends.mps.is_available()
    if mps and torch.__version__ < MPS_TORCH:  # TorchVersion compares as versions do
        mps = False
        problems.append(f"mps: torch {torch.__version__} shifts bits wrongly there: install torch {MPS_TORCH} or newer")
    return Inventory(tuple(gpus), mps, usable_cores(), (*dict.fromkeys(warned), *problems))


def detect_device(
    requested: str | torch.device = "auto",
    machine: Inventory | None = None,
    probe: Callable[[str], None] | None = None,
    gpus: Sequence[int] | None = None,
) -> DeviceChoice:
    """Return the best device that works ("auto"), or the requested one ("cpu", "mps", "cuda", "cuda:1").

    Each device is tried with `probe`, which raises if it does not work; the next one is tried then. gpus: limits "auto"
    and "cuda" to these GPUs. Raises DeviceError when a requested device is not there or does not work.
    """
    machine, probe = machine or inventory(), probe or try_device
    reasons = []
    if str(requested) == "auto":
        reasons = [*machine.problems] or ([] if machine.gpus else [NO_GPU])
    for device in _candidates(str(requested), machine, gpus):
        try:
            probe(device)
        except Exception as error:  # whatever a broken driver raises
            reasons.append(f"{device}: there, but broken: {_first_line(error)}")
            continue
        reasons.append(f"{device}{WORKS}")
        return DeviceChoice(device, describe(device, machine), tuple(reasons))
    raise DeviceError(
        f"device {str(requested)!r} does not work: {'; '.join(reasons)}; choose another of "
        f"{', '.join(_present(machine))}, or auto"
    )


def try_device(device: str) -> None:
    """Do a little of all that the project does (matrices, integers, a convolution, a copy back); raise if it fails."""
    ones = torch.ones(8, 8, device=device)
    board = torch.full((8,), 1 << 40, dtype=torch.int64, device=device)
    picked = ((board << 3) & (1 << 43)).gather(0, torch.arange(8, device=device))
    convolved = F.conv2d(ones.view(1, 1, 8, 8), ones[:3, :3].reshape(1, 1, 3, 3))
    bits, total = int((picked >> 43).sum()), float((ones @ ones).sum() + convolved.sum())
    if bits != 8 or abs(total - (512 + 324)) > 1:  # a good GPU may convolve by an algorithm that rounds
        raise RuntimeError(f"computed {bits} and {total}, expected 8 and {512 + 324}")


def require_device(device: str) -> None:
    """Raise DeviceError with the reason when `device` does not work."""
    try:
        try_device(device)
    except Exception as error:  # whatever a broken driver raises
        raise DeviceError(f"{device} does not work: {_first_line(error)}") from error


def playing_device(device: str | torch.device) -> str:
    """Where matches, puzzles and a person's games are played when `device` is asked for: itself, but the CPU for MPS.

    What the rules prove has as many rows as the data wants, and MPS keeps a compiled graph for every number of rows
    that it has seen (pytorch#188756).
    """
    return "cpu" if torch.device(device).type == "mps" else str(device)


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that a device, or this machine, has no room for a tensor."""
    return isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def describe(device: str, machine: Inventory | None = None) -> str:
    """Return a name for people: "GPU 0: Tesla T4", "Apple GPU (MPS)" or "CPU"."""
    if device.startswith("cuda"):
        index = int(device.partition(":")[2] or 0)
        names = {gpu.index: gpu.name for gpu in (machine or inventory()).gpus}
        return f"GPU {index}: {names.get(index, 'unknown')}"
    return "Apple GPU (MPS)" if device == "mps" else "CPU"


def time_convolutions(device: str | torch.device) -> None:
    """On CUDA, let cuDNN time its algorithms for each new shape and keep the fastest; elsewhere nothing.

    It is for processes that see few shapes: self-play's batches are powers of two, the learner's all have one size. Two
    processes may choose differently and then differ in rounding.
    """
    if torch.device(device).type == "cuda":
        torch.backends.cudnn.benchmark = True


def choose_dtype(precision: str, device: str | torch.device) -> torch.dtype:
    """Return the dtype of convolutions for one of PRECISIONS. Raises ConfigError for an unknown name.

    "auto" is the fastest: bfloat16 where there are units for it (GPUs from Ampere on, CPUs with AVX-512 BF16 or AMX),
    float16 on older CUDA GPUs, else float32. It depends on the hardware and on no timing, so that runs can be repeated
    exactly.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"unknown precision {precision!r}: expected one of {', '.join(PRECISIONS)}")
    if precision != "auto":
        return getattr(torch, precision)
    device = torch.device(device)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
    # Public only in part: an older torch has one of these questions or neither.
    units = any(getattr(torch.cpu, f"_is_{unit}_supported", bool)() for unit in ("avx512_bf16", "amx_tile"))
    return torch.bfloat16 if device.type == "cpu" and units else torch.float32


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
    """Plan which workers play on which device, when `device` trains.

    By default there is one worker per GPU, since one batch of games fills it, or `workers_per_gpu`. `workers` is a
    total, rounded down to a multiple of the GPUs, with a note; fewer workers than GPUs use the first GPUs. MPS has one
    worker. The CPU has one worker per core, each with one thread. "auto" and "cuda:0" play on all GPUs.

    gpus: play on these GPUs only, by torch's index. selfplay_device: play there instead, such as "cpu". learner_gpu:
    "shared", or "own" to keep workers off the GPU that trains if there is another. device_failure: "stop", or "cpu" to
    let a worker whose GPU does not work play on the CPU. Raises ConfigError for counts below one and unknown words,
    DeviceError for devices that are not there.
    """
    require_counts(workers=workers, workers_per_gpu=workers_per_gpu)
    require_one_of("learner_gpu", learner_gpu, LEARNER_GPU)
    require_one_of("device_failure", device_failure, DEVICE_FAILURE)
    trains_on = _candidates(str(device), machine, gpus)[0]
    kind = _candidates(str(selfplay_device or device), machine, gpus)[0].partition(":")[0]
    if kind == "cuda":
        one = str(selfplay_device or (device if gpus is None and trains_on != "cuda:0" else "cuda"))
        wanted = [int(one[5:])] if one.startswith("cuda:") else _picked(machine, gpus)
        reserved = trains_on if learner_gpu == "own" else ""
        return _plan_gpus(machine, wanted, reserved, workers, workers_per_gpu, device_failure)
    if gpus is not None and not trains_on.startswith("cuda"):
        raise DeviceError(f"gpus={list(gpus)} but the device is {device}: leave gpus out, or use cuda")
    if kind == "mps":
        notes = (f"MPS takes one worker; {workers} asked for",) if workers and workers > 1 else ()
        return WorkerPlan(("mps",), 1, notes, device_failure)
    count = workers or min(machine.cores, MAX_CPU_WORKERS)
    notes = (f"{count} workers on {machine.cores} cores will take turns",) if count > machine.cores else ()
    return WorkerPlan(("cpu",) * count, max(machine.cores // count, 1) if workers else 1, notes)


def _plan_gpus(
    machine: Inventory, wanted: list[int], reserved: str, workers: int | None, workers_per_gpu: int, device_failure: str
) -> WorkerPlan:
    """Plan workers on the GPUs `wanted`, without the one reserved for the learner if there is another."""
    notes = []
    left = [index for index in wanted if f"cuda:{index}" != reserved]
    if not left:
        notes.append(
            "learner_gpu='own': no other of the chosen GPUs to play on (gpus names them), so the learner shares"
        )
    elif left != wanted:
        wanted = left
        notes.append(f"the learner has {reserved} for itself")
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
    return WorkerPlan(devices, max(machine.cores // total, 1), tuple(notes), device_failure, total // len(wanted))


def _present(machine: Inventory) -> list[str]:
    return [f"cuda:{gpu.index}" for gpu in machine.gpus] + ["mps"] * machine.mps + ["cpu"]


def _picked(machine: Inventory, gpus: Sequence[int] | None) -> list[int]:
    """Return the GPU numbers in `gpus` after checking them, or those of all GPUs for None."""
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
    """Return the devices that a setting may mean on this machine, best first. Raises DeviceError when there is none."""
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
