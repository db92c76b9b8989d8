"""The pool on this machine: a process and a pipe for each worker; and the same jobs in this very process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..devices import WorkerPlan
from .pool import Pool, Worker
from .process import LocalLife
from .protocol import Arrays, Job, Life, OnMessage, OnUpdate, worker_seed


class LocalPool(Pool):
    """Workers on this machine, started by spawn, so that it works from notebooks and with CUDA.

    logs: a folder for what each worker prints, in worker-N.log; None leaves it to this process's own output.
    """

    def __init__(self, *args: Any, logs: Path | None = None, **settings: Any):
        self._logs = logs
        super().__init__(*args, **settings)

    def _new_life(self, worker: Worker, blueprint: bytes) -> Life:
        life = LocalLife(worker.index, blueprint, self.plan.threads, self._inbox, self._log(worker))
        life.start()
        return life

    def _log(self, worker: Worker) -> Path | None:
        return self._logs / f"worker-{worker.index}.log" if self._logs else None

    def _log_end(self, worker: Worker) -> str:
        try:
            lines = self._log(worker).read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        except (AttributeError, OSError):  # there is none
            return ""
        return "".join(f"\n  | {line}" for line in [f"the end of {self._log(worker)}:", *lines])


class InlinePool:
    """The same jobs one after the other in the calling process, for debugging; the interface and the games of LocalPool."""

    def __init__(
        self,
        factory: Callable[..., Job],
        settings: Mapping[str, Any],
        plan: WorkerPlan,
        on_message: OnMessage | None = None,
    ):
        self._say = on_message or (lambda text: None)
        self._jobs = [factory(device, **settings) for device in plan.devices]
        self.descriptions = [job.describe() for job in self._jobs]
        self.received: list[list[Arrays]] = []

    def set_weights(self, version: int, arrays: Arrays) -> None:
        for job in self._jobs:
            job.set_weights(version, arrays)

    def play(
        self, games: Sequence[int], seed: int, on_update: OnUpdate | None = None, deadline: float | None = None
    ) -> list[list[Arrays]]:
        self.begin(games, seed, on_update)
        return self.finish(deadline)

    def begin(self, games: Sequence[int], seed: int, on_update: OnUpdate | None = None) -> None:
        self.received = [[] for _ in games]
        self._given = games, seed, on_update or (lambda share, games, plies: None)

    def pump(self) -> None:
        """Nothing arrives before `finish`, which plays the games."""

    def finish(self, deadline: float | None = None) -> list[list[Arrays]]:
        games, seed, on_update = self._given
        for index, (job, share) in enumerate(zip(self._jobs, games)):

            def on_progress(games_done: int, plies: int, arrays: Arrays | None) -> bool:
                self.received[index].extend([arrays] if arrays is not None else [])
                on_update(index, games_done, plies)
                return deadline is None or time.monotonic() < deadline

            job.play(share, worker_seed(seed, index), on_progress)
            for message in job.messages:
                self._say(f"worker {index}: {message}")
            job.messages.clear()
        return self.received

    def close(self) -> None:
        self._jobs = []

    def __enter__(self) -> "InlinePool":
        return self

    def __exit__(self, *_) -> None:
        self.close()
