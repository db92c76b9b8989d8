"""Measurements, as ratios inside one run: rules, network, self-play, transport, workers.

`python -m chessnn_colab bench NAME [--json]`. Machines are noisy: quote medians of several runs, and the machine.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import asdict, replace
from multiprocessing import get_context
from typing import Any, Callable

import numpy as np
import torch

from .actor import Actor, Seen
from .devices import choose_dtype, detect_device, inventory, keep_freed_memory, plan_workers
from .errors import ConfigError
from .games.base import finished, where
from .games.chess import Chess, ChessState
from .network import SpikingNetwork, actor_copy, build_network, preset, to_arrays
from .records import GameRecords
from .search import Root, SearchConfig
from .selfplay import SelfPlay, SelfPlayConfig, play_games
from .workers import LocalPool

RULES_BATCH = 1024
NETWORK_BATCH = 512


def bench(name: str, device: str = "auto", preset_name: str = "cpu", seconds: float = 10.0,
          precision: str = "auto") -> dict[str, Any]:
    """Run one of BENCHES for about `seconds`; figures by name, with the device, threads and preset they belong to.

    precision: of the convolutions (devices.choose_dtype). Raises ConfigError for an unknown name and for seconds that
    are not positive.
    """
    if name not in BENCHES:
        raise ConfigError(f"unknown bench {name!r}: expected one of {', '.join(BENCHES)}")
    if not seconds > 0:
        raise ConfigError(f"seconds={seconds}: expected more than 0")
    chosen = detect_device(device).device
    preset(preset_name)
    if chosen == "cpu":
        keep_freed_memory()  # as workers do
    dtype = choose_dtype(precision, chosen)
    figures = BENCHES[name](chosen, preset_name, seconds, dtype)
    return {"bench": name, "device": chosen, "preset": preset_name, "precision": str(dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__, **figures}


class Clock:
    """Seconds spent inside calls; a GPU is waited for."""

    def __init__(self, device: str):
        self.seconds = 0.0
        self.count = 0
        self._device = device

    def time(self, function: Callable, *args, count: int = 0) -> Any:
        """`function(*args)`, timed; `count` is added to what was done in that time."""
        wait_for(self._device)
        started = time.perf_counter()
        result = function(*args)
        wait_for(self._device)
        self.seconds += time.perf_counter() - started
        self.count += count
        return result

    @property
    def rate(self) -> float:
        return self.count / self.seconds


def wait_for(device: str) -> None:
    """Return when the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def bench_rules(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Legal mask and step over unfinished games of random play, RULES_BATCH boards; finished games start again."""
    game = Chess(device=device)
    generator = torch.Generator(device).manual_seed(0)
    start = state = game.init(RULES_BATCH)
    mask_clock, step_clock = Clock(device), Clock(device)
    warm = 20
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or not mask_clock.count:
        if warm == 0:
            mask_clock, step_clock = Clock(device), Clock(device)
        warm -= 1
        mask = mask_clock.time(game.legal_action_mask, state, count=RULES_BATCH)
        noise = torch.rand(mask.shape, generator=generator, device=device)
        action = torch.where(mask, noise, -1.0).argmax(1)
        after = step_clock.time(game.step, state, action)
        state = where(finished(after), start, after)
    total = mask_clock.seconds + step_clock.seconds
    return {"positions_per_second": mask_clock.count / total, "batch": RULES_BATCH,
            "mask_us": 1e6 * mask_clock.seconds / mask_clock.count,
            "step_us": 1e6 * step_clock.seconds / mask_clock.count}


def bench_network(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """The bare folded network, policy and value, NETWORK_BATCH random-play positions a call."""
    network = actor_copy(build_network(preset(preset_name), device).eval(), dtype)
    observation = random_observations(device, NETWORK_BATCH)
    return {"evaluations_per_second": evaluation_rate(network, observation, device, seconds), "batch": NETWORK_BATCH}


def bench_self_play(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Self-play with the training search beside the same folded network on its own, same batches, same threads.

    Only evaluations of unfinished positions count, so what is evaluated in vain lowers search_efficiency.
    """
    config = SelfPlayConfig(boards=128 if device == "cpu" else 512)  # on the CPU: as two workers' 64
    game = Chess(config.max_plies, device)
    network = TimedNetwork(actor_copy(build_network(preset(preset_name), device).eval(), dtype), device)
    search = SearchConfig()
    actor = CountingActor(game, network, search, config.discount)
    parts: list[GameRecords] = []
    games = config.boards * 2

    def collect(_: int, plies: int, records: GameRecords) -> bool:
        parts.append(records)
        return time.monotonic() < deadline
    play_games(actor, config, config.boards, 1, lambda *_: False)  # warm up
    network.calls.clear()
    actor.evaluations, network.clock, clock = 0, Clock(device), Clock(device)
    deadline = time.monotonic() + seconds
    clock.time(play_games, actor, config, games, 0, collect)
    records = GameRecords.concatenate(parts)
    moves, evaluations = records.num_positions, int(actor.evaluations)
    bare = network.rows / bare_seconds(network, device)
    return {
        "moves_per_second": moves / clock.seconds,
        "games_per_second": int((records.endings > 0).sum()) / clock.seconds,
        "evaluations_per_second": evaluations / clock.seconds,
        "bare_evaluations_per_second": bare,
        "search_efficiency": evaluations / clock.seconds / bare,
        "network_share": network.clock.seconds / clock.seconds,
        "overhead_us_per_evaluation": 1e6 * (clock.seconds / evaluations - 1 / bare),
        "bytes_per_position": records.nbytes / moves, "boards": config.boards,
        "evaluations_per_move": evaluations / moves,
    }


class CountingActor(Actor):
    """An actor that counts what is worth counting: evaluations of unfinished positions that legal moves led to."""

    evaluations: torch.Tensor | int = 0

    def root(self, state: ChessState) -> Root:
        self.evaluations = self.evaluations + (~finished(state)).sum()
        return super().root(state)

    def recurrent_fn(self, seen: Seen, rows: torch.Tensor, action: torch.Tensor | None):
        legal = 1 if action is None else (seen.state.moves[rows, action >> 6] >> (action & 63)) & 1
        step, after = super().recurrent_fn(seen, rows, action)
        self.evaluations = self.evaluations + (legal * ~finished(after.state)).sum()
        return step, after


class TimedNetwork:
    """A network that remembers which parts of it were called on which batches, and how long that took."""

    def __init__(self, network: SpikingNetwork, device: str):
        self.network, self.clock = network, Clock(device)
        self.calls: Counter[tuple[str, int]] = Counter()

    @property
    def rows(self) -> int:
        """Positions evaluated, finished and illegal ones included."""
        return sum(batch * calls for (part, batch), calls in self.calls.items() if part == "firing_rates")

    def firing_rates(self, observation: torch.Tensor) -> torch.Tensor:
        return self._timed("firing_rates", observation)

    def prior_logits(self, rates: torch.Tensor) -> torch.Tensor:
        return self._timed("prior_logits", rates)

    def wdl_logits(self, rates: torch.Tensor) -> torch.Tensor:
        return self._timed("wdl_logits", rates)

    def _timed(self, part: str, batch: torch.Tensor) -> torch.Tensor:
        self.calls[part, len(batch)] += 1
        return self.clock.time(getattr(self.network, part), batch)


@torch.no_grad()
def bare_seconds(timed: TimedNetwork, device: str) -> float:
    """How long the same calls take the network alone: the same parts on batches of the same sizes, nothing between."""
    seconds = 0.0
    for (part, batch), calls in timed.calls.items():
        given = random_observations(device, batch)
        if part != "firing_rates":
            given = timed.network.firing_rates(given)
        rate = evaluation_rate(getattr(timed.network, part), given, device, min(1.0, 0.1 + 0.001 * calls))
        seconds += calls * batch / rate
    return seconds


@torch.no_grad()
def evaluation_rate(network: Callable, observation: torch.Tensor, device: str, seconds: float) -> float:
    """Positions a second, the median over calls after two for warming up."""
    for _ in range(2):
        network(observation)
    times = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(times) < 3:
        clock = Clock(device)
        clock.time(network, observation)
        times.append(clock.seconds)
    return len(observation) / statistics.median(times)


@torch.no_grad()
def random_observations(device: str, count: int) -> torch.Tensor:
    """What a network sees at `count` positions of random play."""
    game = Chess(device=device)
    return game.observe(game.starts(count, "random-plies", torch.Generator().manual_seed(0)))


def bench_transport(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Packing, sending between processes and unpacking games, against the time it took to play them."""
    job = SelfPlay(device, preset(preset_name).to_dict(), asdict(SearchConfig()), asdict(SelfPlayConfig()),
                   str(dtype).removeprefix("torch."))
    played: list[dict[str, np.ndarray]] = []
    deadline = time.monotonic() + seconds
    clock = Clock(device)

    def collect(_: int, __: int, arrays: dict | None) -> bool:
        played.extend([arrays] if arrays else [])
        return time.monotonic() < deadline
    clock.time(job.play, 512, 0, collect)
    transport = Clock("cpu")
    with get_context("spawn").Pool(1) as other:
        other.apply(echo, ({},))  # the process is up and has imported what it needs
        for arrays in played:
            transport.time(lambda a: GameRecords.from_arrays(other.apply(echo, (a,))), arrays)
    records = GameRecords.concatenate([GameRecords.from_arrays(arrays) for arrays in played])
    return {"transport_share": transport.seconds / clock.seconds, "messages": len(played),
            "bytes_per_position": records.nbytes / records.num_positions, "positions": records.num_positions,
            "note": "there and back, so twice the way that training takes"}


def echo(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the other process does with games: send them back."""
    return arrays


def bench_workers(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Games a second of one worker and of the planned number, one torch thread each on the CPU."""
    machine = inventory()
    full = plan_workers(machine, device)
    rates = {}
    for count in sorted({1, max(len(full.devices), 2 if device == "cpu" else 1)}):
        plan = plan_workers(machine, device, workers=count)
        plan = replace(plan, threads=1) if device == "cpu" else plan
        settings = {"network": preset(preset_name).to_dict(), "search": asdict(SearchConfig()),
                    "self_play": asdict(SelfPlayConfig()), "precision": str(dtype).removeprefix("torch.")}
        with LocalPool(SelfPlay, settings, plan) as pool:
            pool.set_weights(0, to_arrays(build_network(preset(preset_name), "cpu")))
            clock = Clock(device)
            chunks = clock.time(pool.play, [10_000] * count, 0, None, time.monotonic() + seconds)
            positions = sum(len(arrays["actions"]) for worker in chunks for arrays in worker)
            games = sum(int((arrays["endings"] > 0).sum()) for worker in chunks for arrays in worker)
        rates[count] = {"moves_per_second": positions / clock.seconds, "games_per_second": games / clock.seconds}
    most = max(rates)
    return {"workers": rates, "speedup": rates[most]["moves_per_second"] / rates[1]["moves_per_second"],
            "moves_per_second": rates[most]["moves_per_second"], "games_per_second": rates[most]["games_per_second"]}


BENCHES = {"rules": bench_rules, "network": bench_network, "self-play": bench_self_play,
           "transport": bench_transport, "workers": bench_workers}
