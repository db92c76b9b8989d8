"""Snapshots: the weights of one moment in one safetensors file, kept for rating.

The file's header carries its metadata and a seal, the SHA-256 of the whole file, because safetensors
alone loads a flipped bit without a word. One file, so it is there whole or not at all.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..array_files import (
    absolute,
    decode_arrays,
    decode_metadata,
    encode_arrays,
    encode_metadata,
    not_saved,
    read_file,
    unusable,
)
from .checkpoint import Checkpoint
from ..durable import BLANK_SEAL, seal, seal_holds, write_atomically

MAX_SNAPSHOT_BYTES = 2**30  # the largest preset takes a twentieth of it
_FORMAT = "chessnn_colab snapshot 1"
# Quotes inside names and metadata are escaped in the header, so only the seal itself can match.
_SEAL_PLACE = re.compile(rb'"sha256":"(?=[0-9a-f]{64}")')


def save_snapshot(path: str | os.PathLike, weights: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Write weights (arrays of any shape) and plain metadata to one file, atomically.

    Raises CheckpointError when they cannot be saved or the system refuses; what stood at `path` still stands.
    """
    path = absolute(path)
    header = {
        "format": _FORMAT,
        "metadata": encode_metadata(metadata).decode("ascii"),
        "sha256": BLANK_SEAL.decode("ascii"),
    }
    data = encode_arrays("weights", weights, header, MAX_SNAPSHOT_BYTES)
    place = _SEAL_PLACE.search(data).end()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, seal(data, place))
    except OSError as error:
        raise not_saved("snapshot", path, error) from error


def load_snapshot(path: str | os.PathLike, game: str | None = None) -> Checkpoint:
    """Read a snapshot after checking its seal; the result has the one group `weights`.

    game: when given, a snapshot of another game is refused. Raises CheckpointError naming the file.
    """
    path = absolute(path)
    data = read_file(path, path, MAX_SNAPSHOT_BYTES)
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    place = _SEAL_PLACE.search(header)
    if place is None:
        raise unusable(path, "it is not a snapshot of this package, or its beginning is damaged")
    if not seal_holds(data, 8 + place.end()):
        raise unusable(path, "it is damaged (its SHA-256 does not match)")
    try:
        described = json.loads(header)["__metadata__"]
        written_as, metadata = described["format"], described["metadata"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unusable(path, f"its header cannot be read ({error})") from error
    if written_as != _FORMAT:
        raise unusable(path, f"it was written as {written_as!r}, this version reads {_FORMAT!r}")
    return Checkpoint({"weights": decode_arrays(path, data)}, decode_metadata(path, metadata, game))
