"""Any Gomocup engine as a player, by the protocol of Piskvork
(https://plastovicka.github.io/protocl2en.htm).

Before every move BOARD tells the engine the whole position, so one process can serve many games.
"""

import queue
import re
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from ...errors import ConfigError
from ...games.gomoku.notation import cell_name
from ...games.gomoku.rules import DEFAULT_SIZE
from ..engine_processes import PATIENCE, PROCESSES, ProcessPlayer, engine_settings
from .board import GomokuBoard

START_SECONDS = 60.0  # an engine may load a network first
MEMORY = 350 * 2**20  # bytes, what Gomocup allows
LIMITS = {"time": float}
SECONDS = 0.1  # for a move
_SILENT = ("MESSAGE", "DEBUG", "SUGGEST", "")  # words in front of lines that answer nothing
_MOVE = re.compile(r"\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\Z", re.ASCII)
_GAME_TYPE = 1  # INFO: the opponent is a program


class GomocupProcess:
    """One process. Every method raises OSError when it ends, breaks the protocol or is silent for
    too long.
    """

    def __init__(self, path: str):
        self._process = subprocess.Popen(
            [path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(path).parent,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._board: tuple[int, bool] | None = None  # the size and rule of its board
        threading.Thread(target=self._read, daemon=True, name="gomocup-engine").start()

    def greet(self) -> None:
        """Wait until it answers START, even with an error: it need not know every size."""
        self._say(f"START {DEFAULT_SIZE}")
        while self._answer(START_SECONDS).split()[0].upper() not in ("OK", "ERROR"):
            pass

    def play(self, board: GomokuBoard, seconds: float, patience: float) -> int:
        """The action that it chooses."""
        if self._board != (board.size, board.exact) or not self._restarted(patience):
            self._begin(board, seconds)
        plies = len(board.actions)
        stones = [  # the engine's own ones end in 1, the opponent's in 2
            f"{action % board.size},{action // board.size},{1 + (plies - ply) % 2}"
            for ply, action in enumerate(board.actions)
        ]
        self._say(*(["BOARD", *stones, "DONE"] if stones else ["BEGIN"]))
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
            # The reading thread closes the other pipe, which a child may hold open
            self._process.stdin.close()

    def _begin(self, board: GomokuBoard, seconds: float) -> None:
        """Begin with an empty board of this size and rule."""
        self._board = None
        self._say(f"START {board.size}")
        answer = self._answer(START_SECONDS)
        if not _is_ok(answer):
            raise OSError(f"answered {answer!r:.80}, expected OK")
        self._say(
            f"INFO timeout_turn {max(1, round(1000 * seconds))}",
            "INFO timeout_match 0",
            f"INFO max_memory {MEMORY}",
            f"INFO game_type {_GAME_TYPE}",
            # 1: exactly five.
            f"INFO rule {int(board.exact)}",
        )
        self._board = board.size, board.exact

    def _restarted(self, patience: float) -> bool:
        """Whether it has cleared its board; a brain need not know this command."""
        self._say("RESTART")
        return _is_ok(self._answer(patience))

    def _read_move(self, text: str, board: GomokuBoard) -> int:
        found = _MOVE.match(text)
        if found is None:
            raise OSError(f"answered {text!r:.60}, expected a move such as 7,7")
        column, row = map(int, found.groups())
        if max(column, row) >= board.size:
            raise OSError(
                f"played {text.strip()}, which is off the board of {board.size}x{board.size}"
            )
        action = row * board.size + column
        if action in board.actions:
            raise OSError(
                f"played {cell_name(action, board.size)}, where a stone is already: an illegal move"
            )
        return action

    def _say(self, *lines: str) -> None:
        try:
            print(*lines, sep="\n", file=self._process.stdin, flush=True)
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
        with suppress(OSError, ValueError), stream:
            for line in stream:
                self._answers.put(line.strip())
        self._answers.put(None)


def _is_ok(answer: str) -> bool:
    return answer.split()[:1] == ["OK"]


class GomocupPlayer(ProcessPlayer):
    """A Gomocup engine."""

    protocol = "Gomocup"
    hint = ", such as ./pbrain-embryo"

    def __init__(
        self,
        path: str,
        seconds: float = SECONDS,
        processes: int = PROCESSES,
        patience: float = PATIENCE,
    ):
        """seconds: time limit per move sent to the engine. The rest is ProcessPlayer's."""
        self.seconds = seconds
        super().__init__(path, f"time {seconds:g}", processes, patience)

    def launch(self) -> GomocupProcess:
        return GomocupProcess(self.path)

    def prepare(self, engine: GomocupProcess) -> None:
        engine.greet()

    def move(self, engine: GomocupProcess, board: GomokuBoard) -> int | str:
        return engine.play(board, self.seconds, self.patience)


def parse_engine(spec: str) -> GomocupPlayer:
    """The player for "engine:PATH" or "engine:PATH?time=0.5", with the seconds for each move.
    Raises ConfigError.
    """
    example = "engine:PATH?time=0.5"
    path, limit, others = engine_settings(spec, LIMITS, example)
    if others:
        raise ConfigError(
            f"unknown setting {next(iter(others))!r:.40} of a Gomocup engine: expected {example}"
        )
    seconds = limit.get("time", SECONDS)
    return GomocupPlayer(path, seconds, patience=PATIENCE + seconds)
