"""Progress: what a run says of itself, as text, as widgets, and in real kernels."""

import io
import math
import subprocess
import sys

import ipywidgets
import pytest

from chessnn_colab.errors import ConfigError
from chessnn_colab.views import front_end, plots, progress, text_progress
from chessnn_colab.views.widget_progress import WidgetProgress
from tests.sample_reports import MATE, make_report

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PNG = b"\x89PNG\r\n\x1a\n"


class Clock:
    """A clock that tests move by hand; seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# Progress as text


def text_face() -> tuple[text_progress.TextProgress, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return text_progress.TextProgress(stream, clock), stream, clock


def test_text_face_says_what_users_of_the_older_projects_know():
    face, stream, clock = text_face()
    face.message("Primary training device: cuda:0")
    face.start_selfplay([100] * 8, [f"GPU {gpu}: Tesla T4" for gpu in range(8)])
    clock.now += 12.3
    face.worker_update(2, 100, 8_000)
    for worker in {*range(8)} - {2}:
        face.worker_update(worker, 100, 8_000)
    face.finish_selfplay(24.1)
    lines = stream.getvalue().splitlines()
    assert lines[:4] == [
        "Primary training device: cuda:0",
        "Generating 800 games on 8 workers",
        "Games per worker: [100, 100, 100, 100, 100, 100, 100, 100]",
        "[   12.3s] GPU 2: completed 100 games | 1/8 workers done | 100/800 games",
    ]
    assert lines[-2].endswith("| 8/8 workers done | 800/800 games")
    assert lines[-1] == "Completed 800 games in 24.1s (33.2 games/s)"
    assert len(lines) == 3 + 8 + 1


def test_text_face_reports_results_buffer_and_losses():
    face, stream, _ = text_face()
    face.report(make_report())
    results, endings, buffer, losses = stream.getvalue().splitlines()
    assert results == (
        "Results: white wins 210 (26 %), draws 380 (48 %), black wins 200 (25 %), stopped at the ply cap 10 (1 %)"
        " | 81.2 plies on average"
    )
    assert endings == "Endings: checkmate 410, fifty moves 380, truncated 10"
    assert buffer == "Buffer: 64,000 positions"
    assert losses == (
        "Iteration 3 | policy 2.31 value 0.98 entropy 1.20 | lr 1e-3 | 2,707 positions/s"
        " | self-play 24s, learning 8s | 3m 20s in all"
    )


def test_text_face_names_the_players_of_any_game():
    face, stream, _ = text_face()
    face.report(make_report(games=10, wins={"x": 5, "o": 3}, draws=2))
    face.report(make_report(games=10, wins={"solo": 4}, draws=0))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("Results: x wins 5 (50 %), draws 2 (20 %), o wins 3 (30 %) |")
    assert lines[4].startswith("Results: solo wins 4 (40 %), draws 0 (0 %), stopped at the ply cap 6 (60 %) |")


def test_text_face_survives_an_iteration_without_losses_or_games():
    face, stream, _ = text_face()
    nothing = dict(games=0, wins={"white": 0, "black": 0}, draws=0, average_plies=0.0, learning_rate=0.0)
    face.report(make_report(policy_loss=math.nan, value_loss=None, **nothing))
    assert "white wins 0 (0 %)" in stream.getvalue() and "policy - value - entropy 1.20" in stream.getvalue()


def test_text_face_shows_movement_between_the_workers_ends_but_not_too_often():
    face, stream, clock = text_face()
    face.start_selfplay([400, 400], ["CPU", "CPU"])
    for games in range(1, 241):
        clock.now += 0.125
        face.worker_update(0, games, games * 75)
    beats = stream.getvalue().splitlines()[2:]
    assert beats == [
        "[   15.0s] 120/800 games | 9,000 plies | 600 plies/s",
        "[   30.0s] 240/800 games | 18,000 plies | 600 plies/s",
    ]


def test_text_face_tells_workers_on_one_device_apart_and_ends_each_once():
    face, stream, _ = text_face()
    face.start_selfplay([1, 1], ["CPU", "CPU"])
    face.worker_update(1, 1, 30)
    face.worker_update(1, 1, 30)
    assert stream.getvalue().count("CPU worker 1: completed 1 game | 1/2 workers done | 1/2 games") == 1


def test_text_face_does_not_count_a_restarted_worker_backwards():
    face, stream, clock = text_face()
    face.start_selfplay([10], ["CPU"])
    face.worker_update(0, 8, 800)
    clock.now += 20
    face.worker_update(0, 5, 500)
    assert "8/10 games | 800 plies" in stream.getvalue()


def test_text_face_says_when_the_clock_cut_self_play_short_and_when_a_run_was_interrupted():
    face, stream, _ = text_face()
    face.start_selfplay([10], ["CPU"])
    face.worker_update(0, 4, 400)
    face.finish_selfplay(2.0)
    face.report(make_report(iteration=1, total_games=4, total_positions=400, seconds=65))
    face.start_selfplay([10], ["CPU"])
    face.worker_update(0, 1, 90)
    face.close()
    face.close()
    assert "Completed 4 of 10 games in 2.0s (2.0 games/s)" in stream.getvalue()
    assert stream.getvalue().endswith(
        "Stopped during self-play at 1/10 games\n"
        "Run ended after iteration 1: 4 games, 400 positions, 1m 05s of training\n"
    )


def test_silent_face_says_nothing(capsys):
    face = progress.make_progress("silent")
    face.message("hello")
    face.start_selfplay([1], ["CPU"])
    face.worker_update(0, 1, 9)
    face.finish_selfplay(1.0)
    face.report(make_report())
    face.close()
    assert capsys.readouterr() == ("", "")


def test_progress_is_chosen_by_name_then_environment_then_place(monkeypatch):
    monkeypatch.delenv("CHESSNN_UI", raising=False)
    assert isinstance(progress.make_progress(), text_progress.TextProgress)
    monkeypatch.setattr(progress, "has_widget_front_end", lambda: True)
    assert isinstance(progress.make_progress(), WidgetProgress)
    monkeypatch.setenv("CHESSNN_UI", "silent")
    assert isinstance(progress.make_progress(), progress.Silence)
    assert isinstance(progress.make_progress("text"), text_progress.TextProgress)
    monkeypatch.setenv("CHESSNN_UI", "wigdets")
    with pytest.raises(ConfigError, match="CHESSNN_UI 'wigdets'.*text, widgets, silent"):
        progress.make_progress()


def test_text_face_needs_no_display_library():
    code = (
        "import sys, chessnn_colab.views.progress as p; p.make_progress('text').message('x');"
        "print(sorted({'ipywidgets', 'matplotlib', 'IPython'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["x", "[]"]


@pytest.mark.parametrize(
    "value, text", [(0.4, "0s"), (59.6, "1m 00s"), (200, "3m 20s"), (7_530, "2h 05m"), (90_000, "25h 00m")]
)
def test_durations_read_as_a_person_says_them(value, text):
    assert text_progress.duration(value) == text


@pytest.mark.parametrize("value, text", [(1e-3, "1e-3"), (2.5e-4, "2.5e-4"), (1.0, "1e0")])
def test_learning_rates_are_short(value, text):
    assert text_progress.short_power(value) == text


# Progress as widgets


class Output:
    """Stands in for the cell's output: what was displayed, and what replaced it."""

    def __init__(self, monkeypatch) -> None:
        self.panels, self.handles = [], []
        output = self

        class Handle:
            def __init__(self):
                self.shown = []
                output.handles.append(self)

            def display(self, content):
                self.shown.append(content)

            update = display

        quick_curves = lambda reports: plots.firing_rates(reports[-1].firing_rates)  # noqa: E731
        monkeypatch.setattr("chessnn_colab.views.widget_progress.learning_curves", quick_curves)
        monkeypatch.setattr("chessnn_colab.views.widget_progress.display", self.panels.append)
        monkeypatch.setattr("chessnn_colab.views.widget_progress.DisplayHandle", Handle)


