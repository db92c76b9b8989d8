"""What this machine and its torch can do, and what a person should change.

torch.utils.collect_env asks nvidia-smi too, but not for the compute capability, on which the advice depends, and
without a time limit.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from . import TORCH_CAME_FIRST
from .devices import Inventory, inventory

PACKAGES = ("torch", "numpy", "chess", "spikingjelly", "ipywidgets", "matplotlib", "safetensors", "tensorboard")
WHEELS = "https://download.pytorch.org/whl/"
# CUDA 12 needs a driver from 525 on, CUDA 13 one from 580 on. CUDA 13 has no code for GPUs before Turing, and the
# last wheels for those are CUDA 12.6 of torch 2.14 (pytorch/pytorch#190385).
CUDA_12_DRIVER, CUDA_13_DRIVER = 525, 580
TURING = (7, 5)


@dataclass(frozen=True)
class DriverGpu:
    """A GPU as the NVIDIA driver shows it, whether torch can use it or not."""

    name: str
    driver: str  # its version, like 535.104.05; "" where unknown
    capability: tuple[int, int] | None = None  # None where the driver does not say


@dataclass(frozen=True)
class Facts:
    """Everything that the advice depends on."""

    place: str  # Colab, Kaggle or local
    torch_version: str
    torch_cuda: str | None  # the CUDA version that torch was built for; None for a build without CUDA
    machine: Inventory  # what torch sees
    driver_gpus: tuple[DriverGpu, ...] = ()
    arch_list: tuple[str, ...] = ()  # the GPU architectures this torch has code for, like sm_75
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES, where it is set
    ram_bytes: int | None = None  # None where the system does not say
    shm_bytes: int | None = None  # /dev/shm; None where there is none
    torch_came_first: bool = False  # torch was loaded before this package could say how its threads wait


def gather_facts(environment: Mapping[str, str] = os.environ) -> Facts:
    """Collect the facts about this machine and its torch."""
    architectures = tuple(torch.cuda.get_arch_list()) if torch.version.cuda else ()
    return Facts(
        find_place(environment),
        torch.__version__,
        torch.version.cuda,
        inventory(),
        driver_gpus(),
        architectures,
        environment.get("CUDA_VISIBLE_DEVICES"),
        ram_bytes(),
        shm_bytes(),
        TORCH_CAME_FIRST,
    )


def find_place(environment: Mapping[str, str]) -> str:
    """Return Colab, Kaggle or local, by the environment variables that their images set.

    Kaggle first: its image is built on Colab's and sets Colab's variables too (Kaggle/kagglehub#230).
    """
    if "KAGGLE_KERNEL_RUN_TYPE" in environment:
        return "Kaggle"
    return "Colab" if "COLAB_RELEASE_TAG" in environment else "local"


def advice(facts: Facts) -> tuple[str, ...]:
    """Return what a person should do, in plain words, none when all is well. Depends on the facts only."""
    texts = []
    if facts.driver_gpus and not facts.machine.gpus:
        texts.append(_unseen(facts, facts.driver_gpus[0]))
    elif not facts.machine.gpus and facts.place == "Colab":
        texts.append(
            "No GPU in this Colab runtime: Runtime > Change runtime type > T4 GPU, then run the notebook again. "
            "Training works on the CPU too, slowly."
        )
    elif not facts.machine.gpus and facts.place == "Kaggle":
        texts.append("No GPU in this Kaggle session: Settings > Accelerator > GPU T4 x2, then run the notebook again.")
    refused = [gpu for gpu in facts.machine.gpus if facts.arch_list and not supported(gpu.capability, facts.arch_list)]
    texts += [_unsupported(facts, gpu.name, gpu.capability) for gpu in refused]
    if facts.torch_came_first:
        texts.append(
            "torch was imported before chessnn_colab, so its threads wait for each other in a way that a busy "
            "neighbour slows down several times: import chessnn_colab first, or set GOMP_SPINCOUNT=1000 before Python "
            "starts."
        )
    return tuple(texts)


def _unseen(facts: Facts, gpu: DriverGpu) -> str:
    """Return the advice for a GPU that the driver shows and torch does not."""
    number = gpu.driver.partition(".")[0]
    major = int(number) if number.isdecimal() else CUDA_13_DRIVER
    if major < CUDA_12_DRIVER:
        return (
            f"This machine has {gpu.name} with NVIDIA driver {gpu.driver}, too old for any torch that runs here: "
            f"update the driver to {CUDA_13_DRIVER} or newer."
        )
    too_old = gpu.capability is not None and gpu.capability < TURING
    install = _install("cu126" if too_old or major < CUDA_13_DRIVER else "cu130", too_old)
    if facts.torch_cuda is None:
        return f"This machine has {gpu.name}, but torch {facts.torch_version} is a build without CUDA: {install}."
    if facts.visible_devices is not None:
        return (
            f"The driver shows {gpu.name}, but CUDA_VISIBLE_DEVICES={facts.visible_devices!r} hides it from torch: "
            "unset it, then restart the runtime (kernel)."
        )
    return (
        f"The driver ({gpu.driver}) shows {gpu.name}, but torch {facts.torch_version} (CUDA {facts.torch_cuda}) "
        f"cannot use it: update the NVIDIA driver, or {install}."
    )


def _unsupported(facts: Facts, name: str, capability: tuple[int, int]) -> str:
    """Return the advice for a GPU that torch sees and has no code for."""
    text = (
        f"{name} (compute capability {capability[0]}.{capability[1]}) is not supported by torch "
        f"{facts.torch_version}, which has code for {', '.join(facts.arch_list)}: "
    )
    other = "choose another GPU (Settings > Accelerator > GPU T4 x2), " if facts.place == "Kaggle" else ""
    if capability < TURING:
        return f'{text}{other}{_install("cu126", too_old=True)}, or use device="cpu".'
    return f'{text}{other}{_install("cu130")}, or use device="cpu".'


def _install(wheel: str, too_old: bool = False) -> str:
    torch_package = '"torch<2.15"' if too_old else "torch"
    return (
        f"pip install --force-reinstall {torch_package} torchvision --index-url {WHEELS}{wheel}, "
        "then restart the runtime (kernel)"
    )


def supported(capability: tuple[int, int], architectures: tuple[str, ...]) -> bool:
    """Tell whether a GPU of `capability` runs code built for any of `architectures`.

    It runs code for its own major version and a minor version not newer than its own, and PTX (compute_XX) of its own
    version or an older one. Code for sm_90a or sm_100f runs on exactly these chips only.
    """
    for name in architectures:
        kind, _, number = name.partition("_")
        digits = number.rstrip("af")
        built = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and (
            built == capability or (number == digits and built[0] == capability[0] and built < capability)
        ):
            return True
        if kind == "compute" and built <= capability:
            return True
    return False


def versions() -> dict[str, str]:
    """Return the versions of Python and of PACKAGES by name; "missing" for a package that is not installed."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return {**found, "CUDA build": torch.version.cuda or "none"}


def driver_gpus() -> tuple[DriverGpu, ...]:
    """Return the GPUs that nvidia-smi lists; where that program is missing, those in the driver's files."""
    for query in ("name,driver_version,compute_cap", "name,driver_version"):  # drivers before 510 have no compute_cap
        output = first_output(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
        if output is not None:
            return parse_driver_gpus(output)
    return driver_files()


def first_output(command: list[str]) -> str | None:
    """Return what a program prints, or None when the program is missing, fails or takes more than 20 seconds."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def parse_driver_gpus(output: str) -> tuple[DriverGpu, ...]:
    """Read lines such as "Tesla T4, 535.104.05, 7.5"; the last part is optional."""
    gpus = []
    for line in output.splitlines():
        name, driver, capability = (*(part.strip() for part in line.split(",")), "", "")[:3]
        numbers = [int(part) for part in capability.split(".") if part.isdecimal()]
        if name:
            gpus.append(DriverGpu(name, driver, (numbers[0], numbers[1]) if len(numbers) == 2 else None))
    return tuple(gpus)


def driver_files(
    proc: Path = Path("/proc/driver/nvidia/gpus"), node: Path = Path("/dev/nvidiactl")
) -> tuple[DriverGpu, ...]:
    """Return the GPUs in Linux's files, none without the device node: a container shows the /proc of its host."""
    found = sorted(proc.glob("*/information")) if node.exists() else []
    lines = [line for path in found for line in path.read_text().splitlines()]
    return tuple(DriverGpu(line.partition(":")[2].strip(), "") for line in lines if line.startswith("Model:"))


def ram_bytes() -> int | None:
    """Return the machine's memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf; a system may lack either name
        return None


def shm_bytes() -> int | None:
    """Return the size of /dev/shm; None where there is none (macOS)."""
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None
