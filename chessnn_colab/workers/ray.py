"""The pool on Ray (https://docs.ray.io): the same workers as actors, on many GPUs and many machines.

An actor runs worker_process.serve between two queues: `tell` puts a message in, `hear` waits for what came out. Ray says
when an actor has died; of a lost machine it may say nothing for long, so every `hear` that is not answered within
SILENCE_SECONDS counts as a death too. Needs the extra: pip install 'chessnn_colab[cluster]'. Ray's own settings for the
network between machines, its token and its dashboard are in docs/cluster.md.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from pathlib import Path
from typing import Any, Mapping

from ..devices import WorkerPlan
from ..errors import ConfigError, WorkerError
from .pool import Pool, Worker
from .process import MALLOC_SETTINGS, THREAD_VARIABLES, serve
from .protocol import Life

# Of a death Ray prints pages of logs; the pool says it in a sentence. Read when ray is imported.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "Raylet is terminated|worker died or was killed")
try:
    import ray
    from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise ConfigError(f"pool='ray' needs Ray ({error}): pip install 'ray>=2.50'") from error

LISTEN_SECONDS = 1.0  # for which `hear` waits for something to say
SILENCE_SECONDS = 15.0  # without an answer from an actor that has started: it, or its machine, is gone
PACKAGE = Path(__file__).parent


class RayPool(Pool):
    """Workers in the Ray cluster at `address` (None: the one this process is in, or a new one on this machine)."""

    def __init__(self, *args: Any, address: str | None = None, **settings: Any):
        join_cluster(address)
        super().__init__(*args, **settings)

    def _new_life(self, worker: Worker, blueprint: bytes) -> Life:
        gpus = 0.0 if worker.device == "cpu" else 1 / self.plan.workers_a_gpu
        return ActorLife(
            worker.index,
            blueprint,
            self.plan.threads,
            self._inbox,
            num_cpus=0 if gpus else self.plan.threads,
            num_gpus=gpus,
        )

    def _ship(self, payload: bytes) -> Any:
        """Weights go to the object store once; each machine fetches them once."""
        return ray.put(payload)


def join_cluster(address: str | None = None) -> Mapping[str, float]:
    """Connect this process, sending the package along, unless it is connected already; returns the cluster's resources.

    Raises WorkerError when there is no cluster at `address`.
    """
    if not ray.is_initialized():
        try:
            ray.init(
                address=address,
                runtime_env={"py_modules": [str(PACKAGE)]},
                log_to_driver=False,
                logging_level="warning",
                include_dashboard=False if address is None else None,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise WorkerError(
                f"no Ray cluster at {address or 'this machine'}: {error}. Start one (ray start --head), or "
                "leave the address out for this machine alone"
            ) from error
    return ray.cluster_resources()


def plan_cluster(
    resources: Mapping[str, float],
    workers: int | None = None,
    workers_per_gpu: int = 1,
    selfplay_device: str | None = None,
    device_failure: str = "stop",
) -> WorkerPlan:
    """One actor for each GPU in the cluster, `workers_per_gpu` for more; without GPUs one for each CPU.

    resources: Ray's, such as {"CPU": 64.0, "GPU": 8.0}. `workers` is a total. Inside an actor its GPU is cuda:0. Raises
    ConfigError for counts below one.
    """
    for name, value in (("workers", workers), ("workers_per_gpu", workers_per_gpu)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(f"{name}={value!r}: expected a whole number from 1 up")
    gpus, cpus = int(resources.get("GPU", 0)), max(int(resources.get("CPU", 1)), 1)
    if gpus == 0 and (selfplay_device or "").startswith("cuda"):
        raise ConfigError(f"selfplay_device={selfplay_device!r}, but the cluster has no GPU")
    on_gpus = gpus > 0 and selfplay_device != "cpu"
    room = gpus * workers_per_gpu if on_gpus else cpus
    count = min(workers or room, room)
    notes = (f"{workers} workers asked for, the cluster has room for {room}",) if workers and workers > room else ()
    if not on_gpus:
        return WorkerPlan(("cpu",) * count, 1, notes, device_failure)
    return WorkerPlan(("cuda:0",) * count, max(cpus // room, 1), notes, device_failure, workers_per_gpu)


class Actor:
    """What Ray runs: a worker in its own process, reached by two methods that run side by side."""

    def __init__(self, blueprint: bytes, threads: int):
        self._down: queue.SimpleQueue = queue.SimpleQueue()
        self._up: queue.SimpleQueue = queue.SimpleQueue()
        self._early: dict[int, bytes] = {}
        self._next = 0
        threading.Thread(target=self._serve, args=(blueprint, threads), daemon=True).start()

    def place(self) -> tuple[str, int]:
        """Where it runs: Ray's id of the machine, and the process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    def tell(self, number: int, payload: bytes) -> None:
        """Take message `number`; Ray may bring them out of order."""
        self._early[number] = payload
        while self._next in self._early:
            self._down.put(self._early.pop(self._next))
            self._next += 1

    def hear(self, seconds: float) -> list[bytes | None]:
        """What there is to say, waiting at most so long for something. None comes last, when there is no more to come."""
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
        return self._down.get()

    def send_bytes(self, payload: bytes) -> None:
        self._up.put(payload)


