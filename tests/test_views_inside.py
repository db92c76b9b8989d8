"""The look inside: pictures that need no kernel, controls that redraw them, and what they show is
what happens.
"""

import base64
import io
import re
from pathlib import Path
from types import SimpleNamespace

import chess
import ipywidgets
import nbformat
import numpy as np
import pytest
import torch
from matplotlib import pyplot

from chessnn_colab import inside
from chessnn_colab.errors import NotationError
from chessnn_colab.games.chess.notation import state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.runs.networks import shipped_networks
from chessnn_colab.spikes import firing_rates, layer_names, silenced, spike_counts
from chessnn_colab.views.inside import maps
from chessnn_colab.views.inside.sample import sample_positions
from chessnn_colab.views.inside.seen import firing_maps, opinion, position, thought_html
from chessnn_colab.views.inside.show import Controlled

from .test_network import lively, planes

ROOT = Path(__file__).parent.parent
MATE = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
SMALL = NetworkConfig(channels=8, blocks=1)
SOURCE = 'src="data:image/png;base64," style="max-width:100%"'
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def networks():
    return shipped_networks()


@pytest.fixture(scope="module")
def small():
    return lively(SMALL)


def images(html: str) -> list[str]:
    """The texts of the images in HTML, each of which must have one and must not be wider than its
    page.
    """
    tags = re.findall(r"<img [^>]*>", html)
    assert tags and all("data:image/" in tag and "max-width:100%" in tag for tag in tags)
    return [re.search(r'alt="([^"]+)"', tag)[1] for tag in tags]


def test_an_opinion_is_the_policy_over_legal_moves_and_the_last_network_finds_the_mate(networks):
    seen = position(MATE)
    first, last = opinion(networks[0], seen), opinion(list(networks.values())[-1], seen)
    for thought in (first, last):
        assert sorted(thought.actions) == sorted(action for _, action in seen.drawing.clicks())
        assert "Black wins" in thought_html(seen, thought, "")
    assert last.probabilities[0] > 1.5 * first.probabilities[0]


def test_a_position_without_moves_and_a_bad_one():
    mated = "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1"
    with pytest.raises(NotationError, match=f"Checkmate: White won.*can be played, not '{mated}'"):
        position(mated)
    with pytest.raises(NotationError, match="invalid FEN 'nonsense'"):
        position("nonsense")


def test_the_network_sees_a_position_as_it_does_in_a_game():
    """After a double step the square behind the pawn counts, whether it can be taken or not."""
    fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
    game = Chess()
    planes = game.observe(state_from_boards([chess.Board(fen)], game))
    assert torch.equal(position(fen).planes, planes)
    assert planes[0, maps.PLANES.index("en passant")].any()


@pytest.mark.parametrize("fen", [MATE, "8/8/8/4k3/8/8/4P3/4K3 b - - 0 1"])
def test_maps_show_squares_where_they_are_whoever_moves(fen, small):
    seen = position(fen)
    shown = seen.seen_from_white(seen.planes[0].numpy())
    kings = shown[5 if seen.drawing.board.turn else 11], shown[11 if seen.drawing.board.turn else 5]
    for king, colour in zip(kings, chess.COLORS):
        (rank,), (file,) = np.nonzero(king)
        assert chess.square(file, rank) == seen.drawing.board.king(colour)
    raw, flip = (
        spike_counts(small, seen.planes)["neurons"].sum(0)[0].numpy(),
        1 if seen.drawing.board.turn else -1,
    )
    assert np.array_equal(firing_maps(small, seen)["last"], raw[:, ::flip])
    assert images(maps.input_planes(seen).html)[1:] == list(maps.PLANES)


def test_every_plane_has_its_name():
    assert len(maps.PLANES) == Chess().observation_shape[0]
    check = position("4k3/8/8/8/8/8/4r3/4K3 w - - 20 30").planes[0]
    lit = {name for name, plane in zip(maps.PLANES, check) if plane.any()}
    assert lit == {"own king", "their rooks", "their king", "own attacks", "their attacks", "in check", "always lit",
                   "8 quiet", "16 quiet"}  # fmt: skip


def test_firing_maps_layer_by_layer_and_channel_by_channel(small):
    seen = position(MATE)
    assert list(layer_names(small).values()) == ["block 1 in", "block 1 mid", "last"]
    view = maps.firing_view(small, seen)
    assert "last: 8 channels" in view.static_html()
    view.controls["layer"].value = "block 1 mid"
    assert "block 1 mid: 8 channels" in view.picture.value


def test_channels_are_numbered_from_one_with_the_spikes_of_their_boards(small):
    seen = position(MATE)
    spikes = firing_maps(small, seen)["block 1 mid"]
    found = images(maps.channel_grid(small, seen, "block 1 mid"))
    assert found == [f"{number}: {board.sum():.0f}" for number, board in enumerate(spikes, 1)]


def test_rank_1_is_the_lowest_of_a_small_board():
    board = np.zeros((8, 8))
    board[0, 0] = 1  # a1
    html = maps.boards_html({"a1": board}, 64, maps.UNLIT_LIT, 1)
    png = re.search('base64,([^"]+)', html)[1]
    light = pyplot.imread(io.BytesIO(base64.b64decode(png)))[..., 0]
    row, column = np.unravel_index(np.abs(light - light[0, -1]).argmax(), light.shape)
    assert row > 7 * 16 and column < 16


def cell_with(words: str) -> str:
    """The code of the notebook's cell with these words."""
    notebook = nbformat.read(ROOT / "notebooks/inside_the_spikes.ipynb", as_version=4)
    (source,) = [cell.source for cell in notebook.cells if words in cell.source]
    return source


