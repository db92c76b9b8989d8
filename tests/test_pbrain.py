"""Our network as a Gomocup engine: in whole games against a scripted manager, and by hand, with bad input and time."""

import io
import queue
import random
import subprocess
import sys
import threading
import time

import pytest
import torch

from chessnn_colab.arena.gomoku.engine import BrainPlayer
from chessnn_colab.arena.gomoku.pbrain import MARGIN, MOVES_TO_GO, Brain
from chessnn_colab.arena.match import play_match
from chessnn_colab.arena.players import RandomPlayer
from chessnn_colab.arena.registry import match_game, match_kit
from chessnn_colab.errors import ConfigError, RunError
from chessnn_colab.games.base import finished
from chessnn_colab.games.registry import make_game

from .gomoku_run import make_gomoku_run
from .small_run import make_run

FOUR = ["4,4,1", "0,0,2", "5,4,1", "0,2,2", "6,4,1", "0,4,2", "7,4,1", "0,6,2"]  # we complete five at 3,4 or 8,4


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_gomoku_run(tmp_path_factory.mktemp("pbrain") / "run")


def command(run: str) -> list[str]:
    return [sys.executable, "-m", "chessnn_colab", "pbrain", run, "--device", "cpu"]


def said(run: str, *lines: str) -> list[str]:
    """What it answers to `lines`, until their end. The end is there at once, so no search is long."""
    answers = io.StringIO()
    Brain(run, None, "cpu", io.StringIO("\n".join(lines) + "\n"), answers).loop()
    return answers.getvalue().splitlines()


def cell(answer: str, size: int = 9) -> int:
    column, row = map(int, answer.split(","))
    assert 0 <= column < size and 0 <= row < size
    return row * size + column


@pytest.fixture(scope="module")
def process(run):
    with subprocess.Popen(command(run), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.stdin.write("END\n")
        assert process.wait(60) == 0


def ask(process, *lines: str) -> str:
    process.stdin.write("".join(f"{line}\n" for line in lines))
    return process.stdout.readline().strip()


def test_plays_whole_games_with_either_colour(process):
    game, rng = make_game("gomoku:9"), random.Random(0)
    assert ask(process, "START 9", "INFO timeout_turn 150", "INFO game_type 0", "INFO max_memory 83886080") == "OK"
    for first in (True, False):
        assert ask(process, "RESTART") == "OK"
        state, answer = game.init(1), ask(process, "BEGIN") if first else ""
        while True:
            if answer:
                action = cell(answer)
                assert game.legal_action_mask(state)[0, action]
                state = game.step(state, torch.tensor([action]))
                if finished(state):
                    break
            action = rng.choice(game.legal_actions(state)[1].tolist())
            state = game.step(state, torch.tensor([action]))
            if finished(state):
                break
            answer = ask(process, f"TURN {action % 9},{action // 9}")
        assert int(state.plies_played) >= 9


def test_our_own_manager_plays_with_it(run, tmp_path):
    """The player for Gomocup engines, with this one as the engine, in a match from the book."""
    program = tmp_path / "pbrain"
    program.write_text("#!/bin/sh\nexec " + " ".join(f'"{word}"' for word in command(run)) + "\n")
    program.chmod(0o755)
    game = match_game("gomoku:9")
    player = BrainPlayer(str(program), 0.01, processes=1)
    try:
        result = play_match(game, player, RandomPlayer(game), 2)
    finally:
        player.close()
    assert result.player.startswith("chessnn_colab gomoku:9") and "forfeit" not in result.endings


def test_a_small_board_is_searched_too(tmp_path):
    """It has fewer cells than a tree has columns."""
    small = make_gomoku_run(tmp_path / "run", game="gomoku:6")
    told = said(small, "START 6", "INFO timeout_turn 2000", "BEGIN")
    assert told[0] == "OK" and 0 <= cell(told[-1], 6) < 36


def test_a_five_is_completed_whatever_the_time(run):
    for limits in (["INFO timeout_turn 0"], ["INFO time_left 1"], []):
        assert said(run, "START 9", *limits, "BOARD", *FOUR, "DONE")[-1] in ("3,4", "8,4")


def test_a_board_has_either_side_to_move(run):
    lines = said(run, "START 9", "BOARD", "4,4,2", "DONE", "BOARD", "4,4,1", "5,5,2", "DONE", "BOARD", "DONE")
    assert lines[0] == "OK" and len({cell(line) for line in lines[1:]} - {40}) >= 1 and len(lines) == 4
    assert cell(lines[1]) != 40 and cell(lines[2]) not in (40, 50)


def test_time_is_kept(process):
    ask(process, "START 9")
    process.stdin.write("INFO timeout_turn 1500\nINFO timeout_match 0\n")
    started = time.monotonic()
    cell(ask(process, "BEGIN"))
    assert time.monotonic() - started > 0.5 * (1.5 - MARGIN), "it thinks as long as it may"
    process.stdin.write("INFO timeout_turn 0\n")
    cell(ask(process, "TURN 0,0"))


def test_limits_on_time(run):
    brain = Brain(run, None, "cpu", io.StringIO(), io.StringIO())
    assert brain._seconds() is None
    for info, seconds in (
        ("timeout_turn 5000", 5 - MARGIN),
        ("time_left 20000", 20 / MOVES_TO_GO - MARGIN),
        ("time_left 0", 0.0),
        ("timeout_match 0", 5 - MARGIN),
        ("timeout_turn 10", 0.0),
    ):
        brain.obey(f"INFO {info}")
        assert brain._seconds() == pytest.approx(seconds)


def test_the_end_stops_a_search(run):
    with subprocess.Popen(command(run), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: [answers.put(line) for line in process.stdout], daemon=True).start()
        process.stdin.write("START 9\nINFO timeout_turn 600000\nBEGIN\n")
        assert answers.get(timeout=120).strip() == "OK"
        process.stdin.write("END\n")
        cell(answers.get(timeout=120))
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "line, words",
    [
        ("START", "ERROR START '': expected 1 numbers, such as START 15"),
        ("START nine", "ERROR START 'nine'"),
        ("START 15", "ERROR a board of 15x15: this network plays on 9x9"),
        ("START -9", "ERROR a board of -9x-9"),
        ("RECTSTART 9,8", "ERROR a board of 9x8: this network plays on 9x9"),
        ("TURN", "ERROR TURN ''"),
        ("TURN 4,4", "ERROR 4,4: there is a stone already"),
        ("TURN 9,0", "ERROR column 9, row 0: expected 0 to 8"),
        ("TURN -1,0", "ERROR column -1"),
        ("TURN 1,2,3", "expected 2 numbers"),
        ("TURN 1;2", "expected 2 numbers"),
        ("TURN 99999999999999999999,1", "expected 2 numbers"),
        ("TURN \u0663,1", "expected 2 numbers"),
        ("BEGIN", "ERROR BEGIN: there are stones on the board"),
        ("TAKEBACK FREE", "there is no stone"),
        ("SWAP2BOARD", "UNKNOWN command 'SWAP2BOARD'"),
        ("joho", "UNKNOWN command 'joho': expected START"),
        ("INFO timeout_turn soon", "MESSAGE INFO timeout_turn 'soon': expected a whole number"),
        ("INFO rule 1", "MESSAGE INFO rule 1: this network has learned the game where five or more win"),
        ("INFO colour red", "DEBUG INFO 'colour' changes nothing here"),
        ("BOARD\n1,1\nTURN 2,2\nDONE", "ERROR BOARD '1,1': expected 3 numbers"),
        ("BOARD\n1,1,3\nDONE", "expected 1 for an own stone or 2"),
        ("BOARD\n1,1,1\n1,1,2\nDONE", "ERROR 1,1: there is a stone already"),
        ("BOARD\n1,1,1\n2,2,1\nDONE", "ERROR 2 own stones and 0 of the opponent's"),
        ("BOARD\n" + "\n".join(stone[:-1] + str(3 - int(stone[-1])) for stone in [*FOUR, "3,4,1"]) + "\nDONE", "ERROR"),
    ],
)
def test_bad_input_is_answered_and_changes_nothing(run, line, words):
    before = ["START 9", "BOARD", "4,4,2", "DONE"]
    free = next(cell for cell in ("0,0", "1,1") if cell != said(run, *before)[1])
    lines = said(run, *before, line.replace("FREE", free), "TAKEBACK 4,4", "TAKEBACK 4,4")
    assert lines[0] == "OK" and words in lines[2], lines
    assert lines[-2:] == ["OK", "ERROR TAKEBACK 4,4: there is no stone"] and len(lines) == 5