def bars(panel: ipywidgets.VBox) -> list[tuple[str, int, int, str]]:
    """Name, value, maximum and figures of each row."""
    rows = [row.children for row in panel.children if isinstance(row, ipywidgets.HBox)]
    return [(name.value, bar.value, bar.max, figures.value) for name, bar, figures in rows]


def test_widget_face_has_a_bar_a_worker_and_one_for_all(monkeypatch):
    output, clock = Output(monkeypatch), Clock()
    face = WidgetProgress(clock)
    face.start_selfplay([100, 50], ["GPU 0: Tesla T4", "GPU 1: <T4>"])
    clock.now += 10
    face.worker_update(0, 30, 3_000)
    total, first, second = bars(output.panels[0])
    assert total == ("All workers", 30, 150, "30/150 games | 300 plies/s | 3.0 games/s | 40s left")
    assert first == ("GPU 0: Tesla T4", 30, 100, "30/100 games | 300 plies/s")
    assert second[:3] == ("GPU 1: &lt;T4&gt;", 0, 50)


def test_widget_face_draws_at_most_five_times_a_second_but_every_completion(monkeypatch):
    output, clock = Output(monkeypatch), Clock()
    face = WidgetProgress(clock)
    face.start_selfplay([100, 100], ["CPU", "CPU"])
    changes = []
    panel = output.panels[0]
    panel.children[0].children[1].observe(lambda change: changes.append(change["new"]), names="value")
    for games in range(1, 101):
        clock.now += 0.01
        face.worker_update(0, games, games)
    assert 4 <= len(changes) <= 7 and changes[-1] == 100


