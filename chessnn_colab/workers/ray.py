"""The pool on Ray (https://docs.ray.io): the same workers as actors, on many GPUs and many
machines.

An actor runs process.serve between two queues: the method `tell` puts a message in, `hear` waits
for what comes out. Ray reports the death of an actor at once, but may take long to report a lost
machine. So a `hear` that is not answered within SILENCE_SECONDS counts as a death too; until an
actor has spoken for the first time it may take READY_SECONDS.

This needs the extra: pip install 'chessnn_colab[cluster]'. docs/cluster.md has Ray's own settings
for the network between machines, its token and its dashboard.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, WorkerError, first_line
from ..settings import one_of, require
from .pool import READY_SECONDS, Pool
from .process import THREAD_VARIABLES, log_to_stderr, serve
from .protocol import Inbox
from .shares import Slot

if TYPE_CHECKING:
    from ..devices import WorkerPlan

# When an actor dies Ray prints pages of logs; the pool reports it in one sentence. Ray reads this
# when it is imported.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "Raylet is terminated|worker died or was killed")
try:
    import ray
    from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise ConfigError(f"pool='ray' needs Ray ({error}): pip install 'ray>=2.50'") from error

LISTEN_SECONDS = 1.0  # for which `hear` waits for something to say
SILENCE_SECONDS = (
    15.0  # without an answer from an actor that has started: it, or its machine, is gone
)
PACKAGE = Path(__file__).parents[1]


class RayPool(Pool):
    """Workers in the Ray cluster at `address`. The other arguments are Pool's.

    address: None means the cluster this process is in, or else a new one on this machine. Raises
    WorkerError when there is no cluster at `address`.
    """

    def __init__(self, *args: Any, address: str | None = None, **settings: Any):
        join_cluster(address)
        self.host = ray.util.get_node_ip_address()
        super().__init__(*args, **settings)

    def _new_process(self, slot: Slot, blueprint: bytes) -> ActorProcess:
        gpus = 0.0 if slot.device == "cpu" else 1 / self.plan.workers_per_gpu
        cpus = 0 if gpus else self.plan.threads
        return ActorProcess(
            slot.index, blueprint, self.plan.threads, self._inbox, num_cpus=cpus, num_gpus=gpus
        )

    def _ship(self, payload: bytes) -> Any:
        """Put it into Ray's object store, from which each machine fetches it once."""
        return ray.put(payload)

    def _log(self, slot: Slot) -> tuple[str, list[str]]:
        return (slot.process.log if isinstance(slot.process, ActorProcess) else ""), []


