"""Files that survive a kill or a power cut, and that show when they were damaged. Nothing here reads or writes pickle.

Writing: the new content goes to a temporary file beside the target. When the disk has it, a rename puts it in place.
A reader sees the old content or the new content, never a mixture.

Seals: a sealed file contains the SHA-256 of itself, computed with zeros in the place of its 64 digits. config.json,
ratings.json, the manifest of a checkpoint and each line of metrics.jsonl are sealed JSON objects. A snapshot has its
seal in the header. A JSON object without a seal was written by hand or by an earlier version, and is taken as it is.
"""

import errno
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from .errors import CheckpointError

AnyPath = str | os.PathLike[str]

MAX_METADATA_BYTES = 64 * 2**20
MAX_ARRAY_BYTES = 16 * 2**30
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # for os.open: a link there leads to somebody else's file
# Network and cloud file systems answer so when they cannot flush a folder or lock a file.
NOT_SUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
BLANK_SEAL = "0" * 64
_CHUNK = 2**20  # bytes copied and hashed at a time
# In a JSON object, or in the header of a snapshot. Text cannot look like this, because JSON escapes its quotes.
_SEAL = re.compile(rb'"(?:seal": "sha256:|sha256":")([0-9a-f]{64})"')
# Key and kind are looked for apart, so that no single flipped bit makes a sealed object look like one without a seal.
_TRACE_OF_A_SEAL = re.compile(rb'(?<!\\)"(?:seal"|sha256:|crc32:)')


# --- writing and reading


def write_flushed(path: Path, chunks: Iterable[bytes]) -> str:
    """Write `chunks` to `path` and return their SHA-256 when the disk has them. Not atomic. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def copy_flushed(source: Path, target: Path) -> str:
    """Copy a plain file and return the SHA-256 of what was read, when the disk has it. Not atomic. Raises OSError."""
    _plain_size(source)
    with open(source, "rb") as file:
        return write_flushed(target, iter(lambda: file.read(_CHUNK), b""))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by a file that holds `data`, all or nothing. Raises OSError and leaves no temporary file."""
    with _replacing(path) as temporary:
        write_flushed(temporary, [data])


