"""A copy of a run in a second folder (Google Drive, a network disk), kept up to date while the run
trains.

The run itself stays on the machine's own disk, because cloud folders are slow and lose their
connection. After each save a thread copies what is new. A file gets a temporary name, is read back
and compared by SHA-256, and is then renamed; the checkpoint comes last. So the copy is a run folder
at every moment, and train() and evaluate() can open it. When copying fails, the user is told, and
the next save tries again. Google Drive reads back from its cache what it will upload later. When
such an upload is cut short, the checkpoint does not verify and the one before it is used.
"""

import filecmp
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import CheckpointError, ChessnnError, ConfigError, RunError
from ..text import Say, silent
from .config_file import CONFIG_FILE
from .files import AnyPath, copy_verified, reason, refused
from .folder import CARD_FILE, RATINGS_FILE, RunFolder, folder_path

CLOSE_SECONDS = 120
# Everything but the checkpoints and config.json. Reports come before checkpoints, so that the copy
# misses none.
_FILES = (
    "snapshots/*.safetensors",
    "games/*",
    "tensorboard/*",
    "metrics.jsonl",
    RATINGS_FILE,
    CARD_FILE,
)


class Backup:
    """Copies `run`, which is open for writing, to the folder `copy_to`.

    Raises ConfigError when `copy_to` cannot be the copy of this run. Raises RunError when another
    process writes there or when the copy is ahead of the run.
    """

    def __init__(self, run: RunFolder, copy_to: AnyPath):
        self._run = run
        place = copy_place(run.path, copy_to)
        there = RunFolder(place, {})  # nothing is written there before it is known to be this run's
        _refuse_another_run(run, there)
        _refuse_a_later_one(run, there)
        self._copy = RunFolder.create_or_open(place, run.config, may_change=run.config)
        own = max(run.checkpoints(), default=0)
        # A later checkpoint is damaged, or it would have been refused.
        if max((*self._copy.checkpoints(), *self._copy.snapshots()), default=0) > own:
            self._copy.rewind(own)
        self._thread: threading.Thread | None = None
        self._behind = False  # something was saved that no finished copy has
        self._messages = list(self._copy.messages)
        # The size and time of the files that the copy is known to have.
        self._copied = {}

    def update(self) -> list[str]:
        """Begin to copy what is new, in the background; call it after each save. Returns what went
        wrong before.
        """
        self._behind = True
        if not self._copying:
            self._begin()
        return self._said()

    def wait(self, seconds: float = CLOSE_SECONDS) -> None:
        """Wait at most `seconds` for the copying that has begun to end or to fail."""
        if self._thread is not None:
            self._thread.join(max(seconds, 0))
            self._behind |= self._copying

    def close(self, say: Say = silent) -> list[str]:
        """Finish copying, in at most CLOSE_SECONDS, and unlock the copy. Returns what went wrong.

        say: told before, where there is something to wait for.
        """
        deadline = time.monotonic() + CLOSE_SECONDS
        if self._copying or self._behind:
            say(f"Finishing the copy {self._copy.path}, {CLOSE_SECONDS} seconds at most ...")
        try:
            self.wait(CLOSE_SECONDS)
            if self._behind and self._copy.held and not self._copying:
                self._begin()
                self.wait(deadline - time.monotonic())
        except KeyboardInterrupt:
            self._messages.append(f"Interrupted while copying to {self._copy.path}")
        self._copy.close()
        self._run.spared = frozenset()
        if self._behind:
            self._messages.append(
                f"The copy {self._copy.path} is not complete. Train with it again to complete it"
            )
        return self._said()

    @property
    def _copying(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _begin(self) -> None:
        self._behind = False
        saved = self._run.checkpoints()
        self._run.spared = frozenset(saved[-1:])
        self._thread = threading.Thread(
            target=self._copy_all, args=(saved[-1:],), name="backup", daemon=True
        )
        self._thread.start()

    def _said(self) -> list[str]:
        said = self._messages
        self._messages = []
        return list(dict.fromkeys(said))

    def _copy_all(self, iterations: list[int]) -> None:
        try:
            for path in _plain_files(self._run.path):
                self._copy_file(path)
            for iteration in iterations:
                self._copy_file(self._run.checkpoint_path(iteration))
            # Google Drive keeps what is deleted for 30 days, within the user's quota.
            self._copy.prune(emptied=True)
        except (ChessnnError, OSError) as error:
            if not self._behind:  # else a later save has come in between, and its turn is next
                self._messages.append(
                    f"Copying to {self._copy.path} failed: {reason(error)}. The next save tries "
                    "again"
                )
            self._behind = True

    def _copy_file(self, path: Path) -> None:
        if not self._copy.held:
            raise RunError("it was opened for writing elsewhere")
        status = path.stat()
        state = (status.st_size, status.st_mtime_ns)
        if self._copied.get(path) == state:
            return
        target = self._copy.path / path.relative_to(self._run.path)
        if not _same_content(path, target):
            copy_verified(path, target)
        self._copied[path] = state


def restore_run(run: AnyPath, copy_to: AnyPath, say: Say) -> None:
    """Bring a run back from its copy when the run's own folder has no checkpoint.

    say: gets a sentence before, because it may take a while, and one after; none when there is
    nothing to bring back. Raises ConfigError, RunError or CheckpointError.
    """
    path = folder_path(run)
    place = copy_place(path, copy_to)
    own = RunFolder(path, {})
    if not (place / CONFIG_FILE).is_file() or own.checkpoints():
        return
    copy = RunFolder.open(place)
    latest = copy.latest_checkpoint()
    if latest is None:
        copy.refuse_lost_checkpoints()
        return
    _refuse_another_run(own, copy)
    if max(own.snapshots(), default=0) > max((latest.iteration, *copy.snapshots())):
        raise RunError(
            f"{path} has no checkpoint, and snapshots after iteration {latest.iteration}, at which "
            f"its copy {place} ends: nothing was changed. Move them away to go on from the copy"
        )
    # The checkpoint comes last, because the run is complete with it.
    files = [*_plain_files(place), copy.checkpoint_path(latest.iteration)]
    say(f"Bringing {path} back from its copy {place}: {len(files)} files ...")
    advice = ". Make room or mount the drive, and try again; the copy stands"
    with (
        RunFolder.create_or_open(path, copy.config, may_change=copy.config),
        refused(f"cannot restore {path} from {place}", advice),
    ):
        for file in files:
            copy_verified(file, path / file.relative_to(place))
    say(f"Restored {path} from its copy {place}, at iteration {latest.iteration}")


def copy_place(run: Path, copy_to: AnyPath) -> Path:
    """Return the folder that `run` is copied to. Raises ConfigError when it cannot be.

    The parent folder must exist. Where a drive is not mounted, the copy would go to the disk whose
    loss it is for.
    """
    place = folder_path(copy_to)
    real = place.resolve()
    own = run.resolve()
    if real == own or own in real.parents or real in own.parents:
        raise ConfigError(
            f"copy_to={os.fspath(copy_to)!r}: expected a folder apart from the run's own, {run}"
        )
    if not place.parent.is_dir():
        raise ConfigError(
            f"copy_to={os.fspath(copy_to)!r}: there is no folder {place.parent}. Mount the drive, "
            "or make that folder, and try again"
        )
    return place


def _refuse_another_run(run: RunFolder, copy: RunFolder) -> None:
    """Two runs are the same when they began with the same weights: the first snapshot that both
    have is equal.
    """
    copied = copy.snapshots()
    own = run.snapshots()
    if not copied or not own:
        return
    common = min(own.keys() & copied, default=None)
    with refused(f"the copy {copy.path} cannot be read"):
        same = common is not None and _same_content(own[common], copied[common])
    if not same:
        raise ConfigError(
            f"copy_to: {copy.path} has the copy of another run than {run.path}. Choose another "
            "folder for the copy"
        )


def _refuse_a_later_one(run: RunFolder, copy: RunFolder) -> None:
    own = max(run.checkpoints(), default=-1)
    if max(copy.checkpoints(), default=-1) <= own:
        return
    try:
        latest = copy.latest_checkpoint()
    except CheckpointError:  # every checkpoint of the copy is damaged, and none can be ahead
        return
    if latest is not None and latest.iteration > own:
        raise RunError(
            f"the copy {copy.path} is at iteration {latest.iteration}, ahead of the run {run.path} "
            f"at {max(own, 0)}. Move the run's folder away, and it is restored from the copy; or "
            "choose another folder for the copy"
        )


def _plain_files(folder: Path) -> Iterator[Path]:
    for pattern in _FILES:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and not path.name.startswith("."):
                yield path


def _same_content(one: Path, other: Path) -> bool:
    """Tell whether two files are equal; a missing `other` is not. Raises OSError."""
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
