"""GameRecords: finished games as plain numpy arrays, on their way from a worker to replay.

Nothing here knows torch or the rules: positions are opaque words that the game packs and unpacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from .errors import RecordsError

POLICY_WIDTH = 16

# Games that pay points have values of any size.
_ANY_SIZE = {"root_values": np.float32, "value_targets": np.float32}
# field: (dtype, dimensions, counted by games rather than positions)
_LAYOUT: dict[str, tuple[type, int, bool]] = {
    "positions": (np.int64, 2, False),
    "actions": (np.uint16, 1, False),
    "policy_actions": (np.uint16, 2, False),
    "policy_weights": (np.float16, 2, False),
    "root_values": (np.float16, 1, False),
    "value_targets": (np.float16, 1, False),
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
    root_values: (
        np.ndarray
    )  # float16 [N] the search's value, mover's point of view; float32 in games with points
    value_targets: np.ndarray  # as those, [N] the value to learn, mover's point of view; NaN = none
    game_lengths: np.ndarray  # int32 [G] positions of each game
    endings: np.ndarray  # uint8 [G] index into Game.endings
    results: (
        np.ndarray
    )  # int8 [G] +1 the first player won, 0 draw, -1 the second; 0 in games with points

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise RecordsError naming the first array that does not fit."""
        for name, (dtype, dimensions, _) in _LAYOUT.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray):
                raise RecordsError(
                    f"game records: {name} is a {type(array).__name__}, expected a numpy array"
                )
            if (
                array.dtype not in (np.dtype(dtype), _ANY_SIZE.get(name))
                or array.ndim != dimensions
            ):
                raise RecordsError(
                    f"game records: {name} is {array.dtype} with {array.ndim} dimensions, "
                    f"expected {np.dtype(dtype)} with {dimensions}"
                )
        self._check_counts()
        self._check_values()

    def _check_counts(self) -> None:
        for name, (_, _, by_game) in _LAYOUT.items():
            expected = len(self.game_lengths) if by_game else len(self.positions)
            if len(getattr(self, name)) != expected:
                unit = "games" if by_game else "positions"
                raise RecordsError(
                    f"game records: {name} has {len(getattr(self, name))} rows for {expected} {unit}"
                )
        if self.policy_actions.shape != self.policy_weights.shape:
            raise RecordsError(
                f"game records: policy_actions {list(self.policy_actions.shape)} and "
                f"policy_weights {list(self.policy_weights.shape)} must have one shape"
            )
        total = int(self.game_lengths.sum(dtype=np.int64))
        if (self.game_lengths < 0).any() or total != len(self.positions):
            raise RecordsError(
                f"game records: game_lengths sum to {total} for {len(self.positions)} positions"
            )

    def _check_values(self) -> None:
        if not ((self.policy_weights >= 0) & (self.policy_weights <= 1)).all():
            raise RecordsError("game records: policy_weights must lie in 0 to 1, and be no NaN")
        if not np.isfinite(self.root_values).all():
            raise RecordsError(
                "game records: root_values holds NaN or infinity; has the network diverged?"
            )
        if np.isinf(self.value_targets).any():
            raise RecordsError(
                "game records: value_targets holds infinity (only NaN, meaning no target, is allowed)"
            )
        if not np.isin(self.results, (-1, 0, 1)).all():
            raise RecordsError("game records: results must be -1, 0 or 1")

    @property
    def num_games(self) -> int:
        """How many games there are, G."""
        return len(self.game_lengths)

    @property
    def num_positions(self) -> int:
        """How many positions there are in all games, N."""
        return len(self.positions)

    @property
    def policy_width(self) -> int:
        """K, the policy entries kept a position."""
        return self.policy_actions.shape[1]

    @property
    def position_words(self) -> int:
        """W, the 64-bit words a packed position takes."""
        return self.positions.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all nine arrays."""
        return sum(array.nbytes for array in self.to_arrays().values())

    @property
    def offsets(self) -> np.ndarray:
        """int64 [G + 1]: game g holds positions offsets[g] to offsets[g + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.game_lengths, dtype=np.int64)])

    @classmethod
    def empty(cls, position_words: int, policy_width: int = POLICY_WIDTH) -> "GameRecords":
        """Return records of no games."""
        width = {
            "positions": (position_words,),
            "policy_actions": (policy_width,),
            "policy_weights": (policy_width,),
        }
        return cls(
            **{
                name: np.zeros((0, *width.get(name, ())), dtype)
                for name, (dtype, _, _) in _LAYOUT.items()
            }
        )

    @classmethod
    def concatenate(cls, parts: Sequence["GameRecords"]) -> "GameRecords":
        """Join one or more records in the order given. Raises RecordsError for no records, and when
        K or W differ.
        """
        if not parts:
            raise RecordsError("no game records to join: expected one or more")
        widths = {(part.policy_width, part.position_words) for part in parts}
        if len(widths) > 1:
            raise RecordsError(
                f"cannot join game records of different (policy, position) widths: {sorted(widths)}"
            )
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _LAYOUT}
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the nine arrays by name: what a worker sends."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "GameRecords":
        """Make records of exactly the nine arrays; RecordsError names the missing and the
        unknown.
        """
        missing, unknown = (
            sorted(_LAYOUT.keys() - arrays.keys()),
            sorted(arrays.keys() - _LAYOUT.keys()),
        )
        if missing or unknown:
            raise RecordsError(f"game records: missing arrays {missing}, unknown arrays {unknown}")
        return cls(**arrays)
