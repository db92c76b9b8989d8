"""Save and load training state; everything that is read is validated first.

A correct SHA-256 does not make the contents valid. Anything malformed raises CheckpointError before
memory is allocated for it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError
from ..in_flight import Arrays, join
from ..in_flight import check as check_games
from ..learner import Learner
from ..learner_state import load_learner_state, optimizer_arrays
from ..network import SpikingNetwork, load_arrays, to_arrays
from ..replay import ReplayBuffer
from ..transfer import to_host
from .checkpoint import Checkpoint, Groups, check_game, load_checkpoint
from .networks import as_checkpoint_error, check_finite, find_snapshot, saved_network

LARGEST_COUNT = 2**53


class Counts(NamedTuple):
    """How far a run was when it was saved."""

    iteration: int
    seconds: float
    total_games: int
    total_positions: int
    updates: int
    # Positions that its first weights had been trained with, in the runs that it began from.
    positions_before: int = 0


def load_initial_weights(other: str, network: SpikingNetwork, game: str) -> tuple[int, str]:
    """Give `network` the last weights of another run, of the same shape. Returns the number of
    positions that they have been trained with, and a sentence, which names other neurons.

    Raises RunError or CheckpointError when they cannot be read, ConfigError when they do not fit.
    """
    iteration, path = find_snapshot(other)
    checkpoint = load_checkpoint(path, game)
    weights, config = saved_network(path, checkpoint)
    with as_checkpoint_error(path):
        counts = _counts(checkpoint.metadata)
        positions = counts.positions_before + counts.total_positions
    load_arrays(network, weights)
    learned = "".join(
        f"; they learned with {name}={getattr(config, name)}"
        for name in ("activation", "levels", "reset", "steps")
        if getattr(config, name) != getattr(network.config, name)
    )
    return positions, (
        f"Starting from the weights of {other}, iteration {iteration}, {positions:,} positions"
        f"{learned}"
    )


def state_to_save(learner: Learner, replay: ReplayBuffer, games: Sequence[Arrays]) -> Groups:
    """The groups of a checkpoint; inverse: `restore_state`. games: those in flight.
    Raises CheckpointError when training has diverged.
    """
    weights = to_arrays(learner.network)
    moments = optimizer_arrays(learner.optimizer)
    if not all(np.isfinite(array).all() for array in (*weights.values(), *moments.values())):
        raise CheckpointError(
            "training has diverged: the weights hold NaN or infinity, and nothing of them is "
            "saved. Run it again to go on from the checkpoint before, with less than "
            f"learning_rate={learner.learning_rate:g}"
        )
    return {
        "weights": weights,
        "optimizer": moments,
        "replay": replay.to_arrays(),
        "games": join(games),
    }


def restore_state(
    path: Path, checkpoint: Checkpoint, learner: Learner, replay_capacity: int
) -> tuple[Counts, ReplayBuffer, Arrays]:
    """Give `learner` the weights and moments of a checkpoint read from `path`. Returns its counts,
    its positions, and its games in flight.

    Raises CheckpointError, with `learner` as it was or in part changed: do not use it then.
    """
    saved_network(path, checkpoint)  # only to check it
    check_game(path, checkpoint.metadata, learner.game.name)
    with as_checkpoint_error(path):
        groups = checkpoint.groups
        metadata = checkpoint.metadata
        counts = _counts(metadata)
        if int(path.stem) != counts.iteration:
            raise ValueError(f"it was saved at iteration {counts.iteration}")
        replay = ReplayBuffer.from_arrays(
            replay_capacity, groups["replay"], learner.game.num_actions, learner.game.packed_words
        )
        games = groups["games"]
        if games:
            state = to_host(vars(learner.game.init(1)))
            check_games(games, state, learner.game.num_actions, learner.game.packed_words)
        check_finite(groups["optimizer"])
        load_learner_state(learner, {**groups, "progress": metadata})
    return counts, replay, games


def _counts(metadata: Mapping[str, Any]) -> Counts:
    known = {**Counts._field_defaults, **metadata}
    return Counts(*(_count(name, known[name]) for name in Counts._fields))


def _count(name: str, value: Any) -> Any:
    if (
        type(value) not in ((int, float) if name == "seconds" else (int,))
        or not 0 <= value < LARGEST_COUNT
    ):
        raise ValueError(f"{name} is {value!r:.60}")
    return value
