"""check_device(): what this machine has, what works, how fast it is, and what to do about the rest."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from .advice import Facts, advice, gather_facts, versions
from .config import TrainConfig
from .devices import DeviceChoice, Inventory, WorkerPlan, detect_device, plan_workers, try_device
from .errors import ConfigError
from .games.base import Game
from .games.registry import make_game
from .learner import Learner, LearnerConfig
from .network import SpikingNetwork, build_network, to_arrays
from .records import POLICY_WIDTH
from .replay import Replay
from .rounds import joined, share_games, summary_of_games
from .selfplay import SelfPlay
from .workers.local import LocalPool
from .workers.process import send_array

TIMED_BATCH = 256
PROBE_BOARDS, PROBE_PLIES = 64, 24
SPAWN_SECONDS = 60.0


@dataclass(frozen=True)
class Speed:
    """The cpu preset's forward and training pass on one device, in microseconds per position; None with a problem."""

    device: str
    forward_us: float | None
    training_us: float | None
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"the network does not run: {self.problem}"
        return (
            f"forward {self.forward_us:.0f} us, training {self.training_us:.0f} us per position "
            f"(cpu preset, batch {TIMED_BATCH})"
        )


@dataclass(frozen=True)
class CheckReport:
    """Everything check_device found; str() is the table, to_dict() plain data."""

    versions: dict[str, str]
    facts: Facts
    choice: DeviceChoice
    speeds: tuple[Speed, ...]
    spawn_seconds: float | None  # None with a problem
    spawn_problem: str
    plan: WorkerPlan
    advice: tuple[str, ...]
    workers: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        facts, machine = self.facts, self.facts.machine
        lines = [("device", str(self.choice))]
        lines += [("", reason) for reason in self.choice.reasons]
        lines += [("place", facts.place), ("versions", ", ".join(f"{k} {v}" for k, v in self.versions.items()))]
        lines += [
            (
                f"GPU {gpu.index}",
                f"{gpu.name}, {_gigabytes(gpu.memory)}, compute capability {gpu.capability[0]}.{gpu.capability[1]}",
            )
            for gpu in machine.gpus
        ]
        lines += [
            ("CPU", f"{machine.cores} cores, {_gigabytes(facts.ram_bytes)} RAM, /dev/shm {_gigabytes(facts.shm_bytes)}")
        ]
        lines += [(f"on {speed.device}", str(speed)) for speed in self.speeds]
        lines += [("spawn", self.spawn_problem or f"a process and back in {self.spawn_seconds:.1f} s")]
        lines += [
            (
                "workers",
                f"{len(self.plan.devices)} on {', '.join(dict.fromkeys(self.plan.devices))}, "
                f"torch threads each: {self.plan.threads}",
            )
        ]
        lines += [("", note) for note in self.plan.notes]
        lines += _lines_of_games(self.workers) if self.workers else []
        lines += [("advice", text) for text in self.advice] or [("advice", "none: ready to train")]
        return "\n".join(f"{name:10} {text}" for name, text in lines)


def _lines_of_games(found: dict[str, Any]) -> list[tuple[str, str]]:
    wins = [f"{count} {name.removesuffix('_wins')}" for name, count in found.items() if name.endswith("_wins")]
    wins += [f"{found['draws']} draws"] if wins else []  # a game for one player has neither
    return [
        (
            "games",
            f"{found['games']} on {found['workers']} workers ({', '.join(dict.fromkeys(found['descriptions']))}), "
            f"{found['games_per_second']:.2f} games/s, {found['average_plies']:.0f} plies on average",
        ),
        ("results", ", ".join([*wins, f"{found['stopped']} stopped at the ply cap"])),
        (
            "transport",
            f"{found['positions']} positions came back as {found['arrays']} and trained as "
            f"{found['tensors']}, loss {found['loss']:.2f}",
        ),
    ]


def check_device(
    device: str = "auto", workers: int | None = None, games: int | None = None, game: str = "chess"
) -> CheckReport:
    """Look, try, time and recommend. With `workers`, also play `games` (16) of `game` through the whole worker path.

    What does not work is in the report. Raises only DeviceError for a `device` that is not there or does not work,
    ConfigError for counts below one, WorkerError when the games fail.
    """
    if games is not None and (workers is None or games < 1):
        raise ConfigError(f"games={games}, workers={workers}: expected 1 game or more, and on how many workers to play")
    facts = gather_facts()
    choice = detect_device(device, facts.machine, functools.partial(probe, game=game))
    plan = plan_workers(facts.machine, choice.device, workers)
    every = [f"cuda:{gpu.index}" for gpu in facts.machine.gpus] + ["mps"] * facts.machine.mps
    timed = every if device == "auto" else [choice.device]
    spawn_seconds, spawn_problem = spawn_round_trip()
    return CheckReport(
        versions=versions(),
        facts=facts,
        choice=choice,
        speeds=tuple(time_network(name, game) for name in dict.fromkeys((*timed, "cpu"))),
        spawn_seconds=spawn_seconds,
        spawn_problem=spawn_problem,
        plan=plan,
        advice=advice(facts),
        workers=check_workers(plan, 16 if games is None else games, game) if workers is not None else None,
    )


