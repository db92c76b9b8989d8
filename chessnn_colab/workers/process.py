"""The code that runs inside a worker's process. Each driver has the other end, the pool's handle on
the process.

The pool and a worker exchange pickled tuples of plain values and numpy arrays, nothing else. The
pool sends ("weights", version, arrays), ("play", ticket, games, seed), ("stop", ticket) and
("close",). The worker sends ("ready", description), ("progress", ticket, games, plies), ("games",
ticket, arrays), ("message", text), ("done", ticket, number of "games" before, games in flight) and
("error", traceback, whether the device is to blame). "error" is the last message of a worker whose
job raised. A worker that is killed sends nothing, but its pipe closes.

Where workers learn together, the pool sends ("learner", state), ("learn", ticket, group), ("batch",
batch, learning rate) many times and ("finish",), or ("stop", ticket). The worker sends ("update",
ticket, updates), and last ("learned", ticket, state or None) or ("not learned", ticket, reason).

This module imports no torch. So a new process ignores interrupts and watches for its parent's end
before it spends seconds on the import of torch, which its job may need.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DeviceError, WorkerError, first_line
from ..memory import keep_freed_memory
from ..runs.files import NO_LINK
from .protocol import Arrays, Games, Job, PipeEnd, in_words

LOG = logging.getLogger("chessnn_colab.worker")  # goes to the worker's log, if it has one
DEVICE_FAULTS = (
    "CUDA error",
    "CUDA driver error",
    "cuDNN error",
    "CUBLAS_STATUS",
)  # in torch's RuntimeErrors
PROGRESS_INTERVAL = 0.1  # least seconds between two progress messages without games
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def require_numpy(arrays: Mapping[str, Any]) -> None:
    """Raise WorkerError for anything but numpy arrays: a tensor that another process shares dies
    with that process.
    """
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise WorkerError(
                f"array '{name}' is a {type(array).__name__}, expected numpy.ndarray: "
                "turn a tensor into numpy before it goes to or from a worker"
            )


def worker_main(connection: PipeEnd, threads: int, log: Path | None) -> None:
    """Run a worker from start to end. Its first message is the pickled (factory, device, settings)
    of its job.
    """
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # interrupting a cell signals every process; the parent decides
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a closed terminal signals all too
    if log is not None:
        _redirect_output(log)
    try:
        blueprint = connection.recv_bytes()
    except (EOFError, OSError):  # the pool is gone
        return
    serve(connection, blueprint, threads)


def serve(connection: PipeEnd, blueprint: bytes, threads: int) -> None:
    """Make the job and obey what comes through `connection` until it is closed."""
    parent = _Parent(connection)
    keep_freed_memory()
    try:
        factory, device, settings = pickle.loads(blueprint)
        # torch takes the number of threads from the environment if it is imported later.
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        job = factory(device, **settings)
        LOG.info(f"started on {job.describe()}, {threads} threads")
        parent.send(("ready", job.describe()))
        learner = None
        while True:
            kind, *body = parent.commands.get()
            if kind == "weights":
                job.set_weights(*body)
            elif kind == "learner":
                (learner,) = body
            elif kind == "learn":
                _learn(job, parent, learner, *body)
            elif kind == "play":
                _play(job, parent, *body)
            # The rest is for a call that has ended here.
    except (
        BaseException
    ) as error:  # a SystemExit too: the parent must hear of whatever ended the job
        LOG.info(traceback.format_exc())
        parent.send(("error", traceback.format_exc(), blames_device(error)))
        sys.exit(1)


def blames_device(error: BaseException) -> bool:
    """Whether the device failed rather than the job, so that a new process may work."""
    return (
        isinstance(error, DeviceError)
        or type(error).__name__
        == "AcceleratorError"  # torch's; by name, because torch is not imported here
        or (isinstance(error, RuntimeError) and any(words in str(error) for words in DEVICE_FAULTS))
    )


def log_to_stderr() -> None:
    """Write this process's log lines to standard error, with the time and the process id."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")


def _play(job: Job, parent: _Parent, ticket: int, games: Games, seed: int) -> None:
    """Play, and send what the games bring; stop early once the pool says so."""
    sent_at, parts = 0.0, 0

    def on_progress(games_done: int, plies: int, arrays: Arrays | None) -> bool:
        nonlocal sent_at, parts
        if arrays is not None:
            require_numpy(arrays)
            parent.send(("games", ticket, arrays))
            parts += 1
        now = time.monotonic()
        if arrays is not None or now - sent_at >= PROGRESS_INTERVAL:
            parent.send(("progress", ticket, games_done, plies))
            sent_at = now
        return parent.stopped_ticket < ticket

    LOG.info(f"plays {in_words(games)}, seed {seed}")
    in_flight = job.play(games, seed, on_progress) or {}
    require_numpy(in_flight)
    for message in job.messages:
        LOG.info(message)
        parent.send(("message", message))
    job.messages.clear()
    parent.send(("done", ticket, parts, in_flight))


def _learn(job: Any, parent: _Parent, state: Any, ticket: int, group: tuple[Any, ...]) -> None:
    """Learn with others. What goes wrong is told, and the worker lives on: one that is lost takes
    the others' learning with it.
    """

    def batches() -> Iterator[list[Any]]:
        while True:
            kind, *batch = parent.commands.get()
            if kind == "stop":
                raise WorkerError("another rank is lost")
            if kind == "finish":
                return
            yield batch

    LOG.info(f"learns as rank {group[0]} of {group[1]}")
    try:
        result = job.learn(
            state, group, batches(), lambda done: parent.send(("update", ticket, done))
        )
    except Exception as error:
        if blames_device(error):
            raise
        LOG.info(traceback.format_exc())
        parent.send(("not learned", ticket, f"{type(error).__name__}: {first_line(error)}"))
    else:
        parent.send(("learned", ticket, result))


def _redirect_output(log: Path) -> None:
    """Send all that this process prints, from Python and from native code, to the end of the file
    `log`.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o644)
    except OSError as error:  # a worker without a log can still play
        print(f"no log of this worker: {error}", file=sys.stderr)
        return
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    faulthandler.enable()
    log_to_stderr()


class _Parent:
    """The worker's end of the pipe to its parent.

    A thread reads the pipe all the time. So "stop" takes effect in the middle of a game. And when
    the parent ends, for whatever reason, the pipe closes and this process ends at once.
    """

    def __init__(self, connection: PipeEnd):
        self.connection = connection
        self.commands: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.stopped_ticket = -1
        threading.Thread(target=self._read, daemon=True, name="read-parent").start()

    def _read(self) -> None:
        while True:
            try:
                command = pickle.loads(self.connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            except Exception:  # what another machine's numpy has packed, or no memory
                traceback.print_exc()
                os._exit(1)
            if command[0] == "close":
                os._exit(0)
            if command[0] == "stop":
                self.stopped_ticket = command[1]
            self.commands.put(command)

    def send(self, message: tuple[Any, ...]) -> None:
        try:
            self.connection.send_bytes(pickle.dumps(message, protocol=5))
        except OSError:  # the parent is gone
            os._exit(1)
