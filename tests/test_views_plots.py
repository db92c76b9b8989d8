"""Figures: images whatever the number of reports, with units on every axis, and no global state
behind them.
"""

import io
import math
import types

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from chessnn_colab.spikes import Energy
from chessnn_colab.views import curves, plots, strength_plots, style
from chessnn_colab.views.reference import reference_for
from tests.sample_reports import make_report, make_strength

PNG = b"\x89PNG\r\n\x1a\n"


def small(name, *reports):
    """The axis of a small figure of these reports."""
    return curves.small_figure(name, reports).axes[0]


def names(axis) -> list[str]:
    legend = axis.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def texts(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


@pytest.mark.parametrize("count", [0, 1, 400])
def test_curves_draw_any_number_of_reports(count):
    reports = [
        make_report(iteration, policy_kl=math.nan, value_loss=None)
        for iteration in range(1, count + 1)
    ]
    for name in curves.SMALL_PANELS:
        assert style.figure_png(curves.small_figure(name, reports)).startswith(PNG), name


def test_strength_is_drawn_over_minutes_with_intervals_and_the_untrained_level():
    points = [
        make_strength(0),
        make_strength(4, 0.2),
        make_strength(0, 0.3, "games"),
        make_strength(4, 0.6, "games"),
    ]
    reference = {"machine": "two cores", "curves": {"games": [[0, 0.3], [10, 0.9]]}}
    axis = curves.strength_figure([], points, reference, minutes=20).axes[0]
    dashed = [line.get_ydata()[0] for line in axis.lines if line.get_linestyle() == "--"]
    assert dashed == [0.09, 0.3]
    assert names(axis) == ["300 puzzles, by policy: 20 %", "300 games: 60 %"]
    assert axis.get_xlabel().endswith("pale: a run on two cores")
    pale = [list(line.get_ydata()) for line in axis.lines if line.get_alpha() == 0.18]
    assert pale == [[0.3, 0.9]]
    intervals, _ = axis.collections
    assert intervals.get_segments()[1][:, 1] == pytest.approx([0.18, 0.22])
    assert axis.get_xlim()[1] > 20


@style.styled
def test_the_words_below_the_strength_are_all_inside_the_picture():
    usual = reference_for({"game": "chess", "preset": "cpu", "search": "two-rung"})
    figure = curves.strength_figure([], [make_strength(0)], usual)
    FigureCanvasAgg(figure).draw()
    words = figure.axes[0].xaxis.label
    assert "by policy" in words.get_text() and "pale" in words.get_text()
    x0, _, x1, _ = words.get_window_extent().extents
    assert x0 >= 0 and x1 <= figure.bbox.width


def test_a_run_without_a_measurement_says_so_and_a_game_of_points_draws_its_scores():
    axis = curves.strength_figure([make_report()], []).axes[0]
    assert texts(axis) == ["its strength has not been measured so far"]
    scored = types.SimpleNamespace(seconds=120.0, scores={"mean": 900.0, "best": 2_000.0})
    other = {"run": "another game", "curves": {"games": [[0, 0.3], [10, 0.9]]}}
    axis = curves.strength_figure([scored], [], other).axes[0]
    assert list(axis.lines[0].get_ydata()) == [900.0] and names(axis) == ["points per game, mean"]


def test_results_stack_every_game_including_those_stopped_at_the_cap():
    axis = small("results", make_report(games=100, wins={"x": 20, "o": 10}, draws=30))
    areas = [patch.get_data() for patch in axis.patches if patch.get_fill()]
    shares = [float(area.values[0] - np.atleast_1d(area.baseline)[0]) for area in areas]
    assert shares == pytest.approx([0.2, 0.1, 0.3, 0.4])
    assert set(names(axis)) == {"x", "o", "draws", "cap"}, "the players of any game"


def test_an_iteration_without_a_game_is_left_out_of_results():
    reports = [make_report(1), make_report(2, games=0, average_plies=math.nan)]
    assert len(small("results", *reports).patches[0].get_data().values) == 1


def test_losses_are_those_above_the_targets_own_entropy_on_an_axis_that_shows_change():
    reports = [
        make_report(i, policy_loss=3.0, policy_kl=0.5 - 0.01 * i, value_loss=0.5) for i in (1, 2, 3)
    ]
    axis = small("losses", *reports)
    assert list(axis.lines[0].get_ydata()) == pytest.approx([0.49, 0.48, 0.47])
    assert names(axis) == ["policy, to targets", "value", "Brier"] and axis.get_ylim()[0] > 0.4
    axis = small("losses", make_report(brier=math.nan))
    assert names(axis) == ["policy, to targets", "value"]


def test_a_network_without_spikes_says_so_in_place_of_its_firing():
    figures = small("firing", make_report(firing_rates={})), small("firing")
    titles = [axis.get_title(loc="left") for axis in figures]
    assert titles == ["No spikes measured", "Firing rates"]


def test_firing_is_drawn_by_block_and_of_many_layers_some():
    rates = {
        "blocks.0.neurons1": 0.1,
        "blocks.0.neurons2": 0.3,
        "blocks.1.neurons1": 0.2,
        "neurons": 0.4,
    }
    axis = small("firing", make_report(firing_rates=rates))
    assert names(axis) == ["block 1", "block 2", "last"]
    assert [line.get_ydata()[0] for line in axis.lines] == pytest.approx([0.2, 0.2, 0.4])
    many = {f"layer {index}": 0.1 for index in range(40)}
    axis = small("firing", make_report(1, firing_rates={}), make_report(2, firing_rates=many))
    assert len(names(axis)) == curves.MAX_LAYER_LINES
    assert names(small("firing", make_report(firing_rates={}))) == []


def test_pictures_are_transparent_and_say_what_they_show():
    figure = curves.small_figure("losses", [make_report()])
    page = style.figure_html(figure, "Losses <b>")
    assert 'alt="Losses &lt;b&gt;"' in page and "max-width:100%" in page
    assert 'alt="Losses, nats; Brier score"' in style.figure_html(figure)
    assert (plt.imread(io.BytesIO(style.figure_png(figure)))[..., 3] == 0).mean() > 0.5


ENERGY = Energy(1.5e6, 2.8e5, 4.3e6, 1.2e6, 1e5, 4)


def test_bars_of_designs_have_their_values_beside_them():
    arithmetic, with_memory = plots.energy_bars(ENERGY).axes
    assert texts(arithmetic)[0] == "2.64 µJ"
    designs = ENERGY.designs
    together = [each.arithmetic_nanojoules + each.memory_nanojoules for each in designs]
    assert texts(with_memory) == [f"{nanojoules / 1000:.3g} µJ" for nanojoules in together]
    widths = [bar.get_width() for bar in with_memory.patches]
    assert widths == pytest.approx([nanojoules / 1000 for nanojoules in together])


def result(player: str, opponent: str) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        player=player,
        opponent=opponent,
        wins=176,
        draws=24,
        losses=0,
        games=200,
        score=0.94,
        interval=(0.9, 0.97),
    )