class ActorLife:
    """workers.Life of an actor."""

    def __init__(
        self, worker: int, blueprint: bytes, threads: int, inbox: queue.Queue, num_cpus: float, num_gpus: float
    ):
        self.worker, self.inbox = worker, inbox
        self.heard = time.monotonic()
        self._sent = 0
        self._place: tuple[str, int] | None = None
        self._end = ""
        self._over = threading.Event()
        environment = {**dict.fromkeys(THREAD_VARIABLES, str(threads)), **MALLOC_SETTINGS}
        side_by_side = ray.remote(concurrency_groups={"down": 1, "up": 1})(Actor)
        self._actor = side_by_side.options(
            num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=0, runtime_env={"env_vars": environment}
        ).remote(blueprint, threads)
        self._thread = threading.Thread(target=self._listen, daemon=True, name=f"worker-{worker}-listen")
        self._thread.start()

    def send(self, payload: Any) -> None:
        self._actor.tell.options(concurrency_group="down").remote(self._sent, payload)
        self._sent += 1

    def wait(self, seconds: float) -> bool:
        return self._over.wait(max(seconds, 0))

    def terminate(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._end = self._end or "was killed"
        ray.kill(self._actor)
        if self._place:  # a stopped process does not hear Ray
            node, pid = self._place
            where = NodeAffinitySchedulingStrategy(node, soft=False)
            ray.remote(kill_process).options(num_cpus=0, scheduling_strategy=where).remote(pid)

    def bury(self) -> str:
        if not self._over.is_set():
            self.kill()
        ray.kill(self._actor)
        return self._end

    def _listen(self) -> None:
        try:
            self._place = self._patiently(self._actor.place.remote())
            while True:
                said = ray.get(
                    self._actor.hear.options(concurrency_group="up").remote(LISTEN_SECONDS), timeout=SILENCE_SECONDS
                )
                for payload in said:
                    if payload is None:
                        self._end = self._end or "ended by itself"
                        return
                    self.heard = time.monotonic()
                    self.inbox.put((self.worker, self, payload))
        except GetTimeoutError:
            self._end = self._end or f"did not answer for {SILENCE_SECONDS:.0f} s: its machine may be gone"
        except ActorUnavailableError:
            self._end = self._end or "is out of reach: its machine may be gone"
        except RayActorError as error:
            self._end = self._end or f"died: {first_line(error)}"
        except (RayError, RuntimeError) as error:  # RuntimeError: this process has left the cluster
            self._end = self._end or f"is out of reach: {first_line(error)}"
        finally:
            self._over.set()
            self.inbox.put((self.worker, self, None))

    def _patiently(self, reference: Any) -> Any:
        """The value of `reference`, however long the actor waits for its place; the pool has a limit of its own."""
        while True:
            try:
                return ray.get(reference, timeout=LISTEN_SECONDS)
            except GetTimeoutError:
                if self._end:  # killed
                    raise


def kill_process(pid: int) -> None:
    """Runs on the machine of a hung actor."""
    os.kill(pid, 9)


def first_line(error: Exception) -> str:
    """Of Ray's long explanations, the sentence with the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
