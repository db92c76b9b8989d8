"""Open a run for training in one call: its folder, its settings and its latest checkpoint."""

from ..text import Say, silent
from .backup import restore_run
from .files import AnyPath
from .folder import LatestCheckpoint, RunFolder


def open_run(
    path: AnyPath, copy_to: AnyPath | None = None, say: Say = silent
) -> tuple[RunFolder, LatestCheckpoint | None]:
    """Open the run in the folder `path`, or make the folder, and lock it. Returns the folder, and
    the newest checkpoint that is not damaged, None for a new run.

    copy_to: the folder of the run's copy; a run that this machine has lost is brought back from
    there first. say: gets sentences for the user. Write the settings with `folder.settle`; without
    them `folder.close` removes a folder that was made here. Raises ConfigError, RunError or
    CheckpointError.
    """
    if copy_to is not None:
        restore_run(path, copy_to, say)
    folder = RunFolder.lock(path)
    try:
        latest = folder.latest_checkpoint()
        if latest is None:
            folder.refuse_lost_checkpoints()
        for message in (*folder.messages, *(latest.messages if latest else ())):
            say(message)
    except BaseException:
        folder.close()
        raise
    return folder, latest
