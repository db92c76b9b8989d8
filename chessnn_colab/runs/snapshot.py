"""Snapshots: the weights of one moment in one safetensors file, kept for rating.

The header holds the metadata and a seal (see files), because safetensors alone loads a flipped bit without an error.
A snapshot is one file, so it is there whole or not at all.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..files import (
    BLANK_SEAL,
    AnyPath,
    absolute,
    check_game,
    decode_arrays,
    decode_metadata,
    encode_arrays,
    encode_metadata,
    not_saved,
    read_file,
    seal,
    seal_holds,
    unusable,
    write_atomically,
)
from .checkpoint import Checkpoint

MAX_SNAPSHOT_BYTES = 2**30  # the largest preset takes a twentieth of it
_FORMAT = "chessnn_colab snapshot 1"


def save_snapshot(path: AnyPath, weights: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Write weights (arrays of any shape) and plain metadata to one file, atomically.

    Raises CheckpointError when they cannot be saved or the system refuses; what stood at `path` still stands.
    """
    path = absolute(path)
    header = {"format": _FORMAT, "metadata": encode_metadata(metadata).decode("ascii"), "sha256": BLANK_SEAL}
    data = seal(encode_arrays("weights", weights, header, MAX_SNAPSHOT_BYTES))
    try:
        write_atomically(path, data)
    except OSError as error:
        raise not_saved("snapshot", path, error) from error


def load_snapshot(path: AnyPath, game: str | None = None) -> Checkpoint:
    """Read a snapshot after checking its seal; the result has the one group `weights`.

    game: when given, a snapshot of another game is refused. Raises CheckpointError naming the file.
    """
    path = absolute(path)
    data = read_file(path, path, MAX_SNAPSHOT_BYTES)
    if not seal_holds(data):
        raise unusable(path, "it is damaged, or it is not a snapshot of this package")
    try:
        described = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        written_as, metadata = described["format"], described["metadata"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unusable(path, f"its header cannot be read ({error})") from error
    if written_as != _FORMAT:
        raise unusable(path, f"it was written as {written_as!r}, this version reads {_FORMAT!r}")
    metadata = decode_metadata(path, metadata)
    check_game(path, metadata, game)
    return Checkpoint({"weights": decode_arrays(path, data)}, metadata)
