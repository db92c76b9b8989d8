"""Supervision of workers that play games. Numpy arrays go in and out.

A worker that dies, hangs or loses its device is reported and replaced. Its share of the games goes
to the first worker that is free and is played again from its seed, and what the lost worker had
sent of it is dropped. So no game is lost or counted twice. The pool receives and reports everything
in the calling thread, because a notebook draws only from there.

How a process is started is left to the drivers: LocalPool (local.py) for this machine, RayPool
(ray.py) for many.
"""

from __future__ import annotations

import pickle
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ..errors import WorkerError, error_line
from ..runs.files import reason
from ..text import Say, silent
from .process import require_numpy
from .protocol import Arrays, Games, Inbox, Job, OnStart, OnUpdate, WorkerProcess
from .shares import LearnCall, PlayCall, Slot, unheard

if TYPE_CHECKING:  # devices imports torch, and a worker needs torch only if its job does
    from ..devices import WorkerPlan

MAX_RESTARTS = 3  # in a row of one worker, or while one share is played
READY_SECONDS = 600.0  # for a worker to start: it may wait for a GPU, a busy CPU, a shared disk
TIMEOUT_SECONDS = 300.0  # a worker that plays and says nothing for so long counts as hung
CLOSE_SECONDS = 5.0
PATIENCE = 0.6  # the part of CLOSE_SECONDS in which workers may end by themselves
LOOK_SECONDS = 0.1  # between two checks of the deadline and for hung workers


