"""Choose the device (CUDA, then Apple's MPS, then the CPU), say why, and plan which workers play on
which device.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import distributed
from torch.nn import functional as F

from .cpu import usable_cores
from .errors import DeviceError, first_line

MAX_CPU_WORKERS = 16
# In the messages of MPS, of the CPU, of cuBLAS, and of cuDNN when no plan that it tried had enough.
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "STATUS_ALLOC_FAILED",
    "calling `cublasCreate",
    "unable to find an engine",
)
ENOUGH_TO_TRY = 2e9  # bytes; try_device needs less
NO_GPU = "cuda: no GPU that this torch can see"
PRECISIONS = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Gpu:
    """A CUDA device, by torch's index (which counts what CUDA_VISIBLE_DEVICES leaves)."""

    index: int
    name: str
    memory: int  # bytes
    capability: tuple[int, int]
    made_up: bool = False  # whether it is no device of this machine


@dataclass(frozen=True)
class Inventory:
    """The devices of a machine."""

    gpus: tuple[Gpu, ...]
    mps: bool
    cores: int  # that this process may use
    problems: tuple[str, ...] = ()  # what torch said about GPUs that it cannot use
    nccl: bool = True  # whether torch has what GPUs need to learn together


@dataclass(frozen=True)
class DeviceChoice:
    """The device to use, its name for people, and one line for each device tried that says how it
    went; the last one works.
    """

    device: str
    name: str
    reasons: tuple[str, ...]

    @property
    def troubles(self) -> list[str]:
        """The reasons why a device that is there was passed over."""
        return [reason for reason in self.reasons[:-1] if reason != NO_GPU]

    def __str__(self) -> str:
        return f"{self.device} ({self.name})"


@dataclass(frozen=True)
class WorkerPlan:
    """Where self-play runs: one device per worker, the torch threads of each worker, and notes for
    the user.
    """

    devices: tuple[str, ...]
    threads: int
    notes: tuple[str, ...] = ()
    workers_per_gpu: int = 1  # that share a GPU, at most
    nccl: bool = True  # see Inventory

    @property
    def players(self) -> int:
        """How many devices play. On a cluster all workers have the same device name."""
        return max(len(set(self.devices)), math.ceil(len(self.devices) / self.workers_per_gpu))

    @property
    def learns_alone(self) -> str:
        """Why one GPU learns where several play; empty where they may learn together."""
        if not self.nccl:
            return "several need NCCL, which this torch lacks"
        if self.workers_per_gpu == 1:
            return ""
        return "several workers share a GPU: set workers lower for all GPUs to learn"


def inventory() -> Inventory:
    """List the devices of this machine. Raises nothing: a GPU that does not even tell its name
    becomes one of the problems.
    """
    gpus = []
    problems = []
    # torch only warns of a driver or a GPU that is too old
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
            try:
                found = torch.cuda.get_device_properties(index)
            except Exception as error:  # whatever a broken driver raises
                problems.append(f"cuda:{index}: there, but broken: {first_line(error)}")
                continue
            gpus.append(Gpu(index, found.name, found.total_memory, (found.major, found.minor)))
    warned = [f"cuda: {first_line(warning.message)}" for warning in caught]
    return Inventory(
        gpus=tuple(gpus),
        mps=torch.backends.mps.is_available(),
        cores=usable_cores(),
        problems=(*dict.fromkeys(warned), *problems),
        nccl=distributed.is_available() and distributed.is_nccl_available(),
    )


