"""Progress: what a run says of itself, as text, as widgets, and in real kernels."""

import io
import math
import re
import subprocess
import sys

import pytest
from rich.console import Console

from chessnn_colab import words
from chessnn_colab.errors import ConfigError
from chessnn_colab.report import Session
from chessnn_colab.views import front_end, progress
from chessnn_colab.views.progress import text as text_progress
from chessnn_colab.views.progress.live import LiveProgress
from chessnn_colab.views.progress.notebook import NotebookProgress
from chessnn_colab.views.progress.terminal import TerminalProgress
from tests.sample_reports import MATE, make_report, make_strength

COLOUR = r"\x1b\[(?:[0-9;]*;)?[39][0-7]m"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


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
    assert stream.getvalue().endswith("Stopped during self-play at 1/10 games\n")


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
    assert isinstance(progress.make_progress(), NotebookProgress)
    monkeypatch.setenv("CHESSNN_UI", "silent")
    assert isinstance(progress.make_progress(), progress.Silence)
    assert isinstance(progress.make_progress("text"), text_progress.TextProgress)
    monkeypatch.setenv("CHESSNN_UI", "wigdets")
    with pytest.raises(ConfigError, match="CHESSNN_UI 'wigdets'.*text, terminal, widgets, silent"):
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
    assert words.duration(value) == text


@pytest.mark.parametrize("value, text", [(1e-3, "1e-3"), (2.5e-4, "2.5e-4"), (1.0, "1e0")])
def test_learning_rates_are_short(value, text):
    assert text_progress.short_power(value) == text


# Progress in place: what the live faces share


def session(**changes) -> Session:
    config = {"game": "chess", "preset": "cpu", "search": "two-rung"}
    return Session(**{"run": "runs/a", "config": config, "minutes": 3.0, "iterations": None, **changes})


def live_face(**changes) -> tuple[LiveProgress, Clock]:
    clock = Clock()
    face = LiveProgress(clock)
    face.start_run(session(**changes))
    return face, clock


def test_the_header_counts_the_budget_and_not_the_iteration():
    face, clock = live_face(history=[make_report(6)])
    assert face.header() == "Iteration 7 | starting workers | 0:00 of 3:00 | about 3:00 left"
    face.start_selfplay([64], ["CPU"])
    clock.now += 72
    face.worker_update(0, 32, 3_000)
    assert face.header() == "Iteration 7 | playing | 1:12 of 3:00 | about 1:48 left"
    assert face.bars()[0].share == pytest.approx(0.4) and face.bars()[1] == (
        "playing",
        0.5,
        "32/64 games | 42 positions/s",
    )
    face.finish_selfplay(72.0)
    face.start_learning(40)
    clock.now += 200
    face.learning_update(10)
    assert face.header() == "Iteration 7 | learning | 4:32 of 3:00 | finishing"
    assert face.bars() == [("session", 1.0, "4:32 of 3:00"), ("learning", 0.25, "10/40 updates | 0.1 updates/s")]
    face.report(make_report(7))
    assert face.header().startswith("Iteration 7 | saving") and [report.iteration for report in face.reports] == [6, 7]
    face.start_selfplay([64], ["CPU"])
    assert face.header().startswith("Iteration 8 | playing")
    face.close()
    assert face.messages == ["Stopped during self-play at 0/64 games"] and "Iteration 7 | ended" in face.header()


def test_a_session_of_iterations_guesses_its_time_from_those_that_are_done():
    face, clock = live_face(minutes=None, iterations=4)
    face.start_selfplay([8], ["CPU"])
    assert face.header() == "Iteration 1 | playing | 1 of 4 iterations | 0:00"
    clock.now += 30
    face.finish_selfplay(30)
    face.report(make_report(1))
    face.start_selfplay([8], ["CPU"])
    clock.now += 10
    face.worker_update(0, 1, 9)
    assert face.header() == "Iteration 2 | playing | 2 of 4 iterations | 0:40 | about 1:20 left"


