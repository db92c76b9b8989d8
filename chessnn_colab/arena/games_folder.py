"""The folder that keeps the games of matches, whatever their text form."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import ConfigError
from ..files import AnyPath, reason, write_atomically
from .result import MatchResult


class GamesFolder:
    """The folder that gets the games of matches. It is made, and written to once, before the first game is played."""

    suffix = ""  # of what `write` makes

    def __init__(self, folder: AnyPath):
        """Raises ConfigError when the folder cannot be made or written to."""
        self.path = Path(os.path.abspath(os.path.expanduser(folder)))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            trial = self.path / f".{os.getpid()}.tmp"
            write_atomically(trial, b"")
            trial.unlink()
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise self._refused(error) from error

    def write(self, path: Path, result: MatchResult) -> None:
        """Write the games of a match to `path`, which does not exist, all or nothing. Raises OSError."""
        raise NotImplementedError

    def save(self, result: MatchResult) -> Path:
        """Write PLAYER-OPPONENT with the suffix and return its path. A number is added if that name is taken.

        Raises ConfigError when it cannot be written.
        """
        name = "-".join(
            re.sub(r"[^A-Za-z0-9.]+", "_", player).strip("._")[:80] or "player"
            for player in (result.player, result.opponent)
        )
        try:
            taken = {path.name for path in self.path.iterdir()}
            numbers = ["", *(f"-{number}" for number in range(2, len(taken) + 3))]
            names = (f"{name}{number}{self.suffix}" for number in numbers)
            path = self.path / next(free for free in names if free not in taken)
            self.write(path, result)
        except OSError as error:
            raise self._refused(error) from error
        return path

    def _refused(self, error: OSError | ValueError) -> ConfigError:
        why = reason(error) if isinstance(error, OSError) else str(error)
        return ConfigError(f"cannot save games to {self.path}: {why}; expected a folder that can be written to")
