"""Progress: what a run and a measurement show, as text, in a terminal, and in real kernels."""

import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from chessnn_colab import text
from chessnn_colab.arena.progress import Bar, MatchProgress
from chessnn_colab.errors import ConfigError
from chessnn_colab.report import Session
from chessnn_colab.views import progress
from chessnn_colab.views.columns import detail_lines, iteration_line
from chessnn_colab.views.progress import model as progress_model
from chessnn_colab.views.progress import notebook
from chessnn_colab.views.progress.model import Face, LiveProgress
from chessnn_colab.views.progress.notebook import NotebookFace
from chessnn_colab.views.progress.terminal import TerminalFace
from chessnn_colab.views.progress.text import TextFace
from chessnn_colab.views.style import GREEN
from tests.sample_reports import make_report, make_strength

COLOUR = r"\x1b\[(?:[0-9;]*;)?[39][0-7]m"


class Clock:
    """In place of `time`: a clock that tests move by hand; seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    for module in (progress_model, notebook):
        monkeypatch.setattr(module, "time", clock)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def session(**changes) -> Session:
    config = {"game": "chess", "preset": "cpu", "search": "two-rung"}
    values = {"run": "runs/a", "config": config, "minutes": 3.0, "iterations": None, **changes}
    return Session(**values)


def text_progress() -> tuple[LiveProgress, io.StringIO, Clock]:
    stream, clock = io.StringIO(), progress_model.time
    return LiveProgress(TextFace(stream)), stream, clock


def live(**changes) -> tuple[LiveProgress, Clock]:
    clock = progress_model.time
    model = LiveProgress(Face())
    model.start_run(session(**changes))
    return model, clock


def matches(*done: int, seconds: float = 10.0) -> MatchProgress:
    names = ("random", "greedy", "minimax")
    bars = [
        Bar(f"against {name}", count, 40, f"+{count} =0 -0") for name, count in zip(names, done)
    ]
    return MatchProgress(tuple(bars), "game", seconds, 58.0)


# Lines


def test_lines_of_self_play_keep_the_form_that_users_know():
    model, stream, clock = text_progress()
    model.message("Primary training device: cuda:0")
    model.start_selfplay([8_000] * 8, [f"GPU {gpu}: Tesla T4" for gpu in range(8)])
    clock.now += 12.3
    model.worker_update(2, 100, 8_000)
    for worker in {*range(8)} - {2}:
        model.worker_update(worker, 100, 8_000)
    model.finish_selfplay(24.1)
    lines = stream.getvalue().splitlines()
    assert lines.pop(3) == "Choosing kernels, once: the first plies on a GPU are slow"
    assert (
        lines[3]
        == "[   12.3s] GPU 2: completed 8,000 positions | 1/8 workers done | 8,000/64,000 positions"
    )
    assert lines[-2].endswith("| 8/8 workers done | 64,000/64,000 positions")
    assert lines[-1] == "Completed 64,000/64,000 positions in 24.1s (2,656 positions/s)"
    assert len(lines) == 3 + 8 + 1


def test_lines_show_movement_but_not_too_often():
    model, stream, clock = text_progress()
    model.start_selfplay([30_000, 30_000], ["CPU", "CPU"])
    for games in range(1, 241):
        clock.now += 0.125
        model.worker_update(0, games, games * 75)
    assert stream.getvalue().splitlines()[2:] == [
        "[   15.0s] playing 9,000/60,000 positions | 600/s",
        "[   30.0s] playing 18,000/60,000 positions | 600/s",
    ]


def test_a_restarted_worker_does_not_count_backwards_and_ends_once():
    model, stream, clock = text_progress()
    model.start_selfplay([1_000, 100], ["CPU", "CPU"])
    model.worker_update(0, 8, 800)
    model.worker_update(0, 0, 0)
    lost = Bar("CPU worker 0", 800, 1_000, "lost, its share is played again", lost=True)
    assert model.worker_bars()[0] == lost
    clock.now += 20
    for games in (5, 10, 7, 10):
        model.worker_update(0, games, 100 * games)
    assert model.worker_bars()[0] == Bar(
        "CPU worker 0", 1_000, 1_000, "1,000/1,000, 10 games in 20s"
    )
    line = "[   20.0s] CPU worker 0: completed 1,000 positions | 1/2 workers done | 1,000/1,100 positions"
    assert stream.getvalue().splitlines().count(line) == 1
    clock.now += 60
    model.worker_update(0, 10, 1_000)
    assert model.worker_bars()[0].note == "1,000/1,000, 10 games in 20s"


def test_a_worker_much_slower_than_its_siblings_is_named_once():
    model, _ = live(workers=3)

    def play(done: Sequence[int]) -> list[str]:
        model.start_selfplay([1_000] * 3, [f"GPU {gpu}: Tesla T4" for gpu in range(3)])
        for worker, plies in enumerate(done):
            model.worker_update(worker, 1, plies)
        return [text for text in model.messages if "is slow" in text]

    assert play([900, 900, 100]) == [], "the first plies on a GPU may be slow"
    model.report(make_report(1))
    assert play([900, 450, 1000]) == play([400, 400, 100]) == []
    (words,) = play([900, 100, 800])
    assert words.startswith("GPU 1 is slow: 10 % of its positions are played, the others have 80 %")
    assert words.endswith("and into its log") and play([900, 100, 800]) == [words]


def test_all_that_a_training_says_is_kept_in_its_run(tmp_path):
    (tmp_path / "logs").mkdir()
    model, stream, _ = text_progress()
    model.message("Primary training device: cuda:0")
    model.start_run(session(run=str(tmp_path)))
    model.start_selfplay([10], ["CPU"])
    model.worker_update(0, 1, 10)
    model.measured((make_strength(1),))
    model.report(make_report())
    kept = (tmp_path / "logs" / "training.log").read_text().splitlines()
    assert [line[20:] for line in kept] == stream.getvalue().splitlines()
    assert all(re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in kept)


def test_a_worker_that_has_finished_is_green_with_a_tick_and_one_that_was_cut_says_so(
    places, monkeypatch
):
    monkeypatch.setenv("TERM", "xterm-256color")
    for face in (NotebookFace(), TerminalFace(stream := Terminal())):
        clock = progress_model.time
        model = LiveProgress(face)
        model.start_run(session(workers=2))
        model.start_selfplay([3_000, 3_000], ["CPU", "CPU"])
        clock.now += 10
        model.worker_update(0, 64, 3_000)
        model.worker_update(1, 14, 656)
        model.finish_selfplay(10.0)
        model.learning_update(1, 9)
        model.close()
    bars = next(shown for shown in places[0] if "learning" in shown)
    assert bars.count(GREEN) == bars.count("✓") == 1 and "✓ 3,000/3,000, 64 games in 10s" in bars
    assert "656/3,000, time is up" in bars and 'aria-valuenow="21.9"' in bars
    drawn = stream.getvalue()
    assert "3,000/3,000, 64 games in 10s" in drawn and "656/3,000, time is up" in drawn
    assert re.search(r"\x1b\[[0-9;]*32m[^\x1b]*━", drawn), "a finished bar is green"


def test_an_iteration_as_a_line_names_the_players_of_any_game_and_what_is_missing():
    line = iteration_line(make_report())
    assert line.startswith(
        "Iteration 3 | white 26 %, black 25 %, draws 48 %, cap 1 % | plies 81 | "
    )
    assert (
        "policy 2.31 | policy KL 0.52 | value 0.98 | Brier 0.42 | entropy 1.20 | positions/s 2,707"
        in line
    )
    nothing = make_report(games=0, wins={"x": 0}, draws=0, endings={}, policy_loss=float("nan"))
    assert "no game ended | plies -" in iteration_line(nothing) and "policy - " in iteration_line(
        nothing
    )
    assert detail_lines(nothing)[0] == "Endings: none"


def test_lines_of_matches_say_how_long_it_takes_what_has_ended_and_how_far_it_is():
    model, stream, clock = text_progress()
    model(matches(1, 0, 0))
    clock.now += 1
    model(matches(40, 5, 1))
    clock.now += 15
    model(matches(40, 22, 9, seconds=27.0))
    assert stream.getvalue().splitlines() == [
        "1/120 games | 58s left",
        "[   10.0s] against random: completed 40 games | 1/3 parts done | 46/120 games",
        "[   27.0s] against greedy: 22/40 done +22 =0 -0",
        "[   27.0s] against minimax: 9/40 done +9 =0 -0",
        "[   27.0s] 71/120 games | 58s left",
    ]


def test_of_many_matches_those_under_way_are_shown():
    bars = tuple(Bar(f"match {number}", 10 - number % 2, 10) for number in range(20))
    model = LiveProgress(Face())
    model(MatchProgress(bars, "game", 1.0))
    assert [bar.done for bar in model.bars()] == [9] * 8


# Which face


def test_the_face_is_chosen_by_name_then_environment_then_place(monkeypatch):
    monkeypatch.delenv("CHESSNN_UI", raising=False)
    assert type(progress.make_progress().face) is TextFace
    assert type(progress.make_progress(stream=Terminal()).face) is TerminalFace
    monkeypatch.setattr(progress, "has_widget_front_end", lambda: True)
    assert type(progress.make_progress().face) is NotebookFace
    monkeypatch.setenv("CHESSNN_UI", "silent")
    assert type(progress.make_progress().face) is Face
    monkeypatch.setenv("CHESSNN_UI", "wigdets")
    with pytest.raises(ConfigError, match="CHESSNN_UI='wigdets'.*text, terminal, widgets, silent"):
        progress.make_progress()


@pytest.mark.parametrize(
    "value, words",
    [(0.4, "0s"), (59.6, "1m 00s"), (200, "3m 20s"), (7_530, "2h 05m"), (90_000, "25h 00m")],
)
def test_durations_read_as_a_person_says_them(value, words):
    assert text.duration(value) == words


# The model: header and bars


def test_the_header_counts_the_budget_and_not_the_iteration():
    model, clock = live(history=[make_report(6)])
    assert model.header() == "Iteration 7 | starting workers | 0s of 3m 00s"
    model.start_selfplay([6_000], ["CPU"])
    clock.now += 72
    model.worker_update(0, 32, 3_000)
    assert model.header() == "Iteration 7 | playing | 1m 12s of 3m 00s | about 1m 48s left"
    assert model.bars()[0].share == pytest.approx(0.4)
    assert model.bars()[1] == Bar("playing", 3_000, 6_000, "3,000/6,000 positions | 42/s")
    model.finish_selfplay(72.0)
    model.learning_update(0, 40)
    clock.now += 200
    model.learning_update(10, 40)
    assert model.header() == "Iteration 7 | learning | 4m 32s of 3m 00s | finishing"
    assert model.bars() == [
        Bar("session", 1.0, 1, "4m 32s of 3m 00s"),
        Bar("learning", 10, 40, "10/40 updates | 0.1 updates/s"),
    ]
    model.report(make_report(7))
    assert model.header().startswith("Iteration 7 | saving")
    assert [report.iteration for report in model.reports] == [6, 7]
    model.start_selfplay([64], ["CPU"])
    assert model.header().startswith("Iteration 8 | playing")


def test_a_session_of_iterations_estimates_its_time_from_the_pace_so_far():
    model, clock = live(minutes=None, iterations=4)
    model.start_selfplay([8], ["CPU"])
    assert model.header() == "Iteration 1 | playing | 1 of 4 iterations | 0s"
    clock.now += 30
    model.finish_selfplay(30)
    model.report(make_report(1))
    model.start_selfplay([18], ["CPU"])
    clock.now += 10
    model.worker_update(0, 4, 9)
    assert model.header() == "Iteration 2 | playing | 2 of 4 iterations | 40s | about 1m 28s left"


def test_the_bar_of_a_session_of_iterations_never_runs_backwards():
    model, _ = live(minutes=None, iterations=2)
    shares = []
    for event in (
        lambda: model.measuring_update("300 puzzles", 0.0),
        lambda: model.measured(()),
        lambda: model.start_selfplay([8], ["CPU"]),
        lambda: model.worker_update(0, 8, 90),
        lambda: model.learning_update(0, 10),
        lambda: model.learning_update(10, 10),
        lambda: model.measuring_update("300 puzzles", 0.0),
        lambda: model.measured(()),
        lambda: model.report(make_report(1)),
    ):
        event()
        shares.append(model.bars()[0].share)
    assert shares == sorted(shares) and shares[-1] == 0.5 and 0.25 in shares


def test_while_workers_start_it_is_seen_which_have():
    model, _ = live(workers=2)
    model.starting_update(["", "GPU 1: Tesla T4"])
    assert model.bars()[1] == Bar("starting workers", 1, 2, "1/2 workers")
    assert model.worker_bars() == (Bar("starting", 0, 1), Bar("GPU 1: Tesla T4", 1, 1))


def test_every_worker_has_a_bar_with_the_name_of_its_device():
    model, clock = live()
    model.start_selfplay([10], ["CPU"])
    assert model.worker_bars() == (Bar("CPU", 0, 10),)
    model.start_selfplay([10_000, 5_000], ["GPU 0: Tesla T4", "GPU 1: Tesla T4"])
    clock.now += 10
    model.worker_update(0, 30, 3_000)
    assert model.worker_bars() == (
        Bar("GPU 0", 3_000, 10_000, "3,000/10,000, 30 games | 300/s"),
        Bar("GPU 1", 0, 5_000),
    )
    assert model.bars()[1].note == "3,000/15,000 positions | 300/s"


def test_the_first_plies_on_a_gpu_are_said_to_be_slow_until_one_has_been_played():
    for device in ("GPU 0: Tesla T4", "Apple GPU (MPS)"):
        model, clock = live()
        for name, phase in (("CPU", "playing"), (device, "choosing kernels, once")):
            model.start_selfplay([64], [name])
            assert f"| {phase} |" in model.header() and model.bars()[1].name == phase
    clock.now += 50
    model.worker_update(0, 0, 4_096)
    assert "| playing |" in model.header()
    model.start_selfplay([64], ["GPU 0: Tesla T4"])
    assert "| playing |" in model.header(), "it does so once"


def test_workers_that_play_beside_the_learner_leave_its_bar_alone():
    model, stream, _ = text_progress()
    model.start_selfplay([300], ["CPU"])
    model.learning_update(5, 20)
    for games in (3, 10):
        model.worker_update(0, games, 30 * games)
        assert model.bars()[1].name == "learning"
    assert "CPU: completed 300 positions" in stream.getvalue()


def test_a_measured_strength_counts_once_before_and_after_its_report():
    model, _ = live()
    point = make_strength(0)
    model.measuring_update("300 puzzles, by policy", 0.4)
    assert model.bars()[1] == Bar("measuring strength", 0.4, 1, "300 puzzles, by policy")
    model.measured([point])
    assert model.points == [point] and "starting workers" in model.header()
    model.report(make_report(1, strength=(point,)))
    assert model.points == [point]


def test_a_run_below_the_curve_of_a_normal_one_says_so_once_and_what_to_look_at_first():
    model, _ = live()
    early, late, good, weak = (
        replace(make_strength(iteration, share), low=0.0, high=share + 0.02)
        for iteration, share in ((1, 0.01), (6, 0.1), (6, 0.3), (7, 0.1))
    )
    for point in (early, good, late, weak):  # a normal run: 33 % after six minutes
        model.measured([point])
    model.measured([replace(late, measure="games against somebody else")])
    assert [words.split(".")[0] for words in model.messages] == [
        "Weaker than a normal run by now (puzzles, by policy)"
    ]
    assert "the normal run's 2,862" in model.messages[0]
    soon = replace(late, measure="games against greedy", seconds=200.0)
    model.measured([soon])
    assert len(model.messages) == 1, "the normal run had not played greedy by then"
    other, _ = live(config={"game": "gomoku", "preset": "cpu", "search": "two-rung"})
    other.measured([late])
    assert not other.messages, "no curve of its game"


# A notebook


@pytest.fixture
def places(monkeypatch) -> list:
    """What each place of the cell's output showed, one after the other."""
    every = []

    class Handle:
        def __init__(self):
            self.shown = []
            every.append(self.shown)

        def display(self, content, raw=False):
            self.shown.append(getattr(content, "data", content))

        update = display

    monkeypatch.setattr("IPython.display.DisplayHandle", Handle)
    return every


