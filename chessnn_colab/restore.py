"""What a checkpoint or a snapshot holds, looked at before it is believed.

A hash says that a file is as it was written, not who wrote it: one made by hand, or by another version, is to end in a
CheckpointError that names it, before memory is taken for what it claims to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from .devices import out_of_memory
from .errors import CheckpointError, ConfigError, RunError
from .files import unusable
from .learner import Learner
from .network import SpikingNetwork, build_network, check_fit, load_arrays, to_arrays
from .network_config import NetworkConfig
from .replay import Replay
from .runs.checkpoint import Checkpoint
from .runs.folder import RunFolder, find_checkpoint
from .words import counted

LARGEST_COUNT = 2**53


class Counts(NamedTuple):
    """How far a run was when it was saved."""

    iteration: int
    seconds: float
    total_games: int
    total_positions: int
    updates: int


def saved_network(path: Path, checkpoint: Checkpoint, device: torch.device | str) -> SpikingNetwork:
    """The network of a snapshot or checkpoint read from `path`, on `device`. Raises CheckpointError."""
    weights = saved_weights(path, checkpoint)
    with _making_sense_of(path):
        config = NetworkConfig.from_dict(checkpoint.metadata["network"])
        with torch.device("meta"):  # shapes without memory
            check_fit(SpikingNetwork(config, portable=True), weights)
    network = build_network(config, device)
    load_arrays(network, weights)
    return network


def saved_weights(path: Path | str, checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The weights of a snapshot or checkpoint read from `path`, of whatever network. Raises CheckpointError."""
    with _making_sense_of(path):
        weights = checkpoint.groups["weights"]
        _check_finite(weights)
    return weights


def begin_from(other: str | None, run: str, network: SpikingNetwork, game: str) -> list[str]:
    """start_from where another run is named and `run` has no checkpoint yet, before its folder is made.

    So weights that do not fit leave no settings behind that would bind the next try.
    """
    if other is None:
        return []
    with suppress(RunError):
        if RunFolder.open(run).checkpoints():
            return []
    return [start_from(other, network, game)]


def start_from(other: str, network: SpikingNetwork, game: str) -> str:
    """Give `network` the weights of another run and say so. Raises what find_checkpoint raises.

    Blocks that the other network lacks stay new. A new block changes nothing until it learns. The square that a move
    leads to has no weight at first where the other network did not read it. So a network that has grown answers as
    before (Chen et al. 2016, Net2Net), but for neurons that now fire more spikes than their levels allowed.
    """
    checkpoint = find_checkpoint(other, game)
    weights, own = saved_weights(other, checkpoint), to_arrays(network)
    missing = {name: array for name, array in own.items() if name not in weights and name.startswith("blocks.")}
    for name in ("policy.weight", "policy.bias"):
        if name in weights and 2 * len(weights[name]) == len(own[name]) and network.config.jumps:
            weights = {**weights, name: np.concatenate((weights[name], np.zeros_like(weights[name])))}
    load_arrays(network, {**missing, **weights})
    grown = len({name.split(".")[1] for name in missing})
    more = f", and {counted(grown, 'new block')}" if grown else ""
    with _making_sense_of(other):
        levels = NetworkConfig.from_dict(checkpoint.metadata["network"]).levels
    if levels != network.config.levels:
        more += f"; its neurons fire up to {network.config.levels} spikes in a step now, instead of {levels}"
    return f"Starting from the weights of {other}, iteration {checkpoint.metadata.get('iteration')}{more}"


def state_to_save(learner: Learner, replay: Replay) -> dict[str, dict[str, np.ndarray]]:
    """The groups of a checkpoint; inverse: `restore_state`. Raises CheckpointError when training has diverged."""
    weights, moments = to_arrays(learner.network), optimizer_arrays(learner.optimizer)
    if not all(np.isfinite(array).all() for array in (*weights.values(), *moments.values())):
        raise CheckpointError(
            "training has diverged: the weights hold NaN or infinity, and nothing of them is saved. Run it again to go "
            f"on from the checkpoint before, with less than learning_rate={learner.config.learning_rate:g}"
        )
    return {"weights": weights, "optimizer": moments, "replay": replay.to_arrays()}


def restore_state(path: Path, checkpoint: Checkpoint, learner: Learner, replay_capacity: int) -> tuple[Counts, Replay]:
    """Give `learner` the weights and moments of a checkpoint read from `path`. Returns its counts and positions.

    Raises CheckpointError, with `learner` as it was or in part changed: do not use it then.
    """
    weights = saved_weights(path, checkpoint)
    with _making_sense_of(path):
        groups, metadata = checkpoint.groups, checkpoint.metadata
        counts = Counts(*(_count(name, metadata[name]) for name in Counts._fields))
        if int(path.name) != counts.iteration:
            raise ValueError(f"it was saved at iteration {counts.iteration}")
        replay = Replay.from_arrays(
            replay_capacity, groups["replay"], learner.game.num_actions, learner.game.packed_words
        )
        _check_finite(groups["optimizer"])
        load_arrays(learner.network, weights)
        load_optimizer_arrays(learner.optimizer, groups["optimizer"])
        learner.restore_progress(metadata)
    return counts, replay


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """AdamW's moments and step counts by parameter number, for a checkpoint."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": tensor.detach().cpu().numpy().copy()
        for number, moments in state.items()
        for name, tensor in moments.items()
    }


def load_optimizer_arrays(optimizer: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]) -> None:
    """The inverse of `optimizer_arrays`. Raises ConfigError when the arrays are not this optimizer's, all or none."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    shapes = {
        f"{number}.{name}": () if name == "step" else tuple(parameter.shape)
        for number, parameter in enumerate(parameters)
        for name in ("step", "exp_avg", "exp_avg_sq")
    }
    given = {name: tuple(array.shape) for name, array in arrays.items()}
    if (given and given != shapes) or any(array.dtype != np.float32 for array in arrays.values()):
        raise ConfigError(f"{len(given)} arrays of an optimizer do not fit the {len(shapes)} of this network")
    for key, array in arrays.items():
        number, name = key.split(".", 1)
        tensor, like = torch.from_numpy(np.array(array)), parameters[int(number)]
        if tensor.shape == like.shape:  # a moment, laid out in memory as its weights are
            tensor = torch.empty_like(like, device="cpu").copy_(tensor)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(f"{name} ({array.dtype}) holds NaN, infinity or no number at all; had training diverged?")


def _count(name: str, value: Any) -> Any:
    if type(value) not in ((int, float) if name == "seconds" else (int,)) or not 0 <= value < LARGEST_COUNT:
        raise ValueError(f"{name} is {value!r:.60}")
    return value


@contextmanager
def _making_sense_of(path: Path | str) -> Iterator[None]:
    """Whatever fails within is the fault of the contents of `path`, unless memory ran out."""
    try:
        yield
    except KeyError as error:
        raise unusable(path, f"it has no {error}") from error
    except Exception as error:
        if out_of_memory(error):
            raise
        raise unusable(path, str(error)) from error