def copy_verified(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source` that was read back, all or nothing. Raises OSError."""
    with _replacing(target) as temporary:
        if copy_flushed(source, temporary) != file_sha256(temporary):
            raise OSError(errno.EIO, "what was read back is not what was written", str(target))


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a name for a temporary file, which takes the place of `path` at the end, or is deleted after an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # when a drive is gone, the first error says more
            temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in `folder` durable, where the system can do that. Raises OSError."""
    if os.name == "nt":  # Windows does not open a folder as a file
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    finally:
        os.close(descriptor)


def read_whole(path: Path, limit: int) -> bytes:
    """Read a plain file of at most `limit` bytes. Raises OSError for anything else."""
    size = _plain_size(path)
    if size > limit:
        raise OSError(errno.EFBIG, f"{size:,} bytes, more than the {limit:,} expected at most", str(path))
    with open(path, "rb") as file:
        return file.read(limit)


def _plain_size(path: Path) -> int:
    """Return the size of a plain file. Raises OSError for any other kind: reading a pipe would block for ever."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return status.st_size


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason(error: OSError) -> str:
    """Say in a few words what the system refused: 'No space left on device'."""
    return error.strerror or str(error)


def absolute(path: AnyPath) -> Path:
    """Return `path` with a last part, so that a temporary file can stand beside it (`.` has none)."""
    return Path(os.path.abspath(path))


# --- seals


def seal(data: bytes) -> bytes:
    """Return `data` with its SHA-256 in the place of its blank seal (see BLANK_SEAL). Raises ValueError without one."""
    place = _SEAL.search(data)
    if place is None:
        raise ValueError("there is no place for a seal")
    return data[: place.start(1)] + sha256(data).encode("ascii") + data[place.end(1) :]


def seal_holds(data: bytes) -> bool:
    """Tell whether `data` has a seal and is as it was when it was sealed."""
    if place := _SEAL.search(data):
        blank = data[: place.start(1)] + BLANK_SEAL.encode("ascii") + data[place.end(1) :]
        return place[1] == sha256(blank).encode("ascii")
    body, mark, digits = data.rpartition(b', "seal": "crc32:')  # version 0.3 wrote lines of metrics.jsonl so
    return bool(mark) and digits == b'%08x"}\n' % zlib.crc32(body)


def encode_sealed(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return `values` as a sealed JSON object that ends with a line end; on one line without `indent`.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    return seal((json.dumps({"seal": f"sha256:{BLANK_SEAL}", **values}, indent=indent) + "\n").encode("ascii"))


def decode_sealed(data: bytes, **options: Any) -> dict[str, Any]:
    """Return what was given to encode_sealed; `options` are those of json.loads.

    Raises ValueError, with a sentence, for damaged content and for anything but a JSON object.
    """
    values = _decode_object(data, **options)
    if _TRACE_OF_A_SEAL.search(data) and not seal_holds(data):
        raise ValueError(
            "its seal does not match: it was damaged, or changed by hand. Put a copy of it back; or, if you "
            "changed it yourself, remove the line with its seal"
        )
    values.pop("seal", None)
    return values


def _decode_object(data: str | bytes, **options: Any) -> dict[str, Any]:
    try:
        values = json.loads(data, **options)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, got {type(values).__name__}")
    return values


# --- what checkpoints and snapshots are made of


def encode_arrays(
    group: str, arrays: Mapping[str, np.ndarray], header: dict[str, str] | None = None, limit: int = MAX_ARRAY_BYTES
) -> bytes:
    """Return numpy arrays of any shape as one safetensors file. Raises CheckpointError naming what cannot be saved."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise CheckpointError(f"cannot save {group}.{name}: expected a numpy array, got {type(array).__name__}")
        if name == "__metadata__":
            raise CheckpointError(f"cannot save {group}.{name}: safetensors keeps that name for itself")
    # safetensors 0.8 copies raw memory: an array in any other order would be saved scrambled, without an error.
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        data = safetensors.numpy.save(ordered, metadata=header)
    except (safetensors.SafetensorError, TypeError) as error:
        raise CheckpointError(f"cannot save {group}: {error}") from error
    if len(data) > limit:
        raise CheckpointError(f"cannot save {group}: {len(data):,} bytes, more than the limit of {limit:,}")
    return data


def decode_arrays(path: Path, data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file whose hash is known to match, writable. Raises CheckpointError."""
    try:
        arrays = safetensors.numpy.load(data)
    # The hash matched, so the content was made wrong on purpose; safetensors raises several kinds of error here.
    except Exception as error:
        raise unusable(path, f"it does not hold arrays ({error})") from error
    return {name: array if array.flags.writeable else array.copy() for name, array in arrays.items()}


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """Return plain data as JSON. Raises CheckpointError for what JSON cannot hold."""
    try:
        data = json.dumps(dict(metadata), indent=1).encode("ascii")
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"cannot save metadata: expected numbers, text, lists and dicts; {error}") from error
    if len(data) > MAX_METADATA_BYTES:
        raise CheckpointError(f"cannot save metadata: {len(data):,} bytes; arrays belong in a group")
    return data


def decode_metadata(source: Path, text: str | bytes) -> dict[str, Any]:
    """Return what was given to encode_metadata. Raises CheckpointError naming `source`."""
    try:
        return _decode_object(text)
    except (ValueError, TypeError) as error:
        raise unusable(source, f"its metadata cannot be read ({error})") from error


def check_game(source: Path, metadata: Mapping[str, Any], game: str | None) -> None:
    """Raise CheckpointError when `metadata` of `source` is of another game than `game` (None: any game will do)."""
    if game is not None and metadata.get("game") != game:
        raise CheckpointError(f"{source} is of the game {metadata.get('game')!r:.60}, expected {game!r}")


def read_file(source: Path, path: Path, limit: int) -> bytes:
    """Read `path`, which is the checkpoint `source` or a part of it. Raises CheckpointError saying what is wrong."""
    try:
        return read_whole(path, limit)
    except FileNotFoundError as error:
        what = "there is no such file" if path == source else f"{path.name} is missing"
        raise unusable(source, what) from error
    except (OSError, ValueError, MemoryError) as error:
        raise unusable(source, f"{path.name} cannot be read ({error})") from error


def unusable(source: Path | str, what: str) -> CheckpointError:
    """Return the error for a checkpoint or snapshot that cannot be loaded; `what` says why."""
    return CheckpointError(
        f"{source} cannot be used: {what:.300}. Take another copy or an older one; nothing was loaded"
    )


def not_saved(kind: str, path: Path, error: OSError) -> CheckpointError:
    """Return the error for a `kind` of file that the system refused to write at `path`."""
    return CheckpointError(
        f"cannot save {kind} {path}: {reason(error)}. What was saved before stands; "
        "make room there or choose another folder, then resume"
    )
