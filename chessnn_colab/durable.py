"""Files that survive a kill or a power cut, and that know when they were damaged.

Write beside the target, flush to the disk, rename into place, flush the folder: a reader sees the old
content or the new, never a mixture. A seal is a SHA-256 of the whole file kept inside the file itself.
"""

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

SEAL_LENGTH = 64
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # for os.open: a link there leads to somebody else's file
_CHUNK = 2**20  # bytes copied and hashed at a time
BLANK_SEAL = b"0" * SEAL_LENGTH
# Network and cloud file systems answer so when they cannot flush a folder or lock a file.
NOT_SUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_flushed(path: Path, data: bytes) -> None:
    """Write `data` to `path` and return when the disk has it. Not atomic. Raises OSError."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def copy_flushed(source: Path, target: Path) -> str:
    """Copy a plain file and return the SHA-256 of what was read, when the disk has it. Not atomic. Raises OSError."""
    _plain_size(source)
    digest = hashlib.sha256()
    with open(source, "rb") as original, open(target, "wb") as copy:
        while chunk := original.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def copy_verified(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source` that was read back, all or nothing. Raises OSError."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if copy_flushed(source, temporary) != file_sha256(temporary):
            raise OSError(errno.EIO, "what was read back is not what was written", str(target))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):  # of a drive that is gone, the first error says more
            temporary.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by a file holding `data`, all or nothing. Raises OSError and leaves no temporary file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_flushed(temporary, data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in `folder` durable, where the system can do that."""
    if os.name == "nt":  # Windows opens no folder as a file
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
    """Read a plain file of at most `limit` bytes; OSError for anything else."""
    size = _plain_size(path)
    if size > limit:
        raise OSError(errno.EFBIG, f"{size:,} bytes, more than the {limit:,} expected at most", str(path))
    with open(path, "rb") as file:
        return file.read(limit)


def _plain_size(path: Path) -> int:
    """Return a file's size; OSError unless it is a plain one (a pipe would block for ever)."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return status.st_size


def seal(data: bytes, at: int) -> bytes:
    """Put the SHA-256 of `data`, which holds BLANK_SEAL at offset `at`, in that place."""
    return data[:at] + sha256(data).encode("ascii") + data[at + SEAL_LENGTH :]


def seal_holds(data: bytes, at: int) -> bool:
    """Tell whether the 64 digits at offset `at` are the SHA-256 of the rest."""
    blank = data[:at] + BLANK_SEAL + data[at + SEAL_LENGTH :]
    return data[at : at + SEAL_LENGTH] == sha256(blank).encode("ascii")


def reason(error: OSError) -> str:
    """Say in a few words what the system refused: 'No space left on device'."""
    return error.strerror or str(error)
