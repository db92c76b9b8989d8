"""check_device(): the devices of this machine, which of them work, how fast, and advice."""

import functools
from dataclasses import dataclass

import torch

from .actor import Actor
from .advice import Facts, advice, gather_facts, versions
from .clock import seconds_per_call
from .config import TrainConfig
from .cpu import usable_cores, use_threads
from .device_probe import COMPARED, batch_of, probe_for
from .devices import MAX_CPU_WORKERS, DeviceChoice, WorkerPlan, detect_device, plan_workers, present
from .errors import first_line
from .games.registry import make_game
from .int8 import is_exact, playing_dtype
from .learner import Learner, LearnerConfig
from .lockstep import Lockstep
from .network import actor_copy, build_network
from .plan import plan_run
from .presets import Rates, usual_boards
from .search import SearchConfig
from .text import Say, silent

TIMED_BATCH = 512  # positions of an update


@dataclass(frozen=True)
class Speed:
    """What the cpu preset makes on one device, in positions per second; None where it does not run,
    and `problem` says why.
    """

    device: str
    rates: Rates | None
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.rates} (preset cpu)" if self.rates else self.problem


@dataclass(frozen=True)
class CheckReport:
    """Everything check_device found; str() is the table."""

    versions: dict[str, str]
    facts: Facts
    choice: DeviceChoice
    speeds: tuple[Speed, ...]
    plan: WorkerPlan
    advice: tuple[str, ...]
    outlook: str  # what twenty minutes make (plan.py)
    int8: str  # whether a network plays in int8 on this CPU

    @property
    def line(self) -> str:
        """The device, why not a better one that is there, and what to do, in one line."""
        ready = self.advice or ("ready to train",)
        return f"Training will use {self.choice}: {'; '.join((*self.choice.troubles, *ready))}"

    def __str__(self) -> str:
        machine = self.facts.machine
        players = self.plan.devices
        workers = f"{len(players)} on {', '.join(dict.fromkeys(players))}"
        lines = [("device", str(self.choice)), *(("", reason) for reason in self.choice.reasons)]
        if self.choice.device != "cpu":
            lines.append(("compared", f"with the CPU: {COMPARED}"))
        lines += [
            ("place", self.facts.place),
            ("versions", ", ".join(f"{k} {v}" for k, v in self.versions.items())),
            *(
                (f"GPU {gpu.index}", f"{gpu.name}, {gpu.memory / 2**30:.1f} GiB")
                for gpu in machine.gpus
            ),
            ("CPU", f"{machine.cores} cores{self.int8}"),
            *((f"on {speed.device}", str(speed)) for speed in self.speeds),
            ("workers", f"{workers}, torch threads each: {self.plan.threads}"),
            *(("", note) for note in self.plan.notes),
            ("outlook", self.outlook),
            *(("advice", text) for text in self.advice or ("none: ready to train",)),
        ]
        return "\n".join(f"{name:10} {text}" for name, text in lines)


def check_device(device: str = "auto", game: str = "chess", say: Say = silent) -> CheckReport:
    """Find, try and time the devices, and recommend. say: hears what is under way.

    The report names the devices that do not work. Raises ConfigError for an unknown game, and
    DeviceError only for a `device` that is not there or does not work.
    """
    config = TrainConfig(game=game)
    facts = gather_facts()
    machine = facts.machine
    say("Looking for a device that works")
    choice = detect_device(device, machine, probe_for(config.game, machine))
    timed = present(machine) if device == "auto" else dict.fromkeys((choice.device, "cpu"))
    speeds = []
    for name in timed:
        say(f"Timing {name}")
        speeds.append(time_network(name, config.game))
        if name == "mps" and speeds[-1].rates:
            torch.mps.empty_cache()  # a worker takes as much again
    rates = speeds[-1].rates if choice.device == "cpu" else None
    return CheckReport(
        versions=versions(),
        facts=facts,
        choice=choice,
        speeds=tuple(speeds),
        plan=plan_workers(machine, choice.device),
        outlook=plan_run(config, choice.device, machine, rates).line,
        int8=", plays in int8"
        if is_exact()
        else ", without int8: that needs AVX2, no AMX, and exact sums",
        advice=advice(facts, choice.troubles),
    )


def time_network(device: str, game: str = "chess") -> Speed:
    """Time a ply of self-play, on a CPU by one thread, and an update, with the cpu preset."""
    try:
        rules = make_game(game, device=device)
        shape = TrainConfig(game=game, preset="cpu").network_config(rules)
        learner = Learner(build_network(shape, device), rules, LearnerConfig())
        network = actor_copy(learner.network, playing_dtype("auto", device, shape))
        games = Lockstep(Actor(rules, network, SearchConfig()), usual_boards(device), 0)
        with use_threads(1):
            ply = seconds_per_call(games.play_ply, device)
        here = make_game(game)
        batch = batch_of(here, here.init(TIMED_BATCH))
        learn = functools.partial(torch.enable_grad()(learner.update), batch)
        update = seconds_per_call(learn, device)
    except Exception as error:  # whatever a broken driver raises
        return Speed(device, None, f"the network does not run: {first_line(error)}")
    players = min(usable_cores(), MAX_CPU_WORKERS) if device == "cpu" else 1
    return Speed(device, Rates(players * usual_boards(device) / ply, TIMED_BATCH / update))
