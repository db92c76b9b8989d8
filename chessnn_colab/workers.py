"""The pool: worker processes that play, one pipe and one reader thread each, numpy only.

Started by spawn, so that it works from notebooks and with CUDA; never touches the global start method. Everything is
received and reported in the calling thread, because a notebook draws only from there. A worker that dies is replaced
and plays its share again from the same seed; what its former life had sent of that share is dropped, so no game is
lost or counted twice.
"""

from __future__ import annotations

import pickle
import queue
import time
from typing import Any, Callable, Mapping, Protocol, Sequence

import numpy as np

from .devices import WorkerPlan
from .errors import WorkerError
from .worker_process import Life, exit_in_words, require_numpy

MAX_RESTARTS = 3          # of all workers together, in one call of play
READY_SECONDS = 180.0     # for a worker to start: it imports torch, and may wait for a GPU
STOP_SECONDS = 120.0      # for workers told to stop to hand over their games
CLOSE_SECONDS = 5.0

Arrays = dict[str, np.ndarray]
OnUpdate = Callable[[int, int, int], None]  # (worker, games, plies), counted since the call began


class Job(Protocol):
    """What a worker runs; made in its process by factory(device, **settings)."""

    def describe(self) -> str: ...
    def set_weights(self, version: int, arrays: Arrays) -> None: ...
    def play(self, num_games: int, seed: int, on_progress: Callable[[int, int, Arrays | None], bool]) -> None:
        """Call on_progress(games done, plies done, arrays of the games new since the last call or None) now and
        then, and stop early, handing over what there is, once it returns False. Same weights and seed, same games."""


class LocalPool:
    """Workers on this machine, one for each of plan.devices. Use as a context manager, or close() it.

    factory and settings make a worker's job (worker_process.Job) in its process: both must pickle. Raises WorkerError
    when a worker cannot start.
    """

    def __init__(self, factory: Callable[..., Job], settings: Mapping[str, Any], plan: WorkerPlan):
        self.plan = plan
        self._blueprints = [pickle.dumps((factory, device, dict(settings))) for device in plan.devices]
        self._inbox: queue.Queue = queue.Queue()
        self._ticket = 0
        self._weights: bytes | None = None
        self.received: list[list[Arrays]] = []  # of the last call of play, by worker; whole even if it was interrupted
        self._lives: list[Life] = []
        try:
            for index in range(len(plan.devices)):
                self._lives.append(self._born(index))
            self.descriptions = [self._wait_ready(index) for index in range(len(plan.devices))]
        except BaseException:
            self.close()
            raise

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """What to play with from the next call of `play` on. Raises WorkerError for anything but numpy arrays."""
        require_numpy(arrays)
        self._weights = pickle.dumps(("weights", version, arrays), protocol=5)
        for life in self._lives:
            life.send(self._weights)

    def play(self, games_per_worker: Sequence[int], seed: int, on_update: OnUpdate | None = None,
             deadline: float | None = None) -> list[list[Arrays]]:
        """Have worker i play games_per_worker[i] games with seed worker_seed(seed, i).

        deadline: a time.monotonic() at which the workers stop and hand over what they have. Returns the arrays each
        worker sent, workers in order and each one's in the order it sent them. Raises WorkerError, with what the
        others finished in its `games`, when a job raises or workers die more than MAX_RESTARTS times.
        """
        self._ticket += 1
        round_ = _Round(self, games_per_worker, seed, on_update)
        self.received = round_.received
        for index in range(len(self._lives)):
            round_.begin(index)
        while round_.playing:
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                round_.stop(now)
            round_.check(now)
            try:
                index, life, payload = self._inbox.get(timeout=_patience(deadline, now))
            except queue.Empty:
                continue
            if life is self._lives[index]:  # a former life has nothing more to say
                round_.handle(index, None if payload is None else pickle.loads(payload))
        return round_.received

    def close(self) -> None:
        """Stop the workers: by message, then by signal, in about CLOSE_SECONDS. A second call does nothing."""
        lives, self._lives = self._lives, []
        for life in lives:
            life.send(pickle.dumps(("close",)))
        started = time.monotonic()
        for share, insist in ((0.5, "terminate"), (0.8, "kill")):
            for life in lives:
                if not life.wait(started + share * CLOSE_SECONDS - time.monotonic()):
                    getattr(life.process, insist)()
        for life in lives:
            life.bury()

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _born(self, index: int) -> Life:
        life = Life(index, self._blueprints[index], self.plan.threads, self._inbox)
        life.start()
        return life

    def _reborn(self, index: int) -> None:
        """A new process in the place of a dead one, with the weights the others have."""
        self._lives[index] = self._born(index)
        if self._weights is not None:
            self._lives[index].send(self._weights)

    def _wait_ready(self, index: int) -> str:
        """The description worker `index` sends when it is up. Others' messages are put back for their own turn."""
        deadline, others = time.monotonic() + READY_SECONDS, []
        while True:
            try:
                worker, life, payload = self._inbox.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise WorkerError(f"worker {index} did not start within {READY_SECONDS:.0f} s; the machine may be "
                                  "short of memory or the device busy: try fewer workers") from None
            if payload is None:
                raise WorkerError(f"worker {worker} {exit_in_words(life.bury())} while starting")
            message = pickle.loads(payload)
            if message[0] == "error":
                raise WorkerError(f"worker {worker} could not start:\n{message[1]}")
            if worker == index:
                for other in others:
                    self._inbox.put(other)
                return message[1]
            others.append((worker, life, payload))


