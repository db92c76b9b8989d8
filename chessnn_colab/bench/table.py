"""Measurements, as ratios inside one run: python -m chessnn_colab bench NAME [--json], or all of them.

Machines are noisy: quote medians of several runs, and the machine.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from ..arena.standing import Part, Standing, Watch, unwatched
from ..config import TrainConfig
from ..cpu import keep_freed_memory
from ..devices import choose_dtype, detect_device, inventory, plan_workers, time_convolutions
from ..errors import ConfigError
from ..network import build_network, to_arrays
from ..records import GameRecords
from ..selfplay import SelfPlay
from ..selfplay_config import BOARDS, BOARDS_ON_CPU
from ..workers.local import LocalPool
from .clock import Clock, Setting
from .compare import RULES_BATCH, bench_libraries, bench_network, rules_clocks
from .launches import bench_launches
from .neighbour import bench_neighbour
from .self_play import GAMES_A_BOARD, bench_learner, bench_memory, bench_policy, bench_self_play, bench_tree


def bench(
    name: str,
    device: str = "auto",
    preset: str = "cpu",
    seconds: float = 10.0,
    precision: str = "auto",
    game: str = "chess",
    search: str = "two-rung",
    num_simulations: int = 32,
    boards: int | None = None,
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Run one of BENCHES, or "all", for about `seconds` each.

    Returns figures by name, with the game, device, threads and preset that they belong to; for "all", the figures of
    each bench by its name. precision: of the convolutions (devices.choose_dtype). search, num_simulations: of a
    SearchConfig. boards: games in lockstep in "rules", self-play and "memory", positions in "network"; None: each
    bench's own number. watch is told before each bench. KeyboardInterrupt ends it: then "not_measured" names the
    benches without figures. Raises ConfigError for an unknown name or search, and for seconds that are not positive.
    """
    names = _benches(name, game)
    if not seconds > 0:
        raise ConfigError(f"seconds={seconds}: expected more than 0")
    chosen = detect_device(device).device
    dtype = choose_dtype(precision, chosen)
    precision = str(dtype).removeprefix("torch.")
    config = TrainConfig(game=game, preset=preset, precision=precision, search=search, num_simulations=num_simulations)
    if boards is not None and boards < 1:
        raise ConfigError(f"boards={boards}: expected a whole number from 1 up")
    setting = Setting(chosen, config, dtype, seconds, boards)
    time_convolutions(chosen)  # as workers do, and this
    if chosen == "cpu":
        keep_freed_memory()
    about = {
        "bench": name,
        "game": game,
        "device": chosen,
        "preset": preset,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    figures = _measured(names, setting, watch)
    rest = {"not_measured": names[len(figures) :]} if len(figures) < len(names) else {}
    return {**about, **(figures if name == "all" else figures.get(name, {})), **rest}


def _measured(names: list[str], setting: Setting, watch: Watch) -> dict[str, Any]:
    """The figures of each bench by its name; after KeyboardInterrupt those of the ones that were done."""
    figures = {}
    with suppress(KeyboardInterrupt):
        for name in watched(names, setting.seconds, watch):
            figures[name] = BENCHES[name](setting)
    return figures


def _benches(name: str, game: str) -> list[str]:
    """The benches that `name` stands for."""
    if name == "all":
        return [each for each in BENCHES if each not in ALONE and (game == "chess" or each not in CHESS_ONLY)]
    if name not in BENCHES:
        raise ConfigError(f"unknown bench {name!r}: expected one of {', '.join(BENCHES)}, or all")
    return [name]


def watched(names: list[str], seconds: float, watch: Watch) -> Iterator[str]:
    """`names`, one after the other, while `watch` is told which is next and which are done; each takes `seconds`."""
    started = time.monotonic()

    def tell(done: int, now: str) -> None:
        parts = tuple(Part(f"bench {each}", int(place < done), 1) for place, each in enumerate(names))
        watch(Standing(parts, "measurement", time.monotonic() - started, (len(names) - done) * seconds, now))

    for number, name in enumerate(names):
        tell(number, f"bench {name}, {number + 1} of {len(names)}")
        yield name
    tell(len(names), "")


def bench_rules(setting: Setting) -> dict[str, Any]:
    """Legal mask and step of random play (see rules_clocks)."""
    boards = setting.boards or RULES_BATCH
    mask, step = rules_clocks(setting.game, setting.seconds, boards)
    return {
        "positions_per_second": mask.count / (mask.seconds + step.seconds),
        "batch": boards,
        "mask_us": 1e6 * mask.seconds / mask.count,
        "step_us": 1e6 * step.seconds / step.count,
    }


def bench_transport(setting: Setting) -> dict[str, Any]:
    """Packing, sending between processes and unpacking games, against the time it took to play them."""
    job = SelfPlay(setting.device, **setting.config.job_settings(setting.network_config))
    played: list[dict[str, np.ndarray]] = []
    deadline = time.monotonic() + setting.seconds
    clock = Clock(setting.device)

    def collect(_: int, __: int, arrays: dict[str, np.ndarray] | None) -> bool:
        played.extend([arrays] if arrays else [])
        return time.monotonic() < deadline

    clock.time(job.play, 512, 0, collect)
    transport = Clock("cpu")
    with get_context("spawn").Pool(1, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as other:
        other.apply(echo, ({},))  # the process is up and has imported what it needs
        for arrays in played:
            transport.time(lambda a: GameRecords.from_arrays(other.apply(echo, (a,))), arrays)
    records = GameRecords.concatenate([GameRecords.from_arrays(arrays) for arrays in played])
    return {
        "transport_share": transport.seconds / clock.seconds,
        "messages": len(played),
        "bytes_per_position": records.nbytes / records.num_positions,
        "positions": records.num_positions,
        "note": "there and back, so twice the way that training takes",
    }


def echo(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the other process does with games: send them back."""
    return arrays


def bench_workers(setting: Setting) -> dict[str, Any]:
    """Games per second of one worker and of the planned number, two at least; one torch thread each on the CPU."""
    machine, device = inventory(), setting.device
    full = plan_workers(machine, device)
    rates = {}
    for count in sorted({1, max(len(full.devices), 2)}):
        plan = plan_workers(machine, device, workers=count)
        plan = replace(plan, threads=1) if device == "cpu" else plan
        share = [2 * GAMES_A_BOARD * (BOARDS_ON_CPU if device == "cpu" else BOARDS)] * count
        with LocalPool(SelfPlay, setting.config.job_settings(setting.network_config), plan) as pool:
            pool.set_weights(0, to_arrays(build_network(setting.network_config, "cpu")))
            pool.play(share, 1, None, time.monotonic() + setting.seconds / 4)  # warm up
            clock = Clock(device)
            chunks = clock.time(pool.play, share, 0, None, time.monotonic() + setting.seconds)
            positions = sum(len(arrays["actions"]) for worker in chunks for arrays in worker)
            games = sum(int((arrays["endings"] > 0).sum()) for worker in chunks for arrays in worker)
        rates[count] = {"moves_per_second": positions / clock.seconds, "games_per_second": games / clock.seconds}
    most = max(rates)
    return {
        "workers": rates,
        "speedup": rates[most]["moves_per_second"] / rates[1]["moves_per_second"],
        "moves_per_second": rates[most]["moves_per_second"],
        "games_per_second": rates[most]["games_per_second"],
    }


CHESS_ONLY = ("libraries",)
ALONE = ("neighbour",)  # it disturbs the machine, so it is not part of "all"
BENCHES = {
    "rules": bench_rules,
    "libraries": bench_libraries,
    "network": bench_network,
    "self-play": bench_self_play,
    "tree": bench_tree,
    "policy": bench_policy,
    "transport": bench_transport,
    "workers": bench_workers,
    "learner": bench_learner,
    "memory": bench_memory,
    "neighbour": bench_neighbour,
    "launches": bench_launches,
}
