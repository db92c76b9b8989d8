"""Any Gomocup engine as a player, by the protocol of Piskvork (https://plastovicka.github.io/protocl2en.htm).

Every move is asked for with BOARD, which tells the whole position, so that one process can serve many games.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from ...errors import ConfigError, NotationError
from ...games.gomoku.notation import cell_at, cell_name
from ..engine_processes import PATIENCE, PROCESSES, ProcessPlayer, engine_settings, find_program
from .board import GomokuBoard

START_SECONDS = 60.0  # an engine may have to load a network
MEMORY = 350 * 2**20  # bytes, what Gomocup allows
LIMITS = {"time": float}
SECONDS = 0.1  # for a move
MAX_LINE = 1000  # characters of an answer that are kept
_SILENT = ("MESSAGE", "DEBUG", "SUGGEST", "")  # words in front of lines that answer nothing
_MOVE = re.compile(r"\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\Z", re.ASCII)
_NAME = re.compile(r'name\s*=\s*"([^"]{1,60})"', re.IGNORECASE)
_OWN, _THEIRS = 1, 2  # in the lines of BOARD
_GAME_TYPE = 1  # INFO: the opponent is a program
_EXACT = 1  # INFO rule: exactly five


class Brain:
    """One process. Every method raises OSError when it ends, breaks the protocol or is silent for too long."""

    def __init__(self, path: str):
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(path).parent
        )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._board: tuple[int, bool] | None = None  # size and rule that it has been told
        threading.Thread(target=self._read, daemon=True, name="gomocup-engine").start()

    def about(self) -> str:
        """Its name, if it tells one, else ""."""
        self._say("ABOUT")
        found = _NAME.search(self._answer(START_SECONDS))
        return found[1] if found else ""

    def play(self, board: GomokuBoard, seconds: float, patience: float) -> int:
        """The action that it chooses."""
        if self._board != (board.size, board.exact) or not self._restarted(patience):
            self._begin(board, seconds)
        mover = len(board.actions) % 2
        stones = [
            f"{action % board.size},{action // board.size},{_OWN if number % 2 == mover else _THEIRS}"
            for number, action in enumerate(board.actions)
        ]
        self._say(*(("BOARD", *stones, "DONE") if stones else ("BEGIN",)))
        return self._read_move(self._answer(patience), board)

    def close(self) -> None:
        """End the process: politely, then by force. A second call does nothing."""
        with suppress(OSError, ValueError):
            self._say("END")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # the reading thread closes the other pipe, which a child may hold open

    def _begin(self, board: GomokuBoard, seconds: float) -> None:
        milliseconds = max(1, round(1000 * seconds))
        self._board = None
        self._say(f"START {board.size}")
        self._expect_ok(START_SECONDS)
        told = {"timeout_turn": milliseconds, "timeout_match": 0, "max_memory": MEMORY, "game_type": _GAME_TYPE}
        told["rule"] = _EXACT if board.exact else 0
        self._say(*(f"INFO {key} {value}" for key, value in told.items()))
        self._board = board.size, board.exact

    def _restarted(self, patience: float) -> bool:
        """Whether it has cleared its board; a brain need not know this command."""
        self._say("RESTART")
        return self._answer(patience).split()[:1] == ["OK"]

    def _read_move(self, text: str, board: GomokuBoard) -> int:
        found = _MOVE.match(text)
        if found is None:
            raise OSError(f"answered {text!r:.60}, expected a move such as 7,7")
        try:
            action = cell_at(int(found[1]), int(found[2]), board.size)
        except NotationError:
            raise OSError(f"played {text.strip()}, which is off the board of {board.size}x{board.size}") from None
        if action in board.actions:
            raise OSError(f"played {cell_name(action, board.size)}, where a stone is already: an illegal move")
        return action

    def _expect_ok(self, patience: float) -> None:
        answer = self._answer(patience)
        if answer.split()[:1] != ["OK"]:
            raise OSError(f"answered {answer!r:.80}, expected OK")

    def _say(self, *lines: str) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write("".join(f"{line}\n" for line in lines).encode())
            stream.flush()
        except (OSError, ValueError):
            raise OSError(f"died{self._ending()}") from None

    def _answer(self, patience: float) -> str:
        """The next line that answers something."""
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no answer within {patience:g} s") from None
            if line is None:
                raise OSError(f"died{self._ending()}")
            if line.partition(" ")[0].upper() not in _SILENT:
                return line

    def _ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f" with exit code {self._process.wait(1)}"
        return ""

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        begins = True  # a longer line comes in pieces, of which the first is kept
        with suppress(OSError, ValueError), stream:
            while line := stream.readline(MAX_LINE):
                if begins:
                    self._answers.put(line.decode("utf-8", "replace").strip())
                begins = line.endswith(b"\n")
        self._answers.put(None)


class BrainPlayer(ProcessPlayer):
    """A Gomocup engine.

    path: a program, by path or by name. seconds: that it is told to take for a move. patience: seconds after which it
    forfeits the game. Raises ConfigError when there is no such program or it does not speak the protocol.
    """

    def __init__(self, path: str, seconds: float = SECONDS, processes: int = PROCESSES, patience: float = PATIENCE):
        self.path = os.path.abspath(find_program(path, ", such as ./pbrain-embryo"))  # it runs in its own folder
        self.seconds, self.patience = seconds, patience
        engine = None
        try:
            engine = self.start()
            name = engine.about() or Path(self.path).name
        except OSError as error:
            if engine is not None:
                engine.close()
            raise ConfigError(f"{self.path} does not start as a Gomocup engine: {error}") from None
        super().__init__(f"{name} (time {seconds:g})", self.path, engine, processes)

    def start(self) -> Brain:
        return Brain(self.path)

    def move(self, engine: Brain, board: GomokuBoard) -> int | str:
        return engine.play(board, self.seconds, self.patience)


def parse_engine(spec: str) -> BrainPlayer:
    """The player for "engine:PATH" or "engine:PATH?time=0.5", with the seconds for each move. Raises ConfigError."""
    example = "engine:PATH?time=0.5"
    path, limit, others = engine_settings(spec, LIMITS, example)
    if others:
        raise ConfigError(f"unknown setting {next(iter(others))!r:.40} of a Gomocup engine: expected {example}")
    seconds = limit.get("time", SECONDS)
    return BrainPlayer(path, seconds, patience=PATIENCE + seconds)