def test_a_session_of_iterations_never_runs_backwards():
    face, _ = live_face(minutes=None, iterations=2)
    shares = [face.bars()[0].share]

    def then(call, *arguments):
        call(*arguments)
        shares.append(face.bars()[0].share)

    then(face.start_measuring, "300 puzzles")
    then(face.measured, ())
    assert face.phase == "starting workers"
    then(face.start_selfplay, [8], ["CPU"])
    then(face.worker_update, 0, 8, 90)
    then(face.finish_selfplay, 30)
    then(face.start_learning, 10)
    then(face.learning_update, 10)
    then(face.start_measuring, "300 puzzles")
    then(face.measured, ())
    then(face.report, make_report(1))
    assert shares == sorted(shares) and shares[-1] == 0.5 and 0.25 in shares


def test_one_worker_draws_one_bar_and_several_one_each():
    face, clock = live_face()
    face.start_selfplay([10], ["CPU"])
    assert face.worker_bars() == []
    face.start_selfplay([100, 50], ["GPU 0: Tesla T4", "GPU 1: Tesla T4"])
    clock.now += 10
    face.worker_update(0, 30, 3_000)
    assert face.worker_bars() == [("GPU 0", 0.3, "30/100 | 300/s"), ("GPU 1", 0.0, "0/50 | 0/s")]
    assert face.bars()[1].words == "30/150 games | 300 positions/s"


def test_workers_that_play_beside_the_learner_leave_its_bar_alone():
    face, _ = live_face()
    face.start_selfplay([10], ["CPU"])
    face.start_learning(20)
    face.learning_update(5)
    face.worker_update(0, 3, 90)
    assert face.bars()[1].name == "learning" and face.tally.total_games == 3
    face.worker_update(0, 10, 300)  # completes its share
    assert face.bars()[1].name == "learning"


def test_a_point_counts_once_before_and_after_its_report():
    face, _ = live_face()
    point = make_strength(0)
    face.start_measuring("300 puzzles, by policy")
    assert face.phase == "measuring strength" and face.bars()[1].share == 0.0
    face.measuring_update(0.4)
    assert face.bars()[1].share == 0.4 and face.bars()[1].words == "300 puzzles, by policy"
    face.measured([point])
    assert face.points == [point]
    face.report(make_report(1, strength=(point,)))
    assert face.points == [point]


# Progress in a notebook


class Output:
    """Stands in for the cell's output: what each place showed, one after the other."""

    def __init__(self, monkeypatch) -> None:
        self.places = []
        output = self

        class Handle:
            def __init__(self):
                self.shown = []
                output.places.append(self)

            def display(self, content):
                self.shown.append(content.data)

            update = display

        monkeypatch.setattr("chessnn_colab.views.progress.notebook.DisplayHandle", Handle)


def heights(content: str) -> list[str]:
    return re.findall(r"[^-]height:(\d+)px", content)


def test_the_panel_keeps_its_place_and_its_height(monkeypatch):
    output, clock = Output(monkeypatch), Clock()
    face = NotebookProgress(clock)
    face.message("Primary training device: cpu")
    face.start_run(session(workers=2))
    bars, figures, sample = output.places
    sizes = {place: set() for place in output.places}
    for iteration in (1, 2):
        face.start_selfplay([4, 4], ["GPU 0", "GPU 1"])
        for done in (1, 4):
            clock.now += 30
            face.worker_update(0, done, 300)
            sizes[bars].add(re.search(r"max-width:1000px;height:(\d+)px", bars.shown[-1])[1])
        face.finish_selfplay(60.0)
        face.start_learning(7)
        face.learning_update(7)
        sizes[bars].add(re.search(r"max-width:1000px;height:(\d+)px", bars.shown[-1])[1])
        clock.now += 100
        face.report(make_report(iteration))
        sizes[figures].add((figures.shown[-1].count("<tr"), figures.shown[-1].count("aspect-ratio")))
    assert [len(size) for size in (sizes[bars], sizes[figures])] == [1, 1] and output.places == [bars, figures, sample]
    assert "data:image/svg+xml" in sample.shown[-1] and "<b>Iteration 2" in sample.shown[-1]
    assert len({re.search(r'data-place="(\w+)"', shown)[1] for shown in sample.shown if "<script" in shown}) == 1
    face.close()
    face.close()
    assert "A game of iteration 2" in sample.shown[-1] and "<script" not in sample.shown[-1]
    assert "2,400 games of chess against itself" in bars.shown[-1] and "progress-bar" not in bars.shown[-1]
    assert "Primary training device" in bars.shown[-1]


