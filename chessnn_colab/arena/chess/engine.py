"""Any UCI engine as a player, through python-chess: a few engine processes serve all the games of a match.

The path of an engine is a program that will be run, with the rights of whoever names it.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Mapping, Sequence
from urllib.parse import parse_qsl

import chess
import chess.engine
import torch
from torch import Tensor

from ...errors import ConfigError
from ...games.chess.notation import action_from_move

PROCESSES = 2
PATIENCE = 30.0  # seconds an engine may take for a move; then it is killed and the game is lost
START_SECONDS = 20.0
MAX_RESTARTS = 10  # of all processes together; then the engine forfeits whatever it is asked
NO_MOVE = -1
LIMITS = {"nodes": int, "depth": int, "time": float}
DEFAULT_LIMIT = {"time": 0.05}
OUTSIDE_PATH = ("/usr/games", "/usr/local/games")  # where Debian puts its engines, which not every PATH has
FAILURES = (chess.engine.EngineError, asyncio.TimeoutError, CancelledError, OSError)


class EnginePlayer:
    """A UCI engine. Where it crashes, is silent or plays what is no move, it forfeits that game and is started afresh.

    path: a program, by path or by name. options: UCI options by name, such as {"Skill Level": 0}. limit: a move's, by
    nodes, depth or time in seconds. Raises ConfigError when there is no such engine or it does not take an option.
    """

    evaluations = 0
    wants_boards = True

    def __init__(
        self,
        path: str,
        options: Mapping[str, Any] | None = None,
        limit: Mapping[str, float] = DEFAULT_LIMIT,
        processes: int = PROCESSES,
        patience: float = PATIENCE,
    ):
        self.path, self.options = find_engine(path), dict(options or {})
        self.limit, self.patience = chess.engine.Limit(**limit), patience
        self.reasons: list[str] = []
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
        self._engines: queue.SimpleQueue = queue.SimpleQueue()  # None: a process yet to start
        for process in (engine, *[None] * (processes - 1)):
            self._engines.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="engine")
        self._processes = processes

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[chess.Board] | None = None) -> Tensor:
        """int64 [B] actions; -1 where the engine forfeits, with the reasons, in order, in `reasons`."""
        answers = list(self._threads.map(self._answer, boards))
        self.reasons = [answer for answer in answers if isinstance(answer, str)]
        actions = [NO_MOVE if isinstance(answer, str) else answer for answer in answers]
        return torch.tensor(actions, dtype=torch.int64, device=generator.device)

    def close(self) -> None:
        """End every engine process; a second call does nothing."""
        self._threads.shutdown(cancel_futures=True)
        for _ in range(self._processes):
            if (engine := self._engines.get()) is not None:
                engine.close()
        self._processes = 0

    def _answer(self, board: chess.Board) -> int | str:
        """The engine's action, or why there is none. Runs in a thread, with an engine of its own meanwhile."""
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
    """The program that `path` names. Raises ConfigError when there is none."""
    found = shutil.which(path) or next((hit for place in OUTSIDE_PATH if (hit := shutil.which(path, path=place))), None)
    if found is None:
        raise ConfigError(
            f"no engine {path!r}: expected a program's path or name; Stockfish is in most systems' packages "
            "(apt install stockfish, brew install stockfish)"
        )
    return found


def parse_engine(spec: str) -> EnginePlayer:
    """The player that "engine:PATH" or "engine:PATH?nodes=1000&Skill Level=0" asks for.

    nodes, depth and time (seconds) limit a move, everything else is a UCI option. Raises ConfigError.
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
