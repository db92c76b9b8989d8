"""Any UCI engine as a player, through python-chess. A few engine processes serve all the games of a
match.

The path of an engine names a program that will run with the rights of the person who gave the path.
"""

import logging
import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any

import chess
import chess.engine

from ...errors import NotationError
from ...games.chess.notation import action_from_move
from ..engine_processes import PATIENCE, ProcessPlayer, engine_settings

START_SECONDS = 20.0
LIMITS = {"nodes": int, "depth": int, "time": float}
DEFAULT_LIMIT = {"time": 0.05}
OFF = ("false", "0", "off", "no")
# What an engine does wrong, a forfeit says; python-chess logs a page for each move.
logging.getLogger("chess.engine").setLevel(logging.CRITICAL)


class EnginePlayer(ProcessPlayer):
    """A UCI engine."""

    failures = (
        chess.engine.EngineError,
        CancelledError,
        OSError,
        NotImplementedError,  # ipykernel 6 on Windows: its event loop starts no programs
        NotationError,
    )
    protocol = "UCI"
    hint = (
        "; Stockfish is in most systems' packages (apt install stockfish, brew install stockfish)"
    )

    def __init__(
        self, path: str, options: Mapping[str, Any], limit: Mapping[str, Any], patience: float
    ):
        """options: UCI options by name, such as {"Skill Level": 0}. limit: of each move, in nodes,
        depth or time (seconds). The rest is ProcessPlayer's. Raises ConfigError, also when the
        engine does not accept an option.
        """
        self.options = dict(options)
        self.limit = chess.engine.Limit(**limit)
        settings = [f"{name} {value:.12g}" for name, value in limit.items()]
        settings += [f"{name} {value}" for name, value in self.options.items()]
        super().__init__(path, ", ".join(settings), patience)

    def launch(self) -> chess.engine.SimpleEngine:
        return chess.engine.SimpleEngine.popen_uci(
            self.path, timeout=START_SECONDS, stderr=subprocess.DEVNULL, setpgrp=True
        )

    def prepare(self, engine: chess.engine.SimpleEngine) -> None:
        settings = {**self.options}
        for name, value in self.options.items():
            option = engine.options.get(name)
            if option is not None and option.type == "check":
                settings[name] = str(value).lower() not in OFF  # python-chess takes 0 for true
        engine.configure(settings)
        engine.timeout = None  # of a move; see `move`
        self.title = engine.id.get("name") or self.title

    def move(self, engine: chess.engine.SimpleEngine, board: chess.Board) -> int | str:
        ends_at = time.monotonic() + self.patience
        timer = threading.Timer(self.patience, engine.close)
        timer.start()
        try:
            move = engine.play(board, self.limit).move
        except self.failures:
            if time.monotonic() >= ends_at:
                raise TimeoutError(f"no move within {self.patience:g} s") from None
            raise
        finally:
            timer.cancel()
        return f"{self.title}: resigned" if move is None else action_from_move(move, board)


def parse_engine(spec: str) -> EnginePlayer:
    """The player for "engine:PATH" or "engine:PATH?nodes=1000&Skill Level=0".

    nodes, depth and time (seconds) limit each move; one that takes PATIENCE seconds more than
    `time` forfeits the game. Every other word is a UCI option. Raises ConfigError.
    """
    path, limit, options = engine_settings(spec, LIMITS, "engine:PATH?nodes=1000&Skill Level=0")
    return EnginePlayer(
        path, options, limit or DEFAULT_LIMIT, patience=PATIENCE + limit.get("time", 0)
    )
