"""Silence a layer or a channel, and see the move change."""

from contextlib import nullcontext

import numpy as np
import torch
from ipywidgets import Dropdown, IntSlider

from ...arena.opponent import Opinion
from ...network import SpikingNetwork
from ...spikes import layer_names, silenced
from ...text import percent
from ..cell import HtmlImage
from .maps import LIGHT, boards_html
from .seen import SeenPosition, caption, opinion, opinions, row, thought_html
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


def channel_importance(network: SpikingNetwork, seen: SeenPosition) -> HtmlImage:
    """A strip for each layer with a square for each of its channels: how much probability moves
    when that channel alone is silent.
    """
    channels = torch.arange(network.config.channels)
    # One row per channel here too: the size of a batch may change the last bits.
    whole = opinions(network, seen, len(channels))[0]
    strips = {}
    most = 0.0, ""
    for name, short in layer_names(network).items():
        with silenced(network, name, channels):
            thoughts = opinions(network, seen, len(channels))
        shares = np.array([moved(whole, thought) for thought in thoughts])
        largest = f"{short}, channel {shares.argmax() + 1}"
        most = max(most, (shares.max(), largest))
        strips[f"{largest}: {percent(shares.max())}"] = shares[None]
    share, largest = most
    words = (
        f"Most depends on {largest}: without it {percent(share)} of the probability goes to other "
        "moves. Each strip has the channels of a layer from left to right; above it stands the one "
        "that matters most."
    )
    page = boards_html(strips, 704, LIGHT, max(0.02, share)) + caption(words, 880)
    return HtmlImage(page, words)


def silence_view(network: SpikingNetwork, seen: SeenPosition) -> Controlled:
    """Choose a layer and a channel (0: all of them) to silence, and compare the moves."""
    whole = opinion(network, seen)
    layers = [(short, name) for name, short in layer_names(network).items()]

    def draw(layer: str, channel: int) -> str:
        thought = without(network, seen, layer, channel - 1 if channel else None)
        words = f"Silenced: {percent(moved(whole, thought))} of the probability moved."
        return row(thought_html(seen, whole, "Whole."), thought_html(seen, thought, words))

    controls = {
        "layer": Dropdown(description="silence", options=layers),
        "channel": IntSlider(description="channel (0: all)", max=network.config.channels),
    }
    return Controlled(draw, controls)
