"""check_device(): what this machine has, what works, how fast, and what to do about the rest. A cell and a command."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from .devices import DeviceChoice, Inventory, WorkerPlan, detect_device, inventory, plan_workers
from .errors import ConfigError, DeviceError
from .games.chess import Chess
from .learner import Learner, LearnerConfig
from .network import PRESETS, build_network, preset, to_arrays
from .records import GameRecords
from .replay import Replay
from .search import SearchConfig
from .selfplay import SelfPlay, SelfPlayConfig
from .training import share_games, summary_of_games
from .workers import LocalPool

TIMED_BATCH = 256
PACKAGES = ("torch", "numpy", "chess", "spikingjelly", "ipywidgets", "matplotlib", "safetensors", "tensorboard")
SPAWN_SECONDS = 60.0


@dataclass(frozen=True)
class Facts:
    """What the advice follows from; tests make their own."""

    place: str                    # Colab, Kaggle or local
    torch_version: str
    torch_cuda: str | None        # the CUDA version torch was built for; None for a build without
    driver_gpus: tuple[str, ...]  # what the NVIDIA driver shows, whatever torch sees
    machine: Inventory
    arch_list: tuple[str, ...]    # the GPU architectures this torch has code for, like sm_75
    shm_bytes: int | None


@dataclass(frozen=True)
class Speed:
    """The cpu preset's forward and training pass on one device, microseconds a position."""

    device: str
    forward_us: float
    training_us: float


@dataclass(frozen=True)
class CheckReport:
    """Everything check_device found; str() is the table, to_dict() plain data."""

    versions: dict[str, str]
    facts: Facts
    ram_bytes: int | None
    choice: DeviceChoice
    speeds: tuple[Speed, ...]
    spawn_seconds: float
    plan: WorkerPlan
    advice: tuple[str, ...]
    workers: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        facts, machine = self.facts, self.facts.machine
        lines = [("device", f"{self.choice.device} ({self.choice.name})")]
        lines += [("", reason) for reason in self.choice.reasons]
        lines += [("place", facts.place), ("versions", ", ".join(f"{k} {v}" for k, v in self.versions.items()))]
        lines += [(f"GPU {gpu.index}", f"{gpu.name}, {_gigabytes(gpu.memory)}, compute capability "
                   f"{gpu.capability[0]}.{gpu.capability[1]}") for gpu in machine.gpus]
        lines += [("CPU", f"{machine.cores} cores, {_gigabytes(self.ram_bytes)} RAM, /dev/shm {_gigabytes(facts.shm_bytes)}")]
        lines += [(f"speed {speed.device}", f"forward {speed.forward_us:.0f} us, training {speed.training_us:.0f} us "
                   f"a position (cpu preset, batch {TIMED_BATCH})") for speed in self.speeds]
        lines += [("spawn", f"a process and back in {self.spawn_seconds:.1f} s")]
        lines += [("workers", f"{len(self.plan.devices)} on {', '.join(dict.fromkeys(self.plan.devices))}, "
                   f"{self.plan.threads} torch threads each")]
        lines += [("", note) for note in self.plan.notes]
        if self.workers:
            lines += [("games", f"{self.workers['games']} on {self.workers['workers']} workers, "
                       f"{self.workers['games_per_second']:.2f} games/s, {self.workers['average_plies']:.0f} plies on average"),
                      ("results", f"{self.workers['white_wins']} white, {self.workers['draws']} draws, "
                       f"{self.workers['black_wins']} black, {self.workers['stopped']} stopped at the ply cap"),
                      ("transport", f"{self.workers['positions']} positions came back as {self.workers['arrays']} and "
                       f"trained as {self.workers['tensors']}, loss {self.workers['loss']:.2f}")]
        lines += [("advice", text) for text in self.advice] or [("advice", "none: ready to train")]
        return "\n".join(f"{name:10} {text}" for name, text in lines)


def check_device(device: str = "auto", workers: int | None = None, games: int | None = None) -> CheckReport:
    """Look, try, time and recommend. With `workers`, also play `games` (16) through the whole multi-worker path.

    Raises DeviceError for a device that is not there, ConfigError for counts below one.
    """
    facts = gather_facts()
    choice = detect_device(device, facts.machine)
    plan = plan_workers(facts.machine, choice.device, workers)
    return CheckReport(
        versions=versions(), facts=facts, ram_bytes=ram_bytes(), choice=choice,
        speeds=tuple(time_network(name) for name in dict.fromkeys((choice.device, "cpu"))),
        spawn_seconds=spawn_round_trip(), plan=plan, advice=advice(facts),
        workers=check_workers(plan, 16 if games is None else games) if workers is not None else None)


def gather_facts() -> Facts:
    """Look at this machine and this torch."""
    machine = inventory()
    architectures = tuple(torch.cuda.get_arch_list()) if torch.version.cuda else ()
    return Facts(find_place(os.environ), torch.__version__, torch.version.cuda, driver_gpus(), machine, architectures,
                 shm_bytes())


def find_place(environment) -> str:
    """Colab, Kaggle or local, by the variables their images set."""
    if "COLAB_RELEASE_TAG" in environment:
        return "Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in environment else "local"


