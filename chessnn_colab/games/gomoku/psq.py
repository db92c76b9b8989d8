"""Games as PSQ, the text form of Gomocup and its program Piskvork.

A first line with the size of the board, a line "x,y,milliseconds" for each move (x from the left and y from the top,
both from 1), the names of the players, and a number for errors, -1 for none. Piskvork reads no further; here lines
"Name: value" follow, with what else is known of the game.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from ...errors import NotationError
from .notation import cell_at
from .record import Record, check_size, game_record
from .rules import Gomoku
from .state import GomokuState

FIRST_WORD = "Piskvorky"
_EXPECTED = "expected lines like 'Piskvorky 15x15, 0:0, 0' and then '8,8,0'"
_FIRST = re.compile(FIRST_WORD + r"\s+(\d{1,4})x(\d{1,4})\b", re.IGNORECASE)
_MOVE = re.compile(r"\s*(\d{1,4})\s*,\s*(\d{1,4})\s*(?:,\s*\d+\s*)?\Z", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:,.*)?\Z", re.ASCII)
_HEADER = re.compile(r"([A-Za-z][\w ]*): (.*)\Z")


def game_text(
    game: Gomoku, start: GomokuState, actions: Sequence[int], ending: int, result: int, **headers: str
) -> str:
    """A game of Gomoku as PSQ (see registry.game_text). The stones of `start` become its first moves."""
    return psq_text(game_record(game, start, actions, ending, result, headers))


def psq_text(record: Record) -> str:
    """A record as PSQ. The players are named in one line each."""
    moves = [f"{action % record.size + 1},{action // record.size + 1},0" for action in record.actions]
    told = [f"{name}: {' '.join(value.split())}" for name, value in record.headers.items()]
    names = [_one_line(record.black), _one_line(record.white)]
    return "\n".join([f"{FIRST_WORD} {record.size}x{record.size}, 0:0, 0", *moves, *names, "-1", *told])


def read_psq(text: str) -> Record:
    """The game in a PSQ text.

    Raises NotationError for a text without its first line, a board that is not square, and what Record refuses. Lines
    after the moves that are none of ours are passed over.
    """
    check_size(text, "PSQ")
    lines = text.lstrip("\ufeff").splitlines()
    first = _FIRST.match(lines[0]) if lines else None
    if first is None:
        raise NotationError(f"bad PSQ {text[:40]!r}: {_EXPECTED}")
    size, height = map(int, first.groups())
    if size != height:
        raise NotationError(f"bad PSQ: a board of {size}x{height}, expected a square")
    rest = [line.strip() for line in lines[1:] if line.strip()]
    moves = list(takewhile(bool, map(_MOVE.match, rest)))
    rest = rest[len(moves) :]
    if rest and re.match(r"\d*\s*,[\d\s,]*\Z", rest[0]):
        raise NotationError(f"bad PSQ: {rest[0]!r:.40} after {len(moves)} moves; {_EXPECTED}")
    try:
        actions = [cell_at(int(move[1]) - 1, int(move[2]) - 1, size) for move in moves if move]
    except NotationError:
        raise NotationError(f"bad PSQ: a move is off the board of {size}x{size}; {_EXPECTED}") from None
    names = [line for line in rest[:2] if not _NUMBER.match(line)]
    told = {header[1]: header[2] for line in rest[len(names) :] if (header := _HEADER.match(line))}
    black, white = (*names, "Black", "White")[:2] if len(names) == 2 else ("Black", "White")
    return Record(size, tuple(actions), black, white, told)


def _one_line(text: str) -> str:
    """Text that is no move and no number, so that readers do not take it for one."""
    words = " ".join(text.split()) or "?"
    return f"player {words}" if re.match(r"[-\d,]", words) else words
