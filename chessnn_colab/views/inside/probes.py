"""What each layer knows: how well a straight line through its spikes tells a fact of the position.

A probe is least squares with a little shrinking on one half of the positions, judged on the other (Alain and Bengio,
"Understanding intermediate layers using linear classifier probes", arXiv:1610.01644). It reads, for each channel, the
mean and the largest number of spikes on the board, so it cannot work out the fact by itself from where pieces stand.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...spikes import layer_names, spike_counts
from ..cell import Picture
from ..ink import BLUE, HAIRLINE, INK, ORANGE, dress, figure_html, new_figure

PIECE_VALUES = (1.0, 3.0, 3.0, 5.0, 9.0)  # pawn to queen
OWN, THEIRS, OWN_ATTACKS, THEIR_ATTACKS, CHECK = slice(0, 5), slice(6, 11), 13, 14, 20  # planes of Chess.observe
FACTS = ("in check", "hanging piece", "material")
SHRINKING = 1e-2
BATCH = 512
PLIES = 60  # of each game of the sample


def sample_positions(count: int = 3000, seed: int = 0) -> Tensor:
    """float32 [count, 27, 8, 8]: positions from games of random moves, a third of them from starts of a few pieces."""
    game, generator, found = Chess(), torch.Generator().manual_seed(seed), []
    while sum(map(len, found)) < count:
        states = [game.starts(96, "standard", generator), game.starts(48, "few-piece", generator)]
        for ply in range(2 * PLIES):
            before = states[ply % 2]
            mask = game.legal_action_mask(before)
            action = torch.where(mask, torch.rand(mask.shape, generator=generator), -1.0).argmax(1)
            states[ply % 2] = after = game.step(before, action)
            found.append(game.observe(after)[~(after.terminated | after.truncated)])
    every = torch.cat(found)
    return every[torch.randperm(len(every), generator=generator)[:count]]


def facts(planes: Tensor) -> dict[str, np.ndarray]:
    """For positions [N, 27, 8, 8]: 0 or 1 for the first two facts, material in pawns for the third, each [N].

    A piece hangs when it is the mover's, not a pawn and not the king, is attacked and is not protected.
    """
    pieces = planes[:, 1:5].sum(1)
    hanging = (pieces * planes[:, THEIR_ATTACKS] * (1 - planes[:, OWN_ATTACKS])).amax((1, 2))
    worth = torch.tensor(PIECE_VALUES)
    material = (planes[:, OWN].sum((2, 3)) - planes[:, THEIRS].sum((2, 3))) @ worth
    return dict(zip(FACTS, (planes[:, CHECK].amax((1, 2)).numpy(), hanging.numpy(), material.numpy())))


def readings(network: SpikingNetwork, planes: Tensor) -> dict[str, np.ndarray]:
    """What a probe may read, [N, features]: of the input, and of every layer by its short name."""
    parts: dict[str, list[np.ndarray]] = {}
    for batch in planes.split(BATCH):
        counts = spike_counts(network, batch)
        spikes = {short: counts[name].sum(0) for name, short in layer_names(network).items()}
        for name, board in {"input": batch, **spikes}.items():
            parts.setdefault(name, []).append(torch.cat((board.mean((2, 3)), board.amax((2, 3))), 1).numpy())
    return {name: np.concatenate(batches) for name, batches in parts.items()}


def knowledge(network: SpikingNetwork, planes: Tensor) -> dict[str, dict[str, float]]:
    """Fact -> layer -> how well the probe does, from 0 (guessing) to 1 (always right).

    For yes and no: twice the balanced accuracy, less 1. For material: the share of its variance that is explained.
    """
    known, read = facts(planes), readings(network, planes)
    return {
        fact: {layer: max(0.0, _probe(features, known[fact], fact != "material")) for layer, features in read.items()}
        for fact in FACTS
    }


def knowledge_picture(networks: Mapping[str, SpikingNetwork], planes: Tensor) -> Picture:
    """The probes of every layer, a line for each network; the last network's line is the strong one."""
    told = {name: knowledge(network, planes) for name, network in networks.items()}
    figure = new_figure(9.4, 3.0)
    colours = [ORANGE] * (len(networks) - 1) + [BLUE]
    for axis, fact in zip(figure.subplots(1, len(FACTS), sharey=True), FACTS):
        for (name, scores), colour in zip(told.items(), colours):
            style = {"ls": "-" if colour == BLUE else (0, (4, 2)), "marker": "o" if colour == BLUE else "s"}
            axis.plot(list(scores[fact]), list(scores[fact].values()), color=colour, lw=1.8, ms=4, label=name, **style)
        axis.tick_params("x", rotation=50)
        axis.set_ylim(-0.03, 1.03)
        axis.axhline(0, color=HAIRLINE, lw=1)
        dress(axis, fact, "0 guessing, 1 always right" if fact == FACTS[0] else None)
        axis.tick_params(labelsize=8)
    figure.axes[-1].legend(frameon=False, labelcolor=INK, fontsize=9, loc="best")
    words = "; ".join(
        f"{name}, {fact}: " + ", ".join(f"{layer} {score:.2f}" for layer, score in scores[fact].items())
        for name, scores in told.items()
        for fact in FACTS
    )
    return Picture(figure_html(figure, f"How well a probe tells a fact. {words}"))


def _probe(features: np.ndarray, target: np.ndarray, yes_or_no: bool) -> float:
    """Fit on the first half, judge on the second."""
    half = len(target) // 2
    spread = features[:half].std(0)
    scaled = np.where(spread > 1e-6, (features - features[:half].mean(0)) / np.maximum(spread, 1e-6), 0)
    x = np.concatenate((scaled, np.ones((len(scaled), 1))), 1).astype(np.float64)
    # Rare and frequent answers weigh the same.
    yes = max(target[:half].mean(), 1 / half) if yes_or_no else 0.5
    weight = np.where(target[:half] > 0, 0.5 / yes, 0.5 / max(1 - yes, 1 / half)) if yes_or_no else np.ones(half)
    gram = (x[:half] * weight[:, None]).T @ x[:half] + SHRINKING * half * np.eye(x.shape[1])
    answer = x[half:] @ np.linalg.solve(gram, x[:half].T @ (weight * target[:half]))
    judged = target[half:]
    if not yes_or_no:
        return float(1 - ((answer - judged) ** 2).mean() / max(judged.var(), 1e-9))
    right = (answer > 0.5) == (judged > 0)
    if (judged > 0).all() or (judged == 0).all():
        return 0.0
    return float(right[judged > 0].mean() + right[judged == 0].mean() - 1)
