"""UCI engines as players: they play, and no crash, silence or nonsense of theirs stops a match."""

import shutil
import sys
import time
from pathlib import Path

import chess
import pytest
import torch

from chessnn_colab.arena import engine_processes
from chessnn_colab.arena.chess.engine import EnginePlayer, parse_engine
from chessnn_colab.arena.engine_processes import OUTSIDE_PATH
from chessnn_colab.arena.evaluate import find_player
from chessnn_colab.arena.parallel import play_match
from chessnn_colab.arena.players import RandomPlayer
from chessnn_colab.arena.registry import match_game
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.notation import move_from_action
from chessnn_colab.games.chess.rules import Chess

STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path=OUTSIDE_PATH)


@pytest.fixture
def fake(tmp_path) -> str:
    """The fake engine as a program."""
    program = tmp_path / "fake"
    script = Path(__file__).parent / "engines" / "fake_engine.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    program.chmod(0o755)
    return str(program)


def choose(player: EnginePlayer, boards: list[chess.Board]) -> list[int]:
    return player.choose(None, torch.Generator(), boards).tolist()


def gone(engine) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if engine.transport.get_returncode() is not None:
            return True
        time.sleep(0.05)
    return False


def test_plays_whole_games_from_the_book(fake):
    game = Chess(80)
    player = find_player(f"engine:{fake}?nodes=1", game)
    assert player.name == "Fake (nodes 1)"
    result = play_match(game, player, RandomPlayer(game), 4)
    player.close()
    assert result.games == 4 and "forfeit" not in result.endings


def test_every_board_gets_its_own_move(fake):
    player = EnginePlayer(fake, limit={"nodes": 1}, processes=2)
    boards = [
        chess.Board(),
        chess.Board("7k/8/8/8/8/8/8/K6R b - - 0 1"),
        chess.Board("7k/8/8/8/8/8/8/K6R w - - 0 1"),
    ] * 3
    actions = choose(player, boards)
    player.close()
    moves = [move_from_action(action, board) for action, board in zip(actions, boards)]
    assert moves == [min(board.legal_moves, key=chess.Move.uci) for board in boards]


@pytest.mark.parametrize(
    "trouble, limit, words",
    [
        ("crash", {"nodes": 1}, "died"),
        ("silence", {"nodes": 1}, "no move within 1 s"),
        ("silence", {"time": 0.01}, "no move within 1 s"),
        ("illegal", {"nodes": 1}, "illegal"),
    ],
)
def test_trouble_loses_the_game_and_not_the_match(fake, trouble, limit, words):
    player = EnginePlayer(fake, {"Trouble": trouble}, limit, processes=1, patience=1.0)
    boards = [chess.Board() for _ in range(4)]
    actions = choose(player, boards)
    player.close()
    assert [action >= 0 for action in actions] == [True, False, True, False], (
        "a fresh process plays on"
    )
    assert len(player.reasons) == 2 and all(words in reason for reason in player.reasons), (
        player.reasons
    )


def test_a_move_has_no_limit_but_the_players_own(fake):
    """python-chess would end it after the seconds that a start may take."""
    player = EnginePlayer(fake, {}, {"time": 0.05}, processes=1)
    started = player.start()
    try:
        assert started.timeout is None
    finally:
        started.close()
        player.close()


def test_an_engine_that_always_fails_is_given_up(fake, monkeypatch):
    monkeypatch.setattr(engine_processes, "MAX_RESTARTS", 1)
    player = EnginePlayer(fake, {"Trouble": "crash"}, {"nodes": 1}, processes=1)
    assert [action >= 0 for action in choose(player, [chess.Board()] * 8)].count(True) == 2
    player.close()
    assert "not started again" in player.reasons[-1]


def test_close_ends_even_a_stubborn_engine_and_twice_does_nothing(fake):
    player = EnginePlayer(fake, {"Trouble": "stubborn"}, {"nodes": 1}, processes=1)
    engine = player._engines.get()
    player._engines.put(engine)
    player.close()
    assert gone(engine)
    player.close()


@pytest.mark.parametrize(
    "spec, words",
    [
        ("engine:", "invalid engine"),
        ("engine:no-such-engine", "no engine 'no-such-engine'"),
        ("engine:cat?nodes=many", "expected a number"),
        ("engine:cat?depth=0", "expected a finite number, more than 0"),
        ("engine:true", "does not start as a UCI engine"),
    ],
)
def test_bad_engines_are_named(spec, words):
    with pytest.raises(ConfigError, match=words):
        parse_engine(spec)


def test_an_option_it_does_not_have_is_named(fake):
    with pytest.raises(ConfigError, match="Skil"):
        parse_engine(f"engine:{fake}?Skil Level=3")


@pytest.mark.skipif(STOCKFISH is None, reason="no stockfish here")
def test_stockfish_at_level_0():
    """Level 0 rolls dice that nobody can seed: against random it loses nothing, and draws a game
    now and then.
    """
    game = match_game("chess")
    player = find_player("engine:stockfish?Skill Level=0&nodes=200", game)
    assert "Stockfish" in player.name
    result = play_match(game, player, RandomPlayer(game), 8)
    player.close()
    assert result.losses == 0 and result.wins >= 4
