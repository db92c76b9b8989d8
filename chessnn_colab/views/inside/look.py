"""A run's network at the start of a game: the board, its spikes, its firing rates and its energy."""

from pathlib import Path

from IPython.display import display

from ...games.registry import make_game
from ...runs.networks import load_network, run_game
from ...spikes import estimate_energy, firing_rates, layer_names, spike_counts
from ...text import percent
from ..card import energy_positions
from ..picture import start_picture
from ..plots import energy_bars, firing_rate_bars, spike_raster
from ..style import show


def look_inside(run: str | Path) -> None:
    """Show in a notebook what the last network of `run` fires at the start of a game, and what an
    evaluation costs. Raises what load_network raises.
    """
    network, iteration = load_network(run, device="cpu")
    game = make_game(run_game(run))
    start = game.init(1)
    print(f"The network of iteration {iteration} looks at the start of a game:")
    display(start_picture(game, start))
    counts = spike_counts(network, game.observe(start))["neurons"]
    show(
        spike_raster(counts[:, 0].flatten(1).numpy(), network.config.levels),
        "The spikes of the last layer: its neurons from bottom to top, their spikes from left to "
        "right",
    )
    by_layer = firing_rates(network, game.observe(start))
    rates = {short: by_layer[name] for name, short in layer_names(network).items()}
    words = ", ".join(f"{name} {percent(rate)}" for name, rate in rates.items())
    show(firing_rate_bars(rates), f"Firing rates: {words}")
    energy = estimate_energy(network, game.observe(energy_positions(game)))
    show(energy_bars(energy), energy.verdict)
    print(energy.verdict)
