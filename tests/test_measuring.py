"""Measuring: what a notebook calls, the commands that measure, the tables of `watch`, and errors in
a notebook.
"""

import atexit
import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, replace

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from chessnn_colab import chances
from chessnn_colab.__main__ import main
from chessnn_colab.arena import parallel, runner
from chessnn_colab.arena.result import FORFEIT
from chessnn_colab.chances import Calibration
from chessnn_colab.errors import ChessnnError
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.tensorboard import TensorBoard
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Play
from chessnn_colab.views import measuring, strength_plots
from chessnn_colab.views.progress import LiveProgress
from chessnn_colab.views.progress.model import Face
from chessnn_colab.views.run_table import follow, print_tables

from .sample_reports import make_report
from .small_run import TICTACTOE, make_run, write_reports

POLICY = SearchConfig(search="policy")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("measuring") / "run", (0, 3, 5), "tictactoe", TICTACTOE)


@pytest.fixture
def chess_run(tmp_path, short_games) -> str:
    return make_run(tmp_path / "chess", (0, 4))


def interrupt_after(monkeypatch, games: int) -> list:
    """Ctrl-C, as the watch of a measurement sees it, once so many games have ended; returns what
    it saw.
    """
    seen = []

    def interrupt(self, progress):
        seen.append(progress)
        if progress.done >= games:
            raise KeyboardInterrupt

    monkeypatch.setattr(LiveProgress, "__call__", interrupt)
    return seen


# What a notebook calls


def test_measure_plays_before_and_after_prints_and_returns(run, capsys):
    results = measuring.measure(run, ["random"], games=4, search=POLICY, seconds=60, device="cpu")
    assert [result.player for result in results] == ["iteration 0", "iteration 5"]
    out = capsys.readouterr().out
    assert out.startswith("0/8 games")
    assert "iteration 5 (1 evaluations per move) against random: " in out


def test_measure_without_opponents_measures_nothing(run):
    assert measuring.measure(run, [], device="cpu") == []


@pytest.mark.parametrize("seconds, evaluations", [(59.0, 13), (60.0, 48)])
def test_a_short_measurement_looks_ahead_as_in_training(run, monkeypatch, seconds, evaluations):
    searches = []
    played = measuring.evaluate_run(run, ["random"], 2, POLICY, (0,), device="cpu")

    def evaluate_run(_run, _opponents, _games, search, *_more):
        searches.append(search.evaluations)
        return played

    monkeypatch.setattr(measuring, "evaluate_run", evaluate_run)
    measuring.measure(run, seconds=seconds)
    assert searches == [evaluations]


@pytest.mark.parametrize("in_a_notebook", [False, True])
def test_measure_says_once_what_bars_do_not_show_and_how_many_games_there_was_time_for(
    in_a_notebook, run, monkeypatch, capsys
):
    whole = measuring.evaluate_run(run, ["random"], 4, POLICY, (0, None), device="cpu")
    short = [replace(result, asked=40) for result in whole]
    monkeypatch.setattr(measuring, "evaluate_run", lambda *arguments: short)
    monkeypatch.setattr(Face, "keeps_bars", in_a_notebook)
    monkeypatch.setenv("CHESSNN_UI", "silent")
    measuring.measure(run, ["random"], games=40, search=POLICY, seconds=60, device="cpu")
    out = capsys.readouterr().out
    assert out.count("there was time") == out.count("Each: there was time for 4 of 40 games\n") == 1
    assert ("against random" in out) is not in_a_notebook
    monkeypatch.setattr(measuring, "evaluate_run", lambda *arguments: [*short * 4, short[0]])
    measuring.measure(run, ["random"], games=40, search=POLICY, seconds=60, device="cpu")
    assert "against random" in capsys.readouterr().out, "nine bars do not stay"
    monkeypatch.setattr(measuring, "evaluate_run", lambda *arguments: [short[0], whole[1]])
    measuring.measure(run, ["random"], games=40, search=POLICY, seconds=60, device="cpu")
    out = capsys.readouterr().out
    assert "Each" not in out, "the other match was played whole"
    assert "  there was time for 4 of 40 games\n" in out, "which no bar says"


