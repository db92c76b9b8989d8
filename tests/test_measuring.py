"""Progress of what is measured: a terminal, lines, a notebook; the commands that measure; errors in a notebook."""

import atexit
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import ipywidgets
import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from chessnn_colab.__main__ import main
from chessnn_colab.arena.chess import kit
from chessnn_colab.arena.result import MatchGame, MatchResult, Opening, wilson_interval
from chessnn_colab.arena.standing import Part, Standing, left
from chessnn_colab.errors import ChessnnError, ConfigError
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.tensorboard import TensorBoard
from chessnn_colab.search import SearchConfig
from chessnn_colab.views import measuring
from chessnn_colab.views.measuring import text, widget
from chessnn_colab.views.measuring.terminal import TerminalFace
from chessnn_colab.views.run_table import follow, print_tables

from .sample_reports import make_report
from .small_run import TICTACTOE, make_run

POLICY = SearchConfig(search="policy")


class Clock:
    """A clock that tests move by hand; seconds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def standing(*done: int, seconds: float = 10.0, seconds_left: float | None = 58.0) -> Standing:
    names = ("random", "greedy", "minimax")
    parts = tuple(Part(f"against {name}", count, 40, f"+{count} =0 -0") for name, count in zip(names, done))
    return Standing(parts, "game", seconds, seconds_left)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("measuring") / "run", (0, 3, 5), "tictactoe", TICTACTOE)


@pytest.fixture
def chess_run(tmp_path, monkeypatch) -> str:
    monkeypatch.setattr(kit, "KIT", replace(kit.KIT, max_plies=10))
    return make_run(tmp_path / "chess", (0, 4))


# Faces


def test_lines_say_how_long_it_takes_what_has_ended_and_now_and_then_how_far_it_is():
    stream, clock = io.StringIO(), Clock()
    face = text.TextFace(stream, clock)
    face(standing(1, 0, 0))
    clock.now += 1
    face(standing(20, 3, 0))
    face(standing(40, 5, 1))
    assert stream.getvalue().splitlines() == ["119 games to go, about 58s", "against random 1/3 ... 40/40 +40 =0 -0"]
    clock.now += 15
    face(standing(40, 22, 9))
    assert stream.getvalue().splitlines()[2:] == [
        "against greedy 2/3 ... 22/40 +22 =0 -0 | 58s left",
        "against minimax 3/3 ... 9/40 +9 =0 -0 | 58s left",
        "71/120 games | 58s left",
    ]


def test_of_many_parts_those_under_way_are_shown():
    parts = tuple(Part(f"match {number}", min(number, 10), 10) for number in range(20))
    shown = text.shown_parts(Standing(parts, "game", 1.0))
    assert len(shown) == text.MOST_PARTS and all(0 <= part.done < 10 for _, part in shown) and shown[0][1].done == 9


def test_time_left_is_by_the_pace_so_far():
    assert left(0, 10, 3.0) is None and left(2, 10, 3.0) == 12.0 and left(10, 10, 3.0) == 0


def test_a_terminal_has_bars_in_place_and_nothing_left_behind():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream, clock = Terminal(), Clock()
    face = TerminalFace(stream, clock)
    for step in range(3):
        clock.now += 1
        face(standing(10 * step, 0, 0))
    drawn = stream.getvalue()
    assert "against random" in drawn and "20/40" in drawn and "20/120 games | 58s left" in drawn
    assert re.search(r"\x1b\[\d*A", drawn), "the cursor goes up, and the lines are drawn again"
    face.close()
    assert stream.getvalue().endswith("\x1b[2K") or "\x1b[2K" in stream.getvalue()[len(drawn) :]


@pytest.mark.parametrize("no_color", [False, True])
def test_colour_follows_no_color(no_color, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "1") if no_color else monkeypatch.delenv("NO_COLOR", raising=False)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    face = TerminalFace(stream, Clock())
    face(standing(10, 0, 0))
    face.close()
    assert bool(re.search(r"\x1b\[[0-9;]*36m", stream.getvalue())) is not no_color


def test_widgets_move_and_become_a_table_at_the_end(monkeypatch):
    shown, updated = [], []

    class Handle:
        def update(self, content):
            updated.append(content.data)

    monkeypatch.setattr(widget, "display", lambda view, raw, display_id: shown.append(view) or Handle())
    clock = Clock()
    face = widget.WidgetFace(clock)
    face(standing(10, 0, 0))
    clock.now += 1
    face(standing(40, 22, 0))
    (view,) = shown
    panel = face._panel
    assert view[widget.VIEW]["model_id"] == panel.model_id
    bars = [row.children[1] for row in panel.children[:3]]
    assert [(bar.value, bar.max, bar.bar_style) for bar in bars[:2]] == [(40, 40, "success"), (22, 40, "info")]
    assert "22/40 +22 =0 -0" in panel.children[1].children[2].value and "62/120 games" in panel.children[3].value
    assert all(isinstance(child, ipywidgets.Widget) for child in panel.children)
    face(standing(40, 40, 40, seconds=70.0))
    face.close()
    assert "<td>against greedy</td><td>40/40</td>" in updated[0] and "120 games in 1m 10s" in updated[0]


@pytest.mark.parametrize(
    "kind, face", [("text", text.TextFace), ("silent", measuring.Silent), ("widgets", widget.WidgetFace)]
)
def test_a_face_is_chosen_by_name_or_by_the_environment(kind, face, monkeypatch):
    monkeypatch.delenv("CHESSNN_UI", raising=False)
    assert isinstance(measuring.make_face(kind), face)
    monkeypatch.setenv("CHESSNN_UI", kind)
    assert isinstance(measuring.make_face(), face)
    with pytest.raises(ConfigError, match="unknown progress 'bars': expected one of text, terminal, widgets, silent"):
        measuring.make_face("bars")


# What a notebook calls


def test_measure_plays_before_and_after_prints_and_returns(run, capsys):
    results = measuring.measure(run, ["random"], games=4, search=POLICY, seconds=60, device="cpu")
    assert [result.player for result in results] == ["iteration 0", "iteration 5"]
    out = capsys.readouterr().out
    assert out.startswith("8 games to go, about ")
    assert "iteration 5 (1 evaluations per move) against random: " in out


def test_a_longer_match_is_told_of_those_that_are_whole_and_repeat_nothing():
    def match(points: float, asked: int = 10) -> MatchResult:
        games = [MatchGame(Opening(str(n), ()), True, points if n % 2 else 1.0, "", (n,)) for n in range(10)]
        return MatchResult("net", "random", tuple(games), 1, 1, 1.0, 1.0, asked)

    even, sure = match(0.0), match(1.0)
    said = "Four times the games would bring the widest interval from ± {} to about ± {}."
    wide = (even.interval[1] - even.interval[0]) / 2
    assert measuring.longer_match([sure, even]) == said.format(f"{wide:.3f}", f"{wide / 2:.3f}")
    low, _ = wilson_interval(1.0, 40)
    assert measuring.longer_match([sure]) == said.format(f"{(1 - sure.interval[0]) / 2:.3f}", f"{(1 - low) / 2:.3f}")
    again = replace(even, played=even.played[:5] * 2)
    assert measuring.longer_match([match(0.0, 40), replace(even, interrupted=True), again]) == ""


def test_measure_takes_a_quarter_of_the_training_and_three_minutes_at_most(tmp_path):
    path = make_run(tmp_path / "run", (0,), "tictactoe", TICTACTOE)
    assert measuring.measuring_seconds(path) == 0
    with RunFolder.create_or_open(path, {"game": "tictactoe"}) as folder:
        folder.append_report(make_report(1, seconds=80.0).to_dict())
        assert measuring.measuring_seconds(path) == 20
        folder.append_report(make_report(2, seconds=8000.0).to_dict())
    assert measuring.measuring_seconds(path) == 180


def test_measure_names_one_network_once(run):
    results = measuring.measure(run, ["random"], (5, None), 2, POLICY, 60, device="cpu")
    assert [result.player for result in results] == ["iteration 5"]


def test_an_interrupted_measure_returns_what_there_is(run, monkeypatch, capsys):
    class Interrupting(text.TextFace):
        def __call__(self, standing):
            if standing.done >= 20:
                raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "make_face", lambda *_: Interrupting())
    results = measuring.measure(run, ["random"], (0, None), 600, POLICY, 600, device="cpu")
    assert 20 <= sum(result.games for result in results) < 1200 and all(result.interrupted for result in results)
    assert "of 600 games had ended" in capsys.readouterr().out


# The shell


@pytest.mark.parametrize("command", ["evaluate", "ladder", "tactics"])
def test_ctrl_c_prints_what_there_is_and_exits_with_130(command, run, chess_run, monkeypatch, capsys):
    """As the watch of any of them sees it: in the middle of the games."""
    seen = []

    def interrupt(self, standing):
        seen.append(standing)
        enough = {"evaluate": 10, "ladder": standing.total // 2, "tactics": 450}[command]
        if standing.done >= enough:
            raise KeyboardInterrupt

    monkeypatch.setattr(text.TextFace, "__call__", interrupt)
    more = {"evaluate": ["--games", "1000"], "ladder": ["--games", "1000", "--snapshots", "2"], "tactics": []}[command]
    target = chess_run if command == "tactics" else run
    assert main([command, target, "--search", "policy", "--device", "cpu", *more]) == 130
    captured = capsys.readouterr()
    said = {
        "evaluate": r"interrupted: \d+ of 1000 games had ended",
        "ladder": r"Interrupted: \d+ of \d+ games had ended; ratings.json stays as it was",
        "tactics": r"iteration +0: mate-in-one",
    }[command]
    assert re.search(said, captured.out), captured.out
    assert "Traceback" not in captured.err and len(seen) > 1
    if command == "tactics":
        assert "interrupted after 1 of 2 snapshots" in captured.err


def test_a_ladder_that_is_stopped_at_once_says_that_nothing_is_kept(run, monkeypatch, capsys):
    def interrupt(self, standing):
        raise KeyboardInterrupt

    monkeypatch.setattr(text.TextFace, "__call__", interrupt)
    assert main(["ladder", run, "--games", "200", "--search", "policy", "--device", "cpu"]) == 130
    assert "too few to rate every player: nothing is kept" in capsys.readouterr().err


def test_a_real_ctrl_c_on_a_real_terminal(run):
    """Bars while it plays, then the score so far, no traceback, exit code 130."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CHESSNN_UI"} | {
        "TERM": "xterm-256color"
    }
    command = ["evaluate", run, "--games", "200000", "--search", "policy", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "chessnn_colab", *command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(slave)
    said, deadline, sent = b"", time.monotonic() + 90, False
    try:
        while time.monotonic() < deadline:
            try:
                said += os.read(master, 65536)
            except OSError:  # the other end has gone
                break
            if not sent and re.search(rb"[1-9]\d*/200000 games", said):
                os.kill(process.pid, signal.SIGINT)
                sent = True
        assert process.wait(30) == 130
    finally:
        process.kill()
        os.close(master)
    end = said.decode(errors="replace")
    assert "against random" in end and re.search(r"interrupted: \d+ of 200000 games had ended", end)
    assert "Traceback" not in end


def test_progress_goes_to_stderr_and_the_result_to_stdout(run, capsys):
    assert main(["evaluate", run, "--games", "4", "--search", "policy", "--device", "cpu", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["games"] == 4 and "to go, about" in captured.err


def test_bench_says_what_it_measures(capsys):
    assert main(["bench", "rules", "--seconds", "0.05", "--device", "cpu", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bench"] == "rules" and "1 measurement to go, about 0s" in captured.err


# watch


@pytest.fixture
def trained(tmp_path) -> str:
    path = make_run(tmp_path / "trained", (0,))
    with RunFolder.create_or_open(path, {}) as folder:
        for iteration in range(1, 5):
            folder.append_report(make_report(iteration, seconds=60.0 * iteration).to_dict())
    return path


def test_watch_prints_once_into_a_pipe_and_the_last_so_many(trained, capsys):
    assert main(["watch", trained, "--last", "2"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[1].split() == (
        "Iteration time games white wins black wins draws plies policy value entropy positions/s".split()
    )
    assert [line.split()[:3] for line in lines[2:-1]] == [["3", "3m", "00s"], ["4", "4m", "00s"]]
    assert "26 %" in lines[2] and "2.31" in lines[2] and "2,400 games" in lines[-1]
    assert main(["watch", trained, "--last", "0"]) == 2
    assert "last=0: expected a whole number from 1 up" in capsys.readouterr().err


def test_several_runs_stand_side_by_side_where_there_is_room(trained, tmp_path, capsys):
    other = make_run(tmp_path / "other", (0,))
    assert main(["watch", trained, other]) == 0
    out = capsys.readouterr().out
    assert "trained" in out and "other" in out and "no iteration has finished yet" in out

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    console = Console(file=stream, width=260, force_terminal=True)

    def stop(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow([trained, trained], 2, console, stop)
    assert any(line.count("Iteration") == 2 for line in stream.getvalue().splitlines())


def test_watch_and_tensorboard_leave_out_what_would_be_false_of_games_that_the_clock_cut(tmp_path):
    with RunFolder.create_or_open(tmp_path / "run", {"game": "chess"}) as folder:
        board = TensorBoard(folder.tensorboard_folder, 0)
        for report in (make_report(1), make_report(2, cut=True, average_plies=9.0)):
            folder.append_report(report.to_dict())
            board.write(report)
        board.close()
    print_tables([tmp_path / "run"], stream=(out := io.StringIO()))
    whole, cut = (line.split() for line in out.getvalue().splitlines() if line.strip().startswith(("1 ", "(2)")))
    assert whole[0] == "1" and "81" in whole and cut[0] == "(2)" and cut.count("-") == 4 and "9" not in cut
    events = EventAccumulator(str(folder.tensorboard_folder)).Reload()
    steps = {name: [event.step for event in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert steps["games/average_plies"] == steps["games/draw_rate"] == steps["games/white_win_rate"] == [1]
    assert steps["loss/value"] == [1, 2] and "value/accuracy" not in steps


def test_watch_follows_a_run_that_grows(trained):
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True, no_color=True)
    asleep = []

    def sleep(seconds):
        asleep.append(seconds)
        if len(asleep) == 2:
            raise KeyboardInterrupt
        with RunFolder.create_or_open(trained, {}) as folder:
            folder.append_report(make_report(5, seconds=7000.0).to_dict())

    with pytest.raises(KeyboardInterrupt):
        follow([trained], 3, console, sleep)
    assert "1h 56m" in stream.getvalue() and stream.getvalue().count("Iteration") >= 2
    print_tables([trained], 1, out := io.StringIO())
    assert " 5 " in out.getvalue()


# Errors in a notebook


def test_an_error_of_the_package_is_one_box_in_ipython(capsys, monkeypatch):
    """In a real shell: the sentence, wrapped, and no traceback. Other errors keep theirs."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell puts its own there
    shell = InteractiveShell()
    try:
        done = shell.run_cell(
            "from chessnn_colab.errors import ConfigError\n"
            "raise ConfigError('unknown opponent kasparov: expected one of ' + 'random, ' * 30)"
        )
        assert isinstance(done.error_in_exec, ChessnnError)
        captured = capsys.readouterr()
        box = re.sub(r"\x1b\[[0-9;]*m", "", captured.out + captured.err).rstrip().splitlines()
        assert box[0].startswith("╭─ ConfigError ─") and box[-1].startswith("╰─") and len({*map(len, box)}) == 1
        assert "unknown opponent kasparov" in box[1] and len(box) >= 5 and "Traceback" not in "".join(box)
        shell.run_cell("1 / 0")
        assert "Traceback" in "".join(capsys.readouterr())
    finally:
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)


def test_a_match_result_can_be_made_without_the_newer_fields():
    result = MatchResult("a", "b", (), 1, 1, 1.0, 1.0)
    assert result.asked is None and not result.interrupted and result.to_dict()["games_asked"] == 0
