"""Measurements, as ratios inside one run: python -m chessnn_colab bench NAME [--json], or all of
them.

Machines are noisy: quote medians of several runs, and the machine.
"""

import time
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from ..arena.progress import Bar, MatchProgress, Watch, unwatched
from ..config import TrainConfig
from ..devices import detect_device, inventory, time_convolutions
from ..memory import keep_freed_memory
from ..search import SearchConfig
from ..settings import ABOVE_ZERO, COUNT, one_of, require
from .device_parts import bench_check, bench_ply, bench_precision, bench_train
from .launches import bench_launches
from .neighbour import bench_neighbour
from .network import bench_network
from .rules import bench_rules
from .self_play import bench_self_play
from .setting import Figures, Setting
from .workers import bench_learner, bench_workers

BENCHES = {
    "rules": bench_rules,
    "network": bench_network,
    "self-play": bench_self_play,
    "tree": partial(bench_self_play, search=SearchConfig(search="tree")),  # of 32 simulations
    "workers": bench_workers,
    "learner": bench_learner,
    "launches": bench_launches,
}
# Not part of "all": the first disturbs the machine, `bench device` runs the others.
ALONE = {
    "neighbour": bench_neighbour,
    "check": bench_check,
    "train": bench_train,
    "ply": bench_ply,
    "precision": bench_precision,
}


def bench(
    name: str,
    device: str = "auto",
    preset: str = "cpu",
    seconds: float = 10.0,
    boards: int | None = None,
    watch: Watch = unwatched,
    **settings: Any,
) -> Figures:
    """Run one of BENCHES or ALONE, or "all" of BENCHES, for about `seconds` each.

    Returns figures by name, with the game, device, threads and preset that they belong to; for
    "all", the figures of each bench by its name. boards: games in lockstep in "rules" and
    self-play, positions in "network"; None: each bench's own number. watch is called before each
    bench. settings: others of a TrainConfig, such as game, precision and search. KeyboardInterrupt
    ends it: then "not_measured" names the benches without figures. Raises ConfigError for an
    unknown name or search, and for seconds and boards that are not positive.
    """
    benches = BENCHES | ALONE
    require("bench", name, one_of("all", *benches))
    require("seconds", seconds, ABOVE_ZERO)
    if boards is not None:
        require("boards", boards, COUNT)
    device = detect_device(device).device
    config = TrainConfig(preset=preset, **settings)
    if preset == "auto":
        machine = inventory()
        config = config.resolve(device, machine, config.worker_plan(device, machine))
    setting = Setting(device, config, seconds, boards)
    about = {
        "bench": name,
        "game": setting.config.game,
        "device": device,
        "preset": setting.config.preset,
        "precision": str(setting.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    time_convolutions(device)  # as workers do, and this
    if device == "cpu":
        keep_freed_memory()
    names = list(BENCHES) if name == "all" else [name]
    figures = {}
    started = time.monotonic()

    def show() -> None:
        bars = tuple(Bar(f"bench {each}", int(each in figures), 1) for each in names)
        left = (len(names) - len(figures)) * seconds
        watch(MatchProgress(bars, "measurement", time.monotonic() - started, left))

    with suppress(KeyboardInterrupt):
        for each in names:
            show()
            figures[each] = benches[each](setting)
        show()
    left_out = names[len(figures) :]
    rest: Figures = {"not_measured": left_out} if left_out else {}
    if device.startswith("cuda"):
        rest["gpu_memory_mib"] = torch.cuda.max_memory_allocated(device) / 2**20
    return {**about, **(figures if name == "all" else figures.get(name, {})), **rest}
