"""The openings that Gomoku matches start from: a few stones around the centre of a board of any
size.

The first mover has a large advantage from the empty board. These positions were found balanced:
alpha-beta of depth 4 sees no advantage, and games of a player with chance from there are won as
often by either side. Each is played twice, with each player once as Black.
tools/make_gomoku_openings.py made `data/openings.txt`: one opening per line, each stone as its
columns to the right and its rows down from the centre, Black and White in turn.
"""

import functools

from ...games.gomoku.notation import cell_name
from ..game import data_lines
from ..result import Opening


@functools.cache
def book(size: int) -> tuple[Opening, ...]:
    """The openings on a board of this size, which is 5 or more."""
    return tuple(
        Opening(
            f"opening {number}", tuple(cell_name(action, size) for action in centred(line, size))
        )
        for number, line in enumerate(data_lines(__file__, "openings.txt"), 1)
    )


def centred(line: str, size: int) -> list[int]:
    """The actions of a line of the file on a board of this size. The centre of an even board is
    right of and below its middle."""
    centre = size // 2 * (size + 1)
    stones = (stone.split(",") for stone in line.split())
    return [centre + int(down) * size + int(right) for right, down in stones]
