"""The words after `go` in the UCI protocol: how long a search may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import chess

from ...games.chess.notation import parse_move, quote

MOST_SIMULATIONS = 4096  # of the largest tree, because it is in memory whole
MARGIN = 0.05  # seconds of the clock that are kept for everything but thinking
MAX_DIGITS = 18  # of a number after `go`
MOVES_TO_GO = 30  # moves that the time on the clock must last for, if the command does not say
NUMBERS = frozenset("wtime btime winc binc movestogo depth nodes mate movetime".split())


@dataclass
class Limits:
    """The limits of a `go`. None is no limit."""

    seconds: float | None = None  # from its start
    num_simulations: int | None = None  # of the largest search
    rungs: int | None = (
        None  # searches, each twice as large as the last; None: by the clock, or one without a clock
    )
    until_stopped: bool = False  # whether the answer must wait for a stop
    moves: tuple[chess.Move, ...] = ()  # to choose from; empty: all legal moves


def read_limits(words: list[str], board: chess.Board, num_simulations: int) -> Limits:
    """The limits that the words after `go` mean on `board`.

    num_simulations: of the largest search if nothing else limits it. Raises ValueError for a word
    that UCI does not have or a number that cannot be read, NotationError for a move that is not
    legal.
    """
    given: dict[str, Any] = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if word in NUMBERS:
            value = words.pop(0) if words else ""
            if not value.lstrip("-").isdecimal() or len(value) > MAX_DIGITS:
                raise ValueError(
                    f"go {word} {quote(value)}: expected a whole number of {MAX_DIGITS} digits at most"
                )
            given[word] = int(value)
        elif word == "searchmoves":
            given[word] = tuple(parse_move(text, board) for text in words if text not in NUMBERS)
            words = [text for text in words if text in NUMBERS]
        elif word in ("infinite", "ponder"):
            given[word] = True
        else:
            raise ValueError(
                f"go {quote(word)}: expected {', '.join(sorted(NUMBERS))}, searchmoves, infinite or ponder"
            )
    return _limits(given, board.turn, num_simulations)


def _limits(given: dict[str, Any], white: bool, num_simulations: int) -> Limits:
    mine, increment = ("wtime", "winc") if white else ("btime", "binc")
    limits = Limits(
        until_stopped="infinite" in given or "ponder" in given, moves=given.get("searchmoves", ())
    )
    # Two of them are the root, once for an answer at once and once for the tree.
    if "nodes" in given:
        limits.num_simulations = min(max(given["nodes"] - 2, 1), MOST_SIMULATIONS)
    if "depth" in given:
        limits.rungs = max(given["depth"], 1)
    if "movetime" in given:
        limits.seconds = max(given["movetime"] / 1000 - MARGIN, 0)
    elif mine in given:
        left = given[mine] / 1000
        share = (
            left / (given.get("movestogo") or MOVES_TO_GO) + 0.8 * given.get(increment, 0) / 1000
        )
        limits.seconds = max(min(share, left / 2) - MARGIN, 0)
    elif not limits.until_stopped and not {"nodes", "depth"} & given.keys():
        limits.num_simulations = num_simulations
    return limits
