"""The run folder: where a training run keeps everything, and finds it again.

config.json                      the settings of the latest start
metrics.jsonl                    one report per iteration
checkpoints/000010.safetensors   everything needed to resume, for the newest few iterations
snapshots/000010.safetensors     the weights alone of each checkpoint, of some in a long run (prune)
games/000010.pgn                 sample games; the suffix is the game's own
ratings.json                     the ratings of the snapshots when they were last rated (see ladder)
tensorboard/                     event files
logs/worker-0.log                what each worker printed
logs/training.log                what the training said, with the time of each line
.lock                            held by the process that trains
"""

import os
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..errors import CheckpointError, RunError
from ..report import Report
from .checkpoint import SUFFIX, Arrays, Checkpoint, Groups, load_checkpoint, save_checkpoint
from .config_file import CONFIG_FILE, plain_config, read_config, write_config
from .files import TEMPORARY, AnyPath, refused, write_atomically
from .lock import LOCK_FILE, RunLock
from .metrics import METRICS_FILE, append_report, drop_reports_after, read_reports

SUBFOLDERS = ("checkpoints", "snapshots", "games", "tensorboard", "logs")
RATINGS_FILE = "ratings.json"
KEEP_CHECKPOINTS = 2  # of a run
SNAPSHOT_RATIO = 1.02  # of the iterations of two snapshots; those nearer to each other thin out
SAVE_SHARE = 0.02
SAVE_SECONDS = 5.0
CARD_FILE = "card.png"  # of the notebook: the result as a picture
PAGE_FILE = "play.html"  # of the notebook: a page for friends
_NUMBER = re.compile(r"[0-9]{6,}")  # an iteration in a file name


class LatestCheckpoint(NamedTuple):
    """The newest undamaged checkpoint of a run; `messages` say which newer ones are damaged, and
    how.
    """

    iteration: int
    checkpoint: Checkpoint
    messages: tuple[str, ...]


