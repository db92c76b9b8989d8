"""One process at a time may write a run folder. A second process is refused, and told the name of
the first.

The lock is the kernel's (flock), so it ends with its process, however the process dies. Within one
process a later lock takes over from an earlier one: in a notebook the traceback of an interrupted
cell keeps the old run alive, and running the cell again must work. The old holder sees this in
`held`.

The library filelock would replace ten lines of this, and would lose the holder's name: up to 3.29,
a process that is refused empties the lock file (tox-dev/filelock#591).
"""

import os
import socket
from pathlib import Path

from ..errors import RunError
from .files import NO_LINK, NOT_SUPPORTED

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK_FILE = ".lock"
_HELD: dict[Path, "RunLock"] = {}


class RunLock:
    """The right to write `folder`, held until `release()`. Raises RunError when another process has
    it.

    `warning` is a sentence where the file system cannot lock, and nothing keeps a second process
    out; otherwise None.
    """

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self._process = os.getpid()
        earlier = _HELD.get(self.folder)
        if earlier is not None:
            earlier.release()
        descriptor = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | NO_LINK, 0o644)
        try:
            self.warning = _lock(descriptor, self.folder)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor
        _HELD[self.folder] = self

    @property
    def held(self) -> bool:
        """False after release, after a takeover, and in a forked child."""
        return self._descriptor is not None and self._process == os.getpid()

    def release(self) -> None:
        """Give the lock back; a second call does nothing. The file stays: another process may be
        about to lock it.
        """
        if self._descriptor is None or not self.held:
            return
        if fcntl is not None and self.warning is None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
        self._descriptor = None
        if _HELD.get(self.folder) is self:
            del _HELD[self.folder]


def _lock(descriptor: int, folder: Path) -> str | None:
    """Lock the open lock file of `folder` and write this process's name into it. Returns
    RunLock.warning.
    """
    warning = f"{folder} cannot be locked here: let no second process train there"
    if fcntl is None:
        return warning
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 300, 0).decode("ascii", "replace")
        raise RunError(
            # The holder may not have written its name yet.
            f"the run folder {folder} is in use by {holder or 'another process'}: "
            "stop that one first, or choose another run folder"
        ) from error
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        return warning
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, holder.encode(), 0)
    return None
