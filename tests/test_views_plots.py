"""Figures: images whatever the number of reports, with units on every axis, and no global state behind them."""

import math
import subprocess
import sys
import types

import matplotlib.pyplot as plt
import numpy as np
import pytest

from chessnn_colab.views import curves, ink, match_plots, plots, strength_plots
from tests.sample_reports import make_report, make_strength

PNG = b"\x89PNG\r\n\x1a\n"


def pixels(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


def shares(axis) -> list[float]:
    """The heights of the coloured areas of the first iteration, from the bottom up."""
    filled = [patch.get_data() for patch in axis.patches if patch.get_fill()]
    return [float(data.values[0] - np.atleast_1d(data.baseline)[0]) for data in filled]


def names(axis) -> list[str]:
    legend = axis.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("count", [1, 2, 400])
def test_curves_draw_any_number_of_reports(count):
    reports = [make_report(iteration, policy_kl=math.nan, value_loss=None) for iteration in range(1, count + 1)]
    for name in curves.SMALL_PANELS:
        assert ink.figure_png(curves.small_figure(name, reports), 50).startswith(PNG), name


def test_strength_is_drawn_over_minutes_with_intervals_and_the_untrained_level():
    points = [make_strength(0), make_strength(4, 0.2), make_strength(0, 0.3, "games"), make_strength(4, 0.6, "games")]
    reference = {"machine": "two cores", "curves": {"games": [[0, 0.3], [10, 0.9]]}}
    axis = curves.strength_figure([], points, reference, minutes=20).axes[0]
    dashed = [line.get_ydata()[0] for line in axis.lines if line.get_linestyle() == "--"]
    assert dashed == [0.09, 0.3] and names(axis) == ["300 puzzles, by policy: 20 %", "300 games: 60 %"]
    assert axis.get_xlabel().splitlines()[1] == "pale: a run on two cores"
    pale = [line for line in axis.lines if line.get_alpha() == 0.18]
    assert [list(line.get_ydata()) for line in pale] == [[0.3, 0.9]]
    assert len(axis.containers) == 2 and axis.get_xlim()[1] > 20


def test_a_run_without_a_measurement_says_so_and_a_game_of_points_draws_its_scores():
    figure = curves.strength_figure([make_report()], [])
    assert figure.axes[0].texts[0].get_text() == "this run did not measure its strength"
    scored = types.SimpleNamespace(seconds=120.0, scores={"mean": 900.0, "best": 2_000.0})
    axis = curves.strength_figure([scored], []).axes[0]
    assert list(axis.lines[0].get_ydata()) == [900.0] and names(axis) == ["points per game, mean"]


def test_results_stack_every_game_including_those_stopped_at_the_cap():
    axis = curves.small_figure("results", [make_report(games=100, wins={"white": 20, "black": 10}, draws=30)]).axes[0]
    assert shares(axis) == pytest.approx([0.2, 0.3, 0.4, 0.1])


def test_results_name_the_players_of_any_game():
    for wins in ({"x": 5, "o": 3}, {"solo": 4}, {}):
        axis = curves.small_figure("results", [make_report(games=10, wins=wins, draws=2)]).axes[0]
        assert set(names(axis)) == set(wins) | {"draw", "ply cap"}


def test_the_iteration_that_the_clock_cut_is_hollow_and_left_out_of_results_and_length():
    reports = [make_report(1), make_report(2, cut=True, average_plies=9.0)]
    lengths = curves.small_figure("lengths", reports).axes[0]
    assert [list(line.get_ydata()) for line in lengths.lines] == [[81.2]]
    assert len(curves.small_figure("results", reports).axes[0].patches[0].get_data().values) == 1
    losses = curves.small_figure("losses", reports).axes[0]
    hollow = [line for line in losses.lines if line.get_markerfacecolor() == "none"]
    assert [list(line.get_xdata()) for line in hollow] == [[2], [2]]


def test_losses_are_those_above_the_targets_own_entropy_on_an_axis_that_shows_change():
    reports = [make_report(i, policy_loss=3.0, policy_kl=0.5 - 0.01 * i, value_loss=0.5) for i in (1, 2, 3)]
    axis = curves.small_figure("losses", reports).axes[0]
    assert list(axis.lines[0].get_ydata()) == pytest.approx([0.49, 0.48, 0.47]) and axis.get_ylim()[0] > 0.4
    axis = curves.small_figure("losses", [make_report(policy_kl=math.nan)]).axes[0]
    assert list(axis.lines[0].get_ydata()) == [2.31] and names(axis) == ["policy", "value"]


def test_firing_is_drawn_by_block_with_short_names():
    rates = {"blocks.0.neurons1": 0.1, "blocks.0.neurons2": 0.3, "blocks.1.neurons1": 0.2, "neurons": 0.4}
    axis = curves.small_figure("firing", [make_report(firing_rates=rates)]).axes[0]
    assert names(axis) == ["block 1", "block 2", "last"]
    assert [line.get_ydata()[0] for line in axis.lines] == pytest.approx([0.2, 0.2, 0.4])


def test_firing_draws_layers_that_come_and_many_of_them():
    many = {f"layer {index}": 0.1 for index in range(40)}
    axis = curves.small_figure("firing", [make_report(1, firing_rates={}), make_report(2, firing_rates=many)]).axes[0]
    assert len(names(axis)) == 1 + curves.MAX_LAYER_LINES
    assert names(curves.small_figure("firing", [make_report(firing_rates={})]).axes[0]) == []


def test_pictures_are_transparent_and_sharp():
    page = ink.figure_html(curves.small_figure("losses", [make_report()]), "Losses <b>")
    assert 'alt="Losses &lt;b&gt;"' in page and "max-width:100%" in page
    pixels_of = pixels(curves.small_figure("losses", [make_report()]))
    assert (pixels_of[..., 3] == 0).mean() > 0.5


@pytest.mark.parametrize("shape", [(1, 1), (4, 256), (40, 16), (2, 5_000)])
def test_spike_raster_is_as_bright_as_the_spikes_are_many(shape):
    images = [plots.spike_raster(np.full(shape, share)).axes[0].images[0] for share in (False, True)]
    silent, firing = (image.to_rgba(image.get_array())[..., :3].mean() for image in images)
    assert firing > 2 * silent


def test_spike_raster_refuses_what_is_not_slots_by_neurons():
    with pytest.raises(ValueError, match=r"\[2, 3, 4\]: expected \[slots, N\]"):
        plots.spike_raster(np.zeros((2, 3, 4)))


def test_firing_rates_name_the_silent_layer():
    texts = [text.get_text() for text in plots.firing_rates({"stem": 0.2, "block0": 0.0}).axes[0].texts]
    assert texts == ["20 %", "0.0 %, silent"]


def test_match_bar_states_score_interval_and_counts():
    result = types.SimpleNamespace(opponent="random", wins=176, draws=24, losses=0, score=0.94, interval=(0.9, 0.97))
    figure = match_plots.match_bar([result])
    assert figure.axes[0].texts[0].get_text() == "94.0 % [90.0, 97.0]   +176 =24 -0"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["against random"]
    assert ink.figure_png(figure).startswith(PNG)


def test_before_and_after_stand_together_for_each_opponent():
    def match(player, opponent, wins):
        return types.SimpleNamespace(
            player=player, opponent=opponent, wins=wins, draws=0, losses=10 - wins, score=wins / 10, interval=(0.1, 0.9)
        )

    results = [
        match(player, opponent, 5) for player in ("iteration 0", "iteration 7") for opponent in ("random", "greedy")
    ]
    axis = match_plots.match_bar(results).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "untrained against random",
        "iteration 7 against random",
        "untrained against greedy",
        "iteration 7 against greedy",
    ]
    first, second, third, _ = axis.get_yticks()
    assert third - second > second - first
    with pytest.raises(ValueError, match="with a game"):
        match_plots.match_bar([types.SimpleNamespace(wins=0, draws=0, losses=0)])


def test_figures_leave_pyplot_alone():
    code = (
        "import sys, numpy; from chessnn_colab.views import ink, plots;"
        "ink.figure_png(plots.spike_raster(numpy.ones((2, 3)))); print('matplotlib.pyplot' in sys.modules)"
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


def test_a_shown_figure_says_what_it_shows_and_is_drawn_once(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    for figure in (plt.figure(), plots.firing_rates({"neurons": 0.1})):
        ink.show(figure, "One & two")
    assert [repr(picture) for picture in shown] == ["One & two"] * 2 and not plt.get_fignums()
    assert all('alt="One &amp; two"' in picture._repr_html_() for picture in shown)


def test_pyplots_own_figures_get_no_page_behind_them():
    """What IPython would say of them to the front end: nothing, so that a dark page stays dark."""
    pylabtools = pytest.importorskip("matplotlib_inline.backend_inline")
    with plt.rc_context(ink.STYLE):
        figure, axis = plt.subplots()
        axis.plot([1, 2, 3])
        assert pylabtools._fetch_figure_metadata(figure) is None and figure.get_facecolor()[3] == 0
        plt.close(figure)