def test_a_notebook_hears_why_a_game_was_forfeited(run, monkeypatch, capsys):
    """Its bars count such a game as won."""
    whole = measuring.evaluate_run(run, ["random"], 4, POLICY, (0, None), device="cpu")
    lost = replace(whole[1].played[0], ending=FORFEIT, reason="fake: no move within 30 s")
    broken = replace(whole[1], played=(lost, *whole[1].played[1:]))
    monkeypatch.setattr(Face, "keeps_bars", True)
    monkeypatch.setenv("CHESSNN_UI", "silent")
    for results in ([broken], [whole[0], broken]):
        monkeypatch.setattr(measuring, "evaluate_run", lambda *_, found=results: found)
        measuring.measure(run, ["random"], games=4, search=POLICY, seconds=60, device="cpu")
        assert "forfeit: fake: no move within 30 s\n" in capsys.readouterr().out


def test_the_figure_of_matches_says_the_results_in_words(run, monkeypatch):
    results = measuring.evaluate_run(run, ["random"], 2, POLICY, (0, None), device="cpu")
    shown = []
    monkeypatch.setattr(strength_plots, "show", lambda figure, alt: shown.append(alt))
    strength_plots.show_matches(results)
    assert all(str(result) in shown[0] for result in results)


def test_measure_takes_a_quarter_of_the_training_and_three_minutes_at_most(tmp_path, monkeypatch):
    allowed = []
    monkeypatch.setattr(
        measuring, "evaluate_run", lambda *arguments: allowed.append(arguments[-1]) or []
    )
    path = make_run(tmp_path / "run", (0,), "tictactoe", TICTACTOE)
    measuring.measure(path)
    with RunFolder.create_or_open(path, {"game": "tictactoe"}) as folder:
        for iteration, seconds in ((1, 80.0), (2, 8000.0)):
            folder.append_report(asdict(make_report(iteration, seconds=seconds)))
            measuring.measure(path)
    assert allowed == [0, 20, 180]


def test_measure_names_one_network_once(run):
    results = measuring.measure(run, ["random"], (5, None), 2, POLICY, 60, device="cpu")
    assert [result.player for result in results] == ["iteration 5"]


# The shell


@pytest.mark.parametrize(
    "command, games, said",
    [
        (
            "ladder --games 1000 --snapshots 2",
            1500,
            r"Interrupted: \d+ of \d+ games had ended; ratings.json has these ratings",
        ),
        ("tactics", 450, r"iteration +0: mate-in-one"),
    ],
)
def test_ctrl_c_prints_what_there_is_and_exits_with_130(
    command, games, said, run, chess_run, monkeypatch, capsys
):
    name, *options = command.split()
    seen = interrupt_after(monkeypatch, games)
    target = chess_run if name == "tactics" else run
    assert main([name, target, "--search", "policy", "--device", "cpu", *options]) == 130
    captured = capsys.readouterr()
    assert re.search(said, captured.out), captured.out
    assert "Traceback" not in captured.err and len(seen) > 1
    if name == "ladder":
        kept = os.path.join(run, "ratings.json")
        with open(kept) as file:
            assert json.load(file)["interrupted"]
        os.remove(kept)
    if name == "tactics":
        assert "interrupted after 1 of 2 snapshots" in captured.err


@pytest.mark.parametrize("games, kept", [(0, ""), (5, r"\d wins, \d draws, \d losses")])
def test_a_ladder_that_is_stopped_early_tells_the_games_that_ended(
    games, kept, run, monkeypatch, capsys
):
    """On any machine: one process, whose first steps end few games."""
    monkeypatch.setattr(parallel, "processes_for", lambda *_: 1)
    monkeypatch.setattr(runner, "BOARDS", 8)
    interrupt_after(monkeypatch, games)
    assert main(["ladder", run, "--games", "2000", "--search", "policy", "--device", "cpu"]) == 130
    assert re.search(f"too few games to rate every player[^$]*{kept}", capsys.readouterr().err)


