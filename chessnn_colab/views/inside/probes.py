"""How much each layer knows: how well a linear probe reads a fact of the position from its spikes.

A probe is least squares with a little shrinking, fitted on one half of the positions and judged on
the other (Alain and Bengio, "Understanding intermediate layers using linear classifier probes",
arXiv:1610.01644). For each channel it reads the mean and the largest number of spikes on the board,
so it cannot work out the fact by itself from where pieces stand.
"""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from ...games.base import concatenate, finished, random_actions
from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...spikes import layer_names, spike_counts
from ..cell import HtmlImage
from ..style import BLUE, DASHED, ORANGE, draw_line, figure_html, styled

PIECE_VALUES = (1.0, 3.0, 3.0, 5.0, 9.0)  # pawn to queen
# Planes of Chess.observe.
OWN = slice(0, 5)
THEIRS = slice(6, 11)
OWN_ATTACKS = 13
THEIR_ATTACKS = 14
CHECK = 20
FACTS = ("in check", "hanging piece", "material")
SHRINKING = 1e-2
BATCH = 512
PLIES = 60  # of each game of the sample


def sample_positions(count: int = 3000, seed: int = 0) -> Tensor:
    """float32 [count, 27, 8, 8]: positions from games of random moves, a third of them from starts
    of a few pieces.
    """
    game = Chess()
    generator = torch.Generator().manual_seed(seed)
    found = []
    while sum(map(len, found)) < count:
        starts = (game.starts(96, "standard", generator), game.starts(48, "few-piece", generator))
        state = concatenate(starts)
        for _ in range(PLIES):
            state = game.step(state, random_actions(game.legal_action_mask(state), generator))
            found.append(game.observe(state)[~finished(state)])
    positions = torch.cat(found)
    return positions[torch.randperm(len(positions), generator=generator)[:count]]


def facts(planes: Tensor) -> dict[str, np.ndarray]:
    """For positions [N, 27, 8, 8]: 0 or 1 for the first two facts, material in pawns for the third,
    each [N].

    A piece hangs when it is the mover's, not a pawn and not the king, is attacked and is not
    protected.
    """
    attacked = planes[:, THEIR_ATTACKS] * (1 - planes[:, OWN_ATTACKS])
    hanging = (planes[:, 1:5].sum(1) * attacked).amax((1, 2))
    pieces = planes[:, OWN].sum((2, 3)) - planes[:, THEIRS].sum((2, 3))
    material = pieces @ torch.tensor(PIECE_VALUES)
    values = (planes[:, CHECK].amax((1, 2)), hanging, material)
    return {fact: value.numpy() for fact, value in zip(FACTS, values)}


def readings(network: SpikingNetwork, planes: Tensor) -> dict[str, np.ndarray]:
    """The features [N, features] that a probe reads: of the input, and of every layer by its short
    name.
    """
    parts: dict[str, list[Tensor]] = {}
    for batch in planes.split(BATCH):
        counts = spike_counts(network, batch)
        spikes = {short: counts[name].sum(0) for name, short in layer_names(network).items()}
        for name, board in {"input": batch, **spikes}.items():
            features = torch.cat((board.mean((2, 3)), board.amax((2, 3))), 1)
            parts.setdefault(name, []).append(features)
    return {name: torch.cat(batches).numpy() for name, batches in parts.items()}


def knowledge(network: SpikingNetwork, planes: Tensor) -> dict[str, dict[str, float]]:
    """Fact -> layer -> the share of the fact's variance that the probe explains, from 0 (guessing)
    to 1 (always right).
    """
    features = readings(network, planes)
    return {
        fact: {layer: explained(values, target) for layer, values in features.items()}
        for fact, target in facts(planes).items()
    }


def explained(features: np.ndarray, target: np.ndarray) -> float:
    """Fit a probe from features [N, F] to target [N] on the first half; the share of the variance
    that it explains in the second, at least 0.
    """
    half = len(target) // 2
    spread = features[:half].std(0)
    x = features[:, spread > 1e-6] / spread[spread > 1e-6]
    x = np.c_[x, np.ones(len(x))].astype(np.float64)
    gram = x[:half].T @ x[:half] + SHRINKING * half * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x[:half].T @ target[:half])
    errors = x[half:] @ weights - target[half:]
    variance = target[half:].var()
    return max(0.0, 1 - float((errors**2).mean() / variance)) if variance else 0.0


@styled
def knowledge_picture(networks: Mapping[str, SpikingNetwork], planes: Tensor) -> HtmlImage:
    """The probes of every layer, a line for each network, two networks at most; the first one's
    line is dashed.
    """
    scores = {name: knowledge(network, planes) for name, network in networks.items()}
    figure = Figure(figsize=(9.4, 3.0))
    words = []
    for axis, fact in zip(figure.subplots(1, len(FACTS), sharey=True), FACTS):
        for (name, told), colour, dashes in zip(scores.items(), (ORANGE, BLUE), (DASHED, "-")):
            layers = list(told[fact])
            values = list(told[fact].values())
            draw_line(axis, np.array(layers), np.array(values), colour, name, ls=dashes)
            by_layer = ", ".join(f"{layer} {value:.2f}" for layer, value in told[fact].items())
            words.append(f"{name}, {fact}: {by_layer}")
        axis.set_title(fact)
        axis.tick_params("x", rotation=50)
        axis.set_ylim(-0.03, 1.03)
    figure.axes[0].set_ylabel("0 guessing, 1 always right")
    figure.axes[-1].legend()
    alt = f"How well a probe reads a fact. {'; '.join(words)}"
    return HtmlImage(figure_html(figure, alt))
