"""Any Gomocup engine as a player, by the protocol of Piskvork
(https://plastovicka.github.io/protocl2en.htm).

Before every move BOARD tells the engine the whole position, so one process can serve many games on
boards of one size.
"""

import queue
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import ConfigError
from ...games.gomoku.notation import cell_name
from ...games.gomoku.rules import Gomoku
from ..engine_processes import PATIENCE, ProcessPlayer, engine_settings

START_SECONDS = 60.0  # an engine may load a network first
MEMORY = 350 * 2**20  # bytes, what Gomocup allows
LIMITS = {"time": float}
SECONDS = 0.1  # for a move
_SILENT = ("MESSAGE", "DEBUG", "SUGGEST", "")  # words in front of lines that answer nothing
_MOVE = re.compile(r"\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\Z", re.ASCII)
_GAME_TYPE = 1  # INFO: the opponent is a program


class GomocupProcess:
    """One process, which plays `game` and may think for `seconds`. Every method raises OSError when
    it ends, breaks the protocol or is silent for too long.
    """

    def __init__(self, path: str, game: type[Gomoku], seconds: float):
        self._game = game
        self._seconds = seconds
        self._process = subprocess.Popen(
            [path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(path).parent,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True, name="gomocup-engine").start()

    def begin(self) -> None:
        """Begin with an empty board of the game's size and rule."""
        self._say(f"START {self._game.size}")
        answer, ends_at = "", time.monotonic() + START_SECONDS
        while answer.upper().split()[:1] not in (["OK"], ["ERROR"]):
            answer = self._answer(START_SECONDS, ends_at)
        if not _is_ok(answer):
            raise OSError(f"answered {answer!r:.80}, expected OK")
        self._say(
            f"INFO timeout_turn {max(1, round(1000 * self._seconds))}",
            "INFO timeout_match 0",
            f"INFO max_memory {MEMORY}",
            f"INFO game_type {_GAME_TYPE}",
            # 1: exactly five.
            f"INFO rule {int(self._game.exact)}",
        )

    def play(self, actions: Sequence[int], patience: float) -> int:
        """The action that it chooses after `actions`."""
        self._say("RESTART")
        if not _is_ok(self._answer(patience)):  # it need not know this command
            self.begin()
        size = self._game.size
        plies = len(actions)
        stones = [  # the engine's own ones end in 1, the opponent's in 2
            f"{action % size},{action // size},{1 + (plies - ply) % 2}"
            for ply, action in enumerate(actions)
        ]
        self._say(*(["BOARD", *stones, "DONE"] if stones else ["BEGIN"]))
        answer, ends_at = "OK", time.monotonic() + patience
        while answer.upper().startswith(("OK", "UNKNOWN")):  # late answers to START and INFO
            answer = self._answer(patience, ends_at)
        return self._read_move(answer, actions)

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

    def _read_move(self, text: str, actions: Sequence[int]) -> int:
        found = _MOVE.match(text)
        if found is None:
            raise OSError(f"answered {text!r:.60}, expected a move such as 7,7")
        column, row = map(int, found.groups())
        size = self._game.size
        if max(column, row) >= size:
            raise OSError(f"played {text.strip()}, which is off the board of {size}x{size}")
        action = row * size + column
        if action in actions:
            raise OSError(
                f"played {cell_name(action, size)}, where a stone is already: an illegal move"
            )
        return action

    def _say(self, *lines: str) -> None:
        try:
            print(*lines, sep="\n", file=self._process.stdin, flush=True)
        except (OSError, ValueError):
            raise OSError(f"died{self._ending()}") from None

    def _answer(self, patience: float, ends_at: float | None = None) -> str:
        """The next line that answers something, until `ends_at`, or for `patience` from now on."""
        ends_at = ends_at or time.monotonic() + patience
        while (left := ends_at - time.monotonic()) > 0:  # however much it says
            try:
                line = self._answers.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                raise OSError(f"died{self._ending()}")
            if line.partition(" ")[0].upper() not in _SILENT:
                return line
        raise TimeoutError(f"no answer within {patience:g} s")

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
    return answer.upper().split()[:1] == ["OK"]


class GomocupPlayer(ProcessPlayer):
    """A Gomocup engine that plays `game`."""

    protocol = "Gomocup"
    hint = ", such as ./pbrain-embryo"

    def __init__(self, path: str, game: type[Gomoku], seconds: float, patience: float):
        """seconds: time limit per move sent to the engine. The rest is ProcessPlayer's."""
        self.game = game
        self.seconds = seconds
        super().__init__(path, f"time {seconds:g}", patience)

    def launch(self) -> GomocupProcess:
        return GomocupProcess(self.path, self.game, self.seconds)

    def prepare(self, engine: GomocupProcess) -> None:
        engine.begin()

    def move(self, engine: GomocupProcess, board: Sequence[int]) -> int | str:
        return engine.play(board, self.patience)


def parse_engine(game: type[Gomoku], spec: str) -> GomocupPlayer:
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
    return GomocupPlayer(path, game, seconds, patience=PATIENCE + seconds)
