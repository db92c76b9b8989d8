"""What a run will do, by arithmetic, before anything starts: the seconds of an iteration, who
waits, and what is learned how often.
"""

from dataclasses import dataclass

from .budget import DEFAULT_MINUTES
from .config import TrainConfig
from .devices import Gpu, Inventory
from .learning import NORM_BATCHES
from .network_config import PRESETS
from .presets import Rates, stated_rates
from .replay import window_size
from .report import TIME_SHARE
from .runs.folder import SAVE_SHARE
from .settings import one_of, require, whole
from .text import counted, duration, percent

CARDS = {"T4": (14.6, (7, 5)), "A100": (40, (8, 0)), "H200": (141, (9, 0))}  # GiB, capability
MOST_GPUS = 1_000
UPDATES_PER_NORM_BATCH = 1 / 3  # a forward pass is a third of an update


@dataclass(frozen=True)
class Plan:
    """One iteration, and a session, of a run. Counts are of positions."""

    preset: str
    devices: int  # that play or learn; all cores are one
    learners: int  # of them, those that learn
    rates: Rates
    positions_per_iteration: int
    batch_size: int
    updates: int  # of an iteration
    reuse: float
    draws_per_position: float
    play_seconds: float  # of an iteration
    learn_seconds: float
    other_seconds: float  # measuring and saving, at most
    idle_share: float  # of the devices' time
    others_idle_share: float  # of the time of those that do not measure and save
    minutes: float
    positions: int  # of the session
    window: int  # at its end

    @property
    def seconds(self) -> float:
        """Of an iteration."""
        return self.play_seconds + self.learn_seconds + self.other_seconds

    @property
    def line(self) -> str:
        """The session in one line."""
        return (
            f"{self.minutes:g} minutes make about {_millions(self.positions)} positions with "
            f"preset {self.preset} (an estimate)"
        )

    def __str__(self) -> str:
        shape = PRESETS[self.preset]
        others = f", {percent(self.others_idle_share)} of each that does not measure and save"
        lines = {
            "network": f"preset {self.preset}: {shape.channels} channels, {shape.blocks} blocks",
            "rates": str(self.rates),
            "iteration": f"{self.positions_per_iteration:,} positions in {duration(self.seconds)}",
            "  play": f"{self.play_seconds:.1f} s, {counted(self.devices, 'device')}",
            "  learn": f"{self.learn_seconds:.1f} s, {counted(self.learners, 'device')}: "
            f"{self.updates:,} updates of {self.batch_size:,} positions",
            "  the rest": f"{self.other_seconds:.1f} s at most: measuring and saving",
            "idle": f"{percent(self.idle_share)} of all devices' time"
            f"{others if self.devices > 1 else ''}",
            "reuse": f"each position is learned from {self.draws_per_position:.2f} times",
            "window": f"{_millions(self.window)} positions at the end",
            "session": self.line,
            "an hour": f"{_millions(3600 * self.positions_per_iteration / self.seconds)} positions",
        }
        return "\n".join(f"{name:10} {text}" for name, text in lines.items())


def plan_run(
    config: TrainConfig, device: str, machine: Inventory, rates: Rates | None = None
) -> Plan:
    """The plan of a new run of `config`, for its minutes, where `device` of this `machine` learns.

    rates: as measured; None takes the stated ones. Raises ConfigError or DeviceError, as training
    would.
    """
    workers = config.worker_plan(device, machine)
    settled = config.resolve(device, machine, workers)
    learners = settled.learners(device, workers)
    rates = rates or stated_rates(settled.preset, device, machine, workers, learners)
    each = settled.positions_per_iteration
    updates = settled.updates(each)
    minutes = config.minutes or DEFAULT_MINUTES
    play_seconds = each / rates.play
    batches = updates + NORM_BATCHES * UPDATES_PER_NORM_BATCH
    learn_seconds = batches * settled.batch_size / rates.learn
    busy = play_seconds + learn_seconds
    seconds = busy / (1 - TIME_SHARE - SAVE_SHARE)
    other = seconds - busy
    iterations = max(round(60 * minutes / seconds), 1)
    window = window_size(iterations * each, each, settled.replay_capacity)
    players = 1 if workers.devices[0] == "cpu" else workers.players
    devices = players + (device not in workers.devices)
    # One device measures and saves.
    others = (play_seconds + learn_seconds * (learners > 1)) / seconds
    working = play_seconds * players + learn_seconds * learners + other
    return Plan(
        preset=settled.preset,
        devices=devices,
        learners=learners,
        rates=rates,
        positions_per_iteration=each,
        batch_size=settled.batch_size,
        updates=updates,
        reuse=settled.sample_reuse,
        draws_per_position=updates * settled.batch_size / each,
        play_seconds=play_seconds,
        learn_seconds=learn_seconds,
        other_seconds=other,
        idle_share=1 - working / (devices * seconds),
        others_idle_share=1 - others if devices > 1 else 0.0,
        minutes=minutes,
        positions=iterations * each,
        window=min(window, iterations * each),
    )


def made_up_machine(gpus: int, kind: str) -> Inventory:
    """A machine with so many GPUs, like one of CARDS. Raises ConfigError."""
    require("gpus", gpus, whole(most=MOST_GPUS))
    require("gpu", kind, one_of(*CARDS))
    gibibytes, capability = CARDS[kind]
    cards = (Gpu(number, kind, int(gibibytes * 2**30), capability, True) for number in range(gpus))
    return Inventory(tuple(cards), False, cores=gpus)


def _millions(positions: float) -> str:
    return f"{positions / 1e6:.1f} million" if positions >= 1e6 else f"{round(positions):,}"