class Pool:
    """Workers for the devices of `plan`. Use it as a context manager, or call close().

    factory and settings make a worker's job in its process; both must pickle. timeout: the seconds
    of silence after which a playing worker is replaced. on_message gets sentences for the user, in
    the calling thread; on_start, while workers start, `descriptions`. Raises WorkerError when a
    worker cannot start.

    host: the address at which workers reach this machine. call: the last call of play or learn; of
    play it has the shares as they were given (`games`), what each brought (`received`, after an
    interrupt too whole games only), and what each left in flight (`in_flight`).
    """

    host = "127.0.0.1"

    def __init__(
        self,
        factory: Callable[..., Job],
        settings: Mapping[str, Any],
        plan: WorkerPlan,
        timeout: float = TIMEOUT_SECONDS,
        on_message: Say = silent,
        on_start: OnStart | None = None,
    ):
        self.plan = plan
        self.timeout = timeout
        self._factory = factory
        self._settings = dict(settings)
        self._say = on_message
        self._inbox: Inbox = queue.SimpleQueue()
        self._slots = [Slot(index, device) for index, device in enumerate(plan.devices)]
        self._weights: Any = None
        self.call = PlayCall([], 0)
        try:
            for slot in self._slots:
                self._start(slot)
            while not all(slot.ready for slot in self._slots):
                if on_start is not None:
                    on_start(self.descriptions)
                self.wait()
        except BaseException:
            self.close()
            raise

    @property
    def descriptions(self) -> list[str]:
        """Each worker's device in words, "" until it has started."""
        return [slot.description for slot in self._slots]

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """Play with these weights from the next share on. Raises WorkerError for anything but numpy
        arrays.
        """
        require_numpy(arrays)
        self._weights = self._ship(pickle.dumps(("weights", version, arrays), protocol=5))
        for slot in self._slots:
            slot.send(self._weights)

    def play(
        self,
        games: Sequence[Games],
        seed: int,
        on_update: OnUpdate = unheard,
        deadline: float | None = None,
    ) -> list[list[Arrays]]:
        """Play games[i] with seed worker_seed(seed, i) for every i, one share per worker.

        games: of each share how many, or which, or the positions, as the job understands it.
        deadline: the time.monotonic() at which the workers stop and hand over what they have.
        Returns the arrays by share, those of a share in the order in which they were sent. Raises
        WorkerError, with what is finished in its `games`, when a job raises, when MAX_RESTARTS
        restarts do not help, or when no worker is left.
        """
        workers = len(self.descriptions)
        if len(games) != workers:
            raise WorkerError(
                f"{len(games)} shares of games for {workers} workers (a closed pool has none)"
            )
        self._end_call()
        self.call = PlayCall(games, seed, on_update)
        self._play_out(self.call, deadline)
        if self.call.failure:
            raise WorkerError(self.call.failure)
        return self.call.received

    def _play_out(self, call: PlayCall, deadline: float | None) -> None:
        """Have the workers play what `call` says, until it is done or `deadline` has come."""
        lost = [slot for slot in self._slots if slot.process is None]
        for slot in lost:
            if slot.failed_starts < MAX_RESTARTS or len(lost) == len(self._slots):
                self._start(slot)
        call.hand_out(self._slots)
        while call.waiting or any(slot.share is not None for slot in self._slots):
            if deadline is not None and time.monotonic() > deadline:
                call.end(self._slots)
            self.wait()

    def _end_call(self) -> None:
        """End the call before, which an interrupt may have left open."""
        self.call.end(self._slots)
        for slot in self._slots:
            slot.share = None

    def ready_slots(self, workers: Sequence[int]) -> list[Slot]:
        """Of the workers with these numbers, those that have started."""
        return [slot for worker in workers if (slot := self._slots[worker]).ready]

    def learn(self, slots: Sequence[Slot], state: Any, port: int, seconds: float) -> LearnCall:
        """Have these workers go on as the learner of `state`; returns the call. Then `tell` them
        the batches, and wait() until the call is not busy any more.

        port, seconds: see data_parallel.Group.
        """
        self._end_call()
        self.call = call = LearnCall(slots)
        self.tell(slots, "learner", state)
        for rank, slot in enumerate(slots):
            group = rank, len(slots), self.host, port, seconds
            slot.send(pickle.dumps(("learn", slot.ticket, group)))
        return call

    def tell(self, slots: Sequence[Slot], *message: Any) -> None:
        """Send one message to these workers."""
        payload: Any = pickle.dumps(message, protocol=5)
        if len(slots) > 1:
            payload = self._ship(payload)
        for slot in slots:
            slot.send(payload)

    def wait(self) -> None:
        """Wait a moment for the next message, take it in, and look for hung workers."""
        try:
            index, process, payload = self._inbox.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            return self._replace_the_hung()
        slot = self._slots[index]
        if (
            process is slot.process
        ):  # else the process has been replaced, and its messages no longer count
            if payload is None:
                self._replace(slot, process.reap())
            else:
                self._handle(slot, process, *pickle.loads(payload))
        if self._inbox.empty():  # else a message that arrived long ago may still wait here
            self._replace_the_hung()

    def stop(self) -> None:
        """After an interrupt of `play`: have the workers hand over what they have, for
        CLOSE_SECONDS at most. Nobody hears of it.
        """
        call = self.call
        call.on_update = unheard
        call.end(self._slots)
        deadline = time.monotonic() + CLOSE_SECONDS
        while any(slot.share is not None for slot in self._slots) and time.monotonic() < deadline:
            self.wait()

    def close(self) -> None:
        """Stop the workers by message, then by force, within about CLOSE_SECONDS. A second call
        does nothing.
        """
        processes = [slot.process for slot in self._slots if slot.process is not None]
        self._slots = []
        for process in processes:
            process.send(pickle.dumps(("close",)))
        deadline = time.monotonic() + PATIENCE * CLOSE_SECONDS
        for process in processes:
            if not process.wait(deadline - time.monotonic()):
                process.kill()
        for process in processes:
            process.reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # --- what a driver adds

    def _new_process(self, slot: Slot, blueprint: bytes) -> WorkerProcess:
        """Start a process for `slot`. `blueprint` is the pickled (factory, device, settings). May
        raise OSError.
        """
        raise NotImplementedError

    def _ship(self, payload: bytes) -> Any:
        """Return what to send in place of a payload that several workers get."""
        return payload

    def _log(self, slot: Slot) -> tuple[str, list[str]]:
        """Return where the log of the worker in `slot` is, in words, and the log's last lines; ""
        and [] for none.
        """
        raise NotImplementedError

    def _start(self, slot: Slot) -> None:
        """Start a process in `slot` and send it the weights that the others have."""
        slot.empty()
        slot.started_at = time.monotonic()
        try:
            slot.process = self._new_process(
                slot, pickle.dumps((self._factory, slot.device, self._settings))
            )
        except OSError as error:
            return self._go_on_without(slot, f"cannot be started: {reason(error)}")
        if self._weights is not None:
            slot.send(self._weights)

    def _handle(self, slot: Slot, process: WorkerProcess, kind: str, *body: Any) -> None:
        if kind == "ready":
            slot.ready = True
            slot.description = body[0]
        elif kind == "error":
            process.reap()
            self._job_raised(slot, *body)
        elif kind == "message":
            self._say(f"worker {slot.index}: {body[0]}")
        elif slot.share is not None and body[0] == slot.ticket:  # else it was given up
            self.call.receive(slot, slot.share, kind, *body[1:])
        self.call.hand_out(self._slots)

    # --- workers that are lost

    def _replace_the_hung(self) -> None:
        for slot in self._slots:
            process = slot.process
            if process is not None and (cause := self._overdue(slot, process)):
                process.kill()
                process.reap()
                (self._replace if slot.ready else self._go_on_without)(slot, cause)

    def _overdue(self, slot: Slot, process: WorkerProcess) -> str:
        """Return what the worker should have done by now, in words, or ""."""
        now = time.monotonic()
        stopped_at = self.call.stopped_at
        if not slot.ready:
            if now > slot.started_at + READY_SECONDS:
                advice = "a busy machine, little memory or no free device: try fewer workers"
                return f"did not start within {READY_SECONDS:.0f} s ({advice})"
        elif slot.share is not None:
            if now > max(process.heard_at, slot.given_at) + self.timeout:
                return f"hung: it said nothing for {self.timeout:g} s"
            patience = self.call.stop_seconds
            if stopped_at is not None and now > stopped_at + patience:
                return f"did not stop within {patience:.0f} s"
        return ""

    def _job_raised(self, slot: Slot, traceback: str, device_failed: bool) -> None:
        """Replace the worker if its device failed, or else end the call with the traceback. Its
        process has ended.
        """
        cause = error_line(traceback)
        if slot.ready and device_failed:
            self._replace(slot, f"lost its device: {cause}")
        elif slot.ready:
            report = self._report(slot, "failed")
            slot.empty()
            slot.share = None
            self._fail(f"{report}:\n{traceback}")
        else:
            slot.failed_starts += 1
            self._go_on_without(slot, "could not start", f":\n{traceback}")

    def _replace(self, slot: Slot, cause: str) -> None:
        """Report a worker that is gone and start another in its place. The first free worker plays
        its share again.
        """
        slot.deaths += 1
        again = self.call.take_back(slot)
        report = self._report(slot, cause)
        if max(slot.deaths, *self.call.deaths, 0) > MAX_RESTARTS:
            self._fail(f"{report}. {MAX_RESTARTS} restarts did not help{self._quoted_log(slot)}")
        elif self.call.failure:
            self._say(report)
        if self.call.failure:
            slot.empty()  # the next call of play starts a new one
            return
        replayed = f", and its {again} are played again" if again else ""
        self._say(f"{report}. A new worker takes its place{replayed}")
        self._start(slot)
        self.call.hand_out(self._slots)

    def _go_on_without(self, slot: Slot, cause: str, details: str = "") -> None:
        """Report a worker that cannot be started; the others continue if there are others."""
        report = self._report(slot, cause) + (details or self._quoted_log(slot))
        slot.empty()
        self.call.take_back(slot)
        left = sum(other.process is not None for other in self._slots)
        if not self.call.games:
            self._fail(report)
        elif not left:
            self._fail(f"{report}\nno worker is left")
        elif not self.call.failure:
            self._say(f"{report}\n{left} of {len(self._slots)} workers continue")
            self.call.hand_out(self._slots)

    def _report(self, slot: Slot, cause: str) -> str:
        """Say which worker it is, what happened to it, and where its log is."""
        log, _ = self._log(slot)
        where = f"; its log is {log}" if log else ""
        return f"worker {slot.index} ({slot.description or slot.device}) {cause}{where}"

    def _quoted_log(self, slot: Slot) -> str:
        _, lines = self._log(slot)
        return "".join(f"\n  | {line}" for line in ["the end of its log:", *lines]) if lines else ""

    def _fail(self, why: str) -> None:
        """End the call when the others have handed over their games. Before the first call, raise
        at once.
        """
        if not self.call.games:
            raise WorkerError(why)
        self.call.failure = self.call.failure or why
        self.call.end(self._slots)
