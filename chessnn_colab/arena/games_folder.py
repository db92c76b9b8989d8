"""The folder that keeps the games of matches, one file per match."""

import re
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from ..errors import ConfigError
from ..runs.files import AnyPath, absolute, refused, write_atomically
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
        self.path = absolute(folder)
        with self._refused():
            self.path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path).close()

    def save(self, result: MatchResult) -> Path:
        """Write PLAYER-OPPONENT with the suffix and return its path. A number is added if that name
        is taken.

        Raises ConfigError when it cannot be written.
        """
        name = "-".join(
            re.sub(r"[^A-Za-z0-9.]+", "_", player).strip("._")[:80] or "player"
            for player in (result.player, result.opponent)
        )
        path = self.path / f"{name}{self.suffix}"
        number = 1
        with self._refused():
            while path.exists():
                number += 1
                path = self.path / f"{name}-{number}{self.suffix}"
            write_atomically(path, self.to_text(result).encode("utf-8"))
        return path

    def _refused(self) -> AbstractContextManager[None]:
        advice = "; expected a folder that can be written to"
        return refused(f"cannot save games to {self.path}", advice, ConfigError)
