"""Find and load the network of a run folder, of a shared file, or of the package itself.

Four networks of one run come with the package: shared files with weights in float16, from untrained
to the last. Two more are of other runs: without_price.safetensors, in which spikes had no price,
and strongest.safetensors, which learned on a GPU. tools/make_snapshots.py makes them. A correct
SHA-256 does not make the contents of a file valid: anything malformed raises CheckpointError before
memory is allocated for it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..devices import detect_device, out_of_memory
from ..errors import CheckpointError, ChessnnError, RunError
from ..games.registry import make_game
from ..in_flight import Arrays
from ..network import SpikingNetwork, build_network, check_fit, load_arrays
from ..network_config import NetworkConfig
from .checkpoint import Checkpoint, load_checkpoint
from .files import AnyPath, absolute, unusable
from .folder import RunFolder
from .run_list import list_runs


class FoundNetwork(NamedTuple):
    """A run folder or shared file that has a network, and a sentence about the choice."""

    run: str
    sentence: str


# --- what is there


def is_file(run: AnyPath) -> bool:
    """Whether `run` is a file, and not a run folder."""
    return os.path.isfile(os.path.expanduser(run))


def is_run(place: AnyPath) -> bool:
    """Whether a folder or a file of that name exists, which may be a run."""
    return os.path.exists(os.path.expanduser(place))


def split_run(spec: str) -> tuple[str, int | None]:
    """The run and the iteration of RUN@ITERATION; the iteration is None without one."""
    run, at, iteration = spec.rpartition("@")
    if is_run(spec) or not (at and iteration.isdecimal()):
        return spec, None
    return run, int(iteration)


def run_game(run: AnyPath) -> str:
    """The name of the game that a run or a shared file plays. Raises RunError or
    CheckpointError.
    """
    if is_file(run):
        return str(load_checkpoint(run).metadata.get("game"))
    return str(RunFolder.open(run).config.get("game", "chess"))


def networks(run: AnyPath) -> dict[int, Path]:
    """Iteration -> the file with that network: every snapshot of a run folder, or a shared file
    alone.

    Raises RunError when there is no such run, or none of its networks yet, CheckpointError for a
    file that is not a snapshot.
    """
    if not is_file(run):
        found = RunFolder.open(run).snapshots()
        if not found:
            raise RunError(
                f"{run} has no snapshot of its weights yet; let it train for an iteration"
            )
        return found
    path = absolute(run)
    checkpoint = load_checkpoint(path)
    if "optimizer" in checkpoint.groups:
        raise unusable(path, "it is a run's checkpoint: name the run's folder, or a snapshot of it")
    iteration = checkpoint.metadata.get("iteration")
    if type(iteration) is not int or iteration < 0:
        raise unusable(path, f"its iteration is {iteration!r:.60}, expected a whole number")
    return {iteration: path}


def find_snapshot(run: AnyPath, iteration: int | None = None) -> tuple[int, Path]:
    """The iteration and the file of one network of a run or a shared file; None is the last.

    Raises RunError when it is not there, CheckpointError for a file that is not a snapshot.
    """
    paths = networks(run)
    if iteration is None:
        iteration = max(paths)
    if iteration not in paths:
        raise RunError(
            f"{run} has no snapshot {iteration}: expected one of {', '.join(map(str, paths))}"
        )
    return iteration, paths[iteration]


def find_network(wanted: str = "", folder: AnyPath = "runs") -> FoundNetwork:
    """`wanted` if it has a network, else the newest trained run of chess in `folder`, else the
    strongest network that comes with the package.

    wanted: RUN, RUN@ITERATION or a shared file; "" is any. When it has no such network, the
    sentence says why another one was taken. Raises CheckpointError only in a copy of the package
    without networks.
    """
    problem = ""
    wanted = wanted.strip()
    if wanted:
        try:
            find_snapshot(*split_run(wanted))
            return FoundNetwork(wanted, f"The network of {wanted}.")
        except ChessnnError as error:
            problem = str(error).rstrip(".") + ". "
    newest = _newest_chess_run(folder)
    if newest is None:
        return FoundNetwork(
            str(shipped_files()[-1].with_name("strongest.safetensors")),
            f"{problem}This is the strongest network that comes with the package.",
        )
    return FoundNetwork(str(newest), f"{problem}This is the newest trained run of chess, {newest}.")


def _newest_chess_run(folder: AnyPath) -> Path | None:
    """The newest run of chess below `folder` whose last network is whole, and not untrained."""
    for run in list_runs(folder):
        with suppress(ChessnnError):  # a damaged run
            if run.game == "chess" and load_network(run.path, device="cpu")[1] > 0:
                return run.path
    return None


# --- loading


def load_network(
    run: AnyPath, snapshot: int | None = None, device: str = "auto"
) -> tuple[SpikingNetwork, int]:
    """The network of a run folder or of a shared file, and the iteration that its weights come
    from.

    snapshot: the iteration to load; None is the last one saved. Raises RunError when there is no
    such run or snapshot, CheckpointError when the file is damaged or its network is for another
    board than its game's, DeviceError for a device that is not there.
    """
    iteration, path = find_snapshot(run, snapshot)
    name = run_game(run)
    checkpoint = load_checkpoint(path, name)
    weights, config = saved_network(path, checkpoint)
    with as_checkpoint_error(path), torch.device("meta"):  # shapes without memory
        check_fit(SpikingNetwork(config, portable=True), weights)
    game = make_game(name)
    shape = (config.planes, config.height, config.width, config.actions)
    fits = shape == (*game.observation_shape, game.num_actions)
    fits = fits and config.jumps in ((), game.jumps)
    if not fits or bool(config.score_limit) != bool(game.score_limit):
        raise unusable(path, f"its network does not fit the board and the actions of {name}")
    network = build_network(config, detect_device(device).device)
    load_arrays(network, weights)
    return network.eval(), iteration


def saved_network(path: Path, checkpoint: Checkpoint) -> tuple[Arrays, NetworkConfig]:
    """The weights in a checkpoint read from `path`, for any network, and the shape of its network.
    Raises CheckpointError.
    """
    with as_checkpoint_error(path):
        weights = checkpoint.groups["weights"]
        check_finite(weights)
        return weights, NetworkConfig.from_dict(checkpoint.metadata["network"])


def check_finite(arrays: Arrays) -> None:
    """Raise ValueError for an array that holds anything but finite numbers."""
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(
                f"{name} ({array.dtype}) holds NaN, infinity or no number at all; "
                "had training diverged?"
            )


@contextmanager
def as_checkpoint_error(path: Path) -> Iterator[None]:
    """Turn any error within into a CheckpointError that names `path`, unless memory ran out."""
    try:
        yield
    except KeyError as error:
        raise unusable(path, f"it has no {error}") from error
    except Exception as error:
        if out_of_memory(error):
            raise
        raise unusable(path, str(error)) from error


# --- the networks that come with the package


def shipped_files() -> list[Path]:
    """The four files of one run, the untrained network first. Each opens wherever a run does.

    Raises CheckpointError in a copy without them, such as the one that tools/make_colab.py packs
    into a notebook.
    """
    files = sorted(Path(__file__).with_name("data").glob("0*.safetensors"))
    if not files:
        raise CheckpointError(
            "this copy of the package has no networks in it (a notebook that carries the package "
            "leaves them out): train one first, or take the whole repository"
        )
    return files


def shipped_networks() -> dict[int, SpikingNetwork]:
    """Iteration -> network, the untrained one first, with weights in float32 on the CPU."""
    loaded = [load_network(file, None, "cpu") for file in shipped_files()]
    return {iteration: network for network, iteration in loaded}


def shipped_cards() -> dict[int, dict[str, Any]]:
    """Iteration -> card: the settings of the run, and the figures of each network."""
    cards = [card_of(file) for file in shipped_files()]
    return {card["iteration"]: card for card in cards}


def card_of(path: AnyPath) -> dict[str, Any]:
    """The card of a shared file; empty for a snapshot without one. Raises CheckpointError."""
    return load_checkpoint(path).part("card")
