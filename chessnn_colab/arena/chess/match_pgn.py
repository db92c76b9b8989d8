"""The games of a chess match as PGN, each from the first move of its opening, in one file."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import chess.pgn

from ...files import write_atomically
from ...games.chess.endings import ENDINGS, TRUNCATED
from ...games.chess.notation import move_from_action
from .. import games_folder
from ..result import FORFEIT, MatchGame, MatchResult
from .openings import board_after

# The PGN standard's words. A game at the limit on plies is a draw by the rules of the match, not by those of chess.
_TERMINATIONS = {FORFEIT: "abandoned", ENDINGS[TRUNCATED]: "adjudication"}
_WHITE_RESULTS = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}


def match_to_pgn(result: MatchResult, date: datetime.date) -> list[str]:
    """One PGN text per game, in the order of the match.

    Each has the seven headers of every PGN, and Opening, PlyCount, Termination (in the standard's words) and Ending
    (one of games.chess.rules.ENDINGS, or "forfeit", with its reason as the last comment). Raises NotationError for an
    action that is not legal where it was played.
    """
    return [str(_pgn_game(result, game, number, date)) for number, game in enumerate(result.played, 1)]


def _pgn_game(result: MatchResult, game: MatchGame, number: int, date: datetime.date) -> chess.pgn.Game:
    white, black = result.player, result.opponent
    if not game.player_is_first:
        white, black = black, white
    parsed = chess.pgn.Game.from_board(board_after(game.opening))
    parsed.headers.update(
        {
            "Event": f"{_header(result.player)} against {_header(result.opponent)}",
            "Site": "chessnn_colab",
            "Date": f"{date:%Y.%m.%d}",
            "Round": str(number),
            "White": _header(white),
            "Black": _header(black),
            "Result": _WHITE_RESULTS[game.points if game.player_is_first else 1 - game.points],
            "Opening": _header(game.opening.name),
            "PlyCount": str(len(game.opening.moves) + len(game.actions)),
            "Termination": _TERMINATIONS.get(game.ending, "normal"),
            "Ending": game.ending,
        }
    )
    node, board = parsed.end(), parsed.end().board()
    for action in game.actions:
        node = node.add_variation(move_from_action(action, board))
        board.push(node.move)
    if game.reason:
        node.comment = re.sub(r"[{}\s]+", " ", game.reason).strip()
    return parsed


def _header(text: str) -> str:
    """`text` without the characters that end a header: python-chess writes headers without escapes."""
    return re.sub(r"\s+", " ", text.replace('"', "'").replace("\\", "/")).strip() or "?"


class GamesFolder(games_folder.GamesFolder):
    """A folder in which each match is one PGN file."""

    suffix = ".pgn"

    def write(self, path: Path, result: MatchResult) -> None:
        text = "\n\n".join(match_to_pgn(result, datetime.date.today())) + "\n"
        write_atomically(path, text.encode("utf-8"))
