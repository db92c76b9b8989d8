"""One spiking neuron, drawn: current, membrane, threshold, spike, reset; and the neuron that counts beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ...network import SpikingLayer
from ...network_config import NetworkConfig
from ..cell import Picture
from ..ink import BLUE, INK, ORANGE, dress, figure_html, new_figure
from .position import caption
from .show import Controlled, number

# A story in 40 steps: too little, a rest, enough, a push the other way, a burst.
CURRENT = np.repeat([0.0, 0.3, 0.0, 0.75, -0.6, 0.45, 1.6, 0.0], [2, 9, 3, 10, 3, 5, 4, 4])


class Trace(NamedTuple):
    """A neuron over time: each array has one number per step."""

    before: np.ndarray  # the membrane when the current has arrived
    after: np.ndarray  # and when the neuron has fired, or not
    spikes: np.ndarray  # whole numbers


def trace(current: np.ndarray, leak: float = 0.5, threshold: float = 1.0, levels: int = 1) -> Trace:
    """What layers.SpikingLayer does to `current` [T], with the membrane that the layer keeps to itself.

    leak: the share of the membrane that is lost per step, 0 to 1.
    """
    membrane, rows = 0.0, []
    for arriving in current:
        before = membrane * (1 - leak) + arriving
        spikes = float(before >= threshold) if levels == 1 else min(max(round(before / threshold), 0), levels)
        membrane = before - spikes * threshold
        rows.append((before, membrane, spikes))
    return Trace(*np.array(rows, dtype=float).reshape(-1, 3).T)


def neuron_html(leak: float = 0.5, threshold: float = 1.0) -> str:
    """The neuron's story as three panels one above the other: current, membrane, spikes."""
    told = trace(CURRENT, leak, threshold)
    figure = new_figure(8.6, 4.4)
    axes = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2.2, 0.5))
    steps = np.arange(len(CURRENT))
    axes[0].bar(steps, CURRENT, color=[BLUE if x > 0 else ORANGE for x in CURRENT], width=0.8)
    dress(axes[0], "Current that arrives", None)
    times = np.repeat(steps, 2) + np.tile([-0.4, 0.4], len(steps))
    axes[1].plot(times, np.stack((told.before, told.after), 1).ravel(), color=INK, lw=1.6)
    axes[1].axhline(threshold, color=ORANGE, lw=1.2, ls=(0, (5, 3)))
    axes[1].annotate("threshold", (len(steps) - 0.5, threshold), (0, 3), textcoords="offset points", ha="right",
                     color=INK, fontsize=9)  # fmt: skip
    fired = steps[told.spikes > 0]
    axes[1].vlines(fired, told.after[fired], told.before[fired], color=BLUE, lw=3, alpha=0.6)
    dress(axes[1], f"Membrane: keeps {100 * (1 - leak):.0f} % of itself from step to step", None)
    axes[2].eventplot(fired, lineoffsets=0.5, linelengths=0.9, colors=BLUE, linewidths=3)
    axes[2].set_yticks([])
    axes[2].set_ylim(0, 1)
    dress(axes[2], f"Spikes: {len(fired)}", None, "time step", grid=False)
    axes[2].set_xlim(-1, len(steps))
    alt = (
        f"A neuron with a leak of {leak:.0%} and threshold {threshold:g} fires {len(fired)} times in {len(steps)} steps"
    )
    return figure_html(figure, alt)


def neuron_sliders() -> Controlled:
    """One neuron with sliders for leak and threshold."""
    controls = {"leak": number("leak", 0.5, 0.0, 0.95, 0.05), "threshold": number("threshold", 1.0, 0.2, 2.0, 0.1)}
    return Controlled(neuron_html, controls)


def spikes_for(current: np.ndarray, steps: int, levels: int) -> np.ndarray:
    """How many spikes the package's own neurons fire for the same current at each of `steps` steps."""
    layer = SpikingLayer(NetworkConfig(steps=steps, levels=levels), portable=True)
    with torch.no_grad():
        return layer(torch.tensor(current, dtype=torch.float32).expand(steps, -1)).sum(0).numpy()


def counting_neuron() -> Picture:
    """Spikes by current: the leaky neuron over four steps, and the neuron that fires up to four spikes at once."""
    current = np.linspace(-1, 5.5, 1301)
    figure = new_figure(8.6, 3.1)
    left, right = figure.subplots(1, 2, sharey=True)
    kinds = ((left, 4, 1, "LIF: four steps, one spike in each"), (right, 1, 4, "I-LIF: one step, up to four spikes"))
    for axis, steps, levels, title in kinds:
        axis.plot(current, np.maximum(current, 0), color=ORANGE, lw=1.3, ls=(0, (4, 3)), label="ReLU")
        axis.step(current, spikes_for(current, steps, levels), color=BLUE, lw=2, label="spikes", where="mid")
        axis.set_ylim(-0.3, 5)
        dress(axis, title, "spikes" if axis is left else None, "current per step")
    left.legend(frameon=False, labelcolor=INK, fontsize=9, loc="upper left")
    alt = "Two staircases: the LIF neuron reaches four spikes at a current of one, the I-LIF neuron rounds its current"
    return Picture(
        figure_html(figure, alt)
        + caption("A step of the right staircase begins at 0.5, 1.5, 2.5, 3.5: the current, rounded.", 800)
    )
