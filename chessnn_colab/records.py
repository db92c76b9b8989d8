"""GameRecords: finished games as plain numpy arrays, on their way from a worker to replay.

Nothing here knows torch or the rules: positions are opaque words that the game packs and unpacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import RecordsError

POLICY_WIDTH = 16

# Games that pay points have values of any size, one per position.
_POINTS = {"root_values": (np.dtype(np.float32), 1), "value_targets": (np.dtype(np.float32), 1)}
# field: (dtype, dimensions, counted by games rather than positions)
_LAYOUT = {
    "positions": (np.int64, 2, False),
    "actions": (np.uint16, 1, False),
    "policy_actions": (np.uint16, 2, False),
    "policy_weights": (np.float16, 2, False),
    "root_values": (np.float16, 2, False),
    "value_targets": (np.float16, 2, False),
    "game_lengths": (np.int32, 1, True),
    "endings": (np.uint8, 1, True),
    "results": (np.int8, 1, True),
}


@dataclass(frozen=True, eq=False)
class GameRecords:
    """G finished games of N positions in all, game after game, each position before its action.

    What is lost: of a search's policy the K best actions are kept (K = 16 unless said otherwise).
    The mass outside them is dropped and the rest renormalised to sum to 1, in half precision, so a
    row sums to 1 within about 0.001. With fewer than K legal actions the spare places have weight 0
    and action 0.

    Raises RecordsError when made of arrays that do not fit together.
    """

    positions: (
        np.ndarray
    )  # int64 [N, W] packed positions, W = Game.packed_words (5 for chess, 40 bytes)
    actions: np.ndarray  # uint16 [N] the action played
    policy_actions: np.ndarray  # uint16 [N, K] the best actions of the search's policy
    policy_weights: np.ndarray  # float16 [N, K] their weights, 0 to 1
    # float16 [N, 3] what the search said: the mover's chances to win, draw and lose; float32 [N] in
    # games with points.
    root_values: np.ndarray
    value_targets: np.ndarray  # like these, what to learn
    game_lengths: np.ndarray  # int32 [G] positions of each game
    endings: np.ndarray  # uint8 [G] index into Game.endings
    results: (
        np.ndarray
    )  # int8 [G] +1 the first player won, 0 draw, -1 the second; 0 in games with points

    def __post_init__(self):
        for name, (dtype, dimensions, by_game) in _LAYOUT.items():
            array = getattr(self, name)
            own = np.dtype(dtype), dimensions
            _require(
                (array.dtype, array.ndim) in (own, _POINTS.get(name)),
                f"{name} is {array.dtype} with {array.ndim} dimensions, "
                f"expected {np.dtype(dtype)} with {dimensions}",
            )
            unit = "games" if by_game else "positions"
            expected = len(self.game_lengths if by_game else self.positions)
            _require(len(array) == expected, f"{name} has {len(array)} rows for {expected} {unit}")
        _require(
            self.policy_actions.shape == self.policy_weights.shape,
            f"policy_actions {list(self.policy_actions.shape)} and "
            f"policy_weights {list(self.policy_weights.shape)} must have one shape",
        )
        total = int(self.game_lengths.sum(dtype=np.int64))
        _require(
            (self.game_lengths >= 0).all() and total == len(self.positions),
            f"game_lengths sum to {total} for {len(self.positions)} positions",
        )
        _require(
            ((self.policy_weights >= 0) & (self.policy_weights <= 1)).all(),
            "policy_weights must lie in 0 to 1, and be no NaN",
        )
        for name in _POINTS:
            array = getattr(self, name)
            _require(
                np.isfinite(array).all(), f"{name} holds NaN or infinity; has the network diverged?"
            )
            _require(
                array.ndim == 1 or (array.shape[1] == 3 and ((array >= 0) & (array <= 1)).all()),
                f"{name} must be three chances of each position, 0 to 1",
            )
        _require(np.isin(self.results, (-1, 0, 1)).all(), "results must be -1, 0 or 1")

    @property
    def num_games(self) -> int:
        """How many games there are, G."""
        return len(self.game_lengths)

    @property
    def num_positions(self) -> int:
        """How many positions there are in all games, N."""
        return len(self.positions)

    @property
    def offsets(self) -> np.ndarray:
        """int64 [G + 1]: game g holds positions offsets[g] to offsets[g + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.game_lengths, dtype=np.int64)])

    @classmethod
    def empty(cls, position_words: int) -> "GameRecords":
        """Return records of no games."""
        width = (POLICY_WIDTH,)
        rest = {"positions": (position_words,), "policy_actions": width, "policy_weights": width}
        rest |= dict.fromkeys(_POINTS, (3,))
        return cls(
            **{
                name: np.zeros((0, *rest.get(name, ())), dtype)
                for name, (dtype, _, _) in _LAYOUT.items()
            }
        )

    @classmethod
    def concatenate(cls, parts: Sequence["GameRecords"]) -> "GameRecords":
        """Join one or more records of one game in the order given. Records of no games have another
        shape than those of a game with points, so they are left out.
        """
        held = [part for part in parts if part.num_games] or parts[:1]
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in held]) for name in _LAYOUT}
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the nine arrays by name: what a worker sends."""
        return {name: getattr(self, name) for name in _LAYOUT}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "GameRecords":
        """Make records of exactly the nine arrays; RecordsError names those that are missing or
        unknown.
        """
        _require(
            arrays.keys() == _LAYOUT.keys(),
            f"missing or unknown arrays {sorted(arrays.keys() ^ _LAYOUT.keys())}",
        )
        return cls(**arrays)


def _require(holds: bool | np.bool_, otherwise: str) -> None:
    if not holds:
        raise RecordsError(f"game records: {otherwise}")
