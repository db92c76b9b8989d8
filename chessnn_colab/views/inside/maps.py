"""Firing maps: what enters, what a channel makes of it, and where each layer fires on the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import chess
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure

from ...network import SpikingNetwork
from ..cell import Picture
from ..ink import BLUE, FULL_FIRE, HAIRLINE, INK, NO_FIRE, ORANGE, figure_html, new_figure, percent
from .position import Position, board_image, caption, firing_maps, row
from .show import Controlled, one_of

# What each input plane says, in the order of Chess.observe.
PLANES = (
    *(f"own {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    *(f"their {piece}" for piece in ("pawns", "knights", "bishops", "rooks", "queens", "king")),
    "en passant", "own attacks", "their attacks", "castle short", "castle long", "they castle short",
    "they castle long", "seen before", "in check", "always lit", *(f"{plies} quiet" for plies in (8, 16, 32, 56, 80)),
)  # fmt: skip
COLUMNS = 9
CHANNEL_COLUMNS = 8
LIGHT = LinearSegmentedColormap.from_list("light", [NO_FIRE, "#8C6D31", "#D9A441", FULL_FIRE, "#FFF6DC"])
ROW = 7  # layers in a row: their names need so much room
UNLIT_LIT = ListedColormap([NO_FIRE, FULL_FIRE])
PUSH_PULL = LinearSegmentedColormap.from_list("push", [ORANGE, NO_FIRE, BLUE])


def input_planes(seen: Position) -> Picture:
    """The 27 planes that the network sees, beside the board."""
    planes = seen.seen_from_white(seen.planes[0].numpy())
    figure = mosaic(planes, [name.replace(" ", "\n", 1) for name in PLANES], COLUMNS, UNLIT_LIT, 1, 6.4)
    lit = ", ".join(name for name, plane in zip(PLANES, planes) if plane.any())
    alt = f"27 small boards. Planes with a lit square: {lit}"
    return Picture(row(board_image(seen), figure_html(figure, alt)))


@torch.no_grad()
def first_spikes(network: SpikingNetwork, seen: Position) -> Picture:
    """One channel from the current that the stem makes of the planes to the spikes of the first neurons."""
    current = seen.seen_from_white(network.stem(seen.planes)[0].numpy())
    spikes = next(iter(firing_maps(network, seen).values()))
    channel = int(spikes.sum((1, 2)).argmax())
    figure = new_figure(6.2, 3.1, pad=0.05)
    left, right = figure.subplots(1, 2)
    most = max(1.0, float(np.abs(current[channel]).max()))
    draw_map(left, current[channel], most, PUSH_PULL, f"channel {channel + 1}: its current", -most, "{:.1f}")
    draw_map(right, spikes[channel], slots(network), LIGHT, "its spikes: the current, rounded", 0, "{:.0f}")
    alt = f"Channel {channel + 1}: a current on each square, and {spikes[channel].sum():.0f} spikes"
    return Picture(figure_html(figure, alt))


def layer_strip(network: SpikingNetwork, seen: Position, width: float = 9.0, most: float | None = None) -> Figure:
    """A small board for each layer: how often the neurons of each square fire, on one scale for all layers.

    most: the rate that is brightest, 0 to 1; None: the highest here.
    """
    maps = layer_maps(network, seen)
    rates = {name: float(board.mean()) for name, board in maps.items()}
    titles = [f"{name}\n{percent(rate) if rate else 'silent'}" for name, rate in rates.items()]
    return mosaic(np.stack(list(maps.values())), titles, min(len(maps), ROW), LIGHT, most or brightest(maps), width)


def layer_maps(network: SpikingNetwork, seen: Position) -> dict[str, np.ndarray]:
    """Short layer name -> mean rate [8, 8] of the neurons of each square, 0 to 1."""
    return {name: spikes.mean(0) / slots(network) for name, spikes in firing_maps(network, seen).items()}


def slots(network: SpikingNetwork) -> int:
    """The most spikes that a neuron can fire in one evaluation."""
    return network.config.steps * network.config.levels


def brightest(maps: Mapping[str, np.ndarray]) -> float:
    """The highest rate of a square in these maps, for a scale that several pictures share."""
    return max(0.05, *(float(board.max()) for board in maps.values()))


def channel_grid(network: SpikingNetwork, seen: Position, layer: str) -> str:
    """Every channel of a layer as a small board, as HTML; the number above each is its spikes."""
    spikes = firing_maps(network, seen)[layer]
    titles = [f"{number}: {board.sum():.0f}" for number, board in enumerate(spikes, 1)]
    figure = mosaic(spikes, titles, CHANNEL_COLUMNS, LIGHT, slots(network), 8.6)
    silent = int((spikes.sum((1, 2)) == 0).sum())
    alt = f"{layer}: {len(spikes)} channels, {silent} of them silent"
    return figure_html(figure, alt) + caption(f"{alt}. Above each board: its number, and its spikes here.", 800)


def firing_view(network: SpikingNetwork, seen: Position) -> Controlled:
    """Layer by layer, and of the layer chosen, channel by channel."""
    names = list(firing_maps(network, seen))
    strip = row(board_image(seen, size=200), strip_html(network, seen))
    last = names[-1]
    return Controlled(
        lambda layer: strip + channel_grid(network, seen, layer), {"layer": one_of("channels of", [last, *names[:-1]])}
    )


def strip_html(
    network: SpikingNetwork, seen: Position, width: float = 7.4, shown: int | None = None, most: float | None = None
) -> str:
    """`layer_strip` as an HTML image; shown: its width in CSS pixels, where it is not its own."""
    rates = {name: float(board.mean()) for name, board in layer_maps(network, seen).items()}
    words = ", ".join(f"{name} {percent(rate)}" for name, rate in rates.items())
    return figure_html(layer_strip(network, seen, width, most), f"Firing by layer: {words}", shown)


def mosaic(
    boards: np.ndarray, titles: Sequence[str], columns: int, colours: Colormap, most: float, width: float
) -> Figure:
    """Small boards [N, 8, 8] in rows of `columns`, each with its title above, as one image: a hundred are quick."""
    lines = 1 + max(title.count("\n") for title in titles)
    rows, above, pitch = -(-len(boards) // columns), 1.0 + 1.15 * lines * columns / width, 8.8
    sheet = np.full((round(10 * rows * (8 + above)), round(10 * columns * pitch)), np.nan)
    figure = new_figure(width, width * rows * (8 + above) / (columns * pitch), pad=0.0)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0, 0, 1, 1))
    for number, (board, title) in enumerate(zip(boards, titles)):
        left, top = 10 * pitch * (number % columns) + 4, 10 * ((8 + above) * (number // columns) + above)
        place = slice(round(top), round(top) + 80), slice(round(left), round(left) + 80)
        sheet[place] = board[::-1].repeat(10, 0).repeat(10, 1)
        axis.text(left + 40, top - 4, title, ha="center", va="bottom", fontsize=8, color=INK, linespacing=1.1)
        axis.hlines(top + 10 * np.arange(1, 8) - 0.5, left - 0.5, left + 79.5, color=HAIRLINE, lw=0.4)
        axis.vlines(left + 10 * np.arange(1, 8) - 0.5, top - 0.5, top + 79.5, color=HAIRLINE, lw=0.4)
    axis.imshow(sheet, cmap=colours, vmin=0, vmax=most, interpolation="nearest", aspect="auto")
    axis.set_axis_off()
    return figure


def draw_map(
    axis: Axes, board: np.ndarray, most: float, colours: Colormap, title: str, low: float, numbers: str
) -> None:
    """One map [8, 8] of the board, White below, with the value of each square that is not 0, written as `numbers`."""
    axis.imshow(board, origin="lower", cmap=colours, vmin=low, vmax=most, interpolation="nearest")
    axis.spines[:].set_visible(False)
    axis.set_title(title, fontsize=9, color=INK, pad=4)
    axis.set_xticks(range(8), chess.FILE_NAMES)
    axis.set_yticks(range(8), chess.RANK_NAMES)
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    for (y, x), value in np.ndenumerate(board):
        if round(value, 1) != 0:
            lit = low == 0 and value / most > 0.45
            axis.text(
                x, y, numbers.format(value), ha="center", va="center", fontsize=7, color="#111" if lit else "#EEE"
            )
