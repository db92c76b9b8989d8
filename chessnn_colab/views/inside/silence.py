"""Silence a layer or a channel, and see the move change."""

from contextlib import nullcontext

from ipywidgets import Dropdown, IntSlider

from ...arena.opponent import Opinion
from ...network import SpikingNetwork
from ...spikes import layer_names, silenced
from ...text import percent
from .seen import SeenPosition, opinion, row, thought_html
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