@functools.cache
def probe(device: str, game: str = "chess") -> None:
    """Do the package's own work on `device` and on the CPU: random plies of the rules, one update of a small network.

    The rules must agree bit for bit, the update's loss within a hundredth. Raises RuntimeError, or what the device
    raises. A device is probed once per process.
    """
    try_device(device)
    here, there = make_game(game, device="cpu"), make_game(game, device=device)
    generator = torch.Generator().manual_seed(0)
    state, remote = here.init(PROBE_BOARDS), there.init(PROBE_BOARDS)
    for ply in range(PROBE_PLIES):
        mask = here.legal_action_mask(state)
        action = torch.where(mask, torch.rand(mask.shape, generator=generator), -1.0).argmax(1)
        state, remote = here.step(state, action), there.step(remote, action.to(device))
        if not torch.equal(here.pack(state), there.pack(remote).cpu()):
            raise RuntimeError(f"the rules of {game} come out wrong there, after {ply + 1} random plies")
    losses = [_probe_loss(rules, here.pack(state)) for rules in (here, there)]
    if not abs(losses[0] - losses[1]) <= 0.01 * abs(losses[0]):
        raise RuntimeError(f"an update comes out wrong there: its loss is {losses[1]}, on the CPU {losses[0]}")


def probe_for(game: str, machine: Inventory) -> Callable[[str], None] | None:
    """What detect_device should try devices with for a game; None where there is only the CPU: nothing to compare."""
    return functools.partial(probe, game=game) if machine.gpus or machine.mps else None


def _probe_loss(rules: Game, packed: torch.Tensor) -> float:
    """The loss of the second of two updates, on positions packed on the CPU."""
    config = TrainConfig(game=rules.name, preset="cpu", channels=8, blocks=1).network_config(rules)
    learner = Learner(build_network(config, rules.device), rules, LearnerConfig(precision="float32"))
    count = len(packed)
    batch = {
        "positions": packed.numpy(),
        "actions": np.zeros(count, np.uint16),
        "policy_actions": np.tile(np.arange(POLICY_WIDTH, dtype=np.uint16) % rules.num_actions, (count, 1)),
        "policy_weights": np.full((count, POLICY_WIDTH), 1 / POLICY_WIDTH, np.float16),
        "value_targets": np.linspace(-1, 1, count).astype(np.float16),
    }
    learner.update(batch)
    return float(learner.update(batch).loss)


def time_network(device: str, game: str = "chess") -> Speed:
    """Time the cpu preset: best of three, after one for warming up."""
    try:
        rules = make_game(game, device=device)
        network = build_network(TrainConfig(game=game, preset="cpu").network_config(rules), device)
        observation = rules.observe(rules.init(TIMED_BATCH))
        forward = _best_time(lambda: _forward(network, observation))
        training = _best_time(lambda: _train(network, observation))
    except Exception as error:  # whatever a broken driver raises
        return Speed(device, None, None, f"{type(error).__name__}: {error}".splitlines()[0])
    return Speed(device, 1e6 * forward / TIMED_BATCH, 1e6 * training / TIMED_BATCH)


def _forward(network: SpikingNetwork, observation: torch.Tensor) -> None:
    network.eval()
    with torch.no_grad():
        network(observation).wdl_logits.sum().item()


def _train(network: SpikingNetwork, observation: torch.Tensor) -> None:
    network.train()
    output = network(observation)
    loss = output.prior_logits.logsumexp(1).mean() + output.wdl_logits.logsumexp(1).mean()
    loss.backward()
    loss.item()  # waits for the device
    network.zero_grad()


def _best_time(function: Callable[[], None]) -> float:
    times = []
    for _ in range(4):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times[1:])


def spawn_round_trip(target: Callable[[Connection], None] = send_array) -> tuple[float | None, str]:
    """Seconds to start a process by spawn, without torch, and get a numpy array back; or None, and what went wrong."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    started = time.perf_counter()
    process = context.Process(target=target, args=(sender,), daemon=True)
    process.start()
    sender.close()
    try:
        answered = receiver.poll(SPAWN_SECONDS) and np.array_equal(receiver.recv(), np.arange(4))
    except EOFError:
        answered = False
    seconds = time.perf_counter() - started
    process.join(5)
    if process.is_alive():
        process.kill()
    if answered:
        return seconds, ""
    return None, (
        f"a spawned process did not answer (exit code {process.exitcode}), so workers cannot run here: train "
        'with pool="inline"'
    )


def check_workers(plan: WorkerPlan, games: int, game: str = "chess") -> dict[str, Any]:
    """Play `games` games on the plan's workers and train on them once: the whole way, end to end."""
    count = min(len(plan.devices), games)
    plan = replace(plan, devices=plan.devices[:count])
    config = TrainConfig(game=game, preset="cpu", boards=min(32, games), max_plies=80)
    rules = make_game(game, config.max_plies, plan.devices[0])
    network = build_network(config.network_config(rules), plan.devices[0])
    with LocalPool(SelfPlay, config.job_settings(network.config), plan) as pool:
        pool.set_weights(0, to_arrays(network))
        started = time.perf_counter()
        chunks = pool.play(share_games(games, count), seed=0)
        seconds, descriptions = time.perf_counter() - started, pool.descriptions
    records = joined(chunks, rules)
    replay = Replay(records.num_positions)
    replay.add(records)
    learner = Learner(network, rules, LearnerConfig())
    batch = replay.sample(64, np.random.default_rng(0))
    losses = learner.update(batch)
    summary = summary_of_games(records, rules)
    return {
        "workers": count,
        "games": records.num_games,
        "positions": records.num_positions,
        "seconds": seconds,
        "games_per_second": records.num_games / seconds,
        "average_plies": summary["average_plies"],
        **{f"{name}_wins": wins for name, wins in summary["wins"].items()},
        "draws": summary["draws"],
        "stopped": summary["endings"]["truncated"],
        "arrays": type(records.positions).__name__,
        "tensors": type(learner.to_tensors(batch)["positions"]).__name__,
        "loss": float(losses.loss),
        "descriptions": descriptions,
    }


def _gigabytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.1f} GiB"
