"""One position in the eyes of several networks of a run: moves, value and firing as they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arena.evaluate import load_network, run_game
from ...arena.ladder import spread
from ...arena.shipped import shipped_cards, shipped_networks
from ...errors import ConfigError
from ...network import SpikingNetwork
from ...runs.folder import RunFolder
from ...runs.shared import card_of, is_file
from ..ink import percent
from .maps import brightest, layer_maps, strip_html
from .position import Position, board_image, caption, moves_in_words, opinion, outcome_bar, row
from .show import Controlled, stops

MOST_STOPS = 8  # of the slider


def networks_to_show(own_run: str = "") -> tuple[dict[int, SpikingNetwork], dict[int, int]]:
    """Networks by iteration, the untrained one first, and the positions they had played, where that is known.

    Without a run, the four that come with the package. own_run: a run of chess; its own snapshots, MOST_STOPS of them
    at most, evenly spread with the first and the last. Of a shared file there is one network: it comes after those of
    the four that are of earlier iterations. Raises ConfigError for another game, and what load_network raises.
    """
    if own_run and (game := run_game(own_run)) != "chess":
        raise ConfigError(f"{own_run} plays {game}: expected a run of chess")
    if own_run and not is_file(own_run):
        folder = RunFolder.open(own_run)
        played = {report["iteration"]: report["total_positions"] for report in folder.read_reports()}
        chosen = spread([int(path.stem) for path in folder.snapshots()], MOST_STOPS)
        return {key: load_network(own_run, key, "cpu")[0] for key in chosen}, played
    shipped, played = shipped_networks(), played_positions(shipped_cards())
    if not own_run:
        return shipped, played
    own, iteration = load_network(own_run, device="cpu")
    *earlier, _ = shipped
    kept = [key for key in earlier if key < max(iteration, 1)]
    its_own = played_positions({iteration: card_of(own_run)})
    return {**{key: shipped[key] for key in kept}, iteration: own}, {**{key: played[key] for key in kept}, **its_own}


def growth(
    networks: Mapping[int, SpikingNetwork], seen: Position, positions: Mapping[int, int] | None = None
) -> Controlled:
    """A slider over networks by iteration, the untrained one first; without a kernel, all of them side by side.

    positions: how many positions each had played, by iteration.
    """
    told = {iteration: _name(iteration, positions.get(iteration) if positions else None) for iteration in networks}
    most = max(brightest(layer_maps(network, seen)) for network in networks.values())
    frames = {iteration: _frame(network, seen, told[iteration], most) for iteration, network in networks.items()}
    still = row(*(_small(network, seen, told[iteration], most) for iteration, network in networks.items()), gap=14)
    options = [(told[iteration], iteration) for iteration in networks]
    return Controlled(lambda iteration: frames[iteration], {"iteration": stops("learned from", options)}, still)


def played_positions(cards: Mapping[int, Mapping[str, Any]]) -> dict[int, int]:
    """Positions played by iteration, of the cards of shared files that say so; 0 for an untrained network."""
    found = {}
    for iteration, card in cards.items():
        figures = card.get("figures")
        count = figures.get("total_positions", None if iteration else 0) if isinstance(figures, dict) else None
        if type(count) is int:
            found[iteration] = count
    return found


def firing_in_words(network: SpikingNetwork, seen: Position) -> str:
    """How much of what it could fire the whole network fires in this position, and how many layers fire nothing."""
    rates = list(layer_maps(network, seen).values())  # every layer has as many neurons as any other
    silent = sum(not rate.any() for rate in rates)
    words = f"{silent} of {len(rates)} layers silent" if silent else "no layer silent"
    return f"Fires {percent(float(np.mean(rates)))} of its possible spikes, {words}."


def _name(iteration: int, positions: int | None) -> str:
    if iteration == 0:
        return "nothing (untrained)"
    return f"iteration {iteration}" if positions is None else f"{positions:,} positions"


def _frame(network: SpikingNetwork, seen: Position, told: str, most: float, size: int = 340) -> str:
    thought = opinion(network, seen)
    left = board_image(seen, thought, size) + outcome_bar(thought, size)
    words = caption(f"Learned from {told}. {firing_in_words(network, seen)}", size)
    words += caption(f"Likeliest: {moves_in_words(seen, thought)}.", size)
    return row(left + words, strip_html(network, seen, 6.4, None, most))


def _small(network: SpikingNetwork, seen: Position, told: str, most: float, size: int = 225) -> str:
    thought = opinion(network, seen)
    fired = strip_html(network, seen, 6.4, size, most)
    words = caption(f"Learned from {told}. {firing_in_words(network, seen)} {moves_in_words(seen, thought)}.", size)
    return board_image(seen, thought, size) + outcome_bar(thought, size) + words + fired
