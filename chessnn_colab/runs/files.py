"""Files that survive a kill or a power cut.

New content goes to a temporary file beside the target. When the disk has it, a rename puts it in
place. A reader sees the old content or the new content, never a mixture.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import CheckpointError

AnyPath = str | os.PathLike[str]

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # for os.open: a link there leads to somebody else's file
# Network and cloud file systems answer so when they cannot flush a folder or lock a file.
NOT_SUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
)
_CHUNK = 2**20  # bytes copied and hashed at a time
# --- writing and reading


def write_flushed(path: Path, chunks: Iterable[bytes | memoryview]) -> str:
    """Write `chunks` to `path` and return their SHA-256 when the disk has them. Not atomic. Raises
    OSError.
    """
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def copy_flushed(source: Path, target: Path) -> str:
    """Copy a plain file and return the SHA-256 of what was read, when the disk has it. Not atomic.
    Raises OSError.
    """
    _plain_size(source)
    with open(source, "rb") as file:
        return write_flushed(target, iter(lambda: file.read(_CHUNK), b""))


def write_atomically(path: Path, *data: bytes | memoryview) -> None:
    """Replace `path` by a file that holds `data` in this order, all or nothing. Raises OSError and leaves no
    temporary file.
    """
    with _replacing(path) as temporary:
        write_flushed(temporary, data)


def copy_verified(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source` that was read back, all or nothing. Raises OSError."""
    with _replacing(target) as temporary:
        if copy_flushed(source, temporary) != file_sha256(temporary):
            raise OSError(errno.EIO, "what was read back is not what was written", str(target))


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a name for a temporary file, which takes the place of `path` at the end, or is deleted
    after an error.
    """
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
        raise OSError(
            errno.EFBIG, f"{size:,} bytes, more than the {limit:,} expected at most", str(path)
        )
    with open(path, "rb") as file:
        return file.read(limit)


def _plain_size(path: Path) -> int:
    """Return the size of a plain file. Raises OSError for any other kind: reading a pipe would
    block for ever.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return status.st_size


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason(error: OSError) -> str:
    """Say in a few words what the system refused: 'No space left on device'."""
    return error.strerror or str(error)


def absolute(path: AnyPath) -> Path:
    """Return `path` with a last part, so that a temporary file can stand beside it (`.` has
    none).
    """
    return Path(os.path.abspath(path))


def encode_object(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return `values` as JSON that ends with a line end; on one line without `indent`.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    return (json.dumps(values, indent=indent) + "\n").encode("ascii")


def decode_object(data: str | bytes, **options: Any) -> dict[str, Any]:
    """Return a JSON object; `options` are those of json.loads. Raises ValueError for anything
    else.
    """
    try:
        values = json.loads(data, **options)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, got {type(values).__name__}")
    return values


# --- checkpoints


def check_game(source: Path, metadata: Mapping[str, Any], game: str | None) -> None:
    """Raise CheckpointError when `metadata` of `source` is of another game than `game` (None: any
    game will do).
    """
    if game is not None and metadata.get("game") != game:
        raise CheckpointError(
            f"{source} is of the game {metadata.get('game')!r:.60}, expected {game!r}"
        )


def read_file(path: Path, limit: int) -> bytes:
    """Read the checkpoint `path` of at most `limit` bytes. Raises CheckpointError."""
    try:
        return read_whole(path, limit)
    except FileNotFoundError as error:
        raise unusable(path, "there is no such file") from error
    except (OSError, ValueError, MemoryError) as error:
        raise unusable(path, f"it cannot be read ({error})") from error


def read_start(path: Path, size: int) -> bytes:
    """Read the first `size` bytes of the checkpoint `path`. Raises CheckpointError."""
    try:
        _plain_size(path)
        with open(path, "rb") as file:
            return file.read(size)
    except FileNotFoundError as error:
        raise unusable(path, "there is no such file") from error
    except (OSError, ValueError) as error:
        raise unusable(path, f"it cannot be read ({error})") from error


def unusable(source: Path | str, what: str) -> CheckpointError:
    """Return the error for a checkpoint that cannot be loaded; `what` says why."""
    return CheckpointError(
        f"{source} cannot be used: {what:.300}. Take another copy or an older one; nothing was loaded"
    )


def not_saved(kind: str, path: Path, error: OSError) -> CheckpointError:
    """Return the error for a `kind` of file that the system refused to write at `path`."""
    return CheckpointError(
        f"cannot save {kind} {path}: {reason(error)}. What was saved before stands; "
        "make room there or choose another folder, then resume"
    )
