"""A run's network as a UCI engine, for any chess program: python -m chessnn_colab uci RUN.

The protocol: https://www.chessprogramming.org/UCI.
"""

from __future__ import annotations

import io
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TextIO

import chess

from ...actor import Actor
from ...cpu import use_threads
from ...devices import choose_dtype, playing_device
from ...errors import ChessnnError, ConfigError
from ...games.chess.notation import board_from_fen, parse_move, quote
from ...games.chess.rules import Chess
from ...network import actor_copy
from ...runs.networks import load_network, run_game
from ..players import PLAY_SEARCH
from .limits import MOST_SIMULATIONS, read_limits
from .uci_search import Search, ends

CONSIDERED = 32  # root moves that sequential halving begins with
NO_CAP = 10**6  # plies: more than any game has


def serve(run: str, snapshot: int | None = None, device: str = "auto") -> None:
    """Answer UCI commands from standard input until `quit` or its end. Raises what Engine
    raises.
    """
    with use_threads(1):
        Engine(run, snapshot, device).loop()


class Engine:
    """The state of one UCI conversation. It reads `commands` and writes `answers`.

    The answer to bad input is an `info string`; nothing else changes. One thread reads commands;
    the thread of `loop` carries them out. Raises ConfigError when the run plays another game, and
    RunError, CheckpointError or DeviceError when its network cannot be loaded.
    """

    def __init__(
        self,
        run: str,
        snapshot: int | None = None,
        device: str = "auto",
        commands: TextIO = sys.stdin,
        answers: TextIO = sys.stdout,
    ):
        if (name := run_game(run)) != "chess":
            raise ConfigError(f"the game {name!r:.60} has no UCI protocol: expected a run of chess")
        self.commands = commands
        self.answers = answers
        self.inbox: queue.Queue[str | None] = queue.Queue()  # None: the end of the input
        self.run = run
        self.snapshot = snapshot
        self.device = device
        self.num_simulations = 128
        self.board = chess.Board()
        self._load()

    def loop(self) -> None:
        """Carry out commands until `quit` or the end of the input."""
        for stream in (self.commands, self.answers):
            if isinstance(stream, io.TextIOWrapper):
                # A character that the system cannot write must not end a game.
                stream.reconfigure(errors="backslashreplace")
        threading.Thread(target=self._read, daemon=True, name="commands").start()
        while not ends(line := self.inbox.get()):
            self.obey(line or "")

    def say(self, text: str) -> None:
        """Write one line to the other program."""
        print(text, file=self.answers, flush=True)

    def obey(self, line: str) -> None:
        """Carry out one command. As UCI wants it, unknown words in front of a command are
        skipped.
        """
        words = line.split()
        while words and words[0] not in self.COMMANDS:
            words = words[1:]
        if not words:
            return self.say(f"info string unknown command {quote(line)}") if line.strip() else None
        try:
            self.COMMANDS[words[0]](self, words[1:])
        except (ChessnnError, ValueError, IndexError) as error:
            self.say(f"info string {' '.join(str(error).split()) or f'cannot read {quote(line)}'}")
            if words[0] == "go":  # the program waits for an answer
                self.say(f"bestmove {next(iter(self.board.legal_moves), '(none)')}")

    def _load(self) -> None:
        """Load the network onto the device that the options name."""
        network, self.iteration = load_network(self.run, self.snapshot, self.device)
        device = playing_device(next(network.parameters()).device)
        self.game = Chess(NO_CAP, device)
        network = actor_copy(network, choose_dtype("auto", device)).to(device)
        config = replace(PLAY_SEARCH, solve="all")
        self.actor = Actor(self.game, network, config, CONSIDERED)

    def _read(self) -> None:
        for line in self.commands:
            self.inbox.put(line.strip())
        self.inbox.put(None)

    def _uci(self, words: list[str]) -> None:
        self.say(f"id name chessnn_colab iteration {self.iteration}")
        self.say("id author chessnn_colab, by playing itself")
        self.say(
            f"option name Simulations type spin default {self.num_simulations} min 1 max {MOST_SIMULATIONS}"
        )
        self.say(f"option name Device type string default {self.device}")
        self.say("uciok")

    def _ready(self, words: list[str]) -> None:
        self.say("readyok")

    def _new_game(self, words: list[str]) -> None:
        self.board = chess.Board()

    def _nothing(self, words: list[str]) -> None:
        """A stop or a ponderhit that comes when the search has ended already."""

    def _set_option(self, words: list[str]) -> None:
        at = words.index("value") if "value" in words else len(words)
        name = " ".join(words[1:at]).lower()
        value = " ".join(words[at + 1 :])
        if name == "simulations":
            if not value.isdecimal() or not 1 <= int(value) <= MOST_SIMULATIONS:
                raise ValueError(
                    f"Simulations {quote(value)}: expected a whole number from 1 to {MOST_SIMULATIONS}"
                )
            self.num_simulations = int(value)
        elif name == "device":
            before = self.device
            self.device = value
            try:
                self._load()
            except ChessnnError:
                self.device = before
                raise
        else:
            raise ValueError(f"unknown option {quote(name)}: expected Simulations or Device")

    def _position(self, words: list[str]) -> None:
        at = words.index("moves") if "moves" in words else len(words)
        if words[:1] not in (["startpos"], ["fen"]):
            raise ValueError(f"position {quote(' '.join(words))}: expected startpos or fen")
        board = chess.Board() if words[0] == "startpos" else board_from_fen(" ".join(words[1:at]))
        for text in words[at + 1 :]:
            board.push(parse_move(text, board))
        self.board = board

    def _go(self, words: list[str]) -> None:
        limits = read_limits(words, self.board, self.num_simulations)
        if not any(self.board.legal_moves):
            self.say("info depth 0 score " + ("mate 0" if self.board.is_check() else "cp 0"))
            return self.say("bestmove (none)")
        self.say(f"bestmove {Search(self.actor, self.board, limits, self.inbox, self.say).best()}")

    COMMANDS: Mapping[str, Callable[..., None]] = {
        "uci": _uci,
        "isready": _ready,
        "ucinewgame": _new_game,
        "setoption": _set_option,
        "position": _position,
        "go": _go,
        "stop": _nothing,
        "ponderhit": _nothing,
        "debug": _nothing,
        "register": _nothing,
    }
