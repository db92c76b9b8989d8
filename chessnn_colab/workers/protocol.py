"""The interface between the pool and its workers: the job that a worker runs, and the pool's
handle on a worker's process.
"""

import queue
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..in_flight import Arrays, OnArrays, Share
from ..text import counted

# Of a share: how many games, or which, or the positions to play, as the job understands it.
Games = int | Sequence[Any] | Share
OnUpdate = Callable[
    [int, int, int], None
]  # (share, games, plies), counted since the call of play began
# (index of the slot, handle, payload or None). Not a Queue: an interrupt may leave its lock locked,
# and then nobody gets anything any more.
Inbox = queue.SimpleQueue[tuple[int, "WorkerProcess", bytes | None]]
# gets the device in words of each worker that has started, "" for the others
OnStart = Callable[[Sequence[str]], None]


class Job(Protocol):
    """The work of a worker. The worker makes it in its own process with factory(device,
    **settings).
    """

    messages: list[
        str
    ]  # for the user; the worker sends and empties the list after each call of play

    def describe(self) -> str:
        """Return the device in words, such as "GPU 0: Tesla T4"."""
        ...

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """Use these weights from the next call of `play` on. version: a number that the job
        understands; a later one is not lower.
        """

    def play(self, games: Any, seed: int, on_progress: OnArrays, /) -> Arrays | None:
        """Play `games`; the same weights and seed give the same games.

        Call on_progress(games done, plies done, arrays) now and then. `arrays` holds the games that
        have ended since the last call, or is None. When on_progress returns False, hand over the
        games that there are and return. Returns the games in flight, if the job has such.
        """
        ...


class PipeEnd(Protocol):
    """The worker's end of its connection to the pool."""

    def recv_bytes(self) -> bytes:
        """Wait for the next message. Raises EOFError or OSError when the pool is gone."""
        ...

    def send_bytes(self, payload: bytes, /) -> None:
        """Send a message. Raises OSError when the pool is gone."""


class WorkerProcess(Protocol):
    """The pool's handle on the process of one worker.

    What the process sends arrives in the pool's inbox with this handle. A payload is a pickled
    message (process.py lists them), or None once the process has ended.
    """

    heard_at: float  # time.monotonic() of its last message

    def send(self, payload: Any) -> None:
        """Send a message. Returns at once, whatever state the process is in."""

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the process to end. Returns whether it has ended."""
        ...

    def kill(self) -> None:
        """End the process by force."""

    def reap(self) -> str:
        """Make sure that the process has ended, release what the handle holds, and say in words how
        it ended.
        """
        ...


def in_words(games: Games) -> str:
    """What a share is: "12 games" or "6,400 positions"."""
    if isinstance(games, Share):
        return str(games)
    return counted(games if isinstance(games, int) else len(games), "game")


def worker_seed(seed: int, index: int) -> int:
    """Return the seed of share `index` in a call of play with `seed`."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