def panel(**changes) -> tuple[LiveProgress, Clock]:
    clock = progress_model.time
    model = LiveProgress(NotebookFace())
    model.start_run(session(**changes))
    return model, clock


def test_the_panel_keeps_its_place_and_its_height(places):
    model, clock = panel(workers=2)
    model.message("Primary training device: cpu")
    for iteration in (1, 2):
        model.start_selfplay([4, 4], ["GPU 0", "GPU 1"])
        for done in (1, 4):
            clock.now += 30
            model.worker_update(0, done, 300)
        model.finish_selfplay(60.0)
        model.learning_update(7, 7)
        clock.now += 100
        model.report(make_report(iteration))
    bars, figures = places
    assert len({re.search(r"max-width:1000px;.*?height:(\d+)px", shown)[1] for shown in bars}) == 1
    assert len({(shown.count("<tr"), shown.count("image/png")) for shown in figures}) == 1
    assert "data:image/svg+xml" in figures[-1] and "<b>Iteration 2" in figures[-1]
    drawn = [shown for shown in figures if "<script" in shown]
    players = {re.search(r'data-place="(\w+)"', shown)[1] for shown in drawn}
    assert len(players) == 1
    model.close()
    assert "A game of iteration 2" in figures[-1] and "<script" not in figures[-1]
    assert "2,400 games against itself" in bars[-1] and "progress-bar" not in bars[-1]
    assert "Primary training device" in bars[-1]