class _Round:
    """One call of play: who still plays, what has come in, who was restarted."""

    def __init__(self, pool: LocalPool, games: Sequence[int], seed: int, on_update: OnUpdate | None):
        if len(games) != len(pool._lives):
            raise WorkerError(f"{len(games)} shares of games for {len(pool._lives)} workers (a closed pool has none)")
        self.pool, self.games, self.seed = pool, games, seed
        self.on_update = on_update or (lambda worker, games, plies: None)
        self.ticket = pool._ticket
        self.received: list[list[Arrays]] = [[] for _ in games]
        self.playing: set[int] = set()
        self.restarts = 0
        self.stopped: float | None = None
        self.failure: str | None = None

    def begin(self, index: int) -> None:
        """Give worker `index` its share, the first time or again."""
        self.playing.add(index)
        self._tell(index, ("play", self.ticket, self.games[index], worker_seed(self.seed, index)))

    def stop(self, now: float) -> None:
        """Tell everyone to hand over what they have; once."""
        if self.stopped is None:
            self.stopped = now
            for index in self.playing:
                self._tell(index, ("stop", self.ticket))

    def check(self, now: float) -> None:
        """Raise when those told to stop take too long."""
        if self.stopped is not None and now > self.stopped + STOP_SECONDS:
            slow = ", ".join(map(str, sorted(self.playing)))
            raise WorkerError(self.failure or f"worker {slow} did not stop within {STOP_SECONDS:.0f} s", self.received)

    def handle(self, index: int, message: tuple | None) -> None:
        """Take in one message of a worker's present life; None says that it ended."""
        if message is None:
            self._died(index)
        elif message[0] == "error":
            self._failed(index, f"worker {index} failed:\n{message[1]}")
        elif message[0] in ("progress", "games", "done") and message[1] == self.ticket:
            if message[0] == "games":
                self.received[index].append(message[3])
            elif message[0] == "progress":
                self.on_update(index, *message[2:])
            else:
                self._finished(index)

    def _tell(self, index: int, message: tuple) -> None:
        self.pool._lives[index].send(pickle.dumps(message))

    def _finished(self, index: int) -> None:
        self.playing.discard(index)
        if self.failure and not self.playing:
            raise WorkerError(self.failure, self.received)

    def _failed(self, index: int, why: str) -> None:
        """A failure ends the round, once the others have handed over their games."""
        self.failure = self.failure or why
        self.stop(time.monotonic())
        self._finished(index)

    def _died(self, index: int) -> None:
        """Replace a dead worker, which plays its whole share again; a failed one is dead too, and known."""
        death = exit_in_words(self.pool._lives[index].bury())
        if index not in self.playing and self.failure:
            return
        self.restarts += 1
        if self.restarts > MAX_RESTARTS or self.failure:
            self.received[index].clear()
            return self._failed(index, f"worker {index} {death}; {MAX_RESTARTS} restarts did not help")
        self.pool._reborn(index)
        if index in self.playing:
            self.received[index].clear()
            self.on_update(index, 0, 0)
            self.begin(index)
            if self.stopped is not None:
                self._tell(index, ("stop", self.ticket))


class InlinePool:
    """The same jobs one after the other in the calling process, for debugging; interface and games of LocalPool."""

    def __init__(self, factory: Callable[..., Job], settings: Mapping[str, Any], plan: WorkerPlan):
        self._jobs = [factory(device, **settings) for device in plan.devices]
        self.descriptions = [job.describe() for job in self._jobs]
        self.received: list[list[Arrays]] = []

    def set_weights(self, version: int, arrays: Arrays) -> None:
        for job in self._jobs:
            job.set_weights(version, arrays)

    def play(self, games_per_worker: Sequence[int], seed: int, on_update: OnUpdate | None = None,
             deadline: float | None = None) -> list[list[Arrays]]:
        self.received = [[] for _ in games_per_worker]
        for index, (job, games) in enumerate(zip(self._jobs, games_per_worker)):
            def on_progress(games_done: int, plies: int, arrays: Arrays | None) -> bool:
                self.received[index].extend([arrays] if arrays is not None else [])
                if on_update is not None:
                    on_update(index, games_done, plies)
                return deadline is None or time.monotonic() < deadline
            job.play(games, worker_seed(seed, index), on_progress)
        return self.received

    def close(self) -> None:
        self._jobs = []

    def __enter__(self) -> "InlinePool":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def worker_seed(seed: int, index: int) -> int:
    """The seed of worker `index` in a call of play with `seed`."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def _patience(deadline: float | None, now: float) -> float:
    return 0.5 if deadline is None or deadline < now else min(0.5, deadline - now + 0.001)
