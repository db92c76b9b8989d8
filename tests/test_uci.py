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

from chessnn_colab.__main__ import main
from chessnn_colab.arena.chess import uci_search
from chessnn_colab.arena.chess.limits import MARGIN, read_limits
from chessnn_colab.arena.chess.uci import Engine

from .small_run import make_run


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
    return [sys.executable, "-m", "chessnn_colab", "uci", run]


def said(run: str, *lines: str) -> list[str]:
    """What the engine answers to `lines`, until their end."""
    answers = io.StringIO()
    engine = Engine(run, None, io.StringIO("\n".join(lines) + "\n"), answers)
    engine.loop()
    return answers.getvalue().splitlines()


def test_names_itself_and_its_options(engine):
    assert engine.id["name"] == "chessnn_colab iteration 1"
    assert engine.options["Simulations"].max == 4096 and engine.options["MultiPV"].max == 32


def test_tells_lines_of_play_one_for_each_candidate(engine):
    board = chess.Board()
    told = engine.analyse(board, chess.engine.Limit(nodes=200), multipv=3)
    assert [info["multipv"] for info in told] == [1, 2, 3]
    assert len({info["pv"][0] for info in told}) == 3
    assert max(len(info["pv"]) for info in told) > 2, "a line is more than its first move"
    for info in told:  # python-chess refuses a line that is not legal
        assert info["score"].relative.score() is not None and info["nodes"] == 200
    one = engine.analyse(board, chess.engine.Limit(nodes=200))
    assert one["pv"] == told[0]["pv"] and one["score"] == told[0]["score"]
    few = engine.analyse(
        board, chess.engine.Limit(nodes=50), multipv=3, root_moves=[chess.Move.from_uci("a2a3")]
    )
    assert [info["pv"][0].uci() for info in few] == ["a2a3"]


def test_the_clock_runs_while_the_position_is_made(run, monkeypatch):
    """That takes longer than all else where many plies are replayed."""
    started = []
    make = uci_search.state_from_boards

    def made(boards, game):
        started.append(time.monotonic())
        return make(boards, game)

    search = uci_search.Search
    monkeypatch.setattr(uci_search, "state_from_boards", made)
    monkeypatch.setattr(
        search, "best", lambda self: started.append(self.started) or chess.Move.null()
    )
    said(run, "position startpos", "go nodes 1")
    made_at, began_at = started
    assert began_at < made_at


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
        lines = [*rest, *process.stdout.read().splitlines()]
        (answer,) = [line.split()[1] for line in lines if line.startswith("bestmove")]
        assert chess.Move.from_uci(answer) in chess.Board().legal_moves
    assert process.returncode == 0


def test_as_many_nodes_as_asked_for(engine):
    for nodes in (3, 17, 40, 200):
        info = engine.play(
            chess.Board(), chess.engine.Limit(nodes=nodes), info=chess.engine.INFO_ALL
        ).info
        assert info["nodes"] == nodes
    limit = chess.engine.Limit(nodes=100, time=60)
    assert engine.play(chess.Board(), limit, info=chess.engine.INFO_ALL).info["nodes"] <= 100


def test_a_clock_that_has_run_out_is_answered_before_any_search(run):
    for clock in ("movetime 1", "wtime 1 btime 1"):
        info, answer = said(run, f"go {clock}")
        assert info.startswith("info depth 0 ") and answer.startswith("bestmove ")


@pytest.mark.parametrize(
    "fen, best, score",
    [
        ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "a1a8", "mate 1"),
        ("8/8/1r2n3/5k2/8/6K1/8/r5b1 b - - 1 4", "e6f4", "mate 2"),
    ],
)
def test_a_mate_is_played_whatever_the_limits(run, fen, best, score):
    for limits in ("nodes 2", "movetime 1", "depth 3"):
        info, answer = said(run, f"position fen {fen}", f"go {limits}")
        assert f" score {score} " in info and answer == f"bestmove {best}"


def test_a_mate_waits_until_it_is_asked_for(run):
    """Until `stop`, and while `searchmoves` leaves it out."""
    mate = "position fen 6k1/5ppp/8/8/8/8/8/R6K w - - 0 1"
    told = said(run, mate, "go infinite", "", "isready", "stop")
    assert told[1:] == ["readyok", "bestmove a1a8"], "a blank line says nothing"
    assert said(run, mate, "go nodes 4 searchmoves a1a7")[-1] == "bestmove a1a7"


def test_a_score_is_that_of_the_player_to_move():
    """On a logistic curve where 400 centipawns are ten to one."""
    scores = [uci_search._score(value, None) for value in (-9 / 11, 0.0, 9 / 11, 1.0)]
    assert scores == ["cp -400", "cp 0", "cp 400", "cp 1320"]
    assert [uci_search._score(0.5, proof) for proof in (1, 3, -2)] == [
        "mate 1",
        "mate 2",
        "mate -1",
    ]


def test_as_many_simulations_as_its_option_says(engine):
    """Where nothing else limits it: after the policy's opinion, one tree, with its root."""
    engine.configure({"Simulations": 20})
    answer = engine.play(chess.Board(), chess.engine.Limit(), info=chess.engine.INFO_ALL)
    assert answer.info["nodes"] == 1 + 1 + 20
    engine.configure({"Simulations": 128})


