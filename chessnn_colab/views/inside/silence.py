"""Silence a layer or a channel, and see the move change."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import torch
from ipywidgets import Dropdown, IntSlider
from matplotlib.figure import Figure

from ...arena.opponent import Opinion
from ...network import SpikingNetwork
from ...spikes import layer_names, silenced
from ...text import percent
from ..cell import HtmlImage
from ..style import PERCENT, figure_html, styled
from .maps import LIGHT
from .position import (
    SeenPosition,
    board_image,
    caption,
    moves_in_words,
    opinion,
    opinions,
    outcome_bar,
    row,
)
from .show import Controlled


def without(
    network: SpikingNetwork, seen: SeenPosition, layer: str | None, channel: int | None = None
) -> Opinion:
    """The network's opinion while a layer (its own name), or one channel of it, is silent; None:
    nothing is silent.
    """
    with silenced(network, layer, channel) if layer else nullcontext():
        return opinion(network, seen)


def moved(before: Opinion, after: Opinion) -> float:
    """How much probability went from some moves to others, 0 to 1 (total variation)."""
    shares = dict(zip(after.actions, after.probabilities))
    pairs = zip(before.actions, before.probabilities)
    return sum(abs(share - shares[action]) for action, share in pairs) / 2


@styled
def channel_importance(network: SpikingNetwork, seen: SeenPosition) -> HtmlImage:
    """A square for each channel of each layer: how much probability moves when that channel alone
    is silent.
    """
    names = layer_names(network)
    channels = torch.arange(network.config.channels)
    # One row per channel here too: the size of a batch may change the last bits.
    whole = opinions(network, seen, len(channels))[0]
    rows = []
    for name in names:
        with silenced(network, name, channels):
            thoughts = opinions(network, seen, len(channels))
        rows.append([moved(whole, thought) for thought in thoughts])
    shares = np.array(rows)
    figure = Figure(figsize=(9.0, 0.32 * len(names) + 0.9))
    axis = figure.subplots()
    highest = max(0.02, float(shares.max()))
    mesh = axis.pcolormesh(shares, cmap=LIGHT, vmin=0, vmax=highest)
    axis.set_xlabel("channel")
    axis.grid(False)
    axis.set_yticks(np.arange(len(names)) + 0.5, names.values())
    axis.invert_yaxis()
    shown = channels[:: max(1, len(channels) // 8)].numpy()
    axis.set_xticks(shown + 0.5, shown + 1)
    figure.colorbar(mesh, ax=axis, pad=0.01, format=PERCENT).ax.grid(False)
    layer, channel = np.unravel_index(shares.argmax(), shares.shape)
    most = f"{list(names.values())[layer]}, channel {channel + 1}"
    words = f"Most depends on {most}: without it {percent(shares.max())} of the probability goes to other moves."
    return HtmlImage(figure_html(figure, words) + caption(words, 880))


def silence_view(network: SpikingNetwork, seen: SeenPosition) -> Controlled:
    """Choose a layer and a channel (0: all of them) to silence, and compare the moves."""
    whole = opinion(network, seen)
    layers = [(short, name) for name, short in layer_names(network).items()]

    def half(title: str, thought: Opinion, words: str) -> str:
        board = board_image(seen, thought) + outcome_bar(seen, thought)
        likeliest = f"Likeliest: {moves_in_words(seen, thought)}. {words}"
        return caption(title) + board + caption(likeliest)

    def draw(layer: str, channel: int) -> str:
        thought = without(network, seen, layer, channel - 1 if channel else None)
        change = f"{percent(moved(whole, thought))} of the probability moved."
        return row(half("whole", whole, ""), half("silenced", thought, change))

    controls = {
        "layer": Dropdown(description="silence", options=layers),
        "channel": IntSlider(description="channel (0: all)", max=network.config.channels),
    }
    return Controlled(draw, controls)
