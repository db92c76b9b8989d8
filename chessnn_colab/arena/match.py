"""Matches: many games side by side, every opening once with each player first. The rules alone decide who wins.

All matches of a call share one batch (see table.Table), or one in each of several processes (sharing.SharedTable). No
game depends on what shares its batch.

A game that reaches the match's limit on plies is a draw (300 plies from the opening in chess). Nobody adjudicates.
A player that cannot move loses the game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from ..cpu import use_threads
from ..errors import ConfigError, require_counts
from ..games.base import Game
from .ledger import Match
from .players import Player
from .registry import match_kit
from .result import MatchResult, Opening
from .sharing import SharedTable, processes_for
from .standing import Watch, unwatched
from .table import Table

BOARDS = 512  # games side by side: the more, the less each evaluation costs


def play_match(
    game: Game,
    player: Player,
    opponent: Player,
    games: int,
    seed: int = 0,
    book: Sequence[Opening] | None = None,
    watch: Watch = unwatched,
) -> MatchResult:
    """Play one match (see play_matches)."""
    return play_matches(game, [Match(player, opponent, games)], seed, book, watch)[0]


@use_threads(1)
def play_matches(
    game: Game,
    matches: Sequence[Match],
    seed: int = 0,
    book: Sequence[Opening] | None = None,
    watch: Watch = unwatched,
    seconds: float | None = None,
    on_match: Callable[[MatchResult], None] = lambda result: None,
    boards: int = BOARDS,
    processes: int | None = 1,
) -> list[MatchResult]:
    """Play `matches` of `game` (see registry.match_game) side by side; returns what each `player` made of them.

    book: None is the game's own; after its last opening it starts again. seconds: start no game that would probably
    not end in so many seconds. Games are started opening by opening, in every match alike, and each game that was
    started is played to its end and counts, so that short games are never preferred to long ones; every match has its
    first opening, however long that takes. boards: games side by side at most, in each process. watch is told the
    standing often, and on_match each result as it becomes complete. KeyboardInterrupt ends the matches: their results,
    marked as `interrupted`, have the games that ended before it.

    processes: among how many to share the games (see sharing.SharedTable); None: as many as pay. With more than one a
    script needs `if __name__ == "__main__":`, as it does for training.

    The random numbers of a game follow from the seed, its two players' names and its number. Networks get rows in
    multiples of search.ROUNDED, for which a CPU computes a row to the same bits in any batch (a test). A GPU may choose
    another algorithm for another size, and then another move where two are equally good. Raises ConfigError for a game
    that is not for two players.
    """
    if game.num_players != 2:
        raise ConfigError(f"the game {game.name!r} has no matches: it is for one player, `evaluate` compares scores")
    book = match_kit(game.name).book if book is None else book
    if processes is None:
        processes = processes_for(matches, seconds, game.device)
    require_counts(processes=processes)
    table = Table(game, matches, seed, book, boards, seconds)
    return _played(table if processes == 1 else SharedTable(table, processes), watch, on_match)


def _played(table: Table | SharedTable, watch: Watch, on_match: Callable[[MatchResult], None]) -> list[MatchResult]:
    """Play all that is on the table."""
    told: set[int] = set()

    def tell() -> None:
        watch(table.standing())
        for number in table.ledger.complete() - told:
            told.add(number)
            on_match(table.ledger.result(number))

    try:
        table.play(tell)
    except KeyboardInterrupt:
        table.ledger.interrupted = True
        with suppress(KeyboardInterrupt):  # a second one is no news
            watch(table.standing())
    return [table.ledger.result(number) for number in range(len(table.matches))]
