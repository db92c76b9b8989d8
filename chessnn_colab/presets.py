"""What a preset asks of a device and of a session, how it learns there, and which one a new run
gets.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .devices import Gpu, Inventory, WorkerPlan, free_memory
from .text import Say, counted

BOARDS_ON_CPU = 64  # games in lockstep
BOARDS = 1024  # the same on a GPU (LOG.md, 2026-11-27)
T4, A100, H200 = 2, 3, 4  # the places of their figures in a Size
STATED_BOARDS = 512
STATED_BATCH = 1024
MOST_REUSE = 3.0  # 2 and 4.5 were weaker after as many minutes of a core (LOG.md, 2026-11-26)
LEAST_REUSE = 0.8  # the least among the peers that docs/scaling.md names
SPIKE_PRICES = {"chess": 0.1}  # nats; in other games none was measured (docs/spiking.md)
PRICE_RISES_AFTER = 2_000_000  # positions played: more than two cores play in twenty minutes
MOST_RISE = 3.0  # of the price


@dataclass(frozen=True)
class Size:
    """What a preset asks of a GPU and of a session, and the milliseconds that one core of a CPU, an
    M2, a T4, an A100 and an H200 take.
    """

    worthwhile: float  # million positions; a session that makes fewer takes a smaller network
    memory: float  # GB of a GPU that learns and plays
    plies: tuple[float, ...]  # a ply of STATED_BOARDS games, by the search of two rungs
    updates: tuple[float, ...]  # an update of STATED_BATCH positions


# Milliseconds: preset cpu on each of two cores and all of the H200 as measured, the others
# estimates (docs/speed.md, "On a GPU", multiplies them out).
#
# Worthwhile: with 32 channels five blocks are level with three after 3.2 and 4.5 million positions
# (LOG.md, "Does growing pay?", four times). So nothing larger than cpu is taken below 5 million.
# For the sizes above we have no measurement. KataGo's run g170 played its last games with 6 blocks
# of 96 channels after 26.8 million positions, and with 10 of 128 after 67.4 million (the table of
# networks in its README); then it went on with 10 of 128 and 15 of 192, which are a100 and h100.
#
# Memory: what an update of the preset's batch keeps for its gradients, twice, because its graph
# has memory of its own (with t4, a100 and h100 3.3, 12.1 and about 21 GiB on an H200); two
# processes with 0.4 GB of CUDA each, 1,024 games, and cuDNN's work space while it chooses; rounded
# up.
SIZES = {
    "cpu": Size(0, 2, (330, 68.8, 11.3, 4.9, 2.5), (300, 30.2, 4.8, 2.3, 2.3)),
    "t4": Size(5, 6, (1620, 336.9, 34.4, 7.1, 4.8), (1580, 158.9, 17.6, 3.6, 2.8)),
    "a100": Size(27, 16, (9280, 1934.8, 147.9, 30.6, 11.9), (9150, 921.3, 78, 16.1, 5.8)),
    "h100": Size(67, 32, (30100, 6279.7, 432, 89.6, 27.4), (29600, 2977.8, 226, 46.8, 13.9)),
}


class Learning(NamedTuple):
    """How a network learns on a device, unless the user says otherwise."""

    batch_size: int
    learning_rate: float
    warm_up: int  # positions learned from until the learning rate is whole


# On a CPU as measured here. On a GPU nobody has compared others with these: pgx's AlphaZero (128
# channels, 6 layers) has batches of 4,096 and a rate of 1e-3 by Adam, as a100 and h100 have; t4
# lies between.
ON_CPU = Learning(512, 2e-3, 0)
ON_GPU = {
    "cpu": Learning(1024, 2e-3, 0),
    "t4": Learning(2048, 2e-3, 400_000),
    "a100": Learning(4096, 1e-3, 2_000_000),
    "h100": Learning(4096, 1e-3, 2_000_000),
}


class Rates(NamedTuple):
    """What a device, or all devices of a run together, make in positions per second."""

    play: float
    learn: float

    def __str__(self) -> str:
        return f"plays {self.play:,.0f} positions a second, then learns from {self.learn:,.0f}"


def price_rise(positions: int) -> float:
    """What the price of spikes is multiplied by, when so many positions have been played."""
    return min(max(positions / PRICE_RISES_AFTER, 1.0), MOST_RISE)


def usual_boards(device: str) -> int:
    """The games in lockstep of each worker on a device, unless the user says otherwise."""
    return BOARDS_ON_CPU if device == "cpu" else BOARDS


def choose_preset(
    device: str, machine: Inventory, plan: WorkerPlan, minutes: float, learners: int = 1
) -> tuple[str, str]:
    """The name of the largest preset that fits a run's first `minutes`, and why, in a sentence.

    It fits when every GPU that learns or plays has the memory free, and when as many positions are
    made as this size needs to pay. learners: the devices that learn.
    """
    if device == "mps":
        # By arithmetic a base M2 is slower with t4 than its own CPU with cpu.
        return "cpu", "Preset cpu: no Apple GPU has been measured with a larger one"
    if "cpu" in (device, plan.devices[0]):
        return "cpu", "Preset cpu: cores are too slow for a larger one"
    names = {device, *plan.devices}
    gpus = [gpu for gpu in machine.gpus if f"cuda:{gpu.index}" in names]
    free = min(map(free_memory, gpus)) / 1e9
    reason = ""
    for name in ("h100", "a100", "t4"):
        size = SIZES[name]
        if free < size.memory:
            reason = f"{name} needs {size.memory:g} GB of a GPU, and {free:.1f} GB are free"
            continue
        rates = stated_rates(name, device, machine, plan, learners)
        seconds = 1 / rates.play + reuse_for(rates) / rates.learn
        millions = 60 * minutes / seconds / 1e6
        reason = (
            f"{minutes:g} minutes with {name} make about {millions:.1f} million positions "
            f"(an estimate), and it pays from {size.worthwhile:g} million on"
        )
        if millions >= size.worthwhile:
            return name, f"Preset {name}: {reason}"
    return "cpu", f"Preset cpu: {reason}"


def choose_reuse(
    preset: str, device: str, machine: Inventory, plan: WorkerPlan, learners: int, say: Say
) -> float:
    """How often a new run learns from each position. say: gets the reason."""
    if device == "cpu" == plan.devices[0]:
        say(
            f"Each position is learned from {MOST_REUSE:g} times: on a CPU 2 and 4.5 times were "
            "weaker"
        )
        return MOST_REUSE
    reuse = reuse_for(stated_rates(preset, device, machine, plan, learners))
    say(
        f"Each position is learned from {reuse:g} times: {LEAST_REUSE:g} to {MOST_REUSE:g}, so "
        "that learning takes about as long as playing, by estimates, with "
        f"{counted(learners, 'device')} to learn"
    )
    return reuse


def stated_rates(
    preset: str, device: str, machine: Inventory, plan: WorkerPlan, learners: int
) -> Rates:
    """The rates by SIZES: those of the slowest of the GPUs for all of them. device: learns, or the
    first of `learners` that learn together.
    """
    used = {device, *plan.devices}
    kind = min((kind_of(gpu) for gpu in machine.gpus if f"cuda:{gpu.index}" in used), default=T4)
    player, learner = ({"cpu": 0, "mps": 1}.get(name, kind) for name in (plan.devices[0], device))
    size = SIZES[preset]
    players = plan.players
    if plan.devices[0] == "cpu":
        players = min(players, machine.cores)
    if device == "cpu":
        learners = machine.cores
    return Rates(
        players * 1000 * STATED_BOARDS / size.plies[player],
        learners * 1000 * STATED_BATCH / size.updates[learner],
    )


def reuse_for(rates: Rates) -> float:
    """How often each position is learned from, so that learning takes no longer than playing,
    between LEAST_REUSE and MOST_REUSE.
    """
    return round(min(max(rates.learn / rates.play, LEAST_REUSE), MOST_REUSE), 1)


def kind_of(gpu: Gpu) -> int:
    """The place in a Size's figures of a GPU that is about as fast as this one, or faster."""
    # What counts is how fast the memory is: that of an A100, and of the generations after it that
    # are not made for laptops and pictures (L40S, Quadro RTX).
    generation = gpu.capability[0]
    too_old = generation < 9 and gpu.capability != (8, 0)
    shares_ram = gpu.capability in ((11, 0), (12, 1))  # Jetson Thor, DGX Spark
    if gpu.memory < 30 * 2**30 or too_old or shares_ram:
        return T4
    return H200 if gpu.memory > 70 * 2**30 and generation in (9, 10) else A100
