"""Damaged copies of a file's bytes, for the tests that every damage is found."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .counts import full

DAMAGES = full(40, 300)  # cuts, and as many flipped bits, of each kind of file
KILLS = full(10, 200)


def damaged_copies(data: bytes, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield (what was done, damaged bytes): DAMAGES cuts over the whole length, DAMAGES random
    flipped bits.
    """
    for length in np.linspace(0, len(data) - 1, DAMAGES).astype(int):
        yield f"cut to {length} of {len(data)} bytes", data[:length]
    for bit in np.random.default_rng(seed).integers(0, 8 * len(data), DAMAGES):
        yield f"bit {bit} flipped", flipped(data, bit)


def no_space(*_) -> None:
    """In place of a function that writes: the disk is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def flipped(data: bytes, bit: int) -> bytes:
    """Return `data` with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def last_under_kills(script: str, *places: Path) -> int:
    """The last iteration that a script saved whose children it kills -9 at random, KILLS times."""
    command = [sys.executable, "-c", script, *map(str, places), str(KILLS)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])
