"""The games of a chess match as PGN, each from the first move of its opening, in one file."""

import datetime
import re

import chess.pgn

from ...games.chess.endings import ENDINGS, TRUNCATED
from ...games.chess.pgn import pgn_game
from ..result import FORFEIT, MatchGame, MatchResult
from .openings import board_after

# The PGN standard's words. A game at the limit on plies is a draw by the rules of the match, not by
# those of chess.
_TERMINATIONS = {FORFEIT: "abandoned", ENDINGS[TRUNCATED]: "adjudication"}
_WHITE_RESULTS = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}


def match_text(result: MatchResult) -> str:
    """The games of a match, played today, as the text of one PGN file, in their order.

    Each has the seven headers of every PGN, and Opening, PlyCount, Termination (in the standard's
    words) and Ending (one of games.chess.rules.ENDINGS, or "forfeit", with its reason as the last
    comment). Raises NotationError for an action that is not legal where it was played.
    """
    texts = [str(_pgn_game(result, game, number)) for number, game in enumerate(result.played, 1)]
    return "\n\n".join(texts) + "\n"


def _pgn_game(result: MatchResult, game: MatchGame, number: int) -> chess.pgn.Game:
    white = result.player
    black = result.opponent
    if not game.player_is_first:
        white, black = black, white
    written = pgn_game(board_after(game.opening), game.actions)
    written.headers.update(
        {
            "Event": f"{_header(result.player)} against {_header(result.opponent)}",
            "Site": "chessnn_colab",
            "Date": f"{datetime.date.today():%Y.%m.%d}",
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
    if game.reason:
        written.end().comment = re.sub(r"[{}\s]+", " ", game.reason).strip()
    return written


def _header(text: str) -> str:
    """`text` without the characters that end a header: python-chess writes headers without
    escapes.
    """
    return re.sub(r"\s+", " ", text.replace('"', "'").replace("\\", "/")).strip() or "?"