def test_the_bars_of_a_page_with_widgets_are_widgets_until_the_end(places, monkeypatch):
    monkeypatch.setattr("chessnn_colab.views.progress.notebook.has_widget_front_end", lambda: True)
    clock = progress_model.time
    model = LiveProgress(face := NotebookFace())
    model(matches(10, 0, 0))
    clock.now += 1
    model(replace(matches(40, 22, 0), bars=(*matches(40, 22).bars, Bar("<a>", 1, 2, lost=True))))
    _, bars, _ = face._widgets._panel.children
    progress, notes = zip(*(line.children for line in bars.children))
    assert [(each.value, each.bar_style) for each in progress] == [
        (1, "success"), (0.55, ""), (0.5, "danger")
    ]  # fmt: skip
    assert "✓ 40/40 done +40" in notes[0].value and progress[2].description == "<a>"
    notice, widget, html = places
    assert [*widget[0]] == ["application/vnd.jupyter.widget-view+json"]
    drawn = re.findall(r'aria-label="(.*?)" aria-valuenow="([\d.]+)"', html[-1])
    names = ("against random", "against greedy", "&lt;a&gt;")
    assert drawn == [*zip(names, ("100.0", "55.0", "50.0"))], "a screen reader knows each"
    model.close()
    assert (notice[-1], widget[-1]) == ("", "") and "63 games in 10s" in html[-1]
    assert not face._widgets._panel.comm


