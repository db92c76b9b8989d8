"""The games of a Gomoku match as PSQ, each from the first move of its opening: a folder with a file for each game."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...files import AnyPath, flush_folder, write_flushed
from ...games.gomoku.notation import parse_cell
from ...games.gomoku.psq import psq_text
from ...games.gomoku.record import Record
from .. import games_folder
from ..result import MatchGame, MatchResult

_RESULTS = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}


def match_to_psq(result: MatchResult, size: int) -> list[str]:
    """One PSQ text per game, in the order of the match.

    Its last lines name the match, the opening, the result from Black's view, the ending (one of
    games.gomoku.state.ENDINGS, or "forfeit") and the reason of a forfeit. Raises NotationError for an opening or an
    action that is not on a board of this size.
    """
    return [psq_text(_record(result, game, number, size)) for number, game in enumerate(result.played, 1)]


def _record(result: MatchResult, game: MatchGame, number: int, size: int) -> Record:
    names = (result.player, result.opponent) if game.player_is_first else (result.opponent, result.player)
    told = {
        "Event": f"{result.player} against {result.opponent}",
        "Round": str(number),
        "Opening": game.opening.name,
        "Result": _RESULTS[game.points if game.player_is_first else 1 - game.points],
        "Ending": game.ending,
        **({"Reason": game.reason} if game.reason else {}),
    }
    actions = [parse_cell(move, size) for move in game.opening.moves] + list(game.actions)
    return Record(size, tuple(actions), *names, headers=told)


class GamesFolder(games_folder.GamesFolder):
    """A folder in which each match is a folder, with 001.psq and so on: PSQ has one game per file.

    size: of the board.
    """

    def __init__(self, size: int, folder: AnyPath):
        super().__init__(folder)
        self.size = size

    def write(self, path: Path, result: MatchResult) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.mkdir()
            for number, text in enumerate(match_to_psq(result, self.size), 1):
                write_flushed(temporary / f"{number:03}.psq", [f"{text}\n".encode()])
            flush_folder(temporary)
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        flush_folder(path.parent)
