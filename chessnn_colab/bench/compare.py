"""Comparisons in the same run: the same network written plainly, and the same rules by other libraries."""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import chess
import torch
from spikingjelly.activation_based import functional, neuron, surrogate
from torch import nn

from ..cpu import use_threads
from ..errors import ConfigError
from ..games.base import Game, finished, where
from ..layers import SpikingLayer
from ..network import SpikingNetwork, actor_copy
from .clock import Clock, Setting, evaluation_rate, random_observations

NETWORK_BATCH = 512
RULES_BATCH = 1024
ROUNDS = 5


def bench_network(setting: Setting) -> dict[str, Any]:
    """The actors' network, policy and value, beside `plain_network` in float32.

    The two take turns on NETWORK_BATCH positions of random play, or setting.boards; the figures are medians over ROUNDS
    turns. SpikingJelly's neurons refuse some devices (MPS), where there is no comparison.
    """
    network, device = setting.network(), setting.device
    batch = setting.boards or NETWORK_BATCH
    observation = random_observations(setting.game, batch)
    candidates = {"ours": actor_copy(network, setting.dtype)}
    if not network.portable:
        candidates["plain"] = plain_network(network)
    rates: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, candidate in candidates.items():
            rates[name].append(evaluation_rate(candidate, observation, device, setting.seconds / ROUNDS / 2))
    figures = {"evaluations_per_second": statistics.median(rates["ours"]), "batch": batch}
    if "plain" not in rates:
        return figures
    speedups = [ours / plain for ours, plain in zip(*rates.values())]
    return {
        **figures,
        "plain_evaluations_per_second": statistics.median(rates["plain"]),
        "speedup": statistics.median(speedups),
        "speedup_low": min(speedups),
        "speedup_high": max(speedups),
    }


def plain_network(network: SpikingNetwork) -> SpikingNetwork:
    """The same weights in the layers one would write down first: SpikingJelly's neurons, batch norm left as it is."""
    functional.reset_net(network)  # a graph that training left behind cannot be copied
    plain = copy.deepcopy(network).eval()
    for module in plain.modules():
        for name, layer in list(module.named_children()):
            if isinstance(layer, SpikingLayer):
                setattr(module, name, plain_neurons(network))
    return plain


def plain_neurons(network: SpikingNetwork) -> nn.Module:
    """SpikingJelly's neuron for the network's configuration, many steps per call, each call from rest."""
    tau, threshold, levels = network.config.tau, network.config.threshold, network.config.levels
    if levels > 1:
        count = surrogate.MultiLevelSpikeCount(levels)
        node = neuron.ILIFNode(tau, threshold, count, detach_reset=True, step_mode="m")
    else:
        node = neuron.LIFNode(tau, False, threshold, None, surrogate.ATan(), detach_reset=True, step_mode="m")
    node.register_forward_pre_hook(lambda *_: node.reset())
    return node


def bench_libraries(setting: Setting) -> dict[str, Any]:
    """Random play from the start position, legal moves and a move each ply, by the other libraries installed here.

    python-chess and OpenSpiel: one core, one game after another, as they are used in Python. pgx: RULES_BATCH games in
    lockstep on all cores, compiled, as JAX runs it here. `ours` is the same work by this package (see bench rules).
    Raises ConfigError for another game than chess.
    """
    if setting.game.name != "chess":
        raise ConfigError(f"bench libraries compares rules of chess: it has no other library for {setting.game.name}")
    others: dict[str, Callable[[float], float]] = {"python_chess": python_chess_rate}
    if find_spec("pyspiel"):
        others["open_spiel"] = open_spiel_rate
    if find_spec("pgx"):
        others["pgx"] = pgx_rate
    share = setting.seconds / (len(others) + 1)
    ours = rules_clocks(setting.game, share)
    rates = {"ours": ours[0].count / sum(clock.seconds for clock in ours)}
    rates |= {name: play(share) for name, play in others.items()}
    faster = [name for name, rate in rates.items() if rate > rates["ours"]]
    return {**{f"{name}_positions_per_second": rate for name, rate in rates.items()}, "faster_than_ours": faster}


@use_threads(1)
def rules_clocks(game: Game, seconds: float, boards: int = RULES_BATCH) -> tuple[Clock, Clock]:
    """Legal mask and step over unfinished games of random play on `boards`; finished games start again.

    Returns the clocks of the mask and of the step, counting positions. Choosing moves and starting again is not timed.
    """
    device = str(game.device)
    generator = torch.Generator(device).manual_seed(0)
    start = state = game.init(boards)
    clocks = mask_clock, step_clock = Clock(device), Clock(device)
    warm = 20
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or not mask_clock.count:
        if warm == 0:
            clocks = mask_clock, step_clock = Clock(device), Clock(device)
        warm -= 1
        mask = mask_clock.time(game.legal_action_mask, state, count=boards)
        noise = torch.rand(mask.shape, generator=generator, device=device)
        action = torch.where(mask, noise, -1.0).argmax(1)
        after = step_clock.time(game.step, state, action, count=boards)
        state = where(finished(after), start, after)
    return clocks


def python_chess_rate(seconds: float) -> float:
    """Positions per second of python-chess: list the legal moves and play one."""
    rng, board, clock = random.Random(0), chess.Board(), Clock("cpu")
    deadline = time.monotonic() + seconds

    def ply() -> bool:
        moves = list(board.legal_moves)
        if moves and board.halfmove_clock < 100:
            board.push(rng.choice(moves))
            return True
        return False

    while time.monotonic() < deadline:
        board.reset()
        while clock.time(ply):
            clock.count += 1
    return clock.rate


def open_spiel_rate(seconds: float) -> float:
    """Positions per second of OpenSpiel, likewise."""
    pyspiel = import_module("pyspiel")
    rng, game, clock = random.Random(0), pyspiel.load_game("chess"), Clock("cpu")
    deadline = time.monotonic() + seconds

    def ply(state: Any) -> bool:
        state.apply_action(rng.choice(state.legal_actions()))
        return not state.is_terminal()  # this finds the next legal moves, so it belongs to the work

    while time.monotonic() < deadline:
        state = game.new_initial_state()
        while clock.time(ply, state, count=1):
            pass
    return clock.rate


def pgx_rate(seconds: float) -> float:
    """Steps of pgx, which find the legal moves too. Choosing moves and starting again is not timed, as for ours."""
    jax, pgx = import_module("jax"), import_module("pgx")
    env, key, clock = pgx.make("chess"), jax.random.PRNGKey(0), Clock("cpu")

    def choose(state: Any, key: Any):
        return jax.random.categorical(key, jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf))

    def start_again(state: Any, fresh: Any):
        over = state.terminated | state.truncated
        return jax.tree_util.tree_map(lambda old, new: jax.numpy.where(over, new, old), state, fresh)

    step, choose, start_again = (jax.jit(jax.vmap(function)) for function in (env.step, choose, start_again))
    keys = jax.random.split(key, RULES_BATCH)
    fresh = state = jax.jit(jax.vmap(env.init))(keys)
    jax.block_until_ready(step(state, choose(state, keys)))  # compiled
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or not clock.count:
        key, now = jax.random.split(key)
        action = jax.block_until_ready(choose(state, jax.random.split(now, RULES_BATCH)))
        state = clock.time(lambda *now: jax.block_until_ready(step(*now)), state, action, count=RULES_BATCH)
        state = jax.block_until_ready(start_again(state, fresh))
    return clock.rate
