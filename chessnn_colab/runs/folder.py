"""The run folder: where a training run keeps everything, and finds it again.

config.json                      the settings of the latest start
metrics.jsonl                    one report per iteration
checkpoints/000010/              everything needed to go on, for the newest few iterations
snapshots/000010.safetensors     the weights alone, for every checkpoint ever saved
games/000010.pgn                 sample games; the suffix is the game's own
ratings.json                     the ratings of the snapshots when they were last rated (see ladder)
tensorboard/                     event files
logs/worker-0.log                what each worker printed
.lock                            held by the process that trains
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..errors import CheckpointError, ConfigError, RunError
from ..files import AnyPath, check_game, reason, write_atomically
from .checkpoint import (
    MANIFEST,
    Checkpoint,
    Groups,
    clear_interrupted_saves,
    list_checkpoints,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from .config_file import plain_config, read_config, settle_config
from .lock import RunLock
from .metrics import Metrics
from .snapshot import load_snapshot, save_snapshot

SUBFOLDERS = ("checkpoints", "snapshots", "games", "tensorboard", "logs")
_SET_ASIDE = ".set-aside"
RATINGS_FILE = "ratings.json"
CARD_FILE = "card.png"  # of the notebook: the result as a picture
METRICS_FILE = "metrics.jsonl"
_NUMBER = re.compile(r"[0-9]{6,}")  # an iteration, as it stands in file names


@dataclass(frozen=True, eq=False)
class LatestCheckpoint:
    """The newest undamaged checkpoint of a run; `messages` say which newer ones are damaged, and how."""

    iteration: int
    checkpoint: Checkpoint
    messages: tuple[str, ...]


class RunFolder:
    """A run on disk. `create_or_open` makes and locks it for writing. `open` only reads, even while another writes."""

    def __init__(
        self, path: Path, config: dict[str, Any], lock: RunLock | None = None, changed: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.config = config
        self.changed = changed  # settings that were others before it was opened for writing, in words
        (
            self.checkpoints_folder,
            self.snapshots_folder,
            self.games_folder,
            self.tensorboard_folder,
            self.logs_folder,
        ) = (path / name for name in SUBFOLDERS)
        self.messages: tuple[str, ...] = (lock.warning,) if lock and lock.warning else ()
        self.spared: frozenset[int] = frozenset()  # checkpoints that prune leaves for now: they are being copied
        self._lock = lock
        self._metrics = Metrics(path / METRICS_FILE)

    @classmethod
    def create_or_open(cls, path: AnyPath, config: Mapping[str, Any], may_change: Collection[str] = ()) -> "RunFolder":
        """Make a run folder, or open the one that is there, and lock it until `close()` or the end of a `with`.

        config: plain data for config.json. Where a run exists, its config may differ only in the keys `may_change`
        (see config_file.check_same_config); otherwise ConfigError. Raises RunError when the path cannot be a run
        folder or another process has it. When one process opens a folder twice, the later opening holds it.
        """
        folder = folder_path(path)
        wanted = plain_config(config)
        lock = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = RunLock(folder)
            changed = settle_config(folder, wanted, may_change)
            for name in SUBFOLDERS:
                (folder / name).mkdir(exist_ok=True)
            _clear_leftovers(folder)
            return cls(folder, wanted, lock, changed)
        except BaseException as error:
            if lock is not None:
                lock.release()
            if isinstance(error, OSError):
                raise RunError(f"cannot use {folder} as a run folder: {reason(error)}") from error
            raise

    @classmethod
    def open(cls, path: AnyPath) -> "RunFolder":
        """Open a run for reading. Raises RunError when there is none."""
        folder = folder_path(path)
        if not folder.is_dir():
            raise RunError(f"there is no run at {folder}: no such folder")
        return cls(folder, read_config(folder))

    def close(self) -> None:
        """Unlock; a second call does nothing."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- reports and games

    def append_report(self, report: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl; the disk has it when this returns."""
        self._require_lock()
        self._metrics.append(report)

    def read_reports(self) -> list[dict[str, Any]]:
        """Return the reports so far, oldest first, without a line that is being written or that a kill cut short."""
        return self._metrics.read()

    def save_game_sample(self, iteration: int, text: str, suffix: str = ".pgn") -> Path:
        """Write games/NNNNNN and `suffix`, and return its path. Raises RunError."""
        self._require_lock()
        path = self.games_folder / f"{iteration:06d}{suffix}"
        try:
            write_atomically(path, (text.rstrip("\n") + "\n").encode("utf-8"))
        except OSError as error:
            raise RunError(f"cannot write the sample game {path}: {reason(error)}") from error
        return path

    # --- checkpoints

    def save_checkpoint(self, iteration: int, groups: Groups, metadata: Mapping[str, Any]) -> Path:
        """Write checkpoints/NNNNNN/ (see checkpoint.save_checkpoint) and return its path."""
        self._require_lock()
        path = self.checkpoint_path(iteration)
        save_checkpoint(path, groups, {**metadata, "iteration": iteration})
        return path

    def checkpoints(self) -> list[int]:
        """Return the iterations that have a checkpoint, damaged or not, oldest first."""
        try:
            names = list_checkpoints(self.checkpoints_folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(f"cannot list {self.checkpoints_folder}: {reason(error)}") from error
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def latest_checkpoint(self, game: str | None = None) -> LatestCheckpoint | None:
        """Return the newest undamaged checkpoint, None when the run has no checkpoint at all.

        Raises CheckpointError when it is of another game than `game`, and when all checkpoints are damaged: to begin
        again would hide that.
        """
        messages: list[str] = []
        for iteration in reversed(self.checkpoints()):
            try:
                checkpoint = load_checkpoint(self.checkpoint_path(iteration))
            except CheckpointError as error:
                messages.append(str(error))
                continue
            check_game(self.path, checkpoint.metadata, game)
            return LatestCheckpoint(iteration, checkpoint, tuple(messages))
        if messages:
            raise CheckpointError(f"no checkpoint of the run {self.path} can be loaded: " + "; ".join(messages))
        return None

    def prune(self, keep: int = 2) -> None:
        """Delete all but the newest `keep` checkpoints, and the older ones among those set aside (see rewind)."""
        self._require_lock()
        if keep < 1:
            raise ConfigError(f"cannot keep {keep} checkpoints: expected 1 or more")
        saved = self.checkpoints()
        for iteration in set(saved[:-keep]) - self.spared:
            remove_checkpoint(self.checkpoint_path(iteration))
        for folder in _numbered(self.checkpoints_folder, f"*{_SET_ASIDE}"):
            if saved and int(folder.stem) < saved[-keep:][0]:
                remove_checkpoint(folder)

    def rewind(self, iteration: int) -> None:
        """Delete the reports, snapshots and sample games after `iteration`, so that the run can go on from there.

        Later checkpoints are renamed to NNNNNN.set-aside, not deleted: a disk that could not be read for a moment
        looks like damage too. When a snapshot goes, the ratings go, because another snapshot will have its name.
        """
        self._require_lock()
        self._metrics.truncate(iteration)
        try:
            later_snapshots = [path for path in self.snapshots() if int(path.stem) > iteration]
            if later_snapshots:
                (self.path / RATINGS_FILE).unlink(missing_ok=True)
            later_games = [path for path in _numbered(self.games_folder) if int(path.stem) > iteration]
            for path in (*later_snapshots, *later_games):
                path.unlink()
            for later in self.checkpoints():
                if later > iteration:
                    path = self.checkpoint_path(later)
                    remove_checkpoint(path.with_name(path.name + _SET_ASIDE))
                    os.rename(path, path.with_name(path.name + _SET_ASIDE))
        except OSError as error:
            raise RunError(f"cannot rewind the run {self.path} to {iteration}: {reason(error)}") from error

    # --- snapshots

    def save_snapshot(self, iteration: int, weights: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Path:
        """Write snapshots/NNNNNN.safetensors (see snapshot.save_snapshot) and return its path."""
        self._require_lock()
        path = self.snapshots_folder / f"{iteration:06d}.safetensors"
        save_snapshot(path, weights, {**metadata, "iteration": iteration})
        return path

    def snapshots(self) -> list[Path]:
        """Return the snapshot files, oldest first; `int(path.stem)` is the iteration."""
        return _numbered(self.snapshots_folder, "*.safetensors")

    def checkpoint_path(self, iteration: int) -> Path:
        """Return where the checkpoint of `iteration` is, or would be."""
        return self.checkpoints_folder / f"{iteration:06d}"

    @property
    def held(self) -> bool:
        """Whether this object may write the run: it has the lock, is not closed, and no later opening took over."""
        return self._lock is not None and self._lock.held

    def _require_lock(self) -> None:
        if not self.held:
            raise RunError(f"the run {self.path} is not open for writing here (closed, or opened again since)")


def find_checkpoint(path: AnyPath, game: str | None = None) -> Checkpoint:
    """Load what a person points at: a run folder (its newest checkpoint), a checkpoint folder or a snapshot file.

    Raises RunError or CheckpointError.
    """
    if Path(path).suffix == ".safetensors":
        return load_snapshot(Path(path).expanduser(), game)
    folder = folder_path(path)
    if (folder / MANIFEST).exists():
        return load_checkpoint(folder, game)
    run = RunFolder.open(folder)
    latest = run.latest_checkpoint(game)
    if latest is None:
        raise CheckpointError(f"the run {run.path} has no checkpoint yet")
    return latest.checkpoint


def own_folder(game: str) -> str:
    """Where runs of a game go unless somebody names a folder."""
    return f"runs/{game.replace(':', '-')}"


def folder_path(path: AnyPath) -> Path:
    """Return the absolute path, or RunError when it is a file or lies beneath one."""
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise RunError(f"{os.fspath(path)!r} cannot be a run folder: expected a path such as runs/first")
    try:
        folder = Path(os.path.abspath(Path(path).expanduser()))
        place = next(place for place in (folder, *folder.parents) if place.exists())
    except (OSError, RuntimeError) as error:  # a name too long, no permission, a home that is not there
        raise RunError(f"{os.fspath(path)!r} cannot be a run folder: {error}") from error
    if not place.is_dir():
        relation = "is a file" if place == folder else f"lies beneath {place}, which is a file"
        raise RunError(f"{folder} {relation}: a run needs a folder. Choose another path")
    return folder


def _numbered(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the entries of `folder` that match `pattern` and are called NNNNNN and a suffix, by number."""
    return sorted(
        (path for path in folder.glob(pattern) if _NUMBER.fullmatch(path.stem)), key=lambda path: int(path.stem)
    )


def _clear_leftovers(folder: Path) -> None:
    """Delete what a killed writer left. The folder itself may be somebody's home: there only our own names count."""
    clear_interrupted_saves(folder / "checkpoints")
    names = ("config.json", "metrics.jsonl", RATINGS_FILE)
    leftovers = [path for name in names for path in folder.glob(f".{name}.*.tmp")]
    for leftover in (*leftovers, *(folder / "snapshots").glob(".*.tmp"), *(folder / "games").glob(".*.tmp")):
        leftover.unlink()
