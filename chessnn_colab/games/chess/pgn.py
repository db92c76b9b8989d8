"""Games as PGN, the text form that chess players exchange; python-chess reads and writes."""

import io
import re
from typing import Any

import chess
import chess.pgn

from ...errors import NotationError
from ..base import Game, Moves
from .boards import boards_from_state
from .endings import ENDINGS, TRUNCATED, UNFINISHED
from .notation import check_board, move_from_action

MAX_LENGTH = 200_000  # characters; a small game takes a thousand times its text in memory
MAX_PLIES = 2_000
_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
_NO_RESULT = "*"
_EXPECTED = 'expected headers like [White "..."] and legal moves like 1. e4 e5'
# What is not moves: headers and escaped lines outside of comments, and the two kinds of comments.
_BESIDE = re.compile(r"^[\[%].*|\{[^}]*(?:\}|\Z)|;.*", re.MULTILINE)
# Castling in other letters or with other dashes too.
_ALMOST_A_MOVE = re.compile(
    r"(?<![A-Za-z])[A-Za-z]+[0-9]\w*|[0Oo\u041e][-\u2010-\u2015\u2212][0Oo\u041e]"
)
# A move of a piece that English names otherwise, such as Sf3 or ♘f3, or of one that stands alone.
_FOREIGN_PIECE = re.compile(
    r"(?:[^\W\d_a-hxKQRBNOP]|[♔-♟]|(?<![\w=])[KQRBN]\s)[a-h]?[1-8]?x?[a-h][1-8]"
)
# Empty lines behind headers or a comment, or between moves, where python-chess ends a game. It has
# ended after a result, and where the next one begins with headers or with its first move.
_GAP = re.compile(r"(?<=[\]}])\n\n+(?!\[)|(?<!1-0|0-1|1/2)(?<!\*)\n\n+(?!\[|1\.(?!\.))")
_CUT_SHORT = (UNFINISHED, TRUNCATED)


def game_text(game: Game, moves: Moves, **headers: str) -> str:
    """A game of chess as PGN (see registry.game_text). One that was cut short without a winner has
    the result "*", or is drawn where its Termination is "adjudication".

    The header Termination is the standard's "normal" or "unterminated", and Ending the name in
    ENDINGS, where `headers` do not say otherwise.
    """
    board = boards_from_state(moves.start)[0]
    start = board.fen(en_passant="fen")
    for action in moves.actions:
        board.push(move_from_action(action, board))
    written = chess.pgn.Game.from_board(board)
    if "FEN" in written.headers:
        written.headers["FEN"] = start
    written.headers["Termination"] = "unterminated" if moves.ending in _CUT_SHORT else "normal"
    written.headers["Ending"] = ENDINGS[moves.ending]
    written.headers.update({name: _header(text) for name, text in headers.items()})
    decided = written.headers["Termination"] != "unterminated" or moves.result
    written.headers["Result"] = _RESULTS[moves.result] if decided else _NO_RESULT
    return str(written)


def _header(text: str) -> str:
    """`text` without the characters that end a header: python-chess writes headers without
    escapes.
    """
    return " ".join(text.replace('"', "'").replace("\\", "/").split()) or "?"


def game_from_pgn(text: str) -> chess.pgn.Game:
    """The first game of a PGN text, without its variations.

    Raises NotationError for text without a game, for unreadable or illegal moves, impossible
    positions and other kinds of chess, and for more than MAX_LENGTH or MAX_PLIES.
    """
    if len(text) > MAX_LENGTH:
        raise NotationError(
            f"PGN of {len(text):,} characters: expected at most {MAX_LENGTH:,} characters"
        )
    lines = "\n".join(line.strip() for line in re.split(r"\r\n?|\n", text.lstrip("\ufeff")))
    _check_words(lines)
    try:
        parsed = chess.pgn.read_game(io.StringIO(_GAP.sub("\n", lines)), Visitor=_StrictBuilder)
    except ValueError as error:
        raise NotationError(f"bad PGN: {str(error)[:200]}; {_EXPECTED}") from error
    # Without a move and a header: what python-chess returns for text that is not PGN.
    if parsed is None or (not parsed.next() and parsed.headers == chess.pgn.Game().headers):
        raise NotationError(f"no game in PGN {text!r:.120}: {_EXPECTED}")
    check_board(parsed.board())
    if not all(parsed.mainline_moves()):
        raise NotationError(f"bad PGN: a null move (0000); {_EXPECTED}")
    plies = parsed.end().ply() - parsed.ply()
    if plies > MAX_PLIES:
        raise NotationError(f"PGN game of {plies:,} plies: expected at most {MAX_PLIES:,}")
    return parsed


def _check_words(text: str) -> None:
    """Raise NotationError for a word such as e9, Sf3 or N f3, which looks like a move: python-chess
    skips what it does not know, and reads the last two as f3.
    """
    moves = _BESIDE.sub(" ", text)
    unknown = chess.pgn.MOVETEXT_REGEX.sub(" ", moves)
    if word := _ALMOST_A_MOVE.search(unknown) or _FOREIGN_PIECE.search(moves):
        raise NotationError(f"bad PGN: {word[0]!r:.120} is not a move; {_EXPECTED}")


class _StrictBuilder(chess.pgn.GameBuilder[chess.pgn.Game]):
    """Stops at the first error, and leaves variations out."""

    def begin_variation(self) -> Any:
        return chess.pgn.SKIP

    def end_variation(self) -> None:
        pass

    def handle_error(self, error: Exception) -> None:
        raise error
