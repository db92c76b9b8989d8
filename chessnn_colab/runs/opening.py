"""Open a run for training in one call: its folder, its settings and its latest checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .backup import restore_run
from .files import AnyPath
from .folder import LatestCheckpoint, RunFolder


class OpenedRun(NamedTuple):
    """A run that this process may write until `folder.close()`.

    `folder.config` has the settings of the latest start; it is empty for a new run. `latest` is the
    newest checkpoint that is not damaged, None for a new run. `messages` are for the user.
    """

    folder: RunFolder
    latest: LatestCheckpoint | None
    messages: tuple[str, ...]


def open_run(
    path: AnyPath, copy_to: AnyPath | None = None, say: Callable[[str], None] = lambda text: None
) -> OpenedRun:
    """Open the run in the folder `path`, or make the folder, and lock it.

    copy_to: the folder of the run's copy; a run that this machine has lost is brought back from
    there first. say: is called with a sentence before that. Write the settings with
    `folder.settle`; without them `folder.close` removes a folder that was made here. Raises
    ConfigError, RunError or CheckpointError.
    """
    messages = []
    if copy_to and (restored := restore_run(path, copy_to, say)):
        messages.append(restored)
    folder = RunFolder.lock(path)
    try:
        latest = folder.latest_checkpoint()
    except BaseException:
        folder.close()
        raise
    messages += folder.messages
    messages += latest.messages if latest else ()
    return OpenedRun(folder, latest, tuple(messages))
