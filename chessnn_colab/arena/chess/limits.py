"""The words after `go` in the UCI protocol: how long a search may take."""

from dataclasses import dataclass
from itertools import takewhile

import chess

from ...games.chess.notation import parse_move
from ...search import MOST_SIMULATIONS

MARGIN = 0.05  # seconds of a move's time kept for everything but thinking; at most half of it
MAX_DIGITS = 18  # of a number after `go`
MOVES_TO_GO = 30  # moves that the time on the clock must last for, if the command does not say
NUMBERS = frozenset("wtime btime winc binc movestogo depth nodes mate movetime".split())
WORDS = NUMBERS | {"searchmoves", "infinite", "ponder"}


@dataclass
class Limits:
    """The limits of a `go`. None is no limit."""

    seconds: float | None = None  # from its start
    num_simulations: int | None = None  # of the largest search
    nodes: int | None = None  # evaluations of all searches together
    # Searches, each twice as large as the last; None: by the clock, or one without a clock.
    rungs: int | None = None
    until_stopped: bool = False  # whether the answer must wait for a stop
    moves: tuple[chess.Move, ...] = ()  # to choose from; empty: all legal moves


def read_limits(words: list[str], board: chess.Board, num_simulations: int) -> Limits:
    """The limits that the words after `go` mean on `board`. As UCI wants it, unknown words are
    skipped.

    num_simulations: of the largest search if nothing else limits it. Raises ValueError for a number
    that cannot be read, NotationError for a move that is not legal.
    """
    given = {}
    for word, value in zip(words, [*words[1:], ""]):
        if word in NUMBERS:
            if not value.removeprefix("-").isdecimal() or len(value) > MAX_DIGITS:
                raise ValueError(
                    f"go {word} {value!r:.120}: expected a whole number of {MAX_DIGITS} digits at "
                    "most"
                )
            given[word] = int(value)
    after = words[words.index("searchmoves") + 1 :] if "searchmoves" in words else []
    moves = takewhile(lambda text: text not in WORDS, after)
    limits = Limits(moves=tuple(parse_move(text, board) for text in moves))
    # Two of them are the root, once for an answer at once and once for the tree.
    if "nodes" in given:
        limits.nodes = given["nodes"]
        limits.num_simulations = min(max(given["nodes"] - 2, 1), MOST_SIMULATIONS)
    if "depth" in given:
        limits.rungs = max(given["depth"], 1)
    mine, increment = ("wtime", "winc") if board.turn else ("btime", "binc")
    if "infinite" in words:
        limits.until_stopped = True
    elif "movetime" in given:
        limits.seconds = _to_think(given["movetime"] / 1000)
    elif mine in given:
        left = given[mine] / 1000
        for_a_move = left / (given.get("movestogo") or MOVES_TO_GO)
        share = for_a_move + 0.8 * given.get(increment, 0) / 1000
        limits.seconds = _to_think(min(share, left / 2))
    elif not {"nodes", "depth"} & given.keys():
        limits.num_simulations = num_simulations
    return limits


def _to_think(seconds: float) -> float:
    """Of the seconds for a move, those in which to think."""
    return max(seconds - MARGIN, seconds / 2, 0)
