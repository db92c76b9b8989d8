"""Beside what others do: the same network written plainly, and the same rules by other libraries, in the same run."""

from __future__ import annotations

import copy
import random
import statistics
import time
from importlib.util import find_spec
from typing import Any, Callable

import chess
import torch
from spikingjelly.activation_based import functional, neuron, surrogate
from torch import nn

from .bench_clock import Clock, evaluation_rate, random_observations
from .network import SpikingLayer, SpikingNetwork, actor_copy, build_network, preset

NETWORK_BATCH = 512
ROUNDS = 5


def bench_network(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """The actors' network, policy and value, beside `plain_network` in float32, turn by turn on NETWORK_BATCH
    random-play positions; medians over ROUNDS turns."""
    network = build_network(preset(preset_name), device).eval()
    ours, plain = actor_copy(network, dtype), plain_network(network)
    observation = random_observations(device, NETWORK_BATCH)
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(ROUNDS):
        for name, candidate in (("ours", ours), ("plain", plain)):
            rates[name].append(evaluation_rate(candidate, observation, device, seconds / ROUNDS / 2))
    speedups = [ours / plain for ours, plain in zip(*rates.values())]
    return {"evaluations_per_second": statistics.median(rates["ours"]), "batch": NETWORK_BATCH,
            "plain_evaluations_per_second": statistics.median(rates["plain"]),
            "speedup": statistics.median(speedups), "speedup_low": min(speedups), "speedup_high": max(speedups)}


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
    """SpikingJelly's neuron for the network's configuration, many steps a call."""
    tau, threshold, levels = network.config.tau, network.config.threshold, network.config.levels
    if levels > 1:
        count = surrogate.MultiLevelSpikeCount(levels)
        return neuron.ILIFNode(tau, threshold, count, detach_reset=True, step_mode="m")
    return neuron.LIFNode(tau, False, threshold, None, surrogate.ATan(), detach_reset=True, step_mode="m")


def bench_libraries(device: str, preset_name: str, seconds: float, dtype: torch.dtype) -> dict[str, Any]:
    """Random play from the start position, legal moves and a move each ply, by the other libraries that are here.

    One core each, one game after another, as they are used in Python; `bench rules` is the same work here.
    """
    players: dict[str, Callable[[float], float]] = {"python_chess": python_chess_rate}
    if find_spec("pyspiel"):
        players["open_spiel"] = open_spiel_rate
    return {f"{name}_positions_per_second": play(seconds / len(players)) for name, play in players.items()}


def python_chess_rate(seconds: float) -> float:
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
    import pyspiel
    rng, game, clock = random.Random(0), pyspiel.load_game("chess"), Clock("cpu")
    deadline = time.monotonic() + seconds

    def ply(state) -> None:
        state.apply_action(rng.choice(state.legal_actions()))
    while time.monotonic() < deadline:
        state = game.new_initial_state()
        while not state.is_terminal():
            clock.time(ply, state, count=1)
    return clock.rate
