"""The UCI engine, as chess programs use it: through python-chess in whole games, and by hand over a
pipe.
"""

import io
import random
import subprocess
import sys
import time

import chess
import chess.engine
import pytest

from chessnn_colab.arena.chess.limits import MARGIN, read_limits
from chessnn_colab.arena.chess.uci import Engine
from chessnn_colab.errors import ConfigError, RunError

from .small_run import TICTACTOE, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("uci") / "run", (0, 1))


@pytest.fixture(scope="module")
def engine(run):
    with chess.engine.SimpleEngine.popen_uci(command(run), timeout=120) as engine:
        yield engine
        engine.quit()
        assert engine.protocol.returncode.result() == 0


def command(run: str) -> list[str]:
    return [sys.executable, "-m", "chessnn_colab", "uci", run, "--device", "cpu"]


def said(run: str, *lines: str) -> list[str]:
    """What the engine answers to `lines`, until their end."""
    answers = io.StringIO()
    engine = Engine(run, None, "cpu", io.StringIO("\n".join(lines) + "\n"), answers)
    engine.loop()
    return answers.getvalue().splitlines()


def test_names_itself_and_its_options(engine):
    assert engine.id["name"] == "chessnn_colab iteration 1"
    assert (
        engine.options["Simulations"].type == "spin" and engine.options["Device"].default == "cpu"
    )


@pytest.mark.parametrize(
    "limit",
    [
        chess.engine.Limit(nodes=4),
        chess.engine.Limit(time=0.02),
        chess.engine.Limit(white_clock=1, black_clock=1, white_inc=0.01, black_inc=0.01),
    ],
)
def test_plays_a_whole_game_against_random_moves(engine, limit):
    rng = random.Random(0)
    board = chess.Board()
    while not board.is_game_over(claim_draw=True) and board.ply() < 24:
        if board.turn == chess.WHITE:
            result = engine.play(board, limit, info=chess.engine.INFO_ALL)
            assert result.move in board.legal_moves and result.info["pv"][0] == result.move
            assert {"score", "nodes", "nps", "time", "depth"} <= result.info.keys()
            board.push(result.move)
        else:
            board.push(rng.choice(list(board.legal_moves)))
    assert board.ply() > 10


def test_stops_in_the_middle_with_a_move(engine):
    with engine.analysis(chess.Board()) as analysis:
        for info in analysis:
            if info.get("depth", 0) >= 2:
                break
        analysis.stop()
        assert analysis.wait().move in chess.Board().legal_moves