def test_a_finished_game_has_no_move(run):
    over = [f"{column},4,2" for column in range(5)] + [f"{column},0,1" for column in (0, 2, 4, 6)]
    lines = said(run, "START 9", "BOARD", *over, "DONE", "TURN 8,8", "RESTART", "BEGIN")
    assert lines[1].startswith("ERROR the game is over") and lines[-2] == "OK" and cell(lines[-1]) >= 0


@pytest.mark.parametrize("line", ["BEGIN", "TURN 1,1", "RESTART", "TAKEBACK 1,1", "BOARD\nDONE"])
def test_nothing_is_played_before_start(run, line):
    assert said(run, line) == ["ERROR no board yet: expected START first"]


def test_words_are_read_in_any_case_and_nothing_after_the_end_is_answered(run):
    lines = said(run, "about", "", "start 9", "rectstart 9,9", "END", "START 9")
    assert lines[0].startswith('name="chessnn_colab gomoku:9", version="iteration 1"') and lines[1:] == ["OK", "OK"]
    assert said(run, "START 9", "BOARD", "1,1,2") == ["OK"], "a board without an end is no board"


def test_broken_commands_by_the_hundred(run):
    rng, seeds = (
        random.Random(0),
        ["START 9", "TURN 4,4", "BOARD", "1,1,2", "DONE", "INFO timeout_turn 9", "TAKEBACK 4,4"],
    )
    lines = []
    for _ in range(300):
        text = list(rng.choice(seeds))
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 2)] = rng.choice(["", ",", "-", "9" * 40, " ", "\0", "\u0663", "x"])
        lines.append("".join(text).replace("END", "E"))
    assert all(
        line.startswith(("OK", "ERROR", "UNKNOWN", "MESSAGE", "DEBUG")) or cell(line) >= 0 for line in said(run, *lines)
    )


def test_runs_of_other_games_and_missing_runs_are_refused(tmp_path):
    with pytest.raises(RunError):
        Brain(str(tmp_path / "none"))
    make_run(tmp_path / "chess", (0,))
    with pytest.raises(ConfigError, match="the game 'chess' has no Gomocup protocol: expected a run of gomoku"):
        match_kit("chess").require("pbrain")