def test_the_notebook_goes_on_where_the_answer_does_not_form_in_steps(capsys):
    trained = lively(NetworkConfig(channels=8, blocks=1, activation="relu"))
    cell = cell_with("without_waiting(")
    exec(cell, {"inside": inside, "trained": trained, "seen": position(MATE)})
    printed = capsys.readouterr().out
    assert printed == "steps=1, activation='relu': expected one step of spikes\n"


@pytest.fixture(scope="module")
def probes():
    """The names of the notebook's cell of probes."""
    names = {"inside": inside, "np": np, "plt": pyplot}
    exec(cell_with("def explained("), names)
    return SimpleNamespace(**names)


def test_facts_by_hand(probes):
    fens = {
        "4k3/8/8/8/8/8/4r3/4K3 w - - 0 1": (1, 0, -5),
        "4k3/8/8/3r4/8/3N4/8/4K3 w - - 0 1": (
            0,
            1,
            -2,
        ),  # the rook attacks a knight that nothing protects
        "4k3/8/8/3r4/8/3N4/4P3/4K3 w - - 0 1": (0, 0, -1),  # the pawn protects it
        "4k3/8/8/3r4/8/3P4/8/4K3 w - - 0 1": (0, 0, -4),  # a pawn is not a piece
    }
    found = probes.facts(torch.cat([position(fen).planes for fen in fens]))
    for number, expected in enumerate(fens.values()):
        assert tuple(numbers[number] for numbers in found.values()) == expected


def test_a_probe_finds_what_is_there_and_nothing_in_noise(probes):
    generator = np.random.default_rng(0)
    features = generator.normal(size=(2000, 10))
    noise = generator.normal(size=2000)
    assert probes.explained(features, 3 * features[:, 2] - 1) > 0.99
    assert probes.explained(features, (features[:, 3] > 1).astype(float)) > 0.3
    assert probes.explained(features, noise) < 0.05
    assert probes.explained(features, np.zeros(2000)) == 0.0
    assert probes.explained(np.zeros((2000, 3)), noise) < 0.05


def test_the_trained_network_knows_more_than_the_untrained(networks, probes):
    sample = sample_positions(600)
    first, last = (
        probes.knowledge(network, sample) for network in (networks[0], list(networks.values())[-1])
    )
    assert first["material"]["input"] == last["material"]["input"] > 0.95
    for fact, told in last.items():
        assert told["last"] > first[fact]["last"] + 0.05, fact
        assert first[fact]["block 1 mid"] < 0.05, "a silent layer knows nothing"


def test_silence_is_silent_and_ends(small):
    x = planes(4)
    before = firing_rates(small, x)
    with silenced(small, "neurons"):
        assert firing_rates(small, x)["neurons"] == 0
    assert firing_rates(small, x) == before
    every = spike_counts(small, x)["blocks.0.neurons1"][0]
    with silenced(small, "blocks.0.neurons1", 5):
        without = spike_counts(small, x)["blocks.0.neurons1"][0]
    every[:, 5] = 0
    assert torch.equal(without, every)


def silencing(network, seen):
    """The names of the notebook's cell that silences a part of `network`."""
    names = {"inside": inside, "trained": network, "seen": seen}
    exec(cell_with("def draw_silenced("), names)
    return SimpleNamespace(**names)


def test_silencing_moves_the_move_and_the_view_says_so(networks):
    network, seen = list(networks.values())[-1], position(MATE)
    cell = silencing(network, seen)
    whole = opinion(network, seen)
    assert cell.moved(whole, whole) == 0
    with silenced(network, "neurons"):
        share = cell.moved(whole, opinion(network, seen))
    assert 0.02 < share <= 1
    shown = cell.draw_silenced("neurons", 0)
    assert f"Silenced: {share:.0%} of" in shown and len(images(shown)) == 2
    assert cell.draw_silenced("neurons", 3) != shown


def test_the_most_important_channel_is_named(small, capsys):
    seen = position(MATE)
    names = {
        "inside": inside,
        "torch": torch,
        "np": np,
        "plt": pyplot,
        "trained": small,
        "seen": seen,
        **vars(silencing(small, seen)),
    }
    moved = names["moved"]
    exec(
        cell_with("Every channel silenced alone"),
        {**names, "show": lambda figure, words: pyplot.close(figure)},
    )
    layer, number = re.search(
        r"Most depends on (.+), channel (\d+):", capsys.readouterr().out
    ).groups()
    whole, names = opinion(small, seen), {short: name for name, short in layer_names(small).items()}
    every = {}
    for short, name in names.items():
        for channel in range(8):
            with silenced(small, name, channel):
                every[short, channel + 1] = moved(whole, opinion(small, seen))
    assert every[layer, int(number)] == max(every.values())


def test_every_move_of_a_control_is_answered_even_with_the_same_picture():
    layers = ipywidgets.Dropdown(options=["a", "b"])
    view = Controlled(lambda layer: "<p>one</p>", {"layer": layers})
    answers = view.widget.children[-1].children[-1]
    before = answers.value
    view.controls["layer"].value = "b"
    assert (
        view.picture.value == "<p>one</p>"
        and answers.value != before
        and answers.layout.display == "none"
    )


def test_a_rate_is_a_share_of_what_can_fire_in_all_time_steps():
    loud = lively(NetworkConfig(channels=8, blocks=1, steps=3, levels=2))
    seen = position(MATE)
    rates = {name: float(board.mean()) for name, board in maps.layer_maps(loud, seen).items()}
    by_layer = {
        layer_names(loud)[name]: rate for name, rate in firing_rates(loud, seen.planes).items()
    }
    assert rates == pytest.approx(by_layer) and max(rates.values()) > 0
