"""Firing maps: the planes that enter, and where each layer and each channel fires on the board."""

import io
from collections.abc import Mapping

import numpy as np
from ipywidgets import Dropdown
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.image import imsave

from ...network import SpikingNetwork
from ...text import percent
from ..cell import HtmlImage, image_html
from ..style import FULL_FIRE, NO_FIRE
from .seen import SeenPosition, board_image, caption, firing_maps, row
from .show import Controlled

# The name of each input plane, in the order of Chess.observe.
PLANES = (
    *(f"own {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    *(f"their {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    "en passant", "own attacks", "their attacks",
    "castle short", "castle long", "they castle short", "they castle long",
    "seen before", "in check", "always lit", *(f"{plies} quiet" for plies in (8, 16, 32, 56, 80)),
)  # fmt: skip
GAP = 9  # CSS pixels between two small boards
# Pixels of a square of a small board: those on two of its edges are paler, which draws a grid. A
# board whose CSS pixels are a multiple of its squares has even lines.
SQUARE = np.pad(np.ones((15, 15)), (1, 0), constant_values=0.6)
LIGHT = LinearSegmentedColormap.from_list(
    "light", [NO_FIRE, "#8C6D31", "#D9A441", FULL_FIRE, "#FFF6DC"]
)
UNLIT_LIT = LinearSegmentedColormap.from_list("unlit lit", [NO_FIRE, FULL_FIRE])


def input_planes(seen: SeenPosition) -> HtmlImage:
    """The 27 planes that the network sees, beside the board."""
    planes = seen.seen_from_white(seen.planes[0].numpy())
    maps = boards_html(dict(zip(PLANES, planes)), 64, UNLIT_LIT, 1)
    return HtmlImage(row(board_image(seen), maps))


def layer_maps(network: SpikingNetwork, seen: SeenPosition) -> dict[str, np.ndarray]:
    """Short layer name -> mean rate [8, 8] of the neurons of each square, 0 to 1."""
    return {
        name: spikes.mean(0) / network.config.slots
        for name, spikes in firing_maps(network, seen).items()
    }


def brightest(maps: Mapping[str, np.ndarray]) -> float:
    """The highest rate of a square in these maps, for a scale that several pictures share."""
    return max(0.05, *(float(board.max()) for board in maps.values()))


def layer_strip(
    network: SpikingNetwork, seen: SeenPosition, size: int = 72, max_rate: float = 0.0
) -> str:
    """A small board for each layer, as HTML: how often the neurons of each square fire, on one
    scale for all layers.

    size: CSS pixels of a board. max_rate: the rate that is brightest, 0 to 1; 0: the highest here.
    """
    maps = layer_maps(network, seen)
    titled = {}
    for name, board in maps.items():
        rate = percent(float(board.mean())) if board.any() else "silent"
        titled[f"{name}\n{rate}"] = board
    return boards_html(titled, size, LIGHT, max_rate or brightest(maps))


def channel_grid(network: SpikingNetwork, seen: SeenPosition, layer: str) -> str:
    """Every channel of a layer as a small board, as HTML; the number above each is its spikes."""
    spikes = firing_maps(network, seen)[layer]
    titled = {f"{number}: {board.sum():.0f}": board for number, board in enumerate(spikes, 1)}
    silent = sum(not board.any() for board in spikes)
    words = f"{layer}: {len(spikes)} channels, {silent} of them silent."
    grid = boards_html(titled, 80, LIGHT, network.config.slots)
    return grid + caption(f"{words} Above each board: its number, and its spikes here.", 800)


def firing_view(network: SpikingNetwork, seen: SeenPosition) -> Controlled:
    """Every layer as one board, and the channels of the layer that the reader chooses."""
    names = list(firing_maps(network, seen))
    strip = row(board_image(seen, size=200), layer_strip(network, seen))
    layers = Dropdown(description="channels of", options=names, value=names[-1])
    return Controlled(lambda layer: strip + channel_grid(network, seen, layer), {"layer": layers})


def boards_html(
    boards: Mapping[str, np.ndarray], size: int, colours: Colormap, highest: float
) -> str:
    """Small boards [height, width], each an image with its title above; White is below. size: CSS
    pixels of a board; a row has room for 710. highest: what is brightest.
    """
    parts = []
    for title, board in boards.items():
        middle = highest / 2
        squares = np.kron(board[::-1] - middle, SQUARE) + middle
        png = io.BytesIO()
        imsave(png, squares, vmin=0, vmax=highest, cmap=colours, format="png")
        parts.append(title + image_html(png.getvalue(), "png", size, size, title))
    words = "max-width:710px;font-size:11px;line-height:1.3;white-space:pre-line;text-align:center"
    return f'<div style="{words}">{row(*parts, gap=GAP, width=size)}</div>'