def test_the_panel_is_redrawn_a_few_times_a_second(places):
    model, clock = panel()
    model.start_selfplay([100], ["CPU"])
    before = len(places[0])
    for games in range(1, 101):
        clock.now += 0.01
        model.worker_update(0, games, games)
    assert 3 <= len(places[0]) - before <= 6


def test_the_panel_spends_little_time_on_figures_and_ends_with_the_last_ones(places, monkeypatch):
    model, clock = panel()
    drawn = []

    def slow_figures(reports, *rest):
        clock.now += 1.0
        drawn.append(len(reports))
        return "<img>"

    monkeypatch.setattr("chessnn_colab.views.progress.notebook.figures_html", slow_figures)
    for iteration in range(1, 42):
        clock.now += 1.0
        model.report(make_report(iteration, sample_game=""))
    assert 2 <= len(drawn) <= 4
    model.close()
    assert drawn[-1] == 41


def test_the_panel_begins_with_the_whole_run(places):
    panel(history=[make_report(1), make_report(2)])
    _, figures = places
    assert ">2</td>" in figures[-1] and "<b>Iteration 2" in figures[-1]


def test_a_panel_without_an_iteration_ends_with_its_messages(places):
    model, _ = panel()
    model.message("Interrupted: <nothing> is lost")
    model.close()
    assert [place[-1] == "" for place in places] == [False, True]
    assert "Interrupted: &lt;nothing&gt; is lost" in places[0][-1]


