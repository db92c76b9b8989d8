"""Any UCI engine as a player, through python-chess. A few engine processes serve all the games of a
match.

The path of an engine names a program that will run with the rights of the person who gave the path.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import chess
import chess.engine

from ...games.chess.notation import action_from_move
from ..engine_processes import PATIENCE, PROCESSES, ProcessPlayer, engine_settings

START_SECONDS = 20.0
LIMITS = {"nodes": int, "depth": int, "time": float}
DEFAULT_LIMIT = {"time": 0.05}
FAILURES = (chess.engine.EngineError, asyncio.TimeoutError, CancelledError, OSError)


class EnginePlayer(ProcessPlayer):
    """A UCI engine."""

    failures = FAILURES
    protocol = "UCI"
    hint = (
        "; Stockfish is in most systems' packages (apt install stockfish, brew install stockfish)"
    )

    def __init__(
        self,
        path: str,
        options: Mapping[str, Any] | None = None,
        limit: Mapping[str, Any] = DEFAULT_LIMIT,
        processes: int = PROCESSES,
        patience: float = PATIENCE,
    ):
        """options: UCI options by name, such as {"Skill Level": 0}. limit: of each move, in nodes,
        depth or time (seconds). The rest is ProcessPlayer's. Raises ConfigError, also when the
        engine does not accept an option.
        """
        self.options = dict(options or {})
        self.limit = chess.engine.Limit(**limit)
        settings = [f"{name} {value:g}" for name, value in limit.items()]
        settings += [f"{name} {value}" for name, value in self.options.items()]
        super().__init__(path, ", ".join(settings), processes, patience)

    def move(self, engine: chess.engine.SimpleEngine, board: chess.Board) -> int | str:
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
        return (
            f"{Path(self.path).name}: resigned" if move is None else action_from_move(move, board)
        )

    def title(self, engine: chess.engine.SimpleEngine) -> str:
        return engine.id.get("name", "")

    def start(self) -> chess.engine.SimpleEngine:
        engine = chess.engine.SimpleEngine.popen_uci(
            self.path, timeout=START_SECONDS, stderr=subprocess.DEVNULL
        )
        try:
            engine.configure(self.options)
            engine.timeout = None  # of a move; see `move`
        except BaseException:
            engine.close()
            raise
        return engine


def parse_engine(spec: str) -> EnginePlayer:
    """The player for "engine:PATH" or "engine:PATH?nodes=1000&Skill Level=0".

    nodes, depth and time (seconds) limit each move; one that takes PATIENCE seconds more than
    `time` forfeits the game. Every other word is a UCI option. Raises ConfigError.
    """
    path, limit, options = engine_settings(spec, LIMITS, "engine:PATH?nodes=1000&Skill Level=0")
    return EnginePlayer(
        path, options, limit or DEFAULT_LIMIT, patience=PATIENCE + limit.get("time", 0)
    )
