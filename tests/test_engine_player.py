"""UCI and Gomocup engines as players: they play, and no crash, silence or nonsense of theirs stops a
match.
"""

import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import chess
import chess.engine
import pytest
import torch

from chessnn_colab.arena import engine_processes
from chessnn_colab.arena.chess.engine import EnginePlayer
from chessnn_colab.arena.engine_processes import OUTSIDE_PATH, ProcessPlayer, engine_settings
from chessnn_colab.arena.evaluate import find_player
from chessnn_colab.arena.games_folder import GamesFolder
from chessnn_colab.arena.gomoku import engine as gomocup_module
from chessnn_colab.arena.gomoku.engine import GomocupPlayer
from chessnn_colab.arena.parallel import play_match
from chessnn_colab.arena.players import RandomPlayer
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.notation import action_from_move
from chessnn_colab.games.registry import rules
from chessnn_colab.views.play import play_widget

STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path=OUTSIDE_PATH)
GAMES = {"UCI": "chess", "Gomocup": "gomoku:9"}


@pytest.fixture
def program(tmp_path):
    """A function that makes a fake engine as a program. trouble: of a Gomocup engine; a UCI engine
    gets it as an option.
    """

    def make(protocol: str, trouble: str = "none") -> str:
        path = tmp_path / f"fake-{trouble}"
        script = Path(__file__).parent / "engines" / f"fake_{protocol.lower()}.py"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" {trouble}\n')
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def player(program, monkeypatch):
    """A function that makes the player of a fake engine with one process."""

    monkeypatch.setattr(engine_processes, "PROCESSES", 1)

    def make(protocol: str, trouble: str, **settings) -> ProcessPlayer:
        path = program(protocol, trouble)
        if protocol == "Gomocup":
            settings = {"seconds": 0.1, "patience": 30.0, **settings}
            return GomocupPlayer(path, rules("gomoku:9"), **settings)
        settings = {"limit": {"nodes": 1}, "patience": 30.0, **settings}
        return EnginePlayer(path, {"Trouble": trouble}, **settings)

    return make


def boards(protocol: str, count: int) -> list:
    if protocol == "UCI":
        return [chess.Board() for _ in range(count)]
    return [[0] for _ in range(count)]


def choose(player: ProcessPlayer, boards: list) -> list[int]:
    actions = player.choose(None, torch.Generator(), boards).tolist()
    player.close()
    return actions


@pytest.mark.parametrize(
    "protocol, trouble, settings, name",
    [
        ("UCI", "none", "nodes=1", "Fake (nodes 1)"),
        ("UCI", "none", "nodes=1234567", "Fake (nodes 1234567)"),
        ("Gomocup", "none", "time=0.01", "fake-none (time 0.01)"),
        ("Gomocup", "basic", "time=0.01", "fake-basic (time 0.01)"),  # does not know RESTART
        ("Gomocup", "info", "time=0.01", "fake-info (time 0.01)"),  # nor the words of INFO
    ],
)
def test_plays_whole_games_from_the_book(program, protocol, trouble, settings, name, short_games):
    game = match_game(GAMES[protocol])
    player = find_player(f"engine:{program(protocol, trouble)}?{settings}", game)
    assert player.name == name
    result = play_match(game, player, RandomPlayer(game), 4)
    player.close()
    player.close()
    assert result.games == 4 and "forfeit" not in result.endings


