"""Measurements, as ratios inside one run: python -m chessnn_colab bench NAME [--json], or all of
them.

Machines are noisy: quote medians of several runs, and the machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch

from ..arena.progress import Bar, MatchProgress, Watch, unwatched
from ..config import TrainConfig
from ..devices import choose_dtype, detect_device, time_convolutions
from ..errors import ConfigError
from ..memory import keep_freed_memory
from ..settings import COUNT, require
from .clock import Setting
from .launches import bench_launches
from .neighbour import bench_neighbour
from .network import bench_network
from .rules import bench_rules
from .self_play import bench_memory, bench_policy, bench_self_play, bench_tree
from .workers import bench_learner, bench_transport, bench_workers

BENCHES = {
    "rules": bench_rules,
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
ALONE = ("neighbour",)  # it disturbs the machine, so it is not part of "all"


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

    Returns figures by name, with the game, device, threads and preset that they belong to; for
    "all", the figures of each bench by its name. precision: of the convolutions
    (devices.choose_dtype). search, num_simulations: of a SearchConfig. boards: games in lockstep in
    "rules", self-play and "memory", positions in "network"; None: each bench's own number. watch is
    called before each bench. KeyboardInterrupt ends it: then "not_measured" names the benches
    without figures. Raises ConfigError for an unknown name or search, and for seconds and boards
    that are not positive.
    """
    if name != "all" and name not in BENCHES:
        raise ConfigError(f"unknown bench {name!r}: expected one of {', '.join(BENCHES)}, or all")
    if not seconds > 0:
        raise ConfigError(f"seconds={seconds}: expected more than 0")
    if boards is not None:
        require("boards", boards, COUNT)
    chosen = detect_device(device).device
    dtype = choose_dtype(precision, chosen)
    about = {
        "bench": name,
        "game": game,
        "device": chosen,
        "preset": preset,
        "precision": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    config = TrainConfig(
        game=game,
        preset=preset,
        precision=about["precision"],
        search=search,
        num_simulations=num_simulations,
    )
    time_convolutions(chosen)  # as workers do, and this
    if chosen == "cpu":
        keep_freed_memory()
    names = [each for each in BENCHES if each not in ALONE] if name == "all" else [name]
    figures = _measured(names, Setting(chosen, config, dtype, seconds, boards), watch)
    left_out = names[len(figures) :]
    rest = {"not_measured": left_out} if left_out else {}
    return {**about, **(figures if name == "all" else figures.get(name, {})), **rest}


def _measured(names: list[str], setting: Setting, watch: Watch) -> dict[str, Any]:
    """The figures of each bench by its name; after KeyboardInterrupt those of the ones that were
    done.
    """
    figures = {}
    with suppress(KeyboardInterrupt):
        for name in watched(names, setting.seconds, watch):
            figures[name] = BENCHES[name](setting)
    return figures


def watched(names: list[str], seconds: float, watch: Watch) -> Iterator[str]:
    """`names`, one after the other; `watch` is called before each, and at the end.

    seconds: that each takes.
    """
    started = time.monotonic()
    for number in range(len(names) + 1):
        bars = tuple(
            Bar(f"bench {name}", int(place < number), 1) for place, name in enumerate(names)
        )
        remaining = names[number:]
        now = f"bench {remaining[0]}, {number + 1} of {len(names)}" if remaining else ""
        passed = time.monotonic() - started
        watch(MatchProgress(bars, "measurement", passed, len(remaining) * seconds, now))
        yield from remaining[:1]
