"""Any UCI engine as a player, through python-chess. A few engine processes serve all the games of a match.

The path of an engine names a program that will run with the rights of the person who gave the path.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import chess
import chess.engine
import torch
from torch import Tensor

from ...errors import ConfigError
from ...games.chess.notation import action_from_move
from ..players import NO_MOVE, Player

PROCESSES = 2
PATIENCE = 30.0  # seconds that an engine may take for a move; then it is killed and loses the game
START_SECONDS = 20.0
MAX_RESTARTS = 10  # of all processes together; after them the engine forfeits every game
LIMITS = {"nodes": int, "depth": int, "time": float}
DEFAULT_LIMIT = {"time": 0.05}
OUTSIDE_PATH = ("/usr/games", "/usr/local/games")  # Debian puts its engines there, and not every PATH has these
FAILURES = (chess.engine.EngineError, asyncio.TimeoutError, CancelledError, OSError)


class EnginePlayer(Player):
    """A UCI engine. When it crashes, stays silent or plays an illegal move, it forfeits that game and is restarted.

    path: a program, by path or by name. options: UCI options by name, such as {"Skill Level": 0}. limit: of each move,
    in nodes, depth or time (seconds). processes: how many run at the same time. patience: seconds that a move may take.
    Raises ConfigError when there is no such engine or it does not accept an option.
    """

    wants_boards = True

    def __init__(
        self,
        path: str,
        options: Mapping[str, Any] | None = None,
        limit: Mapping[str, Any] = DEFAULT_LIMIT,
        processes: int = PROCESSES,
        patience: float = PATIENCE,
    ):
        self.path, self.options = find_engine(path), dict(options or {})
        self.limit, self.patience = chess.engine.Limit(**limit), patience
        self.reasons = []
        self.restarts = 0
        try:
            engine = self._start()
        except FAILURES as error:
            raise ConfigError(
                f"{self.path} does not start as a UCI engine with {self.options or 'no options'}: "
                f"{error or type(error).__name__}"
            ) from None
        told = ", ".join(f"{name} {value:g}" for name, value in limit.items())
        settings = "".join(f", {name} {value}" for name, value in self.options.items())
        self.name = f"{engine.id.get('name', Path(self.path).name)} ({told}{settings})"
        self._engines: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None: a process that has yet to start
        for process in (engine, *[None] * (processes - 1)):
            self._engines.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="engine")
        self._processes = processes

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[chess.Board] | None = None) -> Tensor:
        assert boards is not None  # wants_boards says so
        answers = list(self._threads.map(self._answer, boards))
        self.reasons = [answer for answer in answers if isinstance(answer, str)]
        actions = [NO_MOVE if isinstance(answer, str) else answer for answer in answers]
        return torch.tensor(actions, dtype=torch.int64, device=generator.device)

    def close(self) -> None:
        """End every engine process. A second call does nothing."""
        self._threads.shutdown(cancel_futures=True)
        for _ in range(self._processes):
            if (engine := self._engines.get()) is not None:
                engine.close()
        self._processes = 0

    def _answer(self, board: chess.Board) -> int | str:
        """The engine's action, or the reason why there is none. Runs in a thread, which has the process to itself."""
        engine = self._engines.get()
        try:
            if engine is None:
                engine = self._start()
            return self._move(engine, board)
        except FAILURES as error:
            self.restarts += 1
            if engine is not None:
                engine.close()
                engine = None
            return f"{Path(self.path).name}: {error or type(error).__name__}"
        finally:
            self._engines.put(engine)

    def _move(self, engine: chess.engine.SimpleEngine, board: chess.Board) -> int | str:
        silent = threading.Event()

        def give_up() -> None:
            silent.set()
            engine.close()

        timer = threading.Timer(self.patience, give_up)
        timer.start()
        try:
            move = engine.play(board, self.limit).move
        except FAILURES:
            if silent.is_set():
                raise TimeoutError(f"no move within {self.patience:g} s") from None
            raise
        finally:
            timer.cancel()
        return f"{Path(self.path).name}: resigned" if move is None else action_from_move(move, board)

    def _start(self) -> chess.engine.SimpleEngine:
        if self.restarts > MAX_RESTARTS:
            raise OSError(f"failed {self.restarts} times, not started again")
        engine = chess.engine.SimpleEngine.popen_uci(self.path, timeout=START_SECONDS, stderr=subprocess.DEVNULL)
        try:
            engine.configure(self.options)
        except BaseException:
            engine.close()
            raise
        return engine


def find_engine(path: str) -> str:
    """The program with this path or name. Raises ConfigError when there is none."""
    found = shutil.which(path) or next((hit for place in OUTSIDE_PATH if (hit := shutil.which(path, path=place))), None)
    if found is None:
        raise ConfigError(
            f"no engine {path!r}: expected a program's path or name; Stockfish is in most systems' packages "
            "(apt install stockfish, brew install stockfish)"
        )
    return found


def parse_engine(spec: str) -> EnginePlayer:
    """The player for "engine:PATH" or "engine:PATH?nodes=1000&Skill Level=0".

    nodes, depth and time (seconds) limit each move. Every other word is a UCI option. Raises ConfigError.
    """
    path, _, query = spec.removeprefix("engine:").partition("?")
    settings = parse_qsl(query, keep_blank_values=True)
    if not path or (query and not settings):
        raise ConfigError(f"invalid engine {spec!r}: expected engine:PATH or engine:PATH?nodes=1000&Skill Level=0")
    limit = {}
    for name, value in settings:
        if name in LIMITS:
            try:
                limit[name] = LIMITS[name](value)
            except ValueError:
                raise ConfigError(f"engine limit {name}={value!r}: expected a number") from None
            if not limit[name] > 0:
                raise ConfigError(f"engine limit {name}={value}: expected more than 0")
    options = {name: value for name, value in settings if name not in LIMITS}
    return EnginePlayer(path, options, limit or DEFAULT_LIMIT)