def test_the_panel_is_redrawn_a_few_times_a_second(monkeypatch):
    output, clock = Output(monkeypatch), Clock()
    face = NotebookProgress(clock)
    face.start_run(session())
    face.start_selfplay([100], ["CPU"])
    before = len(output.places[0].shown)
    for games in range(1, 101):
        clock.now += 0.01
        face.worker_update(0, games, games)
    assert 3 <= len(output.places[0].shown) - before <= 6


def test_the_panel_spends_little_time_on_figures_and_ends_with_the_last_ones(monkeypatch):
    Output(monkeypatch)
    clock, drawn = Clock(), []

    def slow_figures(reports, *rest):
        clock.now += 1.0
        drawn.append(len(reports))
        return "<img>"

    monkeypatch.setattr("chessnn_colab.views.progress.notebook.figures_html", slow_figures)
    face = NotebookProgress(clock)
    face.start_run(session())
    for iteration in range(1, 42):
        clock.now += 1.0
        face.report(make_report(iteration, sample_game=""))
    assert 2 <= len(drawn) <= 4
    face.close()
    assert drawn[-1] == 41


def test_the_panel_begins_with_the_whole_run(monkeypatch):
    output = Output(monkeypatch)
    face = NotebookProgress(Clock())
    face.start_run(session(history=[make_report(1), make_report(2)]))
    assert ">2</td>" in output.places[1].shown[-1] and "<b>Iteration 2" in output.places[2].shown[-1]


def test_a_panel_without_an_iteration_ends_with_its_messages(monkeypatch):
    output = Output(monkeypatch)
    face = NotebookProgress(Clock())
    face.start_run(session())
    face.message("Interrupted: <nothing> is lost")
    face.close()
    assert [place.shown[-1] == "" for place in output.places] == [False, True, True]
    assert "Interrupted: &lt;nothing&gt; is lost" in output.places[0].shown[-1]


# Progress in a terminal


def terminal_face(**kind) -> tuple[TerminalProgress, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return TerminalProgress(Console(file=stream, width=110, highlight=False, **kind), clock), stream, clock


def run_in(face, clock) -> None:
    face.message("Primary training device: cpu")
    face.start_run(session())
    face.measured([make_strength(0)])
    face.start_selfplay([4], ["CPU"])
    clock.now += 72
    face.worker_update(0, 2, 300)
    face._live.refresh()
    face.finish_selfplay(72.0)
    face.report(make_report(1, strength=(make_strength(0), make_strength(1, share=0.31))))
    face.close()


def test_terminal_face_has_live_lines_and_a_line_an_iteration(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    face, stream, clock = terminal_face(force_terminal=True, color_system="standard")
    run_in(face, clock)
    text = stream.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert "Iteration 1 | playing | 1:12 of 3:00 | about 1:48 left" in plain and "2/4 games | 4 positions/s" in plain
    assert "white 26 %, draws 48 %, black 25 % | 81 plies | policy 0.52 value 0.98 | 2,707 positions/s" in plain
    assert "puzzles, by policy: 9 % -> 31 % since iteration 0" in plain
    assert re.search(COLOUR, text)


def test_terminal_face_has_no_colour_where_nobody_wants_it(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    face, stream, clock = terminal_face(force_terminal=True)
    run_in(face, clock)
    assert "2/4 games" in stream.getvalue() and not re.search(COLOUR, stream.getvalue())


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
from chessnn_colab.report import Report, Session
report = Report.from_dict({{**{make_report(policy_kl=0.5).to_dict()!r}}})
face = make_progress()
face.start_run(Session("runs/a", dict(game="chess", preset="cpu"), 1.0, None))
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


def test_the_panel_runs_in_a_real_kernel_and_leaves_pages_without_widgets_behind(outputs):
    shown = [output["data"] for output in outputs[1]]
    assert [set(data) - {"text/plain"} for data in shown] == [{"text/html"}] * 3
    assert "2,400 games of chess" in shown[0]["text/html"] and shown[1]["text/html"].count("data:image/png") == 5


def test_no_kernel_means_no_front_end():
    assert not front_end.has_widget_front_end()
