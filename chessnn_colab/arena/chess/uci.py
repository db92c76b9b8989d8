"""A run's network as a UCI engine, for any chess program: python -m chessnn_colab uci RUN.

The protocol: https://www.chessprogramming.org/UCI.
"""

import io
import queue
import sys
import threading
from contextlib import suppress
from typing import TextIO

import chess

from ...cpu import use_threads
from ...errors import ChessnnError
from ...games.chess.notation import board_from_fen, parse_move
from ...games.chess.rules import Chess
from ...search import MOST_SIMULATIONS
from ..evaluate import network_player
from .limits import read_limits
from .uci_search import Search, ends

# Options: name -> the number at first, and the largest. Nobody reads more lines than 32.
OPTIONS = {"Simulations": (128, MOST_SIMULATIONS), "MultiPV": (1, 32)}
NO_CAP = 10**6  # plies: more than any game has
# The last four change nothing where they come: a stop, for one, finds no search that goes on.
COMMANDS = frozenset(
    "uci isready ucinewgame setoption position go stop ponderhit debug register".split()
)


class Engine:
    """The state of one UCI conversation. It reads `commands` and writes `answers`.

    The answer to bad input is an `info string`; nothing else changes. One thread reads commands;
    the thread of `loop` carries them out. Raises ConfigError when the run plays another game, and
    RunError or CheckpointError when its network cannot be loaded.
    """

    def __init__(
        self,
        run: str,
        snapshot: int | None = None,
        commands: TextIO = sys.stdin,
        answers: TextIO = sys.stdout,
    ):
        self.commands = commands
        self.answers = answers
        # None: the end of the input
        self.inbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.options = {name: first for name, (first, _) in OPTIONS.items()}
        self.board = chess.Board()
        self.player = network_player(run, snapshot, Chess(NO_CAP))

    @use_threads(1)
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
        while words and words[0] not in COMMANDS:
            words = words[1:]
        if not words:
            if line.strip():
                self.say(f"info string unknown command {line!r:.120}")
            return
        try:
            self._carry_out(words[0], words[1:])
        except (ChessnnError, ValueError) as error:
            self.say(f"info string {' '.join(str(error).split())}")
            if words[0] == "go":  # the program waits for an answer
                self._go(["movetime", "0"])

    def _carry_out(self, command: str, words: list[str]) -> None:
        if command == "uci":
            self.say(f"id name chessnn_colab {self.player.name}")
            self.say("id author chessnn_colab, by playing itself")
            for name, (first, most) in OPTIONS.items():
                self.say(f"option name {name} type spin default {first} min 1 max {most}")
            self.say("uciok")
        elif command == "isready":
            self.say("readyok")
        elif command == "ucinewgame":
            self.board = chess.Board()
        elif command == "setoption":
            self._set_option(words)
        elif command == "position":
            self._set_position(words)
        elif command == "go":
            self._go(words)

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # such as a terminal that has gone
            for line in self.commands or ():
                self.inbox.put(line.strip())
        self.inbox.put(None)

    def _set_option(self, words: list[str]) -> None:
        given, _, value = " ".join(words[1:]).partition(" value ")
        name = next((name for name in OPTIONS if name.lower() == given.lower()), "")
        if not name:
            raise ValueError(f"unknown option {given!r:.120}: expected {' or '.join(OPTIONS)}")
        _, most = OPTIONS[name]
        if not value.isdecimal() or not 1 <= int(value) <= most:
            raise ValueError(f"{name} {value!r:.120}: expected a whole number from 1 to {most}")
        self.options[name] = int(value)

    def _set_position(self, words: list[str]) -> None:
        at = words.index("moves") if "moves" in words else len(words)
        if words[:1] not in (["startpos"], ["fen"]) or (words[0] == "startpos" and at > 1):
            raise ValueError(f"position {' '.join(words)!r:.120}: expected startpos or fen")
        board = chess.Board() if words[0] == "startpos" else board_from_fen(" ".join(words[1:at]))
        for text in words[at + 1 :]:
            board.push(parse_move(text, board))
        self.board = board

    def _go(self, words: list[str]) -> None:
        limits = read_limits(words, self.board, self.options["Simulations"])
        if not any(self.board.legal_moves):
            self.say("info depth 0 score " + ("mate 0" if self.board.is_check() else "cp 0"))
            return self.say("bestmove (none)")
        lines = self.options["MultiPV"]
        search = Search(self.player.actor, self.board, limits, self.inbox, self.say, lines)
        self.say(f"bestmove {search.best()}")
