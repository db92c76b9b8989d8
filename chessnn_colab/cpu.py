"""How this process uses the CPU: its cores and its threads."""

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

TRIED_CALLS = 3  # calls with one number of threads; their median counts


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many cores this process may use, within its container's limit on CPU time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text().split()
        return max(min(cores, int(allowed) // int(period)), 1)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return cores


def limit_threads() -> None:
    """torch uses no more threads than this process may use cores. By itself it counts those of the
    machine, within a container too.
    """
    torch.set_num_threads(min(torch.get_num_threads(), usable_cores()))


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """torch uses `count` threads of the CPU inside the block or the decorated function.

    Rules and matches are many small steps. One thread does them nearly as fast as two, and it never
    waits for a thread that a busy neighbour keeps off its core (docs/speed.md).
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ThreadTrial:
    """Finds the number of threads with which a call is fastest: `max_threads`, then half as many,
    for as long as that helps.

    Every parallel step waits for its last thread. On an idle machine two threads are faster than
    one. Where others want the same cores, each wait can take a turn of the scheduler, and one
    thread is several times faster (docs/speed.md).

    count: the number of threads to use for the next call.
    """

    def __init__(self, max_threads: int):
        self.count = max_threads
        self._seconds = []
        self._medians = {}  # number of threads -> seconds
        self._decided = max_threads == 1

    def took(self, seconds: float) -> None:
        """Call this with the duration of a call that used `count` threads; `count` may change."""
        if self._decided:
            return
        self._seconds.append(seconds)
        if len(self._seconds) < TRIED_CALLS:
            return
        self._medians[self.count] = statistics.median(self._seconds)
        self._seconds = []
        fastest = min(self._medians, key=self._medians.__getitem__)
        self._decided = fastest != self.count or self.count == 1
        self.count = fastest if self._decided else self.count // 2
