"""One worker process, both ends: what runs inside it, and the handle the pool holds on one life of it.

The pipe carries small pickled tuples and numpy arrays, nothing else. Down to the worker go
`("weights", version, arrays)`, `("play", ticket, num_games, seed)`, `("stop", ticket)` and `("close",)`; up come
`("ready", description)`, `("progress", ticket, games, plies)`, `("games", ticket, sequence, arrays)`,
`("message", text)`, `("done", ticket)` and `("error", traceback, is the device to blame)`, the last word of a worker
whose job raised. A worker that dies sends nothing: its pipe closes.

This module imports no torch, so that a child is up, ignoring interrupts and watching for its parent's death,
before it imports whatever its job needs.
"""

import faulthandler
import logging
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

import numpy as np

from ..errors import DeviceError, WorkerError
from ..files import NO_LINK

LOG = logging.getLogger("chessnn_colab.worker")  # says nothing in a worker without a log file
MAX_LOG_BYTES = 2**20  # a longer log is begun anew
PROGRESS_INTERVAL = 0.1  # seconds between two progress messages that bring no games
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# Large blocks stay in the heap instead of going back to the system at every free: a convolution network on a CPU
# allocates the same sizes thousands of times. Read by glibc when a process starts, ignored elsewhere.
MALLOC_SETTINGS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(64 << 20)}
SIGNALS_IN_WORDS = {
    "SIGKILL": "probably out of memory",
    "SIGTERM": "someone asked it to end",
    "SIGSEGV": "a crash in native code",
    "SIGABRT": "native code gave up",
    "SIGBUS": "probably a full /dev/shm or disk",
    "SIGILL": "an instruction this processor does not have",
}


def require_numpy(arrays) -> None:
    """Only numpy crosses processes: a tensor sent by handle is lost when its sender ends."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise WorkerError(
                f"array '{name}' is a {type(array).__name__}, expected numpy.ndarray: "
                "turn a tensor into numpy before it goes to or from a worker"
            )


def exit_in_words(exit_code: int | None) -> str:
    """`-9` -> `was killed by signal 9: probably out of memory`."""
    if exit_code is None:
        return "closed its pipe without ending"
    if exit_code >= 0:
        return f"ended by itself with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = "unknown"
    return f"was killed by signal {-exit_code}: {SIGNALS_IN_WORDS.get(name, name)}"


# --- inside the worker -------------------------------------------------------------------------------------------


def worker_main(connection, blueprint: bytes, threads: int, log: Path | None) -> None:
    """A worker from birth to end. `blueprint` is the pickled `(factory, device, settings)`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted cell signals the whole group; the parent decides
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if log is not None:
        _write_to(log)
    serve(connection, blueprint, threads)


def serve(connection, blueprint: bytes, threads: int) -> None:
    """Obey what comes through `connection` (recv_bytes, send_bytes) until it says close or breaks."""
    parent = _Parent(connection)
    try:
        factory, device, settings = pickle.loads(blueprint)
        if "torch" in sys.modules:  # imported later, torch takes the count from the environment
            sys.modules["torch"].set_num_threads(threads)
        job = factory(device, **settings)
        LOG.info(f"started on {job.describe()}, {threads} threads")
        parent.send(("ready", job.describe()))
        while True:
            _obey(job, parent, parent.commands.get())
    except BaseException as error:  # whatever ended the job, a SystemExit too: the parent is to hear of it
        LOG.info(traceback.format_exc())
        parent.send(("error", traceback.format_exc(), blames_device(error)))
        sys.exit(1)


def blames_device(error: BaseException) -> bool:
    """Whether a new process may do better: the device failed, not the job. Known by name: torch is not imported here."""
    return (
        isinstance(error, DeviceError)
        or type(error).__name__ == "AcceleratorError"
        or isinstance(error, RuntimeError)
        and "CUDA error" in str(error)
    )


def _obey(job, parent: "_Parent", command: tuple) -> None:
    kind, *body = command
    if kind == "weights":
        job.set_weights(*body)
    elif kind == "play":
        ticket, num_games, seed = body
        LOG.info(f"plays {num_games} games, seed {seed}")
        job.play(num_games, seed, _Reporter(parent, ticket))
        for message in job.messages:
            LOG.info(message)
            parent.send(("message", message))
        job.messages.clear()
        parent.send(("done", ticket))
    else:
        raise WorkerError(f"unknown command '{kind}', expected 'weights' or 'play'")