def test_widget_face_reuses_its_bars_and_replaces_its_figures(monkeypatch, capsys):
    output, clock = Output(monkeypatch), Clock()
    face = WidgetProgress(clock)
    for iteration in (1, 2):
        face.start_selfplay([4], ["CPU"])
        assert bars(output.panels[0])[0][1] == 0
        clock.now += 60
        face.worker_update(0, 4, 300)
        face.finish_selfplay(60.0)
        face.report(make_report(iteration))
    face.start_selfplay([4, 4], ["CPU", "CPU"])
    assert len(output.panels) == 1 and len(bars(output.panels[0])) == 3
    figure, sample = output.handles
    assert len(figure.shown) == 2 and figure.shown[-1].data.startswith(PNG)
    assert "A game of iteration 2" in sample.shown[-1].data and "data:image/svg+xml" in sample.shown[-1].data
    face.close()
    assert capsys.readouterr().out.splitlines() == [
        "Stopped during self-play at 0/8 games",
        "Run ended after iteration 2: 2,400 games, 190,000 positions, 3m 20s of training",
    ]


def test_widget_face_spends_little_time_on_figures_and_shows_the_last_one(monkeypatch):
    output, clock = Output(monkeypatch), Clock()

    def slow_curves(reports):
        clock.now += 1.0
        return plots.firing_rates(reports[-1].firing_rates)

    monkeypatch.setattr("chessnn_colab.views.widget_progress.learning_curves", slow_curves)
    face = WidgetProgress(clock)
    for iteration in range(1, 41):
        clock.now += 1.0
        face.report(make_report(iteration, sample_game=""))
    face.report(make_report(41, sample_game=""))
    assert 2 <= len(output.handles[0].shown) <= 4
    before = len(output.handles[0].shown)
    face.close()
    assert len(output.handles[0].shown) == before + 1


# Real kernels: whoever executes the notebook decides the face


TEXT_CELL = f"""
import os
os.environ["CHESSNN_UI"] = ""
from chessnn_colab.views.replay import game_replay
from chessnn_colab.views.progress import make_progress
make_progress().start_selfplay([2], ["CPU"])
game_replay({MATE!r})
"""
WIDGET_CELL = f"""
os.environ["CHESSNN_UI"] = "widgets"
from chessnn_colab.report import Report
report = Report.from_dict({make_report().to_dict()!r})
face = make_progress()
for _ in range(2):
    face.start_selfplay([2], ["CPU"]); face.worker_update(0, 2, 80); face.finish_selfplay(1.0)
    face.report(report)
face.close()
"""


@pytest.fixture(scope="module")
def outputs() -> list[list[dict]]:
    """What the two cells show when they run headless in a kernel."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (TEXT_CELL, WIDGET_CELL)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_headless_notebook_gets_lines_of_text_and_a_static_board(outputs):
    shown = outputs[0]
    assert "Generating 2 games on 1 worker" in shown[0]["text"]
    assert "data:image/svg+xml" in shown[-1]["data"]["text/html"] and WIDGET_VIEW not in shown[-1]["data"]


def test_the_widget_face_runs_in_a_real_kernel_and_leaves_one_picture_behind(outputs):
    shown = [set(output.get("data", ())) - {"text/plain"} for output in outputs[1]]
    assert shown.count({WIDGET_VIEW}) == 1 and shown.count({"image/png"}) == 1 and shown.count({"text/html"}) == 1
    assert "Run ended after iteration 3" in outputs[1][-1]["text"]


def test_no_kernel_means_no_front_end():
    assert not front_end.has_widget_front_end()
