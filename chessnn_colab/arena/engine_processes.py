"""Programs as players, whatever protocol they speak: a few processes serve all the games of a
match.

The path of an engine names a program that will run with the rights of the person who gave the path.
"""

import os
import queue
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import torch
from torch import Tensor

from ..errors import ConfigError, first_line
from .players import NO_MOVE, Player

PROCESSES = 2  # of one engine, at the same time
PATIENCE = 30.0  # seconds that an engine may take for a move; then it is killed and loses the game
MAX_RESTARTS = 10  # of all processes together; after them the engine forfeits every game
LARGEST_LIMIT = 1_000_000_000  # nodes, plies or seconds; a Gomocup engine gets milliseconds
# Debian puts its engines there, and not every PATH has these folders.
OUTSIDE_PATH = "/usr/games:/usr/local/games"


class ProcessPlayer(Player):
    """A program as a player. When it crashes, stays silent or plays an illegal move, it forfeits
    that game and is restarted.

    A protocol says how to `launch` a process, how to `prepare` it and how it answers a `move`; all
    three may raise any of `failures`. A process has a `close`.
    """

    wants_boards = True
    failures: tuple[type[Exception], ...] = (OSError,)
    protocol: ClassVar[str]  # "UCI" or "Gomocup"
    hint: ClassVar[str]  # what an error adds where there is no such program

    def __init__(self, path: str, settings: str, patience: float):
        """path: a program, by path or by name. settings: what the player's name says beside its
        title. patience: seconds that a move may take.

        Raises ConfigError when there is no such program or it does not speak the protocol.
        """
        path = os.path.expanduser(path)
        found = shutil.which(path) or shutil.which(path, path=OUTSIDE_PATH)
        if found is None:
            raise ConfigError(f"no engine {path!r}: expected a program's path or name{self.hint}")
        self.path = os.path.abspath(found)
        self.patience = patience
        self.reasons = []
        self.restarts = 0
        self.title = Path(self.path).name
        self._threads = ThreadPoolExecutor(PROCESSES, thread_name_prefix="engine")
        self._running = []  # the processes that may still run
        try:
            # In a thread: an interrupt of this one loses no process.
            engine = self._threads.submit(self.start).result()
        except BaseException as error:
            self.close()
            if not isinstance(error, self.failures):
                raise
            raise ConfigError(
                f"{self.path} does not start as a {self.protocol} engine ({settings}): "
                f"{first_line(error)}"
            ) from None
        self.name = f"{self.title} ({settings})"
        # The processes that wait for a position; None: one that has yet to start.
        self._engines = queue.SimpleQueue()
        for process in (engine, *[None] * (PROCESSES - 1)):
            self._engines.put(process)

    def launch(self) -> Any:
        """A new process."""
        raise NotImplementedError

    def prepare(self, engine: Any) -> None:
        """Make a new process ready to play. It may give the player another `title`."""
        raise NotImplementedError

    def move(self, engine: Any, board: Any) -> int | str:
        """The action that a process chooses on a board object of the game, or why it has none."""
        raise NotImplementedError

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] = ()) -> Tensor:
        answers = list(self._threads.map(self._answer, boards))
        self.reasons = [answer for answer in answers if isinstance(answer, str)]
        actions = [NO_MOVE if isinstance(answer, str) else answer for answer in answers]
        return torch.tensor(actions, dtype=torch.int64, device=generator.device)

    def start(self) -> Any:
        """A new process, ready to play."""
        engine = self.launch()
        self._running.append(engine)
        try:
            self.prepare(engine)
        except BaseException:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        """End every engine process, and with it the move that it thinks about. A second call does
        nothing.
        """
        for wait in (False, True):  # a thread may start one more
            self._threads.shutdown(wait, cancel_futures=True)
            while self._running:
                self._running.pop().close()

    def _answer(self, board: Any) -> int | str:
        """The engine's action, or the reason why there is none. Runs in a thread, which has the
        process to itself.
        """
        engine = self._engines.get()
        try:
            if engine is None:
                if self.restarts > MAX_RESTARTS:
                    return f"{self.title}: failed {self.restarts} times, not started again"
                engine = self.start()
            return self.move(engine, board)
        except self.failures as error:
            self.restarts += 1
            if engine is not None:
                engine.close()
                engine = None
            return f"{self.title}: {first_line(error)}"
        finally:
            self._engines.put(engine)


def engine_settings(
    spec: str, limits: dict[str, type], example: str
) -> tuple[str, dict[str, Any], dict[str, str]]:
    """The path, the limits and the other settings of "engine:PATH?limit=1&name=value".

    limits: name -> type of the settings that limit a move. Raises ConfigError, with the example of
    a spec, when it cannot be read.
    """
    path, _, query = spec.removeprefix("engine:").partition("?")
    settings = dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))
    if not path or (query and not settings):
        raise ConfigError(f"invalid engine {spec!r}: expected engine:PATH or {example}")
    limit = {}
    for name in [name for name in settings if name in limits]:
        value = settings.pop(name)
        with suppress(ValueError):
            limit[name] = limits[name](value)
        if not 0 < limit.get(name, 0) <= LARGEST_LIMIT:
            kind = "a whole number" if limits[name] is int else "a number"
            raise ConfigError(
                f"engine limit {name}={value}: expected {kind}, more than 0, of {LARGEST_LIMIT:,} "
                "at most"
            )
    return path, limit, settings