def test_matches_against_one_opponent_stand_together_with_score_interval_and_counts():
    results = [
        result(player, opponent)
        for player in ("iteration 0", "iteration 7")
        for opponent in ("random", "greedy")
    ]
    figure = strength_plots.match_bar(results)
    (axis,) = figure.axes
    assert texts(axis) == ["94.0 % [90.0, 97.0]   +176 =24 -0"] * 4
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "before training against random",
        "iteration 7 against random",
        "before training against greedy",
        "iteration 7 against greedy",
    ]
    assert {bar.get_alpha() for bar in axis.patches} == {None}, "dark pages do not shine through"
    assert len(figure.legends[0].get_texts()) == 4


def test_a_name_with_dollars_is_a_name():
    figure = strength_plots.match_bar([result("iteration 7", "co$t_{$x of $9")])
    figure.canvas.draw()
    assert figure.axes[0].get_yticklabels()[0].get_text() == "iteration 7 against co$t_{$x of $9"


def test_what_was_measured_stands_against_games_and_minutes(monkeypatch):
    reports = [make_report(4, total_games=800, seconds=120.0)]
    folder = types.SimpleNamespace(reports=lambda: reports)
    monkeypatch.setattr(strength_plots.RunFolder, "open", lambda run: folder)
    lines = {"snapshots": {0: 0.0, 4: 200.0, 9: 300.0}, "random": {0: 10.0, 4: 10.0}}
    errors = dict.fromkeys((0, 4, 9), 30.0)
    games, minutes = strength_plots.training_curves(lines, "run", "rating", errors).axes
    assert games.lines[0].get_xydata().tolist() == [[0, 0], [800, 200]], "9 has no report"
    assert minutes.lines[0].get_xydata().tolist() == [[0, 0], [2, 200]]
    labels = [text.get_text() for text in games.figure.legends[0].get_texts()]
    assert labels == ["snapshots", "random"]
    assert [bool(container.has_yerr) for container in games.containers] == [True, False]


def test_a_shown_figure_says_what_it_shows_and_is_drawn_once(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    for figure in (plt.figure(), plots.energy_bars(ENERGY)):
        style.show(figure, "One & two")
    assert [repr(picture) for picture in shown] == ["One & two"] * 2 and not plt.get_fignums()
    assert all('alt="One &amp; two"' in picture._repr_html_() for picture in shown)


def test_pyplots_own_figures_get_no_page_behind_them():
    """IPython gives the front end no background colour for them, so that a dark page stays dark."""
    pylabtools = pytest.importorskip("matplotlib_inline.backend_inline")
    with plt.rc_context():
        style.apply_style()
        figure, axis = plt.subplots()
        axis.plot([1, 2, 3])
        assert pylabtools._fetch_figure_metadata(figure) is None and figure.get_facecolor()[3] == 0
        plt.close(figure)
