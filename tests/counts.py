"""How often the tests that count repeat themselves: a little by default, in full with CHESSNN_FULL=1."""

import os


def full(small: int, full: int) -> int:
    return full if os.environ.get("CHESSNN_FULL") else small
