"""The folder that keeps the games of matches, one file per match."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from ..errors import ConfigError
from ..runs.files import AnyPath, reason, write_atomically
from .result import MatchResult


class GamesFolder:
    """The folder that gets the games of matches. It is made, and written to once, before the first
    game is played.
    """

    def __init__(self, suffix: str, to_text: Callable[[MatchResult], str], folder: AnyPath):
        """suffix: of the files, such as ".pgn". to_text: all games of a match as one text. Raises
        ConfigError when the folder cannot be made or written to.
        """
        self.suffix = suffix
        self.to_text = to_text
        self.path = Path(os.path.abspath(os.path.expanduser(folder)))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            trial = self.path / f".{os.getpid()}.tmp"
            write_atomically(trial, b"")
            trial.unlink()
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise self._refused(error) from error

    def save(self, result: MatchResult) -> Path:
        """Write PLAYER-OPPONENT with the suffix and return its path. A number is added if that name
        is taken.

        Raises ConfigError when it cannot be written.
        """
        name = "-".join(
            re.sub(r"[^A-Za-z0-9.]+", "_", player).strip("._")[:80] or "player"
            for player in (result.player, result.opponent)
        )
        try:
            path = self.path / f"{name}{self.suffix}"
            number = 1
            while path.exists():
                number += 1
                path = self.path / f"{name}-{number}{self.suffix}"
            write_atomically(path, self.to_text(result).encode("utf-8"))
        except OSError as error:
            raise self._refused(error) from error
        return path

    def _refused(self, error: OSError | ValueError) -> ConfigError:
        return ConfigError(
            f"cannot save games to {self.path}: {reason(error)}; "
            "expected a folder that can be written to"
        )