def test_the_network_of_a_snapshot(run, monkeypatch):
    made = []

    def keep(engine):
        made.append(engine.player.name)

    monkeypatch.setattr("chessnn_colab.arena.chess.uci.Engine.loop", keep)
    for snapshot in ("0", "1"):
        main(["uci", run, "--snapshot", snapshot])
    assert made == ["iteration 0", "iteration 1"]


@pytest.mark.parametrize("limits", ["nodes 20 searchmoves a2a3 h2h4", "searchmoves a2a3 nodes 5"])
def test_chooses_among_the_moves_it_is_told_to(run, limits):
    assert said(run, f"go {limits}")[-1] in ("bestmove a2a3", "bestmove h2h4")


@pytest.mark.parametrize(
    "fen, past",
    [
        (chess.STARTING_FEN, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1"),
        (
            "7k/8/8/8/8/8/1q4PP/6KR b - - 0 1",
            "b2c2 g1f1 c2b2 f1g1 b2c2 g1f1 c2b2 f1g1",
        ),  # nobody claims the draw
        ("8/8/8/2k5/8/8/p7/K7 w - - 0 1", ""),  # there are two moves, and to take is a draw
    ],
)
def test_a_line_of_play_ends_with_its_game_and_no_sooner(engine, fen, past):
    board = chess.Board(fen)
    for move in past.split():
        board.push_uci(move)
    answer = engine.play(board, chess.engine.Limit(nodes=64), info=chess.engine.INFO_ALL)
    line = answer.info["pv"]
    assert "string" not in answer.info and line[0] == answer.move
    assert len(line) > 1 or answer.move == chess.Move.from_uci("a1a2")


@pytest.mark.parametrize(
    "line, words",
    [
        ("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "info string"),
        ("position startpos moves e2e5", "illegal move 'e2e5'"),
        ("position", "expected startpos or fen"),
        ("position startpos e2e4 moves", "expected startpos or fen"),
        ("setoption name Simulations value many", "expected a whole number from 1"),
        ("setoption name Hash value 16", "unknown option 'Hash'"),
        ("setoption name MultiPV value 33", "whole number from 1 to 32"),
        ("setoption", "unknown option"),
        ("xyzzy", "unknown command 'xyzzy'"),
        ("go movetime soon", "expected a whole number"),
        ("go nodes --5", "expected a whole number"),
        ("go nodes", "expected a whole number"),
        ("go searchmoves e2e5", "illegal move"),
    ],
)
def test_bad_input_is_answered_and_changes_nothing(run, line, words):
    lines = said(run, "position startpos moves e2e4", line, "isready", "go nodes 2")
    assert words in lines[0] and lines[0].startswith("info string"), lines
    assert "readyok" in lines
    answers = [line.split()[1] for line in lines if line.startswith("bestmove")]
    assert len(answers) == 1 + line.startswith("go"), "a bad go is answered too"
    board = chess.Board()
    board.push_uci("e2e4")
    assert all(chess.Move.from_uci(answer) in board.legal_moves for answer in answers)


@pytest.mark.parametrize("line", ["go movetime 1000.0", "go searchmoves a1a8"])
def test_a_go_that_cannot_be_read_is_answered_by_the_network(run, line):
    """Not by the first legal move, which takes a pawn and loses the queen."""
    position = "position startpos moves e2e4 e7e5 d1h5 a7a6"
    assert said(run, position, line)[-1] == said(run, position, "go movetime 0")[-1]
    assert said(run, position, line)[-1] != "bestmove h5h7"


def test_a_finished_game_has_no_move(run):
    lines = said(run, "position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "go nodes 4")
    assert lines == ["info depth 0 score mate 0", "bestmove (none)"]


def test_words_it_does_not_know_are_skipped_and_all_after_quit(run):
    assert said(run, "joho isready", "stop", "quit", "isready") == ["readyok"]
    assert said(run, "go sideways nodes 2")[-1].startswith("bestmove")


def test_the_clock_is_never_spent():
    for left in (50, 1000, 60_000):
        limits = read_limits(["wtime", str(left), "btime", "1", "winc", "0"], chess.Board(), 128)
        assert 0 <= limits.seconds <= left / 1000 / 2
    assert read_limits(["movetime", "1000"], chess.Board(), 128).seconds == pytest.approx(
        1 - MARGIN
    )
    for short in ("movetime 50", "wtime 1500"):
        assert read_limits(short.split(), chess.Board(), 128).seconds == 0.025, "not at once"
    board = chess.Board()
    board.push_san("e4")
    for more, seconds in (
        ("", 2),
        ("winc 0 binc 1000", 2.8),
        ("movestogo 1", 30),
        ("movestogo 10", 6),
    ):
        words = f"wtime 1000 btime 60000 {more}".split()
        assert read_limits(words, board, 128).seconds == pytest.approx(seconds - MARGIN)
    assert read_limits([], chess.Board(), 77).num_simulations == 77
    assert read_limits(["infinite"], chess.Board(), 77).until_stopped


class GoneTerminal:
    def __iter__(self):
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("commands", [GoneTerminal(), None])
def test_an_input_that_cannot_be_read_ends_the_engine(run, commands):
    answers = io.StringIO()
    Engine(run, None, commands, answers).loop()
    assert not answers.getvalue()
