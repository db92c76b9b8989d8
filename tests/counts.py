"""How often the tests that count repeat themselves, and which tests run at all: a little by
default, in full with CHESSNN_FULL=1, as `make reliability` sets it.
"""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

only_in_full = pytest.mark.skipif(
    not os.environ.get("CHESSNN_FULL"), reason="runs in `make reliability`"
)


def full(small: T, full: T) -> T:
    return full if os.environ.get("CHESSNN_FULL") else small