def detect_device(
    requested: str = "auto",
    machine: Inventory | None = None,
    probe: Callable[[str], object] | None = None,
    gpus: Sequence[int] | None = None,
) -> DeviceChoice:
    """Return the best device that works ("auto"), or the requested one ("cpu", "mps", "cuda",
    "cuda:1").

    Each device is tried with `probe`, which raises if it does not work; the next one is tried then.
    gpus: limits "auto" and "cuda" to these GPUs. Raises DeviceError when a requested device is not
    there or does not work.
    """
    requested = str(requested)
    machine, probe = machine or inventory(), probe or try_device
    reasons = []
    if requested == "auto":
        reasons = [*machine.problems] or ([] if machine.gpus else [NO_GPU])
    for device in _candidates(requested, machine, gpus):
        try:
            probe(device)
        except Exception as error:  # whatever a broken driver raises
            reasons.append(f"{device}: {_why_not(device, error)}")
            continue
        return DeviceChoice(device, describe(device, machine), (*reasons, f"{device}: works"))
    raise DeviceError(
        f"device {requested!r} does not work: {'; '.join(reasons)}; choose another of "
        f"{', '.join(present(machine))}, or auto"
    )


def _why_not(device: str, error: Exception) -> str:
    """The reason why a device is passed over: its memory is taken, or it is broken. cuDNN and
    cuBLAS fail in the same words for want of memory and where they do not fit torch.
    """
    broken = f"there, but broken: {first_line(error)}"
    if not (device.startswith("cuda") and out_of_memory(error)):
        return broken
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # asking takes memory, too
        return "in use: all of its memory is taken"
    if free > ENOUGH_TO_TRY:
        return broken
    return f"in use: {(total - free) / 1e9:.1f} of {total / 1e9:.1f} GB taken"


def free_memory(gpu: Gpu) -> int:
    """The bytes that no program has taken; all of them where the device cannot be asked.

    What this process keeps for later is given back: a notebook has timed, or trained, before.
    """
    if gpu.made_up:
        return gpu.memory
    try:
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(gpu.index)[0]
    except Exception:  # whatever a broken driver raises; the worker there will say so
        return gpu.memory


def try_device(device: str) -> None:
    """Do a little of what the project does (integers, a convolution, a copy back).

    Raises what the device raises, or RuntimeError for wrong numbers.
    """
    board = torch.full((8,), 1 << 40, dtype=torch.int64, device=device)
    ones = torch.ones(1, 1, 8, 8, device=device)
    bits = int(((board << 3) >> 43).sum())
    total = float(F.conv2d(ones, ones[:, :, :3, :3]).sum())
    expected = 9 * 36
    if bits != 8 or abs(total - expected) > 1:  # a good GPU may convolve by a way that rounds
        raise RuntimeError(f"computed {bits} and {total}, expected 8 and {expected}")


def playing_device(device: str | torch.device) -> str:
    """The device for matches and puzzles: `device`, but the CPU for MPS.

    Wins that the rules prove for a position take as many rows as it needs, and MPS keeps a compiled
    graph for every number of rows that it has seen (pytorch#132596, #181213).
    """
    return "cpu" if torch.device(device).type == "mps" else str(device)


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that a device, or this machine, has no room for a tensor."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def describe(device: str, machine: Inventory) -> str:
    """Return a name for people: "GPU 0: Tesla T4", "Apple GPU (MPS)" or "CPU"."""
    for gpu in machine.gpus:
        if device == f"cuda:{gpu.index}":
            return f"GPU {gpu.index}: {gpu.name}"
    return "Apple GPU (MPS)" if device == "mps" else "CPU"


def time_convolutions(device: str | torch.device) -> None:
    """On CUDA, let cuDNN time its algorithms for each new shape and keep the fastest; elsewhere
    nothing.

    It is for processes that see few shapes: self-play's batches are powers of two, the learner's
    all have one size. Two processes may choose differently and then differ in rounding.
    """
    if torch.device(device).type == "cuda":
        torch.backends.cudnn.benchmark = True


def choose_dtype(precision: str, device: str | torch.device) -> torch.dtype:
    """Return the dtype of convolutions for one of PRECISIONS.

    "auto" is the fastest: bfloat16 where there are units for it (GPUs from Ampere on, CPUs with
    AVX-512 BF16 or AMX), float16 on older CUDA GPUs, else float32. It depends on the hardware and
    on no timing, so that runs can be repeated exactly.
    """
    if precision != "auto":
        return getattr(torch, precision)
    device = torch.device(device)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
    units = cpu_has("avx512_bf16") or cpu_has("amx_tile")
    return torch.bfloat16 if device.type == "cpu" and units else torch.float32


