"""The slider over networks: those of a run, or the ones that come with the package, and what it
tells of each.
"""

import pytest
import torch

from chessnn_colab.errors import ConfigError
from chessnn_colab.runs.networks import load_network, shipped_networks
from chessnn_colab.runs.shared import share
from chessnn_colab.spikes import spike_counts
from chessnn_colab.text import percent
from chessnn_colab.views.inside.seen import position
from chessnn_colab.views.inside.snapshots import firing_in_words, growth, networks_to_show

from .sample_reports import make_report
from .small_run import CONFIG, TICTACTOE, make_run, write_reports
from .test_views_inside import MATE


@pytest.fixture(scope="module")
def networks():
    return shipped_networks()


def own_run(path, iterations: tuple[int, ...]) -> str:
    reports = (
        make_report(number, total_positions=1000 * number) for number in iterations if number
    )
    return str(write_reports(make_run(path, iterations), reports))


def test_a_run_shows_its_own_snapshots_evenly_the_untrained_one_first_and_the_last(tmp_path):
    run = own_run(tmp_path / "run", (0, *range(1, 21)))
    networks, played = networks_to_show(run)
    assert list(networks) == [0, 3, 6, 9, 11, 14, 17, 20] and played[20] == 20_000
    for iteration, network in networks.items():
        assert torch.equal(
            network.policy.weight, load_network(run, iteration, "cpu")[0].policy.weight
        )
    slider = growth(networks, position(MATE), played).widget.children[0]
    names = ["nothing yet", *(f"{iteration},000 positions" for iteration in networks if iteration)]
    assert [name for name, _ in slider.options] == names
    short, _ = networks_to_show(own_run(tmp_path / "short", (0, 2)))
    assert list(short) == [0, 2]


def test_a_shared_file_comes_after_the_shipped_networks_with_its_own_count(tmp_path, networks):
    file = tmp_path / "mine.safetensors"
    share(own_run(tmp_path / "run", (0, 30)), file)
    shown, played = networks_to_show(str(file))
    *earlier, last = networks
    assert list(shown) == [key for key in earlier if key < 30] + [30] and played[30] == 30_000
    assert shown[30].config == CONFIG and shown[0].config == networks[0].config
    four, counts = networks_to_show()
    assert list(four) == list(networks) == list(counts) and counts[last] > 0
    with pytest.raises(ConfigError, match="plays tictactoe: expected a run of chess"):
        networks_to_show(make_run(tmp_path / "other", (0,), "tictactoe", TICTACTOE))


def test_each_stop_tells_how_much_of_the_network_fires_and_how_many_layers_are_silent(networks):
    seen = position(MATE)
    view = growth(networks, seen, {})
    for iteration, network in networks.items():
        view.controls["iteration"].value = iteration
        spikes = spike_counts(network, seen.planes).values()
        possible = network.config.levels * sum(layer.numel() for layer in spikes)
        fires = sum(float(layer.sum()) for layer in spikes) / possible
        silent = sum(not layer.any() for layer in spikes)
        layers = f"{silent} of 7 layers" if silent else "no layer"
        told = f"Fires {percent(fires)} of its possible spikes, {layers} silent."
        assert told in view.picture.value and told in view.static_html()
    assert firing_in_words(networks[0], seen).endswith("3 of 7 layers silent.")