def _write_to(log: Path) -> None:
    """Have all that this process prints, in Python and in native code, go to the end of `log`."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        begun_anew = os.O_TRUNC if log.exists() and log.stat().st_size > MAX_LOG_BYTES else os.O_APPEND
        file = os.open(log, os.O_WRONLY | os.O_CREAT | NO_LINK | begun_anew, 0o644)
    except OSError as error:  # playing is worth more than a log of it
        print(f"no log of this worker: {error}", file=sys.stderr)
        return
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")


class _Parent:
    """The parent as its worker sees it. A thread reads the pipe, so that a stop is heard in the middle of a game
    and the end of the parent (its pipe closes, whatever killed it) ends this process at once."""

    def __init__(self, connection):
        self.connection = connection
        self.commands = queue.Queue()
        self.stopped_ticket = -1
        threading.Thread(target=self._read, daemon=True, name="read-parent").start()

    def _read(self) -> None:
        while True:
            try:
                command = pickle.loads(self.connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            if command[0] == "close":
                os._exit(0)
            elif command[0] == "stop":
                self.stopped_ticket = command[1]
            else:
                self.commands.put(command)

    def send(self, message: tuple) -> None:
        try:
            self.connection.send_bytes(pickle.dumps(message, protocol=5))
        except OSError:  # nobody is left to tell
            os._exit(1)


class _Reporter:
    """The `on_progress` of one play call: sends what finished, answers False once the pool has said stop."""

    def __init__(self, parent: _Parent, ticket: int):
        self.parent, self.ticket = parent, ticket
        self.sequence = 0
        self.last_sent = 0.0

    def __call__(self, games: int, plies: int, arrays: dict[str, np.ndarray] | None) -> bool:
        if arrays is not None:
            require_numpy(arrays)
            self.parent.send(("games", self.ticket, self.sequence, arrays))
            self.sequence += 1
        now = time.monotonic()
        if arrays is not None or now - self.last_sent >= PROGRESS_INTERVAL:
            self.parent.send(("progress", self.ticket, int(games), int(plies)))
            self.last_sent = now
        return self.parent.stopped_ticket < self.ticket


# --- in the parent -----------------------------------------------------------------------------------------------


class LocalLife:
    """One life of a worker: a process, its pipe, a thread that reads it and one that writes it.

    What the process says arrives in `inbox` as `(worker, life, payload)`; a payload of None means it is gone. The
    writer keeps the caller from waiting on a hung process, and a KeyboardInterrupt from cutting a message in two.
    """

    def __init__(self, worker: int, blueprint: bytes, threads: int, inbox: queue.Queue, log: Path | None = None):
        self.worker, self.inbox = worker, inbox
        self.heard = time.monotonic()
        self.outbox: queue.Queue = queue.Queue()
        context = multiprocessing.get_context("spawn")
        self.connection, self._child_connection = context.Pipe()
        self.process = context.Process(
            target=worker_main,
            args=(self._child_connection, blueprint, threads, log),
            name=f"chessnn-worker-{worker}",
            daemon=True,
        )
        self.threads = threads
        self._ends = [
            threading.Thread(target=end, daemon=True, name=f"worker-{worker}-{end.__name__.strip('_')}")
            for end in (self._read, self._write)
        ]

    def start(self) -> None:
        with _birth(self.threads):
            self.process.start()
        self._child_connection.close()  # while this process holds a copy, the pipe of a dead worker stays open
        for thread in self._ends:
            thread.start()

    def send(self, payload: bytes) -> None:
        self.outbox.put(payload)

    def _read(self) -> None:
        try:
            while True:
                payload = self.connection.recv_bytes()
                self.heard = time.monotonic()
                self.inbox.put((self.worker, self, payload))
        except (EOFError, OSError):
            self.inbox.put((self.worker, self, None))

    def _write(self) -> None:
        try:
            while (payload := self.outbox.get()) is not None:
                self.connection.send_bytes(payload)
        except ConnectionError:
            return  # the worker is gone: the reader says so, after all that it had sent

    def wait(self, seconds: float) -> bool:
        """True once the process has ended (or never began)."""
        if self.process.pid is not None:
            self.process.join(max(0.0, seconds))
            return self.process.exitcode is not None
        return True

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()

    def bury(self) -> str:
        """Make sure the process is gone, release its pipe and threads, and say how it ended."""
        ended_by_itself = self.wait(1.0)
        if not ended_by_itself:
            self.process.kill()
            self.wait(1.0)
        exit_code = self.process.exitcode if ended_by_itself else None
        self.outbox.put(None)
        for thread in self._ends:
            if thread.ident is not None:
                thread.join(1.0)
        if not any(thread.is_alive() for thread in self._ends):  # closing it under a reader would free its number
            self.connection.close()
        return exit_in_words(exit_code)


@contextmanager
def _birth(threads: int):
    """The environment and signal mask a worker is born with; the parent has its own back afterwards.

    Thread counts and malloc settings are read when a process or a library starts, so they have to be there before
    the worker's first line. SIGINT is held back until the worker ignores it: an interrupt that falls into its
    start-up would kill it.
    """
    wanted = dict.fromkeys(THREAD_VARIABLES, str(threads))
    wanted |= {name: os.environ.get(name, setting) for name, setting in MALLOC_SETTINGS.items()}
    before = {name: os.environ.get(name) for name in wanted}
    masks = hasattr(signal, "pthread_sigmask")
    if masks:
        resource_tracker.ensure_running()  # its own start, inside the first worker's, would lift the mask
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, setting in before.items():
            if setting is None:
                del os.environ[name]
            else:
                os.environ[name] = setting
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