def test_an_answer_to_stop_does_not_wait_for_the_rung_and_the_end_of_the_input_ends_it(run):
    with subprocess.Popen(
        command(run), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        process.stdin.write("position startpos\ngo infinite\n")
        for line in process.stdout:
            if line.startswith("info depth 4"):
                break
        process.stdin.write("isready\nstop\n")
        rest = [process.stdout.readline().strip() for _ in range(2)]
        process.stdin.close()
        assert rest[0].startswith(("readyok", "info depth"))
        assert any(line.startswith("bestmove") for line in (*rest, process.stdout.read()))
    assert process.returncode == 0


def test_as_many_nodes_as_asked_for(engine):
    for nodes in (3, 17, 40, 200):
        info = engine.play(
            chess.Board(), chess.engine.Limit(nodes=nodes), info=chess.engine.INFO_ALL
        ).info
        assert info["nodes"] == nodes


def test_a_clock_that_has_run_out_is_answered_before_any_search(run):
    for clock in ("movetime 1", "wtime 1 btime 1"):
        info, answer = said(run, f"go {clock}")
        assert info.startswith("info depth 0 ") and answer.startswith("bestmove ")


def test_a_mate_in_one_is_played_whatever_the_limits(run):
    mate = "position fen 6k1/5ppp/8/8/8/8/8/R6K w - - 0 1"
    for limits in ("nodes 2", "movetime 1", "depth 3"):
        assert said(run, mate, f"go {limits}")[-1] == "bestmove a1a8"
    assert said(run, mate, "go nodes 5 searchmoves h1g1")[-1] == "bestmove h1g1"


def test_finds_a_mate_at_once_and_says_so(engine):
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")
    result = engine.play(board, chess.engine.Limit(nodes=60), info=chess.engine.INFO_SCORE)
    assert result.move == chess.Move.from_uci("d1d8") and result.info[
        "score"
    ].relative == chess.engine.Mate(1)


def test_a_mate_in_two_is_played_whatever_the_limits(run):
    info, answer = said(run, "position fen 8/8/1r2n3/5k2/8/6K1/8/r5b1 b - - 1 4", "go nodes 2")
    assert " score mate 2 " in info and answer == "bestmove e6f4"


def test_chooses_among_the_moves_it_is_told_to(engine):
    only = [chess.Move.from_uci("a2a3"), chess.Move.from_uci("h2h4")]
    assert engine.play(chess.Board(), chess.engine.Limit(nodes=20), root_moves=only).move in only


def test_knows_the_games_past(run):
    lines = said(run, "position startpos moves g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1", "go nodes 8")
    assert lines[-1].startswith("bestmove ") and not [line for line in lines if "string" in line]


@pytest.mark.parametrize(
    "line, words",
    [
        ("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "info string"),
        ("position startpos moves e2e5", "illegal move 'e2e5'"),
        ("position", "expected startpos or fen"),
        ("setoption name Simulations value many", "expected a whole number from 1"),
        ("setoption name Hash value 16", "unknown option 'hash'"),
        ("setoption name Device value quantum", "info string"),
        ("setoption", "unknown option"),
        ("xyzzy", "unknown command 'xyzzy'"),
        ("go movetime soon", "expected a whole number"),
        ("go nodes", "expected a whole number"),
        ("go sideways", "expected"),
        ("go searchmoves e2e5", "illegal move"),
    ],
)
def test_bad_input_is_answered_and_changes_nothing(run, line, words):
    lines = said(run, "position startpos moves e2e4", line, "isready", "go nodes 2")
    assert words in lines[0] and lines[0].startswith("info string"), lines
    assert "readyok" in lines
    move = chess.Move.from_uci(lines[-1].split()[1])
    board = chess.Board()
    board.push_uci("e2e4")
    assert move in board.legal_moves


def test_every_go_is_answered_even_a_bad_one(run):
    lines = said(run, "go nodes x", "go nodes 2")
    assert sum(line.startswith("bestmove") for line in lines) == 2


def test_a_finished_game_has_no_move(run):
    lines = said(run, "position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "go nodes 4")
    assert lines == ["info depth 0 score mate 0", "bestmove (none)"]


def test_words_it_does_not_know_are_passed_over(run):
    assert said(run, "joho isready") == ["readyok"]


def test_nothing_after_quit_is_answered(run):
    assert said(run, "isready", "quit", "isready") == ["readyok"]


def test_a_run_of_another_game_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="the game 'tictactoe' has no UCI protocol"):
        Engine(make_run(tmp_path / "run", (0,), "tictactoe", TICTACTOE))


def test_a_run_that_is_not_there_is_an_error_at_the_start(tmp_path):
    with pytest.raises(RunError):
        Engine(str(tmp_path / "none"))


def test_the_clock_is_never_spent():
    for left in (50, 1000, 60_000):
        limits = read_limits(["wtime", str(left), "btime", "1", "winc", "0"], chess.Board(), 128)
        assert 0 <= limits.seconds <= left / 1000 / 2
    assert read_limits(["movetime", "1000"], chess.Board(), 128).seconds == pytest.approx(
        1 - MARGIN
    )
    assert read_limits([], chess.Board(), 77).num_simulations == 77
    assert read_limits(["infinite"], chess.Board(), 77).until_stopped


def test_ponders_until_the_move_is_played(run):
    started = time.monotonic()
    lines = said(run, "go ponder movetime 200", "ponderhit")
    assert lines[-1].startswith("bestmove") and time.monotonic() - started < 60
