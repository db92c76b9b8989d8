"""List the runs in a folder, with size and progress; delete one."""

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from ..errors import RunError
from ..text import counted, duration
from .config_file import CONFIG_FILE
from .files import AnyPath, refused
from .folder import (
    CARD_FILE,
    PAGE_FILE,
    RATINGS_FILE,
    SUBFOLDERS,
    RunFolder,
    folder_path,
    own_folder,
)
from .lock import LOCK_FILE, RunLock
from .metrics import METRICS_FILE


@dataclass(frozen=True)
class RunSummary:
    """One run on the disk."""

    path: Path
    game: str
    iterations: int
    seconds: float  # of training
    size: int  # bytes on the disk
    changed: float  # seconds since 1970

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.changed))
        trained = f"{counted(self.iterations, 'iteration')} in {duration(self.seconds)}"
        return f"{self.path.name:20} {self.game:12} {trained:28} {decimal(self.size):>10}   {when}"


class RunList(list[RunSummary]):
    """Runs, the newest first; shows itself as a table."""

    def __str__(self) -> str:
        if not self:
            return "There is no run here yet."
        return "\n".join([*map(str, self), f"{decimal(sum(run.size for run in self))} in all"])

    __repr__ = __str__


def chosen_run(root: Path, run_folder: str, game: str) -> Path:
    """The folder of the run that a notebook's form names: "auto", or nothing, is the game's own
    folder in root/runs.
    """
    named = run_folder.strip()
    folder = own_folder(game) if named in ("", "auto") else os.path.expanduser(named)
    return root / folder


def list_runs(parent: AnyPath = "runs") -> RunList:
    """The runs in the folder `parent`; none where there is no such folder. A damaged run has the
    game "?".
    """
    folder = folder_path(parent)
    found = [path.parent for path in folder.glob(f"*/{CONFIG_FILE}")] if folder.is_dir() else []
    return RunList(sorted(map(_summary, found), key=lambda run: -run.changed))


def delete_run(path: AnyPath) -> int:
    """Delete a run's files, and its subfolders with everything in them, for good; returns the bytes
    that are free now.

    Files beside these stay, and the folder with them. Raises RunError when there is no
    run, when it is being trained, and when the system refuses.
    """
    folder = folder_path(path)
    if not (folder / CONFIG_FILE).is_file():
        raise RunError(
            f"there is no run at {folder}: it has no {CONFIG_FILE}, and nothing was deleted"
        )
    with refused(f"cannot delete all of {folder}"):
        lock = RunLock(folder)  # refuses while a process trains it
        try:
            before = folder_bytes(folder)
            own = (*SUBFOLDERS, CARD_FILE, PAGE_FILE, RATINGS_FILE, METRICS_FILE, CONFIG_FILE)
            for name in own:
                if (folder / name).is_dir():
                    shutil.rmtree(folder / name)
                else:
                    (folder / name).unlink(missing_ok=True)
            lock.release()  # Windows deletes no file that is open
            (folder / LOCK_FILE).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
        finally:
            lock.release()
    return before - folder_bytes(folder)


def folder_bytes(folder: Path) -> int:
    """The size of all files below `folder`. Files that go while it counts do not count."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _summary(path: Path) -> RunSummary:
    game = "?"
    iterations = 0
    seconds = 0.0
    with suppress(RunError):  # a damaged run is listed all the same, so that it can be deleted
        run = RunFolder.open(path)
        game = str(run.config.get("game", "chess"))
        if reports := run.reports():
            iterations = reports[-1].iteration
            seconds = reports[-1].seconds
    files = (path / METRICS_FILE, path / CONFIG_FILE)
    newest = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
    return RunSummary(path, game, iterations, seconds, folder_bytes(path), newest)
