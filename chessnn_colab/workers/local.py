"""The pools on this machine: LocalPool with one process per worker, and InlinePool in the calling
process.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text import Say
from .pool import Pool
from .process import THREAD_VARIABLES, worker_main
from .protocol import Arrays, Inbox, Job, worker_seed
from .shares import PlayCall, Slot

if TYPE_CHECKING:
    from ..devices import WorkerPlan

LOG_LINES_QUOTED = 5
SIGNALS_IN_WORDS = {
    "SIGKILL": "probably out of memory",
    "SIGTERM": "someone asked it to end",
    "SIGSEGV": "a crash in native code",
    "SIGABRT": "native code gave up",
    "SIGBUS": "probably a full /dev/shm or disk",
    "SIGILL": "an instruction this processor does not have",
}


class LocalPool(Pool):
    """Workers on this machine, started by spawn, which works from notebooks and with CUDA.

    logs: a folder for what each worker prints, in worker-N.log. With None the workers print where
    this process prints. The other arguments are Pool's.
    """

    def __init__(self, *args: Any, logs: Path | None = None, **settings: Any):
        self._logs = logs
        super().__init__(*args, **settings)

    def _new_process(self, slot: Slot, blueprint: bytes) -> LocalProcess:
        return LocalProcess(
            slot.index, blueprint, self.plan.threads, self._inbox, self._log_path(slot)
        )

    def _log_path(self, slot: Slot) -> Path | None:
        return self._logs / f"worker-{slot.index}.log" if self._logs else None

    def _log(self, slot: Slot) -> tuple[str, list[str]]:
        path = self._log_path(slot)
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path else ""
        except OSError:  # the worker could not write one
            text = ""
        return (str(path), text.splitlines()[-LOG_LINES_QUOTED:]) if text else ("", [])


class LocalProcess:
    """A WorkerProcess (protocol.py) on this machine: the process, its pipe, and two threads that
    read and write it.

    The writing thread keeps the caller from waiting for a hung process. It also keeps a
    KeyboardInterrupt in the caller from cutting a message in two.
    """

    def __init__(self, index: int, blueprint: bytes, threads: int, inbox: Inbox, log: Path | None):
        self.index = index
        self.inbox = inbox
        self.heard_at = time.monotonic()
        self.outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # Not among the process's arguments: to start it would wait for ever if it died before it
        # had read more than a pipe holds.
        self.outbox.put(blueprint)
        context = multiprocessing.get_context("spawn")
        self.connection, child_connection = context.Pipe()
        self.process = context.Process(
            target=worker_main,
            args=(child_connection, threads, log),
            name=f"chessnn-worker-{index}",
            daemon=True,
        )
        with _child_environment(threads):
            self.process.start()
        # While this process holds a copy, the pipe of a dead worker stays open
        child_connection.close()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._read, self._write)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, payload: bytes) -> None:
        self.outbox.put(payload)

    def wait(self, seconds: float) -> bool:
        self.process.join(max(0.0, seconds))
        return self.process.exitcode is not None

    def kill(self) -> None:
        self.process.kill()

    def reap(self) -> str:
        ended_by_itself = self.wait(1.0)
        if not ended_by_itself:
            self.process.kill()
            self.wait(1.0)
        self.outbox.put(None)
        for thread in self._threads:
            thread.join(1.0)
        if not any(
            thread.is_alive() for thread in self._threads
        ):  # else a thread would read another file's number
            self.connection.close()
        return exit_in_words(self.process.exitcode if ended_by_itself else None)

    def _read(self) -> None:
        try:
            while True:
                payload = self.connection.recv_bytes()
                self.heard_at = time.monotonic()
                self.inbox.put((self.index, self, payload))
        except (EOFError, OSError):
            self.inbox.put((self.index, self, None))

    def _write(self) -> None:
        try:
            while (payload := self.outbox.get()) is not None:
                self.connection.send_bytes(payload)
        except ConnectionError:
            return  # the process is gone; the reading thread reports it after the last message


def exit_in_words(exit_code: int | None) -> str:
    """Say how a process ended: -9 -> "was killed by signal 9 (SIGKILL: probably out of memory)"."""
    if exit_code is None:
        return "closed its pipe without ending"
    if exit_code >= 0:
        return f"ended by itself with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    meaning = SIGNALS_IN_WORDS.get(name, "sent by the system or another program")
    return f"was killed by signal {-exit_code} ({name}: {meaning})"


@contextmanager
def _child_environment(threads: int) -> Iterator[None]:
    """Set the environment and the signal mask for a new process, and restore this process's own
    afterwards.

    Libraries read the number of threads when they are loaded, so it must be there before the
    worker's first line. SIGINT is blocked until the worker ignores it: an interrupt during its
    start would kill it.
    """
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    mask = None
    if hasattr(signal, "pthread_sigmask"):
        # If it were started with the first worker, it would unblock SIGINT
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, setting in before.items():
            if setting is None:
                del os.environ[name]
            else:
                os.environ[name] = setting
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class InlinePool(Pool):
    """Runs the same jobs one after the other in the calling process, for debugging.

    The same seeds give the same games as in LocalPool.
    """

    def __init__(
        self,
        factory: Callable[..., Job],
        settings: Mapping[str, Any],
        plan: WorkerPlan,
        on_message: Say,
    ):
        self.plan = plan
        self._say = on_message
        self._jobs = [factory(device, **settings) for device in plan.devices]
        self._slots = []  # there are no processes
        self.call = PlayCall([], 0)

    @property
    def descriptions(self) -> list[str]:
        """Each worker's device in words."""
        return [job.describe() for job in self._jobs]

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """Play with these weights from the next share on."""
        for job in self._jobs:
            job.set_weights(version, arrays)

    def _play_out(self, call: PlayCall, deadline: float | None) -> None:
        for share in range(len(self._jobs)):
            self._play_share(call, share, deadline)

    def _play_share(self, call: PlayCall, share: int, deadline: float | None) -> None:
        job = self._jobs[share]

        def on_progress(games_done: int, plies: int, arrays: Arrays | None) -> bool:
            if arrays is not None:
                call.received[share].append(arrays)
            call.on_update(share, games_done, plies)
            return deadline is None or time.monotonic() < deadline

        seed = worker_seed(call.seed, share)
        call.in_flight[share] = job.play(call.games[share], seed, on_progress) or {}
        for message in job.messages:
            self._say(f"worker {share}: {message}")
        job.messages.clear()
