"""Figures: images whatever the number of reports, with units on every axis, and no global state behind them."""

import math
import subprocess
import sys
import types

import numpy as np
import pytest

from chessnn_colab.errors import RunError
from chessnn_colab.views import plots, strength_plots
from tests.sample_reports import make_report

PNG = b"\x89PNG\r\n\x1a\n"


def pixels(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


@pytest.mark.parametrize("count", [1, 2, 400])
def test_learning_curves_draw_any_number_of_reports(count):
    reports = [make_report(iteration, entropy=math.nan, value_loss=None) for iteration in range(1, count + 1)]
    figure = plots.learning_curves(reports)
    assert plots.figure_png(figure).startswith(PNG)
    assert all(axis.get_xlabel() == "iteration" and axis.get_ylabel() for axis in figure.axes)


def test_learning_curves_stack_every_game_including_those_stopped_at_the_cap():
    figure = plots.learning_curves([make_report(games=100, wins={"white": 20, "black": 10}, draws=30)])
    filled = [patch.get_data() for patch in figure.axes[3].patches if patch.get_fill()]
    shares = [float(data.values[0] - np.atleast_1d(data.baseline)[0]) for data in filled]
    assert shares == pytest.approx([0.2, 0.3, 0.4, 0.1])


def test_learning_curves_name_the_players_of_any_game():
    for wins in ({"x": 5, "o": 3}, {"solo": 4}, {}):
        legend = plots.learning_curves([make_report(games=10, wins=wins, draws=2)]).axes[3].get_legend()
        named = {text.get_text() for text in legend.get_texts()}
        assert named == {f"{name} wins" for name in wins} | {"draws", "ply cap"}


def test_learning_curves_without_a_report_say_what_to_do():
    with pytest.raises(RunError, match="train for one iteration first"):
        plots.learning_curves([])


def test_learning_curves_draw_layers_that_come_and_many_of_them():
    many = {f"layer {index}": 0.1 for index in range(40)}
    figure = plots.learning_curves([make_report(1, firing_rates={}), make_report(2, firing_rates=many)])
    assert len(figure.axes[5].get_legend().get_texts()) == 1 + plots.MAX_LAYER_LINES
    assert plots.learning_curves([make_report(firing_rates={})]).axes[5].get_legend() is None


@pytest.mark.parametrize("shape", [(1, 1), (4, 256), (40, 16), (2, 5_000)])
def test_spike_raster_is_as_dark_as_the_spikes_are_many(shape):
    silent, firing = (pixels(plots.spike_raster(np.full(shape, value))) for value in (False, True))
    assert firing.mean() < silent.mean()


def test_spike_raster_refuses_what_is_not_time_by_neuron():
    with pytest.raises(ValueError, match=r"\[2, 3, 4\]: expected \[T, N\]"):
        plots.spike_raster(np.zeros((2, 3, 4)))


def test_firing_rates_name_the_silent_layer():
    texts = [text.get_text() for text in plots.firing_rates({"stem": 0.2, "block0": 0.0}).axes[0].texts]
    assert texts == ["20 %", "0.0 %, silent"]


def test_match_bar_states_score_interval_and_counts():
    result = types.SimpleNamespace(opponent="random", wins=176, draws=24, losses=0, score=0.94, interval=(0.9, 0.97))
    figure = plots.match_bar([result])
    assert figure.axes[0].texts[0].get_text() == "94.0 % [90.0, 97.0]   +176 =24 -0"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["against random"]
    assert plots.figure_png(figure).startswith(PNG)


def test_before_and_after_stand_together_for_each_opponent():
    def match(player, opponent, wins):
        return types.SimpleNamespace(
            player=player, opponent=opponent, wins=wins, draws=0, losses=10 - wins, score=wins / 10, interval=(0.1, 0.9)
        )

    results = [
        match(player, opponent, 5) for player in ("iteration 0", "iteration 7") for opponent in ("random", "greedy")
    ]
    axis = plots.match_bar(results).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "untrained against random",
        "iteration 7 against random",
        "untrained against greedy",
        "iteration 7 against greedy",
    ]
    first, second, third, _ = axis.get_yticks()
    assert third - second > second - first
    with pytest.raises(ValueError, match="with a game"):
        plots.match_bar([types.SimpleNamespace(wins=0, draws=0, losses=0)])


def test_energy_bars_choose_their_unit():
    figure = plots.energy_bars({"spiking_nanojoules": 3_100.0, "dense_nanojoules": 19_000.0, "macs": 1.0})
    assert figure.axes[0].texts[0].get_text() == "3.1 µJ (16 % of its ReLU twin)"
    assert plots.figure_png(plots.energy_bars({"spiking_nanojoules": 0.0, "dense_nanojoules": 0.0})).startswith(PNG)


def test_figures_leave_pyplot_alone():
    code = (
        "import sys, numpy; from chessnn_colab.views import plots;"
        "plots.figure_png(plots.spike_raster(numpy.ones((2, 3)))); print('matplotlib.pyplot' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_strength_and_puzzles_stand_against_games_and_minutes():
    reports = [make_report(4, total_games=800, seconds=120.0)]
    ratings = types.SimpleNamespace(
        names=("iteration 0", "iteration 4", "random", "greedy", "minimax"),
        rating=lambda name: {"iteration 4": 200.0, "greedy": 10.0, "minimax": 300.0}.get(name, 0.0),
        error=lambda name: 30.0,
    )
    ladder = types.SimpleNamespace(ratings=ratings, snapshots={"iteration 0": 0, "iteration 4": 4, "iteration 9": 9})
    games, minutes = strength_plots.strength_curves(ladder, reports).axes
    assert games.lines[0].get_xydata().tolist() == [[0, 0], [800, 200]]
    assert minutes.lines[0].get_xydata().tolist() == [[0, 0], [2, 200]]
    assert {text.get_text() for text in games.texts} == {"random, greedy", "minimax"}
    shares = {0: {"mate-in-one": 0.1, "hanging-piece": 0.2}, 4: {"mate-in-one": 0.5, "hanging-piece": 0.4}}
    games, minutes = strength_plots.puzzle_curves(shares, reports).axes
    assert games.lines[0].get_xydata().tolist() == [[0, 0.1], [800, 0.5]]
    assert minutes.lines[1].get_xydata().tolist() == [[0, 0.2], [2, 0.4]]
