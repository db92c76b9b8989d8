"""The pool: worker processes that play, one pipe and one reader thread each, numpy only.

Started by spawn, so that it works from notebooks and with CUDA; never touches the global start method. Everything is
received and reported in the calling thread, because a notebook draws only from there. A worker that dies is replaced
and plays its share again from the same seed; what its former life had sent of that share is dropped, so no game is
lost or counted twice.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from .devices import WorkerPlan
from .errors import WorkerError
from .worker_child import Arrays, Job, run_worker

MAX_RESTARTS = 3          # of all workers together, in one call of play
READY_SECONDS = 180.0     # for a worker to start: it imports torch, and may wait for a GPU
STOP_SECONDS = 120.0      # for workers told to stop to hand over their games
CLOSE_SECONDS = 5.0

OnUpdate = Callable[[int, int, int], None]  # (worker, games, plies), counted since the call began


class LocalPool:
    """Workers on this machine, one for each of plan.devices. Use as a context manager, or close() it.

    factory and settings make a worker's job (worker_process.Job) in its process: both must pickle. Raises WorkerError
    when a worker cannot start.
    """

    def __init__(self, factory: Callable[..., Job], settings: Mapping[str, Any], plan: WorkerPlan):
        self.plan = plan
        self._make = (factory, settings)
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._ticket = 0
        self._weights: tuple[int, Arrays] | None = None
        self.received: list[list[Arrays]] = []  # of the last call of play, by worker; whole even if it was interrupted
        self._workers: list[_Worker] = []
        try:
            self._workers = [self._start(index, life=0) for index in range(len(plan.devices))]
            self.descriptions = [self._wait_ready(index) for index in range(len(plan.devices))]
        except BaseException:
            self.close()
            raise

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """What to play with from the next call of `play` on."""
        self._weights = (version, arrays)
        for worker in self._workers:
            worker.send(("weights", version, arrays))

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
        for index in range(len(self._workers)):
            round_.begin(index)
        while round_.playing:
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                round_.stop(now)
            round_.check(now)
            try:
                message = self._inbox.get(timeout=_wait(deadline, now))
            except queue.Empty:
                continue
            round_.handle(*message)
        return round_.received

    def close(self) -> None:
        """Stop the workers: by message, then by signal, within CLOSE_SECONDS. A second call does nothing."""
        deadline = time.monotonic() + CLOSE_SECONDS
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.send(("close",))
        for patience, insist in ((0.5, "terminate"), (0.8, "kill"), (1.0, None)):
            until = deadline - CLOSE_SECONDS * (1 - patience)
            for worker in workers:
                worker.process.join(max(until - time.monotonic(), 0))
                if worker.process.is_alive() and insist:
                    getattr(worker.process, insist)()
        for worker in workers:
            worker.hang_up()

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _start(self, index: int, life: int) -> "_Worker":
        return _Worker(index, life, *self._make, self.plan, self._inbox)

    def _restart(self, index: int) -> None:
        old = self._workers[index]
        old.hang_up()
        self._workers[index] = self._start(index, old.life + 1)
        if self._weights is not None:
            self._workers[index].send(("weights", *self._weights))

    def _wait_ready(self, index: int) -> str:
        """The description that worker `index` sends when it is up; other workers' messages wait their turn."""
        deadline, others = time.monotonic() + READY_SECONDS, []
        while True:
            try:
                sender, life, message = self._inbox.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise WorkerError(f"worker {index} did not start within {READY_SECONDS:.0f} s; the machine may be "
                                  "short of memory or the device busy: try fewer workers") from None
            if message[0] == "error":
                raise WorkerError(f"worker {sender} could not start:\n{message[1]}")
            if message[0] == "gone":
                raise WorkerError(f"worker {sender} {self._workers[sender].death()} while starting")
            if sender == index:
                for other in others:
                    self._inbox.put(other)
                return message[1]
            others.append((sender, life, message))