class RunFolder:
    """A run on disk. `create_or_open` and `lock` open it for writing. `open` only reads, even while
    another process writes.
    """

    def __init__(
        self, path: Path, config: dict[str, Any], lock: RunLock | None = None, made: bool = False
    ):
        self.path = path
        self.config = config
        self.changed: tuple[str, ...] = ()  # settings that the last `settle` changed, in words
        self.checkpoints_folder = path / "checkpoints"
        self.snapshots_folder = path / "snapshots"
        self.games_folder = path / "games"
        self.tensorboard_folder = path / "tensorboard"
        self.messages: tuple[str, ...] = (lock.warning,) if lock and lock.warning else ()
        # Checkpoints that prune leaves for now, because they are being copied.
        self.spared: frozenset[int] = frozenset()
        self._opened = time.monotonic()
        self._saving = 0.0  # seconds spent on checkpoints
        self._lock = lock
        self._made = made

    @classmethod
    def create_or_open(
        cls, path: AnyPath, config: Mapping[str, Any], may_change: Collection[str] = ()
    ) -> "RunFolder":
        """`lock` and `settle` in one call."""
        run = cls.lock(path)
        try:
            run.settle(config, may_change)
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def lock(cls, path: AnyPath) -> "RunFolder":
        """Make a run folder, or open the one that is there, and lock it until `close()` or the end
        of a `with`. Its `config` is empty for a new run.

        Raises RunError when the path cannot be a run folder, another process has it, or its
        config.json is missing or damaged. When one process opens a folder twice, the later opening
        holds it.
        """
        folder = folder_path(path)
        with refused(f"cannot use {folder} as a run folder"):
            made = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            lock = RunLock(folder)
        try:
            if (folder / CONFIG_FILE).exists():
                return cls(folder, read_config(folder), lock)
            # A first start writes config.json before these, so a kill cannot leave them alone.
            if any((folder / name).exists() for name in (METRICS_FILE, *SUBFOLDERS[:2])):
                raise RunError(
                    f"{folder} holds a run without {CONFIG_FILE}: put that file back or choose "
                    "another run folder"
                )
            return cls(folder, {}, lock, made)
        except BaseException:
            lock.release()
            raise

    def settle(self, config: Mapping[str, Any], may_change: Collection[str] = ()) -> None:
        """Write config.json, make the parts of the folder, and clear what a killed writer left.

        config: plain data. It may differ from that of the latest start in the keys `may_change`
        only; otherwise ConfigError. Raises RunError when the system refuses.
        """
        self._require_lock()
        config = plain_config(config)
        with refused(f"cannot use {self.path} as a run folder"):
            self.changed = write_config(self.path, self.config, config, may_change)
            self.config = config
            for folder in (self.path, *(self.path / name for name in SUBFOLDERS)):
                folder.mkdir(exist_ok=True)
                # The folder itself may be somebody's home: only our own names count.
                for leftover in folder.glob(f".*{TEMPORARY}"):
                    leftover.unlink()

    @classmethod
    def open(cls, path: AnyPath) -> "RunFolder":
        """Open a run for reading. Raises RunError when there is none."""
        folder = folder_path(path)
        if not folder.is_dir():
            raise RunError(f"there is no run at {folder}: no such folder")
        return cls(folder, read_config(folder))

    def close(self) -> None:
        """Unlock, and remove a folder that `lock` made and that nothing was written to. A second
        call does nothing.
        """
        if self._lock is None or not self._lock.held:
            return
        self._lock.release()
        with suppress(OSError):
            if self._made and os.listdir(self.path) == [LOCK_FILE]:
                (self.path / LOCK_FILE).unlink()
                self.path.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- reports and games

    def append_report(self, report: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl; the disk has it when this returns."""
        self._require_lock()
        append_report(self.path, report)

    def read_reports(self) -> list[dict[str, Any]]:
        """Return the reports so far, oldest first, without a line that is being written or that a
        kill cut short.
        """
        return read_reports(self.path)

    def reports(self) -> list[Report]:
        """`read_reports` as Reports. Raises RunError."""
        try:
            return [Report.from_dict(values) for values in self.read_reports()]
        except TypeError as error:
            raise RunError(
                f"a line of {self.path / METRICS_FILE} is no whole report: {error}. Remove it"
            ) from error

    def save_game_sample(self, iteration: int, text: str, suffix: str) -> None:
        """Write games/NNNNNN and `suffix`. Raises RunError."""
        self._require_lock()
        path = self.games_folder / f"{iteration:06d}{suffix}"
        with refused(f"cannot write the sample game {path}"):
            write_atomically(path, (text.rstrip("\n") + "\n").encode("utf-8"))

    # --- checkpoints

    def save_checkpoint(self, iteration: int, groups: Groups, metadata: Mapping[str, Any]) -> None:
        """Write checkpoints/NNNNNN.safetensors (see checkpoint.save_checkpoint)."""
        self._require_lock()
        path = self.checkpoint_path(iteration)
        began = time.monotonic()
        save_checkpoint(path, groups, {**metadata, "iteration": iteration})
        self._saving += time.monotonic() - began

    def may_save(self) -> bool:
        """False while checkpoints have taken more than SAVE_SHARE of the time since the run was
        opened, and SAVE_SECONDS.
        """
        open_for = time.monotonic() - self._opened
        return self._saving <= SAVE_SHARE * open_for + SAVE_SECONDS

    def checkpoints(self) -> list[int]:
        """Return the iterations that have a checkpoint, damaged or not, oldest first."""
        return [int(path.stem) for path in _numbered(self.checkpoints_folder, SUFFIX)]

    def latest_checkpoint(self) -> LatestCheckpoint | None:
        """Return the newest undamaged checkpoint, None when the run has no checkpoint at all.

        Raises CheckpointError when all checkpoints are damaged: to begin again would hide that.
        """
        messages = []
        for iteration in reversed(self.checkpoints()):
            try:
                checkpoint = load_checkpoint(self.checkpoint_path(iteration))
            except CheckpointError as error:
                messages.append(str(error))
                continue
            return LatestCheckpoint(iteration, checkpoint, tuple(messages))
        if messages:
            raise CheckpointError(
                f"no checkpoint of the run {self.path} can be loaded: " + "; ".join(messages)
            )
        return None

    def refuse_lost_checkpoints(self) -> None:
        """Raise RunError where there are snapshots or reports, for a run without a checkpoint."""
        if any((*self.snapshots(), *self.read_reports())):
            raise RunError(
                f"{self.path} has snapshots or reports, and no checkpoint to go on from: nothing "
                "was changed. Put its checkpoints back, or begin another run; snapshots give it "
                f"their weights: --from {self.path} in a shell, from_checkpoint in TrainConfig"
            )

    def prune(self, emptied: bool = False) -> None:
        """Delete all but the newest KEEP_CHECKPOINTS checkpoints, and the last snapshot but one
        where those around it are near enough. emptied: what is deleted is empty by then, so that it
        takes no room in a trash.
        """
        self._require_lock()
        old = set(self.checkpoints()[:-KEEP_CHECKPOINTS]) - self.spared
        deleted = [self.checkpoint_path(iteration) for iteration in old]
        recent = list(self.snapshots().items())[-3:]
        if len(recent) == 3 and recent[2][0] < SNAPSHOT_RATIO * recent[0][0]:
            deleted.append(recent[1][1])
        with refused(f"cannot delete old files in {self.path}"):
            for path in deleted:
                if emptied:
                    os.truncate(path, 0)
                path.unlink()

    def rewind(self, iteration: int) -> None:
        """Delete the reports, ratings and sample games after `iteration`, so that the run can go on
        from there.

        Later checkpoints and snapshots are renamed to NNNNNN.set-aside, not deleted: a disk that
        could not be read for a moment looks like damage too. With them the ratings go, because
        another snapshot will have its name.
        """
        self._require_lock()
        drop_reports_after(self.path, iteration)
        with refused(f"cannot rewind the run {self.path} to {iteration}"):
            for path in _numbered(self.games_folder):
                if int(path.stem) > iteration:
                    path.unlink()
            for path in (*self.snapshots().values(), *_numbered(self.checkpoints_folder, SUFFIX)):
                if int(path.stem) > iteration:
                    (self.path / RATINGS_FILE).unlink(missing_ok=True)
                    path.replace(path.with_suffix(".set-aside"))

    # --- snapshots

    def save_snapshot(self, iteration: int, weights: Arrays, metadata: Mapping[str, Any]) -> None:
        """Write snapshots/NNNNNN.safetensors, a checkpoint of weights alone."""
        self._require_lock()
        path = self.snapshots_folder / f"{iteration:06d}{SUFFIX}"
        save_checkpoint(path, {"weights": weights}, {**metadata, "iteration": iteration})

    def snapshots(self) -> dict[int, Path]:
        """Return iteration -> snapshot file, oldest first."""
        return {int(path.stem): path for path in _numbered(self.snapshots_folder, SUFFIX)}

    def checkpoint_path(self, iteration: int) -> Path:
        """Return where the checkpoint of `iteration` is, or would be."""
        return self.checkpoints_folder / f"{iteration:06d}{SUFFIX}"

    @property
    def held(self) -> bool:
        """Whether this object may write the run: it has the lock, is not closed, and no later
        opening took over.
        """
        return self._lock is not None and self._lock.held

    def _require_lock(self) -> None:
        if not self.held:
            raise RunError(
                f"the run {self.path} is not open for writing here (closed, or opened again since)"
            )


def own_folder(game: str) -> str:
    """Where runs of a game go unless somebody names a folder."""
    return f"runs/{game.replace(':', '-')}"


def folder_path(path: AnyPath) -> Path:
    """Return the absolute path, or RunError when it is a file or lies beneath one."""
    name = os.fspath(path)
    try:
        if not name or "\0" in name:
            raise ValueError("expected a path such as runs/first")
        folder = Path(os.path.abspath(Path(name).expanduser()))
        place = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    # A name too long, no permission, a home that is not there.
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError(f"{name!r} cannot be a run folder: {error}") from error
    if not place.is_dir():
        relation = (
            "is a file, or its drive is not there"
            if place == folder
            else f"lies beneath {place}, which is a file"
        )
        raise RunError(f"{folder} {relation}: a run needs a folder. Choose another path")
    return folder


def _numbered(folder: Path, suffix: str = "") -> list[Path]:
    """Return the files in `folder` that are called NNNNNN and end with `suffix`, by number; none
    when there is no folder. Raises RunError.
    """
    with refused(f"cannot list {folder}"):
        names = os.listdir(folder) if folder.exists() else []
    paths = [folder / name for name in names if name.endswith(suffix)]
    numbered = [path for path in paths if _NUMBER.fullmatch(path.stem)]
    return sorted(numbered, key=lambda path: int(path.stem))