def cpu_has(unit: str) -> bool:
    """Whether this CPU has units of a kind, by torch's name."""
    # Public only in part: an older torch does not have every one of these questions.
    return getattr(torch.cpu, f"_is_{unit}_supported", bool)()


def plan_workers(
    machine: Inventory,
    device: str = "auto",
    workers: int | None = None,
    gpus: Sequence[int] | None = None,
    selfplay_device: str | None = None,
) -> WorkerPlan:
    """Plan which workers play on which device, when `device` trains.

    By default there is one worker per GPU, since one batch of games fills it. `workers` is a
    total, dealt out to the GPUs in turn; fewer workers than GPUs use the first GPUs. MPS has one
    worker. The CPU has one worker per core, each with one thread. "auto" and "cuda:0" play on all
    GPUs.

    gpus: play on these GPUs only, by torch's index. selfplay_device: play there instead, such as
    "cpu". Raises DeviceError for devices that are not there.
    """
    trains_on = _candidates(device, machine, gpus)[0]
    plays_on = _candidates(selfplay_device or device, machine, gpus)[0]
    if plays_on.startswith("cuda"):
        wanted = _picked(machine, gpus)
        spread = gpus is not None or device == "cuda:0"  # over all, whichever of them trains
        if (selfplay_device or ("cuda" if spread else device)) == plays_on:
            wanted = [plays_on]
        total = workers or len(wanted)
        devices = tuple(wanted[worker % len(wanted)] for worker in range(total))
        threads = max(machine.cores // total, 1)
        per_gpu = math.ceil(total / len(wanted))
        return WorkerPlan(devices, threads, (), per_gpu, machine.nccl)
    if gpus is not None and not trains_on.startswith("cuda"):
        raise DeviceError(
            f"gpus={list(gpus)} but the device is {device}: leave gpus out, or use cuda"
        )
    if plays_on == "mps":
        notes = (f"MPS takes one worker, not {workers}",) if (workers or 1) > 1 else ()
        return WorkerPlan(("mps",), 1, notes)
    count = workers or min(machine.cores, MAX_CPU_WORKERS)
    threads = max(machine.cores // count, 1) if workers else 1
    return WorkerPlan(("cpu",) * count, threads)


def present(machine: Inventory) -> list[str]:
    """The devices that are there, best first."""
    return [f"cuda:{gpu.index}" for gpu in machine.gpus] + ["mps"] * machine.mps + ["cpu"]


def _picked(machine: Inventory, gpus: Sequence[int] | None) -> list[str]:
    """Return the GPUs with the numbers `gpus`, or all GPUs for None. Raises DeviceError for one
    that is not there.
    """
    there = [f"cuda:{gpu.index}" for gpu in machine.gpus]
    wanted = there if gpus is None else [f"cuda:{index}" for index in gpus]
    missing = [device for device in wanted if device not in there]
    if missing:
        shown = ", ".join(present(machine))
        what = f"{', '.join(missing)} is not there: this machine shows {shown}"
        raise DeviceError("; ".join((what, *machine.problems)))
    return wanted


def _candidates(requested: str, machine: Inventory, gpus: Sequence[int] | None) -> list[str]:
    """Return the devices that a setting may mean on this machine, best first. Raises DeviceError
    when there is none.
    """
    there = present(machine)
    picked = _picked(machine, gpus)
    if requested == "auto":
        return picked + there[len(machine.gpus) :]
    found = picked if requested == "cuda" else [device for device in there if device == requested]
    if not found:
        what = f"device {requested!r} is not there: expected auto or one of {', '.join(there)}"
        raise DeviceError("; ".join((what, *machine.problems)))
    return found