class _Round:
    """One call of play: who still plays, what has come in, who was restarted."""

    def __init__(self, pool: LocalPool, games: Sequence[int], seed: int, on_update: OnUpdate | None):
        if len(games) != len(pool._workers):
            raise WorkerError(f"{len(games)} shares of games for {len(pool._workers)} workers (a closed pool has none)")
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
        self.pool._workers[index].send(("play", self.ticket, self.games[index], worker_seed(self.seed, index)))

    def stop(self, now: float) -> None:
        """Tell everyone to hand over what they have; once."""
        if self.stopped is None:
            self.stopped = now
            for index in self.playing:
                self.pool._workers[index].send(("stop", self.ticket))

    def check(self, now: float) -> None:
        """Raise when those told to stop take too long."""
        if self.stopped is not None and now > self.stopped + STOP_SECONDS:
            slow = ", ".join(map(str, sorted(self.playing)))
            raise WorkerError(self.failure or f"worker {slow} did not stop within {STOP_SECONDS:.0f} s", self.received)

    def handle(self, index: int, life: int, message: tuple) -> None:
        """Take in one message; of former lives and former rounds only the fact that they ended matters to nobody."""
        if life != self.pool._workers[index].life:
            return
        kind = message[0]
        if kind == "gone" and index in self.playing:
            self._died(index)
        elif kind == "error":
            self._failed(index, f"worker {index} failed:\n{message[1]}")
        elif kind in ("progress", "games", "done") and message[1] == self.ticket:
            if kind == "games":
                self.received[index].append(message[2])
            elif kind == "progress":
                self.on_update(index, *message[2:])
            else:
                self._finished(index)

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
        death = self.pool._workers[index].death()
        self.received[index].clear()
        self.restarts += 1
        if self.restarts > MAX_RESTARTS or self.failure:
            return self._failed(index, f"worker {index} {death}; {MAX_RESTARTS} restarts did not help")
        self.on_update(index, 0, 0)
        self.pool._restart(index)
        self.begin(index)
        if self.stopped is not None:
            self.pool._workers[index].send(("stop", self.ticket))


class _Worker:
    """The parent's end of one worker process."""

    def __init__(self, index: int, life: int, factory, settings, plan: WorkerPlan, inbox: queue.SimpleQueue):
        context = get_context("spawn")
        self.life = life
        self.connection, child = context.Pipe()
        child_lifeline, self._lifeline = context.Pipe(duplex=False)
        self.process = context.Process(
            target=run_worker, args=(child, child_lifeline, factory, plan.devices[index], plan.threads, settings),
            name=f"chessnn worker {index}", daemon=True)
        with _environment(plan.threads):
            self.process.start()
        child.close(), child_lifeline.close()
        threading.Thread(target=self._read, args=(index, inbox), daemon=True).start()

    def send(self, message: tuple) -> None:
        """Send, unless the worker is gone: then the reader says so."""
        try:
            self.connection.send(message)
        except (OSError, ValueError):
            return

    def hang_up(self) -> None:
        """Drop the lifeline and the pipe; whatever still lives at the other end ends itself."""
        self._lifeline.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join(1.0)
        self.connection.close()

    def death(self) -> str:
        """How the process ended, in words."""
        self.process.join(1.0)
        return exit_in_words(self.process.exitcode)

    def _read(self, index: int, inbox: queue.SimpleQueue) -> None:
        try:
            while True:
                inbox.put((index, self.life, self.connection.recv()))
        except (EOFError, OSError, TypeError):  # TypeError: closed by another thread in the middle of a read
            inbox.put((index, self.life, ("gone",)))


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


def exit_in_words(code: int | None) -> str:
    """What a process's exit code says: "was killed by signal 9: probably out of memory"."""
    if code is None:
        return "closed its pipe"
    if code < 0:
        hint = ": probably out of memory" if -code == signal.SIGKILL else ""
        return f"was killed by signal {-code}{hint}"
    return f"ended with exit code {code}"


def _wait(deadline: float | None, now: float) -> float:
    return 0.5 if deadline is None or deadline < now else min(0.5, deadline - now + 0.001)


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Variables that a child reads before any of our code runs; the parent's are put back."""
    wanted = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