def join_cluster(address: str | None = None) -> Mapping[str, float]:
    """Connect this process to a cluster, if it is not connected yet, and send the package along.

    Returns the cluster's resources. Raises WorkerError when there is no cluster at `address`.
    """
    if not ray.is_initialized():
        try:
            ray.init(
                address=address,
                runtime_env={"py_modules": [str(PACKAGE)]},
                log_to_driver=False,
                logging_level=logging.WARNING,
                include_dashboard=False if address is None else None,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise WorkerError(
                f"no Ray cluster at {address or 'this machine'}: {error}. Start one (ray start "
                "--head), or leave the address out for this machine alone"
            ) from error
    return ray.cluster_resources()


def plan_cluster(
    resources: Mapping[str, float], workers: int | None = None, selfplay_device: str | None = None
) -> WorkerPlan:
    """Plan one actor per GPU in the cluster, or one per CPU if it has no GPU.

    resources: Ray's, such as {"CPU": 64.0, "GPU": 8.0}. workers: a total; with more
    workers than GPUs several actors share each GPU. Inside an actor its GPU is always cuda:0.
    Raises ConfigError for a device other than cuda and cpu, and for a CUDA device in a cluster
    without GPUs.
    """
    # Here, because an actor imports this file and may not need torch.
    from ..devices import WorkerPlan

    require("selfplay_device", selfplay_device or "cpu", one_of("cpu", "cuda"), " on a Ray cluster")
    gpus = int(resources.get("GPU", 0))
    cpus = max(int(resources.get("CPU", 1)), 1)
    if gpus == 0 and selfplay_device == "cuda":
        raise ConfigError("selfplay_device='cuda', but the cluster has no GPU")
    if gpus and selfplay_device != "cpu":
        count = workers or gpus
        threads = max(cpus // max(count, gpus), 1)
        per_gpu = math.ceil(count / gpus)
        return WorkerPlan(("cuda:0",) * count, threads, (), per_gpu)
    asked = workers or cpus
    note = f"{asked} workers asked for, the cluster has room for {cpus}"
    notes = (note,) if asked > cpus else ()
    return WorkerPlan(("cpu",) * min(asked, cpus), 1, notes)


class RayWorker:
    """The class that Ray runs: a worker in a process of its own, reached by two methods that run at
    the same time.
    """

    def __init__(self, blueprint: bytes, threads: int):
        log_to_stderr()
        self._down = queue.SimpleQueue()
        self._up: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._early = {}
        self._next = 0
        threading.Thread(target=self._serve, args=(blueprint, threads), daemon=True).start()

    def place(self) -> tuple[str, int, str]:
        """Return Ray's id of the machine, the process id, and in words where the log is."""
        try:
            log = os.readlink("/proc/self/fd/2")
        except OSError:  # not Linux
            log = f"among Ray's logs, of process {os.getpid()},"
        return (
            ray.get_runtime_context().get_node_id(),
            os.getpid(),
            f"{log} on {ray.util.get_node_ip_address()}",
        )

    def tell(self, number: int, payload: bytes) -> None:
        """Take message `number`. Ray may deliver messages out of order; they are obeyed in
        order.
        """
        self._early[number] = payload
        while self._next in self._early:
            self._down.put(self._early.pop(self._next))
            self._next += 1

    def hear(self, seconds: float) -> list[bytes | None]:
        """Return the messages there are; wait at most `seconds` for the first. None means that no
        more will come.
        """
        try:
            said = [self._up.get(timeout=seconds)]
            while not self._up.empty():
                said.append(self._up.get_nowait())
            return said
        except queue.Empty:
            return []

    def _serve(self, blueprint: bytes, threads: int) -> None:
        try:
            serve(self, blueprint, threads)
        finally:
            self._up.put(None)

    # --- the connection that serve speaks through

    def recv_bytes(self) -> bytes:
        """Wait for the next message to the worker."""
        return self._down.get()

    def send_bytes(self, payload: bytes) -> None:
        """Queue a message from the worker."""
        self._up.put(payload)


class ActorProcess:
    """A WorkerProcess (protocol.py) that is an actor, with a thread that listens to it."""

    def __init__(
        self,
        index: int,
        blueprint: bytes,
        threads: int,
        inbox: Inbox,
        num_cpus: float,
        num_gpus: float,
    ):
        self.index = index
        self.inbox = inbox
        self.heard_at = time.monotonic()
        self.log = "among Ray's logs on its machine, by default in /tmp/ray/session_latest/logs"
        self._sent = 0
        self._place: tuple[str, int] | None = None
        self._end = ""  # how it ended, in words
        self._ended = threading.Event()
        # Ray's default is 15, with which a worker gets a thirtieth of a core beside a busy program.
        environment = {"RAY_worker_niceness": "0"} | dict.fromkeys(THREAD_VARIABLES, str(threads))
        options = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "max_restarts": 0,
            "concurrency_groups": {"down": 1, "up": 1},
            "runtime_env": {"env_vars": environment},
        }
        actor_class: Any = ray.remote(**options)(RayWorker)
        self._actor = actor_class.remote(blueprint, threads)
        threading.Thread(target=self._listen, daemon=True, name=f"worker-{index}-listen").start()

    def send(self, payload: Any) -> None:
        self._actor.tell.options(concurrency_group="down").remote(self._sent, payload)
        self._sent += 1

    def wait(self, seconds: float) -> bool:
        return self._ended.wait(max(seconds, 0))

    def kill(self) -> None:
        if self._end:
            return
        self._end = "was killed"
        ray.kill(self._actor)
        self._kill_process()

    def _kill_process(self) -> None:
        """Kill it where it runs: a process that is stopped, or hangs, does not hear Ray."""
        if self._place:
            node, pid = self._place
            where = NodeAffinitySchedulingStrategy(node, soft=False)
            ray.remote(kill_process).options(num_cpus=0, scheduling_strategy=where).remote(pid)

    def reap(self) -> str:
        if not self._end and not self.wait(1.0):
            self.kill()
        ray.kill(self._actor)
        return self._end

    def _listen(self) -> None:
        # Imports and the start of a GPU can hold up its first answers; the pool's own limit comes
        # before this one.
        end = "ended by itself"
        patience = READY_SECONDS
        silent = False
        try:
            node, pid, self.log = self._await_place()
            self._place = node, pid
            while True:
                hear = self._actor.hear.options(concurrency_group="up").remote(LISTEN_SECONDS)
                for payload in ray.get(hear, timeout=patience):
                    if payload is None:
                        return
                    patience = SILENCE_SECONDS
                    self.heard_at = time.monotonic()
                    self.inbox.put((self.index, self, payload))
        except GetTimeoutError:
            silent = True
            end = f"did not answer for {patience:.0f} s: its machine may be gone"
        except ActorUnavailableError:
            end = "is out of reach: its machine may be gone"
        except RayActorError as error:
            end = f"died: {first_line(error).rstrip('.')}"
        except (RayError, RuntimeError) as error:  # RuntimeError: this process has left the cluster
            end = f"is out of reach: {first_line(error).rstrip('.')}"
        finally:
            self._end = self._end or end
            self._ended.set()
            self.inbox.put((self.index, self, None))
            if silent:  # last, because Ray may take its time where the machine is gone
                self._kill_process()

    def _await_place(self) -> tuple[str, int, str]:
        """Wait until the cluster has room for the actor and it has started; the pool limits how
        long that may take.
        """
        place = self._actor.place.remote()
        while True:
            try:
                return ray.get(place, timeout=LISTEN_SECONDS)
            except GetTimeoutError:
                if self._end:  # it was killed
                    raise


def kill_process(pid: int) -> None:
    """Kill a process. Ray runs this on the machine of a hung actor."""
    os.kill(pid, 9)
