"""Facts about this machine and its torch, and advice in plain words."""

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.torch_version import TorchVersion

from . import TORCH_CAME_FIRST
from .devices import Inventory, inventory
from .install import installed_version

PACKAGES = ("torch", "numpy", "chess", "spikingjelly", "ipywidgets", "matplotlib", "safetensors")
WHEELS = "https://download.pytorch.org/whl/"
CUDA_13_DRIVER = 580  # the first NVIDIA driver for CUDA 13
# CUDA 13 has no code for GPUs before this compute capability. The last wheels for those are
# CUDA 12.6 of torch 2.14 (pytorch/pytorch#190385).
CUDA_13_CAPABILITY = (7, 5)
NO_GPU = {
    "Colab": "No GPU in this Colab runtime: Runtime > Change runtime type > T4 GPU, then run the "
    "notebook again. Training works on the CPU too, slowly.",
    "Kaggle": "No GPU in this Kaggle session: Settings > Accelerator > GPU T4 x2, then run the "
    "notebook again.",
}
NO_CODE = "no kernel image is available"  # in CUDA's error, where torch has no code for a GPU
# Wrong on MPS before: batch norm's backward (pytorch#175189) and argmax (#187280), which the probe
# finds, and products that sum 32,767 terms and more (#193487; batched ones in 2.14 too, #195163).
# None of ours is so long with preset cpu, which `auto` takes there, so no version is refused.
MENDED_ON_MPS = "2.14"


@dataclass(frozen=True)
class Facts:
    """Everything that the advice depends on."""

    place: str  # Colab, Kaggle or local
    torch_version: str
    torch_cuda: str | None  # the CUDA version torch was built for; None: a build without CUDA
    machine: Inventory  # what torch sees
    driver_gpu: str = ""  # the first GPU that nvidia-smi lists, whether torch can use it or not
    driver: str = ""  # the version of the NVIDIA driver, such as 580.65.06
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES, where it is set
    torch_came_first: bool = False  # loaded before this package could say how its threads wait


def gather_facts() -> Facts:
    """Collect the facts about this machine and its torch."""
    return Facts(
        find_place(),
        str(torch.__version__),
        torch.version.cuda,
        inventory(),
        *driver_gpu(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        torch_came_first=TORCH_CAME_FIRST,
    )


def find_place() -> str:
    """Return Colab, Kaggle or local, by the environment variables that their images set.

    Kaggle is looked for first: its image is built on Colab's and sets Colab's variables too
    (Kaggle/kagglehub#230).
    """
    if "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
        return "Kaggle"
    return "Colab" if "COLAB_RELEASE_TAG" in os.environ else "local"


def advice(facts: Facts, troubles: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a person should do, one text per problem; none when all is well.

    troubles: why devices were passed over (DeviceChoice.troubles).
    """
    texts = [
        _no_code(facts, gpu.name, gpu.capability)
        for gpu in facts.machine.gpus
        if any(line.startswith(f"cuda:{gpu.index}:") and NO_CODE in line for line in troubles)
    ]
    if facts.driver_gpu and not facts.machine.gpus:
        texts.append(_unseen(facts))
    elif facts.place in NO_GPU and not facts.machine.gpus:
        texts.append(NO_GPU[facts.place])
    if facts.machine.mps and TorchVersion(facts.torch_version) < MENDED_ON_MPS:
        texts.append(
            f"torch {facts.torch_version} has known faults on Apple GPUs. The check above looks "
            f"for them. torch {MENDED_ON_MPS} is without them: "
            f'pip install --upgrade "torch>={MENDED_ON_MPS}", then restart the kernel.'
        )
    if facts.torch_came_first:
        texts.append(
            "torch was imported before chessnn_colab, so its threads wait for each other in a way "
            "that a busy neighbour slows down several times: import chessnn_colab first, or set "
            "GOMP_SPINCOUNT=1000 (on a Mac KMP_BLOCKTIME=1) before Python starts."
        )
    return tuple(texts)


def _unseen(facts: Facts) -> str:
    """The advice for a GPU that the driver shows and torch does not."""
    if facts.torch_cuda is None:
        major = facts.driver.partition(".")[0]
        old_driver = major.isdecimal() and int(major) < CUDA_13_DRIVER
        install = _install("torch", "cu126" if old_driver else "cu130")
        return (
            f"This machine has {facts.driver_gpu}, but torch {facts.torch_version} is a build "
            f"without CUDA: {install}."
        )
    shown = f"The driver ({facts.driver}) shows {facts.driver_gpu}, but"
    if facts.visible_devices is not None:
        return (
            f"{shown} CUDA_VISIBLE_DEVICES={facts.visible_devices!r} hides it from torch: unset "
            "it, then restart the runtime (kernel). If that fails, update the NVIDIA driver."
        )
    return (
        f"{shown} torch {facts.torch_version} (CUDA {facts.torch_cuda}) cannot use it: update the "
        f"NVIDIA driver, or {_install('torch', 'cu126')}."
    )


def _no_code(facts: Facts, name: str, capability: tuple[int, int]) -> str:
    """The advice for a GPU that torch sees and has no code for."""
    old = capability < CUDA_13_CAPABILITY
    install = _install('"torch<2.15"', "cu126") if old else _install("torch", "cu130")
    other = "Settings > Accelerator > GPU T4 x2, or " if facts.place == "Kaggle" else ""
    return (
        f"torch {facts.torch_version} has no code for {name}: {other}{install}, or use "
        'device="cpu".'
    )


def _install(requirement: str, wheel: str) -> str:
    return (
        f"pip install --force-reinstall {requirement} torchvision --index-url {WHEELS}{wheel}, "
        "then restart the runtime (kernel)"
    )


def versions() -> dict[str, str]:
    """Return the versions of Python and of PACKAGES by name; "missing" for a package that is not
    installed.
    """
    packages = {name: installed_version(name) or "missing" for name in PACKAGES}
    python = platform.python_version()
    return {"Python": python, **packages, "CUDA build": torch.version.cuda or "none"}


def driver_gpu() -> tuple[str, str]:
    """Return the name of the first GPU that nvidia-smi lists and the driver's version.

    Both are empty where that program is missing, fails, or takes more than 20 seconds.
    """
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "", ""
    first = done.stdout.partition("\n")[0]
    name, _, driver = first.partition(",")
    return name.strip(), driver.strip()
