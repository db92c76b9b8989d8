"""Silence a layer or a channel, and see the move change."""

from __future__ import annotations

import html
from contextlib import nullcontext

import numpy as np
import torch

from ...network import SpikingNetwork
from ...spikes import layer_names, silenced
from ..cell import Picture
from ..ink import INK, figure_html, new_figure, percent
from .maps import LIGHT
from .position import Opinion, Position, board_image, caption, moves_in_words, opinion, opinions, outcome_bar, row
from .show import Controlled, one_of, whole_number

CELL = 'style="padding:2px 12px 2px 0;text-align:left;background:transparent"'


def without(network: SpikingNetwork, seen: Position, layer: str | None, channel: int | None = None) -> Opinion:
    """What the network says while a layer (its own name), or one channel of it, is silent; None: nothing is."""
    with silenced(network, layer, channel) if layer else nullcontext():
        return opinion(network, seen)


def moved(before: Opinion, after: Opinion) -> float:
    """How much probability went from some moves to others, 0 to 1 (total variation)."""
    shares = dict(after.moves)
    return sum(abs(share - shares[move]) for move, share in before.moves) / 2


def silence_table(network: SpikingNetwork, seen: Position) -> str:
    """What becomes of the move and of the value when each layer is silent in its turn, as an HTML table."""
    whole, lines = opinion(network, seen), []
    for layer, short in {"": "nothing", **layer_names(network)}.items():
        thought = without(network, seen, layer or None)
        win, _, loss = thought.win_draw_loss
        cells = (short, moves_in_words(seen, thought, 2), f"{win - loss:+.2f}", percent(moved(whole, thought)))
        lines.append("<tr>" + "".join(f"<td {CELL}>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    heads = ("silent", "likeliest moves", "value", "probability moved")
    head = "".join(f"<th {CELL}>{text}</th>" for text in heads)
    return f'<table style="border-collapse:collapse;margin:0"><tr>{head}</tr>{"".join(lines)}</table>'


def channel_importance(network: SpikingNetwork, seen: Position) -> Picture:
    """A square for each channel of each layer: how much probability moves when that channel alone is silent."""
    names, rows = layer_names(network), network.config.channels
    whole = opinions(network, seen, rows)[0]  # of a batch as large as the others: its size may change the last bits
    channels, shares = range(rows), np.zeros((len(names), rows))
    for line, name in zip(shares, names):
        with silenced(network, name, torch.tensor(channels)):
            line[:] = [moved(whole, thought) for thought in opinions(network, seen, rows)]
    figure = new_figure(9.0, 0.32 * len(names) + 0.9)
    axis = figure.subplots()
    image = axis.imshow(shares, cmap=LIGHT, vmin=0, vmax=max(0.02, float(shares.max())), aspect="auto")
    axis.set_yticks(range(len(names)), names.values())
    shown = channels[:: max(1, len(channels) // 8)]
    axis.set_xticks(shown, [str(number + 1) for number in shown])
    axis.tick_params(colors=INK, labelsize=9, length=0)
    axis.set_xlabel("channel", color=INK, fontsize=9)
    axis.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axis, pad=0.01, format=lambda share, _: percent(share))
    bar.ax.tick_params(colors=INK, labelsize=8, length=0)
    bar.outline.set_visible(False)
    layer, channel = np.unravel_index(shares.argmax(), shares.shape)
    most = f"{list(names.values())[layer]}, channel {channel + 1}"
    words = f"Most depends on {most}: without it {percent(shares.max())} of the probability goes to other moves."
    return Picture(figure_html(figure, words) + caption(words, 880))


def silence_view(network: SpikingNetwork, seen: Position) -> Controlled:
    """Choose a layer and a channel (0: all of them) to silence; without a kernel, the table of layers."""
    whole = opinion(network, seen)
    options = [*((short, name) for name, short in layer_names(network).items()), ("nothing", "")]

    def draw(layer: str, channel: int) -> str:
        thought = without(network, seen, layer or None, channel - 1 if channel else None)
        words = (
            f"Likeliest: {moves_in_words(seen, thought)}. {percent(moved(whole, thought))} of the probability moved."
        )
        boards = (("as it is", whole, f"Likeliest: {moves_in_words(seen, whole)}."), ("silenced", thought, words))
        return row(*(caption(name) + board_image(seen, o) + outcome_bar(o) + caption(text) for name, o, text in boards))

    controls = {
        "layer": one_of("silence", options),
        "channel": whole_number("channel (0: all)", 0, 0, network.config.channels),
    }
    return Controlled(draw, controls, row(board_image(seen, whole), silence_table(network, seen)))
