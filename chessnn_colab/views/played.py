"""A finished game that comes as text, on the board that draws it."""

from __future__ import annotations

from typing import NamedTuple

from ..games.gomoku.psq import FIRST_WORD, read_psq
from ..games.gomoku.record import EXACTLY_FIVE
from ..games.registry import make_game
from .chess_drawing import read_pgn
from .drawings import Drawing, make_drawing

_RESULTS = {"1-0": "White won.", "0-1": "Black won.", "1/2-1/2": "Drawn.", "*": "Stopped without a result."}


class Played(NamedTuple):
    """A game that was played, the names of its players in one line ("" when nobody named them), and how it ended."""

    drawing: Drawing
    players: str
    end: str


def played_game(text: str) -> Played | None:
    """The game in a PGN or PSQ text; None for any other, which is a game without a board or without such a form.

    Raises NotationError for PGN or PSQ that cannot be read.
    """
    if text.startswith(FIRST_WORD):
        return _from_psq(text)
    return from_pgn(text) if text.startswith("[") else None


def from_pgn(text: str) -> Played:
    """The first game of a PGN text. Raises NotationError when it cannot be read or has no move."""
    drawing, headers = read_pgn(text)
    names = [headers.get(colour, "?") for colour in ("White", "Black")]
    return _played(drawing, names, _RESULTS.get(headers.get("Result", "*"), _RESULTS["*"]))


def _from_psq(text: str) -> Played:
    record = read_psq(text)
    exact = ":exact" if record.headers.get("Rule") == EXACTLY_FIVE else ""
    drawing = make_drawing(make_game(f"gomoku:{record.size}{exact}"))
    drawing.load(" ".join(drawing.move_text(action) for action in record.actions))
    return _played(drawing, [record.black, record.white], _RESULTS["*"])


def _played(drawing: Drawing, names: list[str], result: str) -> Played:
    unnamed = set(names) == {"?"} or names == list(drawing.players)
    return Played(drawing, "" if unnamed else " - ".join(names), drawing.ending() or result)
