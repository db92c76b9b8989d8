"""Games as SGF, the text form that board programs exchange (GM[4] is Gomoku, https://www.red-bean.com/sgf/)."""

from __future__ import annotations

import re

from ...errors import NotationError
from .notation import LETTERS, cell_at
from .record import Record, check_size

GOMOKU = "4"
_EXPECTED = "expected a text like (;GM[4]SZ[15];B[hh];W[ii])"
_PROPERTY = re.compile(r"([A-Z]{1,2})((?:\s*\[(?:\\.|[^\]\\])*\])+)", re.DOTALL)
_VALUE = re.compile(r"\[((?:\\.|[^\]\\])*)\]", re.DOTALL)
_SETUP = ("AB", "AW", "AE")


def sgf_text(record: Record) -> str:
    """A record as SGF. Its headers become the comment of the game."""
    told = "\n".join(f"{name}: {value}" for name, value in record.headers.items())
    head = {"FF": "4", "GM": GOMOKU, "SZ": str(record.size), "PB": record.black, "PW": record.white, "GC": told}
    properties = "".join(f"{name}[{_escaped(value)}]" for name, value in head.items() if value)
    moves = "".join(
        f";{'BW'[number % 2]}[{LETTERS[action % record.size]}{LETTERS[action // record.size]}]"
        for number, action in enumerate(record.actions)
    )
    return f"(;{properties}{moves})"


def read_sgf(text: str) -> Record:
    """The main line of an SGF text.

    Raises NotationError for a text without a game, a game other than Gomoku, stones that were set up, players who do
    not take turns, and what Record refuses.
    """
    check_size(text, "SGF")
    opened = text.lstrip("\ufeff \t\r\n")
    if not re.match(r"\(\s*;", opened):
        raise NotationError(f"bad SGF {text[:40]!r}: {_EXPECTED}")
    properties = _main_line(opened)
    head = {name: values[0] for name, values in reversed(properties)}
    if head.get("GM", "1") != GOMOKU:
        raise NotationError(f"bad SGF: GM[{head.get('GM', '1')!s:.20}] is another game, expected GM[{GOMOKU}]")
    if setup := sorted(head.keys() & set(_SETUP)):
        raise NotationError(f"bad SGF: {setup[0]} sets up stones, expected moves alone")
    if not (size := head.get("SZ", "19")).isdecimal() or len(size) > 3:
        raise NotationError(f"bad SGF: SZ[{size!s:.20}], expected one number")
    moves = [(name, values[0].strip().lower()) for name, values in properties if name in ("B", "W")]
    actions = []
    for number, (colour, place) in enumerate(moves):
        if colour != "BW"[number % 2]:
            raise NotationError(f"bad SGF: move {number + 1} is {colour}, expected Black and White in turn")
        if len(place) != 2 or not set(place) <= set(LETTERS):
            raise NotationError(f"bad SGF: move {number + 1} is {place!r:.20}, expected two letters from a to t")
        actions.append(cell_at(LETTERS.index(place[0]), LETTERS.index(place[1]), int(size)))
    told = dict(line.split(": ", 1) for line in head.get("GC", "").splitlines() if ": " in line)
    return Record(int(size), tuple(actions), head.get("PB", "Black"), head.get("PW", "White"), told)


def _main_line(text: str) -> list[tuple[str, list[str]]]:
    """The properties of the nodes up to the first end of a branch, which follow the first variation everywhere."""
    found, at = [], 0
    while at < len(text) and text[at] != ")":
        if match := _PROPERTY.match(text, at):
            found.append((match[1], [re.sub(r"\\(.)", r"\1", value) for value in _VALUE.findall(match[2])]))
            at = match.end()
        elif text[at] in "(; \t\r\n":
            at += 1
        else:
            raise NotationError(f"bad SGF at {text[at : at + 20]!r}: {_EXPECTED}")
    if at == len(text):
        raise NotationError(f"bad SGF: the text ends before its game, {_EXPECTED}")
    return found


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