# A terminal


@pytest.fixture(params=["", "1"])
def no_color(request, monkeypatch) -> bool:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)  # to older versions of rich even "" says no
    if request.param:
        monkeypatch.setenv("NO_COLOR", request.param)
    return bool(request.param)


def test_a_terminal_has_live_bars_of_a_run_and_a_line_an_iteration(no_color):
    stream, clock = Terminal(), progress_model.time
    model = LiveProgress(TerminalFace(stream))
    model.message("Primary training device: cpu")
    model.start_run(session())
    model.measured([make_strength(0)])
    model.start_selfplay([600], ["CPU"])
    clock.now += 72
    model.worker_update(0, 2, 300)
    model.finish_selfplay(72.0)
    model.report(make_report(1))
    model.close()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "Iteration 1 | playing | 1m 12s of 3m 00s | about 1m 48s left" in plain
    assert "300/600 positions | 4/s" in plain and "Generating" not in plain
    assert iteration_line(make_report(1)) in plain
    assert "300 puzzles, by policy: 9 % before training (95 % interval 7 to 11 %)" in plain
    assert bool(re.search(COLOUR, stream.getvalue())) is not no_color


def test_a_terminal_has_bars_of_matches_and_nothing_left_behind(no_color):
    stream, clock = Terminal(), progress_model.time
    model = LiveProgress(TerminalFace(stream))
    for step in range(3):
        clock.now += 1
        model(matches(10 * step, 0, 0))
    drawn = stream.getvalue()
    assert "against random" in drawn and "20/40" in drawn and "20/120 games | 58s left" in drawn
    assert re.search(r"\x1b\[\d*A", drawn), "the cursor goes up, and the lines are drawn again"
    model.close()
    assert "\x1b[2K" in stream.getvalue()[len(drawn) :]
    assert bool(re.search(r"\x1b\[[0-9;]*9[0-9]m", drawn)) is not no_color


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a file that takes nothing is Linux's")
def test_progress_that_cannot_be_written_ends_no_match():
    with open("/dev/full", "w") as full:
        drawn = LiveProgress(TextFace(full))
        drawn(MatchProgress((Bar("a match", 0, 2),), "game", 0.0))
        drawn.message("a line")
        drawn.close()
        with suppress(OSError):
            full.close()


@pytest.mark.parametrize("forced", ["", "1"])
def test_a_terminal_that_has_gone_ends_no_training(monkeypatch, forced):
    """As after `train &` and `exit`, where nobody sends a signal."""
    pty = pytest.importorskip("pty", reason="Windows has no such terminals")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", forced)
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        drawn = LiveProgress(TerminalFace(stream))
        drawn.start_run(session())
        drawn.message("a line")
        os.close(master)
        for number in (1, 2):
            drawn.message(f"line {number}")
            drawn.report(make_report(number))
        drawn.close()
        with suppress(OSError):
            stream.close()
