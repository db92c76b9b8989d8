"""Named numpy arrays and plain data as bytes and back, through safetensors and JSON: no pickle anywhere."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from .durable import read_whole, reason
from .errors import CheckpointError

MAX_METADATA_BYTES = 64 * 2**20
MAX_ARRAY_BYTES = 16 * 2**30


def encode_arrays(
    group: str, arrays: Mapping[str, np.ndarray], header: dict[str, str] | None = None, limit: int = MAX_ARRAY_BYTES
) -> bytes:
    """Return numpy arrays of any shape as one safetensors file; CheckpointError names what cannot be saved."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise CheckpointError(f"cannot save {group}.{name}: expected a numpy array, got {type(array).__name__}")
        if name == "__metadata__":
            raise CheckpointError(f"cannot save {group}.{name}: safetensors keeps that name for itself")
    # safetensors 0.8 copies raw memory: an array in any other order would be saved scrambled, silently.
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        data = safetensors.numpy.save(ordered, metadata=header)
    except (safetensors.SafetensorError, TypeError) as error:
        raise CheckpointError(f"cannot save {group}: {error}") from error
    if len(data) > limit:
        raise CheckpointError(f"cannot save {group}: {len(data):,} bytes, more than the limit of {limit:,}")
    return data


def decode_arrays(path: Path, data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file whose hash is known to match, writable."""
    try:
        arrays = safetensors.numpy.load(data)
    # Its hash matched, so this was made wrong on purpose; safetensors raises several kinds of error here.
    except Exception as error:
        raise unusable(path, f"it does not hold arrays ({error})") from error
    return {name: array if array.flags.writeable else array.copy() for name, array in arrays.items()}


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """Return plain data as JSON; CheckpointError for what JSON cannot hold."""
    try:
        data = json.dumps(dict(metadata), indent=1).encode("ascii")
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"cannot save metadata: expected numbers, text, lists and dicts; {error}") from error
    if len(data) > MAX_METADATA_BYTES:
        raise CheckpointError(f"cannot save metadata: {len(data):,} bytes; arrays belong in a group")
    return data


def decode_metadata(source: Path, text: str | bytes, game: str | None = None) -> dict[str, Any]:
    """Read metadata back; with `game`, refuse what another game saved."""
    try:
        metadata = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise unusable(source, f"its metadata cannot be read ({error})") from error
    if not isinstance(metadata, dict):
        raise unusable(source, f"its metadata is a {type(metadata).__name__}, expected a dict")
    if game is not None and metadata.get("game") != game:
        raise CheckpointError(f"{source} is of the game {metadata.get('game')!r:.60}, expected {game!r}")
    return metadata


def absolute(path: str | os.PathLike) -> Path:
    """Return `path` with a name of its own, so that temporary files can stand beside it (`.` has none)."""
    return Path(os.path.abspath(path))


def read_file(source: Path, path: Path, limit: int) -> bytes:
    """Read `path`, a part of the checkpoint `source` or all of it; CheckpointError says what is wrong."""
    try:
        return read_whole(path, limit)
    except FileNotFoundError as error:
        what = "there is no such file" if path == source else f"{path.name} is missing"
        raise unusable(source, what) from error
    except (OSError, ValueError, MemoryError) as error:
        raise unusable(source, f"{path.name} cannot be read ({error})") from error


def unusable(source: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{source} cannot be used: {what:.300}. Take another copy or an older one; nothing was loaded"
    )


def not_saved(kind: str, path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"cannot save {kind} {path}: {reason(error)}. What was saved before stands; "
        "make room there or choose another folder, then resume"
    )
