"""Games in flight: played in part, on their way from one call of `play` to the next.

G games are arrays by name, so that they cross processes and lie in checkpoints. `sample_until`
[G] and state.NAME [G, ...], a field of the game's state, say where each game stands. rows.NAME
[R, ...] are the plies played so far, as `Assembler` holds them, and rows.number [R] says of which
game each is. {} is no games.

Nothing here knows torch or the rules.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .errors import RecordsError

Arrays = dict[str, np.ndarray]
# on_progress(games done, plies done, arrays of the games done since the last call) -> go on?
OnArrays = Callable[[int, int, Arrays | None], bool]
ROWS = "rows."
STATE = "state."
LIMIT = "sample_until"
NUMBER = ROWS + "number"


class Share(NamedTuple):
    """What a worker plays in one call."""

    positions: int
    games: Arrays  # in flight, which it plays first

    def __str__(self) -> str:
        return f"{self.positions:,} positions"


def count(games: Arrays) -> int:
    """How many games these are."""
    return len(games[LIMIT]) if games else 0


def plies_in(parts: Sequence[Arrays]) -> int:
    """How many plies of the games of all `parts` have been played."""
    return sum(len(part[NUMBER]) for part in parts if part)


def rows_in(games: Arrays) -> Arrays:
    """Their rows by the names that `Assembler` has for them."""
    rows = [name for name in games if name.startswith(ROWS)]
    return {name.removeprefix(ROWS): games[name] for name in rows}


def take(games: Arrays, chosen: np.ndarray) -> Arrays:
    """The games `chosen`, int64 [n], each once, in this order."""
    if not len(chosen):
        return {}
    place = np.full(count(games), -1)
    place[chosen] = np.arange(len(chosen))
    number = place[games[NUMBER]]
    kept = number >= 0
    taken = {
        name: array[kept] if name.startswith(ROWS) else array[chosen]
        for name, array in games.items()
    }
    return {**taken, NUMBER: number[kept]}


def join(parts: Sequence[Arrays]) -> Arrays:
    """The games of all `parts`, in their order."""
    parts = [part for part in parts if part]
    if not parts:
        return {}
    firsts = np.cumsum([0, *map(count, parts)])
    numbers = [part[NUMBER] + first for part, first in zip(parts, firsts)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {**joined, NUMBER: np.concatenate(numbers)}


def check(games: Arrays, state: Arrays, num_actions: int, words: int) -> None:
    """Check games from a file. state: the fields of a state of the game; words: of a packed
    position. Raises RecordsError.
    """
    total = count(games)
    rows = [array for name, array in games.items() if name.startswith(ROWS)]
    number, actions = games[NUMBER], games[ROWS + "action"]
    numbers = [array for array in rows if array.dtype.kind == "f"]
    fits = (
        all(games[STATE + name].dtype == field.dtype for name, field in state.items())
        and all(games[STATE + name].shape == (total, *state[name].shape[1:]) for name in state)
        and all(len(array) == len(number) for array in rows)
        and games[ROWS + "position"].shape[1:] == (words,)
        and np.isin(number, np.arange(total)).all()
        and ((actions >= 0) & (actions < num_actions)).all()
        and all(np.isfinite(array).all() for array in numbers)
    )
    if not fits:
        raise RecordsError(f"its {total} games in flight are not of this game, or do not add up")
