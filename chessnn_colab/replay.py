"""The positions to learn from: a ring of the latest, in numpy, packed as they came."""

from __future__ import annotations

import numpy as np

from .errors import ConfigError, RecordsError
from .in_flight import Arrays
from .records import GameRecords
from .settings import COUNT, require

# What is learned from, of the records.
FIELDS = ("positions", "policy_actions", "policy_weights", "value_targets")

# The window grows with what was played, by KataGo's rule (Wu 2019, arXiv 1902.10565, appendix C):
# with its constants 0.5 million positions after 1 million, and 1.6 after 6.2. Where half of what
# was played is less, which ends at 0.97 million, it is that: the first games know nothing (LOG.md,
# 2026-11-29).
FIRST_WINDOW = 250_000  # positions
EXPONENT = 0.75
SLOPE = 0.4  # of the window where it begins to grow: new positions kept of those played
ITERATIONS_HELD = 4  # the window has room for so many, where the limit allows
POSITION_BYTES = 110  # of a chess position in the replay
SHARE_OF_MEMORY = 4  # the window takes at most one in so many bytes, unless the user says how much
GROWTH = 1.5  # by which the arrays are made longer, so that they are seldom copied


def window_limit(memory: int) -> int:
    """The positions that the window may have on a machine with `memory` bytes."""
    return max(FIRST_WINDOW, memory // SHARE_OF_MEMORY // POSITION_BYTES)


def window_size(played: int, iteration: int, limit: int, new: int = 0) -> int:
    """The positions to keep when `played` were played, `iteration` of them in an iteration, and the
    `new` ones have come.
    """
    ratio = played / FIRST_WINDOW
    grown = FIRST_WINDOW * (1 + SLOPE * (ratio**EXPONENT - 1) / EXPONENT)
    return min(max(round(min(grown, played / 2)), ITERATIONS_HELD * iteration, new), limit)


class ReplayBuffer:
    """Holds the latest positions in their order of arrival, so that runs repeat exactly.

    limit: the most positions that it may hold, and its first `capacity` (see `resize`). Memory is
    taken for what is held, and at most half as much again, not for what may be.
    """

    def __init__(self, limit: int):
        require("replay_capacity", limit, COUNT)
        self.limit = self.capacity = limit
        self._arrays: Arrays = {}  # a ring of `_room` positions
        self._room = 0
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def resize(self, capacity: int) -> None:
        """Hold the last `capacity` positions from now on, 1 to `limit`."""
        self.capacity = capacity
        self._size = min(self._size, capacity)

    def add(self, records: GameRecords) -> None:
        """Append every position of `records`, dropping the oldest where room runs out."""
        self._append(records.to_arrays())

    def _append(self, arrays: Arrays) -> None:
        new = {name: arrays[name][-self.capacity :] for name in FIELDS}
        count = len(new["positions"])
        if not count:  # the types of no positions are not those of a game with points
            return
        wanted = min(self._size + count, self.capacity)
        if wanted > self._room:
            self._lengthen(min(int(GROWTH * wanted), self.limit), new)
        slots = (self._next + np.arange(count)) % self._room
        self._size = wanted - count  # whole positions alone are held, should an interrupt come
        for name, array in new.items():
            self._arrays[name][slots] = array
        self._next = (self._next + count) % self._room
        self._size = wanted

    def _lengthen(self, room: int, like: Arrays) -> None:
        """Copy the positions into arrays with room for `room`, of the types of `like`."""
        held = self.to_arrays()
        longer = {
            name: np.zeros((room, *each.shape[1:]), each.dtype) for name, each in like.items()
        }
        for name, parts in held.items():
            np.concatenate(parts, out=longer[name][: self._size])
        self._arrays, self._room, self._next = longer, room, self._size % room

    def sample(self, batch_size: int, generator: np.random.Generator) -> Arrays:
        """`batch_size` positions drawn with replacement, as arrays [batch_size, ...] named after
        FIELDS. Raises ConfigError while it is empty.
        """
        if not self._size:
            raise ConfigError("the replay is empty: add games before sampling")
        chosen = (self._first + generator.integers(0, self._size, batch_size)) % self._room
        return {name: array[chosen] for name, array in self._arrays.items()}

    def to_arrays(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The positions held, oldest first, each array in two parts that are views; nothing is
        copied. `from_arrays` takes the parts concatenated.
        """
        start = self._first
        end = start + self._size
        wrapped = max(0, end - self._room)
        return {name: (array[start:end], array[:wrapped]) for name, array in self._arrays.items()}

    @property
    def _first(self) -> int:
        """Where the oldest position is."""
        return (self._next - self._size) % max(self._room, 1)

    @classmethod
    def from_arrays(
        cls, limit: int, arrays: Arrays, num_actions: int, position_words: int
    ) -> ReplayBuffer:
        """A replay with the positions of `to_arrays`, the newest of them if `limit` has shrunk.

        Raises RecordsError when these are not positions of a game that has `num_actions` actions
        and packs a position into `position_words` words.
        """
        replay = cls(limit)
        if arrays:
            _check(arrays, num_actions, position_words)
            replay._append(arrays)
        return replay


def _check(arrays: Arrays, num_actions: int, position_words: int) -> None:
    """Check the arrays as the records of one long game. Raises RecordsError.

    Before version 0.13.2 they had the records' other fields too.
    """
    count = len(arrays.get("positions", ()))
    others = {"actions": np.zeros(count, np.uint16), "root_values": arrays.get("value_targets")}
    ends = {
        "game_lengths": np.array([count], np.int32),
        "endings": np.zeros(1, np.uint8),
        "results": np.zeros(1, np.int8),
    }
    records = GameRecords.from_arrays({**others, **arrays, **ends})
    words = records.positions.shape[1]
    if words != position_words:
        raise RecordsError(f"positions of {words} words, expected {position_words}")
    highest = records.policy_actions.max(initial=0)
    if highest >= num_actions:
        raise RecordsError(f"action {highest} of {num_actions}")