@pytest.mark.timeout(600)
def test_a_real_ctrl_c_on_a_real_terminal(run):
    """Bars while it plays, then the score so far, no traceback, exit code 130."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CHESSNN_UI"} | {
        "TERM": "xterm-256color"
    }
    command = ["evaluate", run, "--games", "200000", "--search", "policy", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "chessnn_colab", *command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(slave)
    said, sent = b"", False
    # A busy machine may take minutes to start three processes. A program that hangs says where.
    late = threading.Timer(500, process.send_signal, [signal.SIGABRT])
    late.start()
    try:
        with suppress(OSError):  # the other end has gone
            while more := os.read(master, 65536):
                said += more
                if not sent and re.search(rb"[1-9]\d*/200,000 games", said):
                    process.send_signal(signal.SIGINT)
                    sent = True
        code = process.wait()
    finally:
        late.cancel()
        process.kill()
        process.wait()
        os.close(master)
    end = said[-5000:].decode(errors="replace")
    assert (code, sent) == (130, True), end
    assert "against random" in end and re.search(r"ended early: \d+ of 200000 games had ended", end)
    assert b"Traceback" not in said


def test_progress_goes_to_stderr_and_the_result_to_stdout(run, capsys):
    command = ["evaluate", run, "--games", "4", "--search", "policy", "--device", "cpu", "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["games"] == 4 and "0/4 games" in captured.err


def test_calibration_says_three_shares(run, capsys):
    command = ["evaluate", run, "--calibration", "--games", "12", "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert "12/12 games" in captured.err and told["positions"] > 12
    for shares in (told, *told["fifths"]):
        assert sum(shares["predicted"]) == pytest.approx(1, abs=2e-3)
        assert sum(shares["played"]) == pytest.approx(1)
    assert 0 < told["brier"] < 2 and told["brier_of_constant"] < 0.67
    found = Calibration(**told)
    assert f"in {found.positions} positions" in str(found)


def test_a_correlation_that_does_not_exist_is_null_in_json(run, capsys, monkeypatch):
    monkeypatch.setattr(chances, "correlation", lambda *_: math.nan)
    command = ["evaluate", run, "--calibration", "--games", "2", "--device", "cpu", "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["correlation"] is None


def test_an_interrupted_calibration_says_why_it_says_nothing(run, capsys, monkeypatch):
    def interrupted(self, positions, on_progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(Play, "run", interrupted)
    assert main(["evaluate", run, "--calibration", "--games", "12", "--device", "cpu"]) == 130
    captured = capsys.readouterr()
    assert not captured.out and "mostly short ones" in captured.err


# watch


@pytest.fixture
def trained(tmp_path) -> str:
    reports = (make_report(iteration, seconds=60.0 * iteration) for iteration in range(1, 5))
    return str(write_reports(make_run(tmp_path / "trained", (0,)), reports))


def test_watch_prints_once_into_a_pipe_and_the_last_so_many(trained, capsys):
    assert main(["watch", trained, "--last", "2"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    heads = "iteration games white black draws cap plies policy policy KL value Brier entropy"
    assert lines[1].split() == [*heads.split(), "positions/s", "time"]
    assert [line.split()[0] for line in lines[2:-2]] == ["3", "4"]
    assert "26 %" in lines[2] and "2.31" in lines[2] and "3m 00s" in lines[2]
    assert "2,400 games" in lines[-2] and "loss 3.29, 2,707 positions/s" in lines[-1]
    assert main(["watch", trained, "--last", "0"]) == 2
    assert "last=0: expected a whole number from 1 to" in capsys.readouterr().err


def test_watch_and_tensorboard_leave_out_what_an_iteration_without_a_game_has_not(tmp_path, capsys):
    with RunFolder.create_or_open(tmp_path / "run", {"game": "chess"}) as folder:
        board = TensorBoard(folder.tensorboard_folder, 0)
        for report in (make_report(1), make_report(2, games=0, average_plies=math.nan)):
            folder.append_report(asdict(report))
            board.write(report)
        board.close()
    print_tables([tmp_path / "run"], None)
    whole, none = (
        line.split()
        for line in capsys.readouterr().out.splitlines()
        if line.strip().startswith(("1 ", "2 "))
    )
    assert whole[0] == "1" and "81" in whole and none[0] == "2" and none.count("-") == 5
    events = EventAccumulator(str(folder.tensorboard_folder)).Reload()
    steps = {
        name: [event.step for event in events.Scalars(name)] for name in events.Tags()["scalars"]
    }
    for name in ("games/average_plies", "games/draws", "games/white"):
        assert steps[name] == [1]
    assert steps["loss/value"] == [1, 2] and "value/accuracy" not in steps


def test_games_with_points_are_no_games_at_the_cap_in_tensorboard(tmp_path):
    board = TensorBoard(tmp_path, 0)
    board.write(make_report(1, wins={}, draws=0, scores={"mean": 900.0}))
    board.close()
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"]
    assert {"games/mean_score", "games/average_plies"} <= set(tags)
    assert not {"games/cap", "games/draws"} & set(tags)


def test_tensorflow_is_not_imported_where_it_is_installed(tmp_path):
    """As on Colab, where it takes seconds and hundreds of megabytes."""
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('it was imported')")
    code = (
        "from pathlib import Path; from chessnn_colab.runs.tensorboard import TensorBoard; "
        f"TensorBoard(Path({str(tmp_path / 'curves')!r}), 0).close()"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "curves").iterdir())


def test_watch_follows_runs_side_by_side(trained, tmp_path, monkeypatch):
    other = make_run(tmp_path / "other", (0,))
    stream = io.StringIO()
    console = Console(file=stream, width=260, force_terminal=True, no_color=True)
    asleep = []

    def sleep(seconds):
        asleep.append(seconds)
        if len(asleep) == 2:
            raise KeyboardInterrupt
        write_reports(trained, [make_report(5, seconds=7000.0)])

    monkeypatch.setattr("rich._console", console)
    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        follow([trained, other], 3)
    assert "1h 56m" in stream.getvalue() and "no iteration has finished yet" in stream.getvalue()
    assert any(line.count("iteration") == 2 for line in stream.getvalue().splitlines())


@pytest.mark.parametrize("height, shown", [(24, 6), (60, 24), (8, 1)])
def test_watch_shows_the_newest_iterations_in_a_narrow_terminal(
    tmp_path, monkeypatch, height, shown
):
    run = make_run(tmp_path / "run", (0,))
    write_reports(run, [make_report(number, seconds=725.0 * number) for number in range(1, 41)])
    stream = io.StringIO()
    kind = {"force_terminal": True, "force_interactive": False, "no_color": True}
    console = Console(file=stream, width=80, height=height, **kind)

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("rich._console", console)
    monkeypatch.setattr("time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        follow([run], None)
    text = stream.getvalue()
    first_words = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert [word for word in first_words if word.isdigit()] == [
        str(number) for number in range(41 - shown, 41)
    ]
    assert "newest iteration:" in text and len(text.splitlines()) <= height


# Errors in a notebook


def test_an_error_of_the_package_is_one_box_in_ipython(capsys, monkeypatch):
    """In a real shell: the sentence, wrapped, and no traceback. Other errors keep theirs."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(
        sys.modules, "__main__", sys.modules["__main__"]
    )  # a shell puts its own there
    shell = InteractiveShell()
    try:
        done = shell.run_cell(
            "from chessnn_colab.errors import ConfigError\n"
            "raise ConfigError('unknown opponent kasparov: expected one of ' + 'random, ' * 30)"
        )
        assert isinstance(done.error_in_exec, ChessnnError)
        captured = capsys.readouterr()
        box = re.sub(r"\x1b\[[0-9;]*m", "", captured.out + captured.err).rstrip().splitlines()
        assert (
            box[0].startswith("╭─ ConfigError ─")
            and box[-1].startswith("╰─")
            and len({*map(len, box)}) == 1
        )
        assert (
            "unknown opponent kasparov" in box[1]
            and len(box) >= 5
            and "Traceback" not in "".join(box)
        )
        shell.run_cell("1 / 0")
        assert "Traceback" in "".join(capsys.readouterr())
    finally:
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)
