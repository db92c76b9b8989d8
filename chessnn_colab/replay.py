"""The positions to learn from: a ring of the latest, in numpy, packed as they came."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .errors import ConfigError, RecordsError
from .records import GameRecords

FIELDS = (
    "positions",
    "actions",
    "policy_actions",
    "policy_weights",
    "root_values",
    "value_targets",
)

ITERATIONS_HELD = 4  # the default window has room for so many, where memory allows
POSITION_BYTES = 110  # of a chess position in the replay
SHARE_OF_MEMORY = 4  # a default window takes at most one in so many bytes


def default_capacity(usual: int, iteration: int, memory: int) -> int:
    """The positions to keep when the user does not say: ITERATIONS_HELD iterations of `iteration`
    positions, at most what fits in its share of `memory` bytes, and never less than `usual`.
    """
    room = memory // SHARE_OF_MEMORY // POSITION_BYTES
    return max(usual, min(ITERATIONS_HELD * iteration, room))


class Window:
    """Says once when an iteration has more positions than the replay keeps. say: gets the
    sentence.
    """

    def __init__(self, capacity: int, say: Callable[[str], None]):
        self.capacity, self._say = capacity, say
        self._told = False

    def check(self, what: str, positions: int) -> None:
        """what: the beginning of the sentence, such as "This iteration played"."""
        if positions <= self.capacity or self._told:
            return
        self._told = True
        self._say(
            f"{what} {positions:,} positions, but the replay keeps the latest {self.capacity:,}. "
            "The positions before them are lost, and the network never learns from them: raise "
            f"replay_capacity (to {ITERATIONS_HELD * positions:,}, say) or lower games_per_iteration"
        )


class ReplayBuffer:
    """Holds the last `capacity` positions in their order of arrival, so that runs repeat
    exactly.
    """

    def __init__(self, capacity: int):
        if capacity < 1:
            raise ConfigError(f"replay capacity {capacity}: expected a whole number from 1 up")
        self.capacity = capacity
        self._arrays: dict[str, np.ndarray] = {}
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, records: GameRecords) -> None:
        """Append every position of `records`, dropping the oldest where room runs out."""
        self._append(records.to_arrays())

    def _append(self, arrays: Mapping[str, np.ndarray]) -> None:
        new = {name: arrays[name][-self.capacity :] for name in FIELDS}
        count = len(new["actions"])
        if not count:  # the types of no positions are not those of a game with points
            return
        if not self._arrays:
            self._arrays = {
                name: np.zeros((self.capacity, *array.shape[1:]), array.dtype)
                for name, array in new.items()
            }
        slots = (self._next + np.arange(count)) % self.capacity
        for name, array in new.items():
            self._arrays[name][slots] = array
        self._next = (self._next + count) % self.capacity
        self._size = min(self._size + count, self.capacity)

    def sample(self, batch_size: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """`batch_size` positions drawn with replacement, as arrays [batch_size, ...] named after
        FIELDS.
        """
        if not self._size:
            raise ConfigError("the replay is empty: add games before sampling")
        chosen = generator.integers(0, self._size, batch_size)
        return {name: array[chosen] for name, array in self._arrays.items()}

    def to_arrays(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The positions held, oldest first, each array in two parts that are views; nothing is
        copied. `from_arrays` takes the parts concatenated.
        """
        start = (self._next - self._size) % self.capacity
        end = start + self._size
        wrapped = max(0, end - self.capacity)
        return {name: (array[start:end], array[:wrapped]) for name, array in self._arrays.items()}

    @classmethod
    def from_arrays(
        cls, capacity: int, arrays: Mapping[str, np.ndarray], num_actions: int, position_words: int
    ) -> ReplayBuffer:
        """A replay with the positions of `to_arrays`, the newest of them if `capacity` has shrunk.

        Raises RecordsError when these are not positions of a game that has `num_actions` actions
        and packs a position into `position_words` words.
        """
        replay = cls(capacity)
        if arrays:
            _check(arrays, num_actions, position_words)
            replay._append(arrays)
        return replay


def _check(arrays: Mapping[str, np.ndarray], num_actions: int, position_words: int) -> None:
    """Check the arrays as the records of one long game. Raises RecordsError."""
    ends = {
        "game_lengths": np.array([len(arrays.get("actions", ()))], np.int32),
        "endings": np.zeros(1, np.uint8),
        "results": np.zeros(1, np.int8),
    }
    records = GameRecords.from_arrays({**arrays, **ends})
    words = records.positions.shape[1]
    if words != position_words:
        raise RecordsError(f"positions of {words} words, expected {position_words}")
    for actions in (records.actions, records.policy_actions):
        if actions.size and actions.max() >= num_actions:
            raise RecordsError(f"action {actions.max()} of {num_actions}")
