"""The project's exceptions. Every bad input raises one, with a sentence a person can act on."""

WIDTH = 76  # columns of text that fit into a cell's output in a window of 820 pixels


class ChessnnError(Exception):
    """Base of the errors this package raises on purpose. The command line prints it and exits with
    2.
    """

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: a notebook shows the sentence in a box, without a traceback.

        `%debug` still finds the place.
        """
        from rich.console import Console
        from rich.panel import Panel
        from rich.text import Text

        title = type(self).__name__
        console = Console(width=WIDTH, force_terminal=True, force_jupyter=False)
        with console.capture() as captured:
            console.print(
                Panel(Text(str(self)), title=title, title_align="left", border_style="bold red")
            )
        return captured.get().splitlines()


class InstallError(ChessnnError):
    """A requirement could not be installed, or installing it changed another package."""


class NotationError(ChessnnError):
    """A FEN, UCI move, SAN move or PGN that cannot be read; the message quotes it."""


class ConfigError(ChessnnError):
    """A setting that does not exist or cannot be."""


class DeviceError(ChessnnError):
    """A device that is not there or does not work."""


class RecordsError(ChessnnError):
    """Arrays of games that do not fit together, or are not of this game."""


class CheckpointError(ChessnnError):
    """A checkpoint that is missing, damaged, or does not fit."""


class RunError(ChessnnError):
    """A run folder that does not exist, or cannot be used as one."""


class Interrupted(ChessnnError):
    """Stopped by the user before there was anything to keep. The command line exits with 130."""


class WorkerError(ChessnnError):
    """A worker process failed; the message has its traceback."""


def first_line(error: Exception | Warning | str) -> str:
    """The first line of what an error says, or its type's name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def error_line(traceback: str) -> str:
    """The line of a traceback that names the error; the last line of any other text.

    It need not be the traceback's last line: advice follows in CUDA's errors.
    """
    lines = traceback.strip().splitlines() or [""]
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    after = lines[frames[-1] + 1 :] if frames else []
    return next((line for line in after if line and not line.startswith(" ")), lines[-1])