def test_a_gomocup_engine_from_the_home_folder_plays_at_the_board(program, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    name = Path(program("Gomocup")).name
    view = play_widget(f"engine:~/{name}?time=0.01", game="gomoku:9")
    view.click(40)
    assert len(view.drawing.actions) == 2
    view.load("1. a1 2. b2")
    view.click(42)
    assert len(view.drawing.actions) == 4
    view.opponent.player.close()


def test_every_board_gets_its_own_move(program):
    positions = ["7k/8/8/8/8/8/8/K6R b - - 0 1", "7k/8/8/8/8/8/8/K6R w - - 0 1"]
    some = [chess.Board(), *map(chess.Board, positions)] * 3
    expected = [action_from_move(min(board.legal_moves, key=str), board) for board in some]
    assert choose(EnginePlayer(program("UCI"), {}, {"nodes": 1}, 30.0), some) == expected
    some = [[], [0], [0, 1], [5, 6]] * 3
    gomocup = GomocupPlayer(program("Gomocup"), rules("gomoku:9"), 0.1, 30.0)
    assert choose(gomocup, some) == [0, 1, 2, 0] * 3


@pytest.mark.parametrize(
    "protocol, trouble, settings, words",
    [
        ("UCI", "crash", {}, "died"),
        ("UCI", "silence", {"patience": 1.0}, "no move within 1 s"),
        ("UCI", "silence", {"patience": 1.0, "limit": {"time": 0.01}}, "no move within 1 s"),
        ("UCI", "illegal", {}, "illegal"),
        ("UCI", "null", {}, "illegal"),
        ("Gomocup", "crash", {}, "died with exit code 3"),
        ("Gomocup", "silence", {"patience": 1.0}, "no answer within 1 s"),
        ("Gomocup", "unsure", {"patience": 1.0}, "no answer within 1 s"),
        ("Gomocup", "taken", {}, "played a9, where a stone is already: an illegal move"),
        ("Gomocup", "outside", {}, "played 9,0, which is off the board of 9x9"),
        ("Gomocup", "words", {}, "answered 'ERROR no idea', expected a move such as 7,7"),
    ],
)
def test_trouble_loses_the_game_and_not_the_match(player, protocol, trouble, settings, words):
    troubled = player(protocol, trouble, **settings)
    actions = choose(troubled, boards(protocol, 4))
    played = [action >= 0 for action in actions]
    assert played == [True, False, True, False], "a fresh process plays on"
    assert len(troubled.reasons) == 2
    assert all(words in reason for reason in troubled.reasons), troubled.reasons


def test_a_match_counts_and_saves_the_forfeit_with_its_reason(player, tmp_path):
    game = match_game("gomoku:9")
    troubled = player("Gomocup", "words")
    result = play_match(game, troubled, RandomPlayer(game), 2)
    troubled.close()
    assert result.losses == 2 and result.endings == {"forfeit": 2}
    (reason,) = result.forfeits
    assert reason == "fake-words: answered 'ERROR no idea', expected a move such as 7,7"
    saved = GamesFolder(arena_game("gomoku:9"), tmp_path).save(result)
    first, second = saved.read_text(encoding="utf-8").strip().split("\n\n")
    assert f"Forfeit: {reason}" in first
    for text, winner in ((first, "White"), (second, "Black")):
        endings = [line for line in text.splitlines() if line.startswith("Ending: ")]
        assert endings == [f"Ending: forfeit, {winner} wins"]


def test_a_move_has_no_limit_but_the_players_own(player):
    """python-chess would end it after the seconds that a start may take."""
    engine = player("UCI", "none")
    started = engine.start()
    assert started.timeout is None
    started.close()
    engine.close()


def test_an_engine_that_always_fails_is_given_up(player, monkeypatch):
    monkeypatch.setattr(engine_processes, "MAX_RESTARTS", 1)
    failing = player("UCI", "crash")
    assert [action >= 0 for action in choose(failing, boards("UCI", 8))].count(True) == 2
    assert "not started again" in failing.reasons[-1]
    assert len(set(failing.reasons)) == 2, "the same reason for each game that it forfeits"


@pytest.mark.parametrize("protocol", ["UCI", "Gomocup"])
def test_a_move_that_never_comes_does_not_keep_a_match_from_closing(player, protocol, monkeypatch):
    silent = player(protocol, "silence", patience=1e6)
    (engine,) = silent._running
    asked, move = [], silent.move

    def noted(*arguments):
        asked.append(arguments)
        return move(*arguments)

    monkeypatch.setattr(silent, "move", noted)
    thinking = threading.Thread(
        target=silent.choose, args=(None, torch.Generator(), boards(protocol, 2))
    )
    thinking.start()
    while len(asked) < 2 and thinking.is_alive():
        time.sleep(0.01)
    time.sleep(0.2)  # now it thinks about its second move
    silent.close()
    thinking.join()
    assert exit_code(engine) is not None


def test_an_interrupt_while_an_engine_starts_leaves_no_process(player, monkeypatch):
    launched = []

    def noted(self, engine):
        launched.append(engine)
        time.sleep(0.5)

    class Threads(ThreadPoolExecutor):
        def submit(self, *arguments):
            future = super().submit(*arguments)
            while not launched:
                time.sleep(0.01)
            future.result = interrupted
            return future

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(engine_processes, "ThreadPoolExecutor", Threads)
    monkeypatch.setattr(EnginePlayer, "prepare", noted)
    with pytest.raises(KeyboardInterrupt):
        player("UCI", "none")
    assert exit_code(launched[0]) is not None


def exit_code(engine) -> int | None:
    """Of a process that is about to end."""
    deadline = time.monotonic() + 10
    code = None
    while code is None and time.monotonic() < deadline:
        time.sleep(0.05)
        uci = isinstance(engine, chess.engine.SimpleEngine)
        code = engine.transport.get_returncode() if uci else engine._process.returncode
    return code


def test_an_engine_that_only_chats_does_not_start(player, monkeypatch):
    monkeypatch.setattr(gomocup_module, "START_SECONDS", 1.0)
    with pytest.raises(ConfigError, match="does not start as a Gomocup engine.*no answer within 1"):
        player("Gomocup", "chat")


@pytest.mark.parametrize("protocol", GAMES)
def test_an_interrupt_of_this_program_does_not_reach_an_engine(player, protocol):
    """Jupyter's Stop goes to a kernel's whole group of processes, whichever cell runs."""
    quiet = player(protocol, "none")
    engine = quiet._engines.get()
    quiet._engines.put(engine)
    uci = protocol == "UCI"
    pid = engine.transport.get_pid() if uci else engine._process.pid
    group = os.getpgid(pid)
    quiet.close()
    assert group != os.getpgid(0)


def test_an_event_loop_that_starts_no_programs_is_named(player, monkeypatch):
    """That of ipykernel 6 on Windows."""

    def refuse(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(chess.engine.SimpleEngine, "popen_uci", refuse)
    with pytest.raises(ConfigError, match="does not start as a UCI engine .*NotImplementedError"):
        player("UCI", "none")


@pytest.mark.parametrize("protocol", GAMES)
def test_close_ends_even_a_stubborn_engine(player, protocol):
    stubborn = player(protocol, "stubborn")
    engine = stubborn._engines.get()
    stubborn._engines.put(engine)
    stubborn.close()
    assert exit_code(engine) is not None


@pytest.mark.parametrize(
    "protocol, spec, words",
    [
        ("UCI", "engine:", "invalid engine 'engine:': expected engine:PATH or .*nodes=1000"),
        ("UCI", "engine:no-such-engine", "no engine 'no-such-engine'"),
        ("UCI", "engine:cat?nodes=many", "engine limit nodes=many: expected a whole number"),
        ("UCI", "engine:cat?depth=0", "expected a whole number, more than 0"),
        ("UCI", "engine:true", "does not start as a UCI engine"),
        ("UCI", "engine:FAKE?Skil Level=3", "Skil"),
        ("Gomocup", "engine:", "invalid engine 'engine:': expected engine:PATH or .*time=0.5"),
        ("Gomocup", "engine:cat?nodes=3", "unknown setting 'nodes' of a Gomocup engine"),
        ("Gomocup", "engine:SMALL", "does not start .*: answered 'ERROR unsupported size'"),
        ("Gomocup", "engine:true", "does not start as a Gomocup engine .time 0.1.: died"),
    ],
)
def test_bad_engines_are_named(program, protocol, spec, words):
    with pytest.raises(ConfigError, match=words):
        spec = spec.replace("FAKE", program("UCI")).replace("SMALL", program("Gomocup", "small"))
        find_player(spec, match_game(GAMES[protocol]))


def test_an_option_that_is_switched_off_is_off():
    """python-chess takes every text but "false" for true."""
    kinds = {"Off": "check", "No": "check", "Right": "check", "Path": "string"}
    options = {
        name: chess.engine.Option(name, kind, None, None, None, None)
        for name, kind in kinds.items()
    }
    given = {}
    engine = SimpleNamespace(
        options=chess.engine.UciOptionMap(options), configure=given.update, timeout=1.0, id={}
    )
    settings = engine_settings("engine:x?Off=False&No=0&Right=true&Path=/c++/no", {}, "")[2]
    EnginePlayer.prepare(SimpleNamespace(options=settings, title=""), engine)
    assert given == {"Off": False, "No": False, "Right": True, "Path": "/c++/no"}


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
