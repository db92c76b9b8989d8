"""Damaged copies of a file's bytes, for the tests that every damage is found."""

import os
from collections.abc import Iterator

import numpy as np

FULL = bool(os.environ.get("CHESSNN_FULL"))
DAMAGES = 300 if FULL else 40  # truncations, and as many flips, of each kind of file
KILLS = 200 if FULL else 10


def damaged_copies(data: bytes, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield (what was done, damaged bytes): DAMAGES truncations over the whole length, DAMAGES random bit flips."""
    for length in np.linspace(0, len(data) - 1, DAMAGES).astype(int):
        yield f"cut to {length} of {len(data)} bytes", data[:length]
    for bit in np.random.default_rng(seed).integers(0, 8 * len(data), DAMAGES):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        yield f"bit {bit} flipped", bytes(flipped)


class Payload:
    """Unpickling this makes the file `marker`: what a hostile file would do to a careless loader."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)