def advice(facts: Facts) -> tuple[str, ...]:
    """What a person should do, in plain words; a function of the facts alone."""
    texts = []
    if facts.driver_gpus and facts.torch_cuda is None:
        texts.append(f"This machine has {facts.driver_gpus[0]} but torch {facts.torch_version} is a build without CUDA: "
                     "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128, then "
                     "restart the runtime (kernel).")
    elif facts.driver_gpus and not facts.machine.gpus:
        texts.append(f"The driver shows {facts.driver_gpus[0]} but torch {facts.torch_version} (CUDA {facts.torch_cuda}) "
                     "cannot use it: update the NVIDIA driver, or install a torch built for an older CUDA.")
    elif facts.place == "Colab" and not facts.machine.gpus:
        texts.append("No GPU in this Colab runtime: Runtime > Change runtime type > T4 GPU, then run the notebook again. "
                     "Training works on the CPU too, slowly.")
    elif facts.place == "Kaggle" and not facts.machine.gpus:
        texts.append("No GPU in this Kaggle session: Settings > Accelerator > GPU T4 x2.")
    for gpu in facts.machine.gpus:
        if facts.arch_list and not supported(gpu.capability, facts.arch_list):
            texts.append(f"{gpu.name} (compute capability {gpu.capability[0]}.{gpu.capability[1]}) is not supported by "
                         f"torch {facts.torch_version}, which has code for {', '.join(facts.arch_list)}: choose another "
                         "GPU (on Kaggle: T4 x2 instead of P100), an older torch, or device=\"cpu\".")
    if facts.shm_bytes is not None and facts.shm_bytes < 2**26 and facts.place == "local":
        texts.append("/dev/shm is under 64 MiB. Nothing here needs it, but other libraries may.")
    return tuple(texts)


def supported(capability: tuple[int, int], architectures: tuple[str, ...]) -> bool:
    """Whether a GPU runs code built for any of `architectures`: same major version and no newer minor, or PTX."""
    for name in architectures:
        kind, _, digits = name.partition("_")
        digits = digits.rstrip("af")
        built = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and built[0] == capability[0] and built[1] <= capability[1]:
            return True
        if kind == "compute" and built <= capability:
            return True
    return False


def versions() -> dict[str, str]:
    """Python and the packages that matter; "missing" for one that is not installed."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return {**found, "CUDA build": torch.version.cuda or "none"}


def driver_gpus() -> tuple[str, ...]:
    """GPU names by nvidia-smi, which needs no torch; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        output = subprocess.run([program, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                                timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in output.splitlines() if line.strip())


def ram_bytes() -> int | None:
    """The machine's memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def shm_bytes() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def time_network(device: str) -> Speed:
    """Time the cpu preset: best of three, after one for warming up. Raises DeviceError when it does not run."""
    game = Chess(device=device)
    try:
        network = build_network(PRESETS["cpu"], device)
        observation = game.observe(game.init(TIMED_BATCH))
        forward = _best_time(lambda: _forward(network, observation))
        training = _best_time(lambda: _train(network, observation))
    except RuntimeError as error:
        raise DeviceError(f"{device}: the network does not run: {error}") from error
    return Speed(device, 1e6 * forward / TIMED_BATCH, 1e6 * training / TIMED_BATCH)


def _forward(network, observation) -> None:
    with torch.no_grad():
        network(observation).wdl_logits.sum().item()


def _train(network, observation) -> None:
    network.train()
    output = network(observation)
    (output.prior_logits.logsumexp(1).mean() + output.wdl_logits.logsumexp(1).mean()).backward()
    next(network.parameters()).grad.sum().item()
    network.zero_grad()


def _best_time(function) -> float:
    times = []
    for _ in range(4):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times[1:])


def spawn_round_trip() -> float:
    """Seconds to start a process by spawn and get a numpy array back. Raises DeviceError when none comes."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    started = time.perf_counter()
    process = context.Process(target=send_array, args=(sender,), daemon=True)
    process.start()
    sender.close()
    try:
        answered = receiver.poll(SPAWN_SECONDS) and receiver.recv().sum() == 6
    except EOFError:
        answered = False
    process.join(5)
    if not answered:
        raise DeviceError(f"a spawned process did not answer (exit code {process.exitcode}); workers cannot run here: "
                          "train with pool=\"inline\"")
    return time.perf_counter() - started


def send_array(connection) -> None:
    """What the spawned process does."""
    connection.send(np.arange(4))
    connection.close()


def check_workers(plan: WorkerPlan, games: int) -> dict[str, Any]:
    """Play `games` games on the plan's workers and train on them once: the whole way, end to end."""
    if games < 1:
        raise ConfigError(f"games={games}: expected 1 or more")
    count = min(len(plan.devices), games)
    plan = WorkerPlan(plan.devices[:count], plan.threads, plan.notes)
    config = SelfPlayConfig(boards=min(32, games), max_plies=80)
    settings = {"network": preset("cpu").to_dict(), "search": asdict(SearchConfig()), "self_play": asdict(config)}
    network = build_network(preset("cpu"), "cpu")
    with LocalPool(SelfPlay, settings, plan) as pool:
        pool.set_weights(0, to_arrays(network))
        started = time.perf_counter()
        chunks = pool.play(share_games(games, count), seed=0)
        seconds = time.perf_counter() - started
    arrays = [chunk for worker in chunks for chunk in worker]
    records = GameRecords.concatenate([GameRecords.from_arrays(chunk) for chunk in arrays])
    replay = Replay(records.num_positions)
    replay.add(records)
    learner = Learner(network, Chess(), LearnerConfig(batch_size=64))
    batch = replay.sample(64, np.random.default_rng(0))
    losses = learner.update(batch)
    summary = summary_of_games(records)
    return {
        "workers": count, "games": records.num_games, "positions": records.num_positions, "seconds": seconds,
        "games_per_second": records.num_games / seconds, "average_plies": summary["average_plies"],
        "white_wins": summary["white_wins"], "draws": summary["draws"], "black_wins": summary["black_wins"],
        "stopped": summary["endings"]["truncated"], "arrays": type(arrays[0]["positions"]).__name__,
        "tensors": type(learner.to_tensors(batch)["positions"]).__name__, "loss": float(losses.loss),
        "descriptions": pool.descriptions,
    }


def _gigabytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.1f} GiB"
