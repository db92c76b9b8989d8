"""Firing maps: the planes that enter, and where each layer and each channel fires on the board."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from ipywidgets import Dropdown
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure

from ...network import SpikingNetwork
from ...text import percent
from ..cell import HtmlImage
from ..style import FULL_FIRE, HAIRLINE, INK, NO_FIRE, figure_html, new_figure
from .position import SeenPosition, board_image, caption, firing_maps, row
from .show import Controlled

# The name of each input plane, in the order of Chess.observe.
PLANES = (
    *(f"own {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    *(f"their {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    "en passant", "own attacks", "their attacks", "castle short", "castle long", "they castle short",
    "they castle long", "seen before", "in check", "always lit", *(f"{plies} quiet" for plies in (8, 16, 32, 56, 80)),
)  # fmt: skip
PLANE_COLUMNS = 9
CHANNEL_COLUMNS = 8
LAYER_COLUMNS = 7
LIGHT = LinearSegmentedColormap.from_list(
    "light", [NO_FIRE, "#8C6D31", "#D9A441", FULL_FIRE, "#FFF6DC"]
)
UNLIT_LIT = ListedColormap([NO_FIRE, FULL_FIRE])


def input_planes(seen: SeenPosition) -> HtmlImage:
    """The 27 planes that the network sees, beside the board."""
    planes = seen.seen_from_white(seen.planes[0].numpy())
    titles = [name.replace(" ", "\n", 1) for name in PLANES]
    figure = mosaic(planes, titles, PLANE_COLUMNS, UNLIT_LIT, 1, 6.4)
    lit = ", ".join(name for name, plane in zip(PLANES, planes) if plane.any())
    alt = f"27 small boards. Planes with a lit square: {lit}"
    return HtmlImage(row(board_image(seen), figure_html(figure, alt)))


def layer_maps(network: SpikingNetwork, seen: SeenPosition) -> dict[str, np.ndarray]:
    """Short layer name -> mean rate [8, 8] of the neurons of each square, 0 to 1."""
    return {
        name: spikes.mean(0) / slots(network) for name, spikes in firing_maps(network, seen).items()
    }


def slots(network: SpikingNetwork) -> int:
    """The most spikes that a neuron can fire in one evaluation."""
    return network.config.steps * network.config.levels


def brightest(maps: Mapping[str, np.ndarray]) -> float:
    """The highest rate of a square in these maps, for a scale that several pictures share."""
    return max(0.05, *(float(board.max()) for board in maps.values()))


def layer_strip(
    network: SpikingNetwork,
    seen: SeenPosition,
    width: float = 7.4,
    shown: int | None = None,
    max_rate: float | None = None,
) -> str:
    """A small board for each layer, as an HTML image: how often the neurons of each square fire,
    on one scale for all layers.

    width: inches. shown: its width in CSS pixels; None: its own. max_rate: the rate that is
    brightest, 0 to 1; None: the highest here.
    """
    maps = layer_maps(network, seen)
    rates = {name: percent(float(board.mean())) for name, board in maps.items()}
    titles = [f"{name}\n{rates[name] if board.any() else 'silent'}" for name, board in maps.items()]
    boards = np.stack(list(maps.values()))
    scale = max_rate or brightest(maps)
    figure = mosaic(boards, titles, min(len(maps), LAYER_COLUMNS), LIGHT, scale, width)
    words = ", ".join(f"{name} {rate}" for name, rate in rates.items())
    return figure_html(figure, f"Firing by layer: {words}", shown)


def channel_grid(network: SpikingNetwork, seen: SeenPosition, layer: str) -> str:
    """Every channel of a layer as a small board, as HTML; the number above each is its spikes."""
    spikes = firing_maps(network, seen)[layer]
    titles = [f"{number}: {board.sum():.0f}" for number, board in enumerate(spikes, 1)]
    figure = mosaic(spikes, titles, CHANNEL_COLUMNS, LIGHT, slots(network), 8.6)
    silent = int((spikes.sum((1, 2)) == 0).sum())
    alt = f"{layer}: {len(spikes)} channels, {silent} of them silent"
    words = f"{alt}. Above each board: its number, and its spikes here."
    return figure_html(figure, alt) + caption(words, 800)


def firing_view(network: SpikingNetwork, seen: SeenPosition) -> Controlled:
    """Every layer as one board, and the channels of the layer that the reader chooses."""
    names = list(firing_maps(network, seen))
    strip = row(board_image(seen, size=200), layer_strip(network, seen))
    layers = Dropdown(description="channels of", options=names, value=names[-1])
    return Controlled(lambda layer: strip + channel_grid(network, seen, layer), {"layer": layers})


def mosaic(
    boards: np.ndarray,
    titles: Sequence[str],
    columns: int,
    colours: Colormap,
    brightest: float,
    width: float,
) -> Figure:
    """Small boards [N, 8, 8] in rows of `columns`, each with its title above; White is below.
    width: inches.
    """
    rows = math.ceil(len(boards) / columns)
    lines = 1 + max(title.count("\n") for title in titles)
    above = math.ceil(0.5 + 1.15 * lines * columns / width)  # squares that a title needs
    sheet = np.full((rows * (8 + above), columns * 9), np.nan)
    figure = new_figure(width, width * sheet.shape[0] / sheet.shape[1])
    figure.set_layout_engine("none")
    axis = figure.add_axes((0, 0, 1, 1))
    for number, (board, title) in enumerate(zip(boards, titles)):
        line, column = divmod(number, columns)
        top = line * (8 + above) + above
        left = column * 9
        sheet[top : top + 8, left : left + 8] = board[::-1]
        place = {"ha": "center", "va": "bottom", "linespacing": 1.1}
        axis.text(left + 4, top - 0.3, title, fontsize=8, color=INK, **place)
    axis.pcolor(sheet, cmap=colours, vmin=0, vmax=brightest, edgecolors=HAIRLINE, lw=0.4)
    axis.invert_yaxis()
    axis.set_axis_off()
    return figure
