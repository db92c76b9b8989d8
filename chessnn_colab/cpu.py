"""How this process uses the CPU: its cores, its threads and its memory allocator."""

from __future__ import annotations

import ctypes
import math
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

TRIED_CALLS = 3  # by whose median a number of threads is judged


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many cores this process may use: those it may run on, within its container's limit on CPU time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text().split()
        return max(min(cores, int(allowed) // int(period)), 1)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return cores


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Have torch use `count` threads of the CPU until the block, or the function decorated with it, ends.

    Rules and matches are many small steps. One thread does them nearly as fast as two, and it never waits for another
    thread that a busy neighbour holds off (docs/speed.md).
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ThreadTrial:
    """Finds how many threads make a call soonest: from `most` of them down by halves, for as long as that helps.

    Every parallel step waits for its last thread. On an idle machine two threads are faster than one; where others
    want the same cores, each wait can take a turn of the scheduler, and one thread is several times faster
    (docs/speed.md).

    count: how many threads the next call is to use.
    """

    def __init__(self, most: int):
        self.count = most
        self._seconds: list[float] = []
        self._best, self._best_count = math.inf, most
        self._settled = most == 1

    def took(self, seconds: float) -> None:
        """Say how long a call with `count` threads took; `count` may change."""
        if self._settled:
            return
        self._seconds.append(seconds)
        if len(self._seconds) < TRIED_CALLS:
            return
        median, self._seconds = statistics.median(self._seconds), []
        if median < self._best:
            self._best, self._best_count = median, self.count
            self._settled = self.count == 1
            self.count = max(self.count // 2, 1)
        else:
            self._settled, self.count = True, self._best_count


def keep_freed_memory() -> None:
    """Have glibc keep large freed blocks in this process instead of returning them to the system each time.

    Batches allocate the same tensors again and again, and on a CPU new pages for them cost a fifth of the time. Does
    nothing on systems without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS has no mallopt, Windows no CDLL(None)
        return
    # malloc.h: M_TRIM_THRESHOLD -1, M_TOP_PAD -2, M_MMAP_MAX -4
    for option, value in ((-1, 2**30), (-2, 2**26), (-4, 0)):
        mallopt(option, value)
