"""One position in the eyes of several networks of a run: moves, value and firing as they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...arena.evaluate import load_network, run_game
from ...arena.shipped import shipped_cards, shipped_networks
from ...errors import ConfigError
from ...network import SpikingNetwork
from .maps import brightest, layer_maps, strip_html
from .position import Position, board_image, caption, moves_in_words, opinion, outcome_bar, row
from .show import Controlled, stops


def networks_to_show(own_run: str = "") -> tuple[dict[int, SpikingNetwork], dict[int, int]]:
    """The networks that come with the package by iteration, the untrained one first, and the positions they had played.

    own_run: a run of chess, or a shared file, whose network then comes last; those of later iterations are left out.
    Raises ConfigError for another game, and what load_network raises.
    """
    networks, played = shipped_networks(), played_positions(shipped_cards())
    if not own_run:
        return networks, played
    if (game := run_game(own_run)) != "chess":
        raise ConfigError(f"{own_run} plays {game}: expected a run of chess")
    own, iteration = load_network(own_run, device="cpu")
    *earlier, _ = networks
    kept = [key for key in earlier if key < max(iteration, 1)]
    return {**{key: networks[key] for key in kept}, iteration: own}, {key: played[key] for key in kept}


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
    """Positions played by iteration, as the cards of shared files say; 0 for an untrained network."""
    return {iteration: int(card["figures"].get("total_positions", 0)) for iteration, card in cards.items()}


def _name(iteration: int, positions: int | None) -> str:
    if iteration == 0:
        return "nothing (untrained)"
    return f"iteration {iteration}" if positions is None else f"{positions:,} positions"


def _frame(network: SpikingNetwork, seen: Position, told: str, most: float, size: int = 340) -> str:
    thought = opinion(network, seen)
    left = board_image(seen, thought, size) + outcome_bar(thought, size)
    words = f"Learned from {told}. Likeliest: {moves_in_words(seen, thought)}."
    return row(left + caption(words, size), strip_html(network, seen, 6.4, None, most))


def _small(network: SpikingNetwork, seen: Position, told: str, most: float, size: int = 225) -> str:
    thought = opinion(network, seen)
    fired = strip_html(network, seen, 6.4, size, most)
    words = caption(f"Learned from {told}. {moves_in_words(seen, thought)}.", size)
    return board_image(seen, thought, size) + outcome_bar(thought, size) + words + fired
