"""The folder that keeps the games of matches, one file per match."""

import datetime
import re
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from ..errors import ConfigError
from ..games.base import Moves
from ..games.registry import game_text, make_game, text_suffix
from ..runs.files import AnyPath, absolute, refused, write_atomically
from .game import ArenaGame
from .result import FORFEIT, MatchGame, MatchResult

# The PGN standard's words. A game at the limit on plies is a draw by the rules of the match, not by
# those of the game.
_TERMINATIONS = {FORFEIT: "abandoned", "truncated": "adjudication"}


class GamesFolder:
    """The folder that gets the games of matches. It is made, and written to once, before the first
    game is played.
    """

    def __init__(self, arena: ArenaGame, folder: AnyPath):
        """Raises ConfigError for a game for one player, and when the folder cannot be made or
        written to.
        """
        self.arena = arena
        self.game = make_game(arena.game)
        if self.game.num_players == 1:
            raise ConfigError(f"games of {arena.game} cannot be saved: expected a game for two")
        self.path = absolute(folder)
        with self._refused():
            self.path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path).close()

    def save(self, result: MatchResult) -> Path:
        """Write PLAYER-OPPONENT.pgn, or .txt, and return its path. A number is added if that name
        is taken.

        Raises ConfigError when it cannot be written.
        """
        name = "-".join(
            re.sub(r"[^A-Za-z0-9.]+", "_", player).strip("._")[:80] or "player"
            for player in (result.player, result.opponent)
        )
        suffix = text_suffix(self.game.name)
        path = self.path / f"{name}{suffix}"
        number = 1
        with self._refused():
            while path.exists():
                number += 1
                path = self.path / f"{name}-{number}{suffix}"
            write_atomically(path, self.text(result).encode("utf-8"))
        return path

    def text(self, result: MatchResult) -> str:
        """The games of a match, played today, each as registry.game_text writes it from the first
        move of its opening, with an empty line between two.

        Headers are those of every PGN, and Opening, PlyCount, Termination (in the standard's
        words), Ending (one of the game's, or "forfeit") and, of a forfeit, its reason. Raises
        NotationError for an action that is not legal where it was played.
        """
        texts = [self._game_text(result, *numbered) for numbered in enumerate(result.played, 1)]
        return "\n\n".join(texts) + "\n"

    def _game_text(self, result: MatchResult, number: int, played: MatchGame) -> str:
        names = [result.player, result.opponent]
        points = played.points
        if not played.player_is_first:
            names.reverse()
            points = 1 - points
        actions = [*self.arena.opening_actions(played.opening), *played.actions]
        headers = {
            "Event": f"{result.player} against {result.opponent}",
            "Site": "chessnn_colab",
            "Date": f"{datetime.date.today():%Y.%m.%d}",
            "Round": str(number),
            **dict(zip(self.game.player_names, names)),
            "Opening": played.opening.name,
            "PlyCount": str(len(actions)),
            "Termination": _TERMINATIONS.get(played.ending, "normal"),
        }
        ending = 0
        if played.ending == FORFEIT:
            headers["Ending"] = FORFEIT
            headers["Forfeit"] = " ".join(played.reason.split())
        else:
            ending = self.game.endings.index(played.ending)
        winner = round(2 * points - 1)
        moves = Moves(self.game.init(1), actions, ending, winner)
        return game_text(self.game, moves, **headers)

    def _refused(self) -> AbstractContextManager[None]:
        advice = "; expected a folder that can be written to"
        return refused(f"cannot save games to {self.path}", advice, ConfigError)
