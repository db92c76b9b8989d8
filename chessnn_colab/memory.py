"""How this process uses memory. It imports no torch, so a worker can call it first."""

import ctypes
import os
from pathlib import Path

UNKNOWN_MEMORY = 8 * 2**30  # bytes, where the system does not say


def usable_memory(limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """The bytes of memory that this machine has, within its container's limit."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return UNKNOWN_MEMORY
    try:
        return min(memory, int(limit.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return memory


def keep_freed_memory() -> None:
    """glibc keeps large freed blocks in this process from now on, and does not return them to the
    system.

    Batches allocate the same tensors again and again, and on a CPU new pages for them cost a fifth
    of the time. Does nothing on systems without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS has no mallopt, Windows no CDLL(None)
        return
    # malloc.h: M_TRIM_THRESHOLD -1, M_TOP_PAD -2, M_MMAP_MAX -4
    for option, value in ((-1, 2**30), (-2, 2**26), (-4, 0)):
        mallopt(option, value)
