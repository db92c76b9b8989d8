"""One position in the eyes of several networks of a run: moves, value and firing as they came
about.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ipywidgets import SelectionSlider

from ...arena.ladder import spread
from ...errors import ConfigError
from ...network import SpikingNetwork
from ...runs.folder import RunFolder
from ...runs.networks import (
    card_of,
    is_file,
    load_network,
    run_game,
    shipped_cards,
    shipped_networks,
)
from ...text import percent
from .maps import brightest, layer_maps, layer_strip
from .seen import SeenPosition, opinion, row, thought_html
from .show import Controlled

MOST_STOPS = 8  # of the slider


def networks_to_show(own_run: str = "") -> tuple[dict[int, SpikingNetwork], dict[int, int | None]]:
    """Networks by iteration, the untrained one first, and the positions they had played, where that
    is known.

    Without a run, the four that come with the package. own_run: a run of chess; its own snapshots,
    MOST_STOPS of them at most, evenly spread with the first and the last. Of a shared file there is
    one network: it comes after those of the four that are of earlier iterations. Raises ConfigError
    for another game, and what load_network raises.
    """
    own_run = own_run.strip()
    if own_run and (game := run_game(own_run)) != "chess":
        raise ConfigError(f"{own_run} plays {game}: expected a run of chess")
    if own_run and not is_file(own_run):
        folder = RunFolder.open(own_run)
        played = {
            report["iteration"]: report["total_positions"] for report in folder.read_reports()
        }
        chosen = spread([*folder.snapshots()], MOST_STOPS)
        return {key: load_network(own_run, key, "cpu")[0] for key in chosen}, played
    networks = shipped_networks()
    played = {key: _played_positions(card) for key, card in shipped_cards().items()}
    if own_run:
        own, iteration = load_network(own_run, device="cpu")
        earlier = [key for key in list(networks)[:-1] if key < max(iteration, 1)]
        networks = {**{key: networks[key] for key in earlier}, iteration: own}
        played[iteration] = _played_positions(card_of(own_run))
    return networks, played


def growth(
    networks: Mapping[int, SpikingNetwork], seen: SeenPosition, positions: Mapping[int, int | None]
) -> Controlled:
    """A slider over networks by iteration, the untrained one first; without a kernel, all of them
    side by side.

    positions: how many positions each had played, by iteration.
    """
    names = {iteration: _name(iteration, positions.get(iteration)) for iteration in networks}
    max_rate = max(brightest(layer_maps(network, seen)) for network in networks.values())
    large = {}
    small = []
    for iteration, network in networks.items():
        name = names[iteration]
        fired = layer_strip(network, seen, 72, max_rate)
        large[iteration] = row(_board(network, seen, name, 340), fired)
        fired = layer_strip(network, seen, 48, max_rate)
        small.append(_board(network, seen, name, 225) + fired)
    options = [(name, iteration) for iteration, name in names.items()]
    slider = SelectionSlider(description="learned from", options=options)
    still = row(*small, gap=14)
    return Controlled(lambda iteration: large[iteration], {"iteration": slider}, still)


def _played_positions(card: Mapping[str, Any]) -> int | None:
    """The positions that the network of a shared file had played, where its card says so."""
    figures = card.get("figures")
    count = figures.get("total_positions") if isinstance(figures, dict) else None
    return count if type(count) is int else None


def firing_in_words(network: SpikingNetwork, seen: SeenPosition) -> str:
    """How much of what it could fire the whole network fires in this position, and how many layers
    fire nothing.
    """
    rates = list(layer_maps(network, seen).values())  # every layer has as many neurons as any other
    silent = sum(not rate.any() for rate in rates)
    words = f"{silent} of {len(rates)} layers silent" if silent else "no layer silent"
    return f"Fires {percent(float(np.mean(rates)))} of its possible spikes, {words}."


def _name(iteration: int, positions: int | None) -> str:
    if iteration == 0:
        return "nothing yet"
    return f"iteration {iteration}" if positions is None else f"{positions:,} positions"


def _board(network: SpikingNetwork, seen: SeenPosition, name: str, size: int) -> str:
    """The board with the network's opinion and what it has learned from, `size` CSS pixels wide."""
    words = f"Learned from {name}. {firing_in_words(network, seen)}"
    return thought_html(seen, opinion(network, seen), words, size)
