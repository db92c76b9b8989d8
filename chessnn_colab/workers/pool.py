"""Supervision of workers that play, in plain sight. Numpy in, numpy out.

A call of `play` has one share of games for each worker. A worker that dies, hangs or loses its device is replaced; its
share goes to whoever is free first and is played again from its seed, and what its former life had sent of it is
dropped, so no game is lost or counted twice. Everything is received and reported in the calling thread, because a
notebook draws only from there.

The processes themselves are a driver's: workers.LocalPool runs them on this machine, cluster.RayPool on many.
"""

from __future__ import annotations

import pickle
import queue
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

from ..devices import WorkerPlan
from ..errors import WorkerError
from ..files import reason
from .process import require_numpy
from .protocol import Arrays, Job, Life, OnMessage, OnUpdate, worker_seed

MAX_RESTARTS = 3  # of a worker that finishes nothing in between, or for one share
READY_SECONDS = 180.0  # for a worker to start: it imports torch, and may wait for a GPU
TIMEOUT_SECONDS = 300.0  # for a worker that plays to say something; then it counts as hung
STOP_SECONDS = 120.0  # for workers told to stop to hand over their games
CLOSE_SECONDS = 5.0
LOOK_SECONDS = 0.25  # between two looks for what is hung


@dataclass
class Worker:
    """A place in the pool: who lives there, and what it is at."""

    index: int
    device: str
    life: Life | None = None  # None: it could not be replaced
    born: float = 0.0
    ready: bool = False
    description: str = ""  # its device, for people
    share: int | None = None  # what it plays
    ticket: int = 0  # the assignment, which all its messages carry
    given: float = 0.0  # when
    deaths: int = 0  # since it finished a share


