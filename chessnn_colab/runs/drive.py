"""Google Drive as the place of a run's copy."""

from pathlib import Path

from ..errors import ConfigError, first_line
from .backup import restore_run
from .files import AnyPath
from .folder import RunFolder, folder_path

MOUNT = "/content/drive"


def drive_copy(run: AnyPath) -> str:
    """The folder on Google Drive that keeps a copy of `run`, for `TrainConfig.copy_to`; Drive is
    mounted first.

    Colab asks for permission. Raises ConfigError where there is no Drive or where it could not be
    mounted.
    """
    try:
        from google.colab import drive  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ConfigError(
            "Google Drive can be mounted only on Colab: untick the copy to Drive; elsewhere "
            "`copy_to` takes any folder"
        ) from None
    try:
        drive.mount(MOUNT)
        kept = Path(MOUNT) / "MyDrive" / "chessnn_colab"
        kept.mkdir(parents=True, exist_ok=True)
    except (
        Exception
    ) as error:  # Colab's own kinds: a refused permission, a lost connection, a full drive
        raise ConfigError(
            f"Google Drive could not be mounted: {first_line(error)}. Run this "
            "again and allow it, or untick the copy to Drive"
        ) from error
    return str(kept / folder_path(run).name)


def bring_back(run: AnyPath, from_drive: bool) -> None:
    """With `from_drive`, restore `run` from Drive where this machine has no checkpoint of it.

    Prints what it does. Raises ConfigError, RunError or CheckpointError.
    """
    if not from_drive or RunFolder(folder_path(run), {}).checkpoints():
        return
    restore_run(run, drive_copy(run), print)
