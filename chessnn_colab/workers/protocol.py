"""What the pool and its workers are to each other: the job a worker runs, and a worker's life as the pool sees it."""

from __future__ import annotations

from typing import Any, Callable, Protocol

import numpy as np

Arrays = dict[str, np.ndarray]
OnUpdate = Callable[[int, int, int], None]  # (share, games, plies), counted since the call began
OnMessage = Callable[[str], None]


class Job(Protocol):
    """What a worker runs; made in its process by factory(device, **settings)."""

    messages: list[str]  # for the user; taken away after each call of play

    def describe(self) -> str: ...
    def set_weights(self, version: int, arrays: Arrays) -> None: ...
    def play(self, num_games: int, seed: int, on_progress: Callable[[int, int, Arrays | None], bool]) -> None:
        """Call on_progress(games done, plies done, arrays of the games new since the last call or None) now and
        then, and stop early, handing over what there is, once it returns False. Same weights and seed, same games."""


class Life(Protocol):
    """One life of a worker, as the pool sees it. What it says arrives in the inbox as (worker, life, payload), the
    payload a pickled message (see worker_process) or None once it is over."""

    heard: float  # time.monotonic() of its last message

    def send(self, payload: Any) -> None:
        """Returns at once, whatever state the worker is in."""

    def wait(self, seconds: float) -> bool:
        """Wait for its end at most so long; True once it has ended."""

    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def bury(self) -> str:
        """Make sure it is gone, let go of what it held, and say how it ended."""


def worker_seed(seed: int, index: int) -> int:
    """The seed of share `index` in a call of play with `seed`."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