class Pool:
    """Workers for the devices of `plan`. Use as a context manager, or close() it.

    factory and settings make a worker's job in its process: both must pickle. timeout: seconds without a word after
    which a playing worker is replaced. on_message gets sentences for the user, in the calling thread. Raises
    WorkerError when a worker cannot start.
    """

    def __init__(
        self,
        factory: Callable[..., Job],
        settings: Mapping[str, Any],
        plan: WorkerPlan,
        timeout: float = TIMEOUT_SECONDS,
        on_message: OnMessage | None = None,
    ):
        self.plan, self.timeout = plan, timeout
        self._factory, self._settings = factory, dict(settings)
        self._say = on_message or (lambda text: None)
        self._inbox: queue.Queue = queue.Queue()
        self._workers = [Worker(index, device) for index, device in enumerate(plan.devices)]
        self._tickets = 0
        self._weights: Any = None
        self._round: _Round | None = None
        try:
            for worker in self._workers:
                self._bear(worker)
            while not all(worker.ready for worker in self._workers):
                self._listen(LOOK_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def descriptions(self) -> list[str]:
        """Each worker's device, for people."""
        return [worker.description for worker in self._workers]

    @property
    def received(self) -> list[list[Arrays]]:
        """What the last call of play brought, by share; whole games even when it was interrupted."""
        return self._round.received if self._round else []

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """What to play with from the next share on. Raises WorkerError for anything but numpy arrays."""
        require_numpy(arrays)
        self._weights = self._ship(pickle.dumps(("weights", version, arrays), protocol=5))
        for worker in self._workers:
            if worker.life is not None:
                worker.life.send(self._weights)

    def play(
        self, games: Sequence[int], seed: int, on_update: OnUpdate | None = None, deadline: float | None = None
    ) -> list[list[Arrays]]:
        """Have games[i] games played with seed worker_seed(seed, i), one share a worker.

        deadline: a time.monotonic() at which the workers stop and hand over what they have. Returns the arrays of each
        share, shares in order and each one's in the order they were sent. Raises WorkerError, with what is finished
        in its `games`, when a job raises, when restarts do not help (MAX_RESTARTS), or when no worker is left.
        """
        self.begin(games, seed, on_update)
        return self.finish(deadline)

    def begin(self, games: Sequence[int], seed: int, on_update: OnUpdate | None = None) -> None:
        """The first half of `play`: give out the shares and come back. Then call pump() now and then, and finish()."""
        if len(games) != len(self._workers):
            raise WorkerError(f"{len(games)} shares of games for {len(self._workers)} workers (a closed pool has none)")
        for worker in self._workers:
            self._forget(worker)
        self._round = _Round(list(games), seed, on_update or (lambda share, games, plies: None))
        for worker in self._workers:
            if worker.life is None:
                self._bear(worker)
        self._give_out()

    def pump(self) -> None:
        """Take in what has come, without waiting."""
        while self._listen(0):
            pass

    def finish(self, deadline: float | None = None) -> list[list[Arrays]]:
        """The second half of `play`: wait for what `begin` gave out."""
        round_ = self._round
        while round_.waiting or self._players():
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                self._stop(now)
            patience = LOOK_SECONDS if deadline is None or deadline < now else min(LOOK_SECONDS, deadline - now + 0.001)
            self._listen(patience)
        if round_.failure:
            raise WorkerError(round_.failure, round_.received)
        return round_.received

    def close(self) -> None:
        """Stop the workers: by message, then by signal, in about CLOSE_SECONDS. A second call does nothing."""
        lives, self._workers = [worker.life for worker in self._workers if worker.life is not None], []
        for life in lives:
            life.send(pickle.dumps(("close",)))
        started = time.monotonic()
        for share, insist in ((0.5, "terminate"), (0.8, "kill")):
            for life in lives:
                if not life.wait(started + share * CLOSE_SECONDS - time.monotonic()):
                    getattr(life, insist)()
        for life in lives:
            life.bury()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # --- what a driver adds

    def _new_life(self, worker: Worker, blueprint: bytes) -> Life:
        """A new process for `worker`; blueprint is the pickled (factory, device, settings)."""
        raise NotImplementedError

    def _ship(self, payload: bytes) -> Any:
        """What to send for a payload that all workers get."""
        return payload

    def _log_end(self, worker: Worker) -> str:
        """Where to read more of what the worker said."""
        return ""

    # --- giving out

    def _bear(self, worker: Worker) -> None:
        """A new life in a worker's place, with the weights that the others have."""
        worker.life, worker.ready, worker.born = None, False, time.monotonic()
        try:
            worker.life = self._new_life(worker, pickle.dumps((self._factory, worker.device, self._settings)))
        except OSError as error:
            return self._lost(worker, f"cannot be started: {reason(error)}")
        if self._weights is not None:
            worker.life.send(self._weights)

    def _give_out(self) -> None:
        """Shares that wait to workers that are ready and free, to each its own if that one waits."""
        waiting = self._round.waiting
        for worker in self._workers:
            if not waiting or not worker.ready or worker.share is not None:
                continue
            share = worker.index if worker.index in waiting else waiting[0]
            waiting.remove(share)
            self._tickets += 1
            worker.share, worker.ticket, worker.given = share, self._tickets, time.monotonic()
            order = ("play", worker.ticket, self._round.games[share], worker_seed(self._round.seed, share))
            worker.life.send(pickle.dumps(order))

    def _forget(self, worker: Worker) -> None:
        """Have a worker end what an interrupted call has left it with."""
        if worker.share is not None:
            worker.share = None
            if worker.life is not None:
                worker.life.send(pickle.dumps(("stop", worker.ticket)))

    def _stop(self, now: float) -> None:
        """Tell everyone to hand over what they have; once."""
        if self._round.stopped is None:
            self._round.stopped = now
            self._round.waiting.clear()
            for worker in self._players():
                worker.life.send(pickle.dumps(("stop", worker.ticket)))

    def _players(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.share is not None]

    # --- taking in

    def _listen(self, patience: float) -> bool:
        """Take in the next message and look for what hangs; False when nothing came in `patience` seconds."""
        try:
            index, life, payload = self._inbox.get(timeout=patience) if patience else self._inbox.get_nowait()
        except queue.Empty:
            self._look()
            return False
        worker = self._workers[index]
        if life is worker.life and payload is None:
            self._died(worker, life.bury())
        elif life is worker.life:  # a former life has nothing more to say
            self._handle(worker, *pickle.loads(payload))
        self._look()
        return True

    def _handle(self, worker: Worker, kind: str, *body: Any) -> None:
        if kind == "ready":
            worker.ready, worker.description = True, body[0]
        elif kind == "error":
            self._raised(worker, *body)
        elif kind == "message":
            self._say(f"worker {worker.index}: {body[0]}")
        elif worker.share is not None and body[0] == worker.ticket:
            if kind == "games":
                self._round.received[worker.share].append(body[2])
            elif kind == "progress":
                self._round.on_update(worker.share, *body[1:])
            else:
                worker.share, worker.deaths = None, 0
        if self._round is not None and self._round.waiting:
            self._give_out()

    def _look(self) -> None:
        """Replace workers that have been silent for too long."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.life is None:
                continue
            if not worker.ready:
                if now > worker.born + READY_SECONDS:
                    self._silenced(
                        worker,
                        f"did not start within {READY_SECONDS:.0f} s (short of memory, or no free "
                        "device: fewer workers may help)",
                    )
            elif worker.share is not None:
                if now > max(worker.life.heard, worker.given) + self.timeout:
                    self._silenced(worker, f"hung: it said nothing for {self.timeout:g} s")
                elif self._round.stopped is not None and now > self._round.stopped + STOP_SECONDS:
                    self._silenced(worker, f"did not stop within {STOP_SECONDS:.0f} s")

    def _silenced(self, worker: Worker, how: str) -> None:
        worker.life.kill()
        worker.life.bury()
        if worker.ready:
            self._died(worker, how)
        else:
            self._lost(worker, how)

    def _raised(self, worker: Worker, traceback: str, by_device: bool) -> None:
        """Its job raised. Where its device is to blame it is replaced, else the call ends with the traceback."""
        starting = not worker.ready
        if by_device or starting:
            worker.life.bury()
        last_line = traceback.strip().splitlines()[-1]
        if starting and worker.device != "cpu" and self.plan.device_failure == "cpu":
            self._say(
                f"worker {worker.index} cannot use {worker.device} ({last_line}): it plays on the CPU instead, "
                "as device_failure='cpu' asks"
            )
            worker.device = "cpu"
            self._bear(worker)
        elif starting:
            self._lost(worker, f"could not start:\n{traceback}")
        elif by_device:
            self._died(worker, f"lost its device: {last_line}")
        else:
            worker.share = None
            self._fail(f"worker {worker.index} failed:\n{traceback}")

    def _died(self, worker: Worker, how: str) -> None:
        """Replace a worker that is gone; its share waits for whoever is free first."""
        worker.deaths += 1
        again = self._give_back(worker)
        if max([worker.deaths, *(self._round.deaths if self._round else [])]) > MAX_RESTARTS:
            self._fail(f"worker {worker.index} {how}; {MAX_RESTARTS} restarts did not help{self._log_end(worker)}")
        if self._round and self._round.failure:
            worker.life, worker.ready = None, False  # the next call of play begins with a new one
            return
        self._say(
            f"worker {worker.index} {how}; a new one takes its place"
            + (f" and its {again} games are played again" if again else "")
        )
        self._bear(worker)
        if self._round:
            self._give_out()

    def _lost(self, worker: Worker, why: str) -> None:
        """A worker that cannot be replaced: the others go on without it, if there are others."""
        worker.life, worker.ready = None, False
        why = f"worker {worker.index} {why}{self._log_end(worker)}"
        if self._round is None:
            self._fail(why)
        self._give_back(worker)
        left = sum(other.life is not None for other in self._workers)
        if not left:
            self._fail(f"{why}\nno worker is left")
        elif not self._round.failure:
            self._say(f"{why}\n{left} of {len(self._workers)} workers go on")
            self._give_out()

    def _give_back(self, worker: Worker) -> int:
        """Have the share of a worker that is gone played again; returns its number of games, 0 if there is none.

        Once the call is ending nothing is played again, and what the worker had handed over counts.
        """
        share, worker.share = worker.share, None
        if share is None or self._round.stopped is not None:
            return 0
        self._round.deaths[share] += 1
        self._round.received[share].clear()
        self._round.on_update(share, 0, 0)
        self._round.waiting.appendleft(share)
        return self._round.games[share]

    def _fail(self, why: str) -> None:
        """End the call, once the others have handed over their games; before the first call, the pool."""
        if self._round is None:
            raise WorkerError(why)
        self._round.failure = self._round.failure or why
        self._stop(time.monotonic())


class _Round:
    """One call of play: the shares, what has come in of each, and how often its player died."""

    def __init__(self, games: list[int], seed: int, on_update: OnUpdate):
        self.games, self.seed, self.on_update = games, seed, on_update
        self.received: list[list[Arrays]] = [[] for _ in games]
        self.deaths = [0] * len(games)
        self.waiting: deque[int] = deque(range(len(games)))
        self.stopped: float | None = None
        self.failure: str | None = None
