"""Files that survive a kill or a power cut.

New content goes to a temporary file beside the target. When the disk has it, a rename puts it in
place. A reader sees the old content or the new content, never a mixture.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..errors import CheckpointError, ChessnnError, RunError

AnyPath = str | os.PathLike[str]

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # for os.open: a link there leads to somebody else's file
# Network and cloud file systems answer so when they cannot flush a folder or lock a file.
NOT_SUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
)
TEMPORARY = ".chessnn.tmp"  # ends the names of files that are being written
MAX_BYTES = 2**30  # of a file of JSON
_CHUNK = 2**20  # bytes copied at a time


# --- errors


def reason(error: Exception) -> str:
    """What failed, in a few words, such as what the system refused: 'No space left on device'."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def refused(failure: str, advice: str = "", kind: type[ChessnnError] = RunError) -> Iterator[None]:
    """Turn an OSError within into an error of `kind`: the failure, what the system refused, and
    the advice.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {reason(error)}{advice}") from error


def unusable(source: Path | str, what: str) -> CheckpointError:
    """Return the error for a checkpoint that cannot be loaded; `what` says why."""
    return CheckpointError(
        f"{source} cannot be used: {what:.300}. Take another copy or an older one; nothing was "
        "loaded"
    )


# --- writing


def write_atomically(path: Path, *data: bytes | memoryview) -> None:
    """Replace `path` by a file that holds `data` in this order, all or nothing. Raises OSError and
    leaves no temporary file.
    """
    with _replacing(path) as temporary, open(temporary, "wb") as file:
        file.writelines(data)
        flush(file)


def copy_verified(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source` that was read back, all or nothing. Raises OSError."""
    with _replacing(target) as temporary:
        if copy_flushed(source, temporary) != file_sha256(temporary):
            raise OSError(errno.EIO, "what was read back is not what was written", str(target))


def copy_flushed(source: Path, target: Path) -> str:
    """Copy a plain file and return the SHA-256 of what was read, when the disk has it. Not atomic.
    Raises OSError.
    """
    digest = hashlib.sha256()
    with open_plain(source) as original, open(target, "wb") as copy:
        while chunk := original.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
        flush(copy)
    return digest.hexdigest()


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a name for a temporary file, which takes the place of `path` at the end, or is deleted
    after an error.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # when a drive is gone, the first error says more
            temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush(file: IO[bytes]) -> None:
    """Return when the disk has what was written to `file`. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


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


# --- reading


def open_plain(path: Path) -> IO[bytes]:
    """Open a plain file to read it. Raises OSError for any other kind: reading a pipe would block
    for ever.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return open(path, "rb")


def read_whole(path: Path) -> bytes:
    """Read a plain file of at most MAX_BYTES. Raises OSError for anything else."""
    with open_plain(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"more than {MAX_BYTES:,} bytes", str(path))
        return file.read()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def absolute(path: AnyPath) -> Path:
    """Return `path` with a last part, so that a temporary file can stand beside it (`.` has
    none), and with the home folder in place of `~`.
    """
    return Path(os.path.abspath(os.path.expanduser(path)))


# --- JSON


def encode_object(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return `values` as JSON that ends with a line end; on one line without `indent`. NaN and
    infinity become null.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    return (json.dumps(null_for_nan(values), indent=indent) + "\n").encode("ascii")


def null_for_nan(values: Any) -> Any:
    """Return plain data with None in place of NaN and infinity, which JSON does not have."""
    return json.loads(json.dumps(values), parse_constant=lambda name: None)


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
