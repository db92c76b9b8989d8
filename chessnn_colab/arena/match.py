"""Matches: many games side by side. The rules alone decide who wins.

In a match of two players each opening is played twice, once with each player first. In a game for
one player the opponent is left out, and all players get the same starts. All matches of a call
share one batch, or one batch per process (parallel.ParallelMatches). No game depends on what shares
its batch.

A game that reaches the match's limit on plies is a draw (300 plies from the opening in chess).
Nobody adjudicates. A player that cannot move loses the game.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..settings import Check, require, whole
from .players import Player
from .progress import Bar
from .result import MatchGame, MatchResult
from .solo import SoloGames

SOLO_STARTS = 8  # an opening of a match for one player is this many starts
MOST_GAMES = 1_000_000
PAIRS = Check(
    lambda games: 2 <= games <= MOST_GAMES and games % 2 == 0,
    f"an even number from 2 up to {MOST_GAMES:,}, because every opening is played twice",
)
Key = tuple[int, int]  # a game: its match, and its number in the match


@dataclass(frozen=True)
class Match:
    """A match to play. Games 2k and 2k + 1 start from opening k; `player` moves first in game 2k.

    opponent: None in a game for one player.
    """

    player: Player
    opponent: Player | None
    games: int

    def __post_init__(self):
        require("games", self.games, whole(most=MOST_GAMES) if self.opponent is None else PAIRS)

    @property
    def players(self) -> tuple[Player, ...]:
        """One or two players."""
        return (self.player,) if self.opponent is None else (self.player, self.opponent)


@dataclass
class PlayerTime:
    """A player in all its matches, and how long it thinks."""

    seconds: float = 0.0
    moves: int = 0

    @property
    def milliseconds_a_move(self) -> float:
        """The mean time that the player takes for a move."""
        return 1000 * self.seconds / max(self.moves, 1)


class MatchResults:
    """The results so far: the games that have ended, and the thinking time per player.

    games: of each match, how many it will have; fewer than its `games` once the time is up. ended:
    of each match, the games that have ended, by their number. times: of every player.
    """

    def __init__(self, matches: Sequence[Match], keys: Sequence[Key]):
        self.matches = matches
        counts = Counter(match for match, _ in keys)
        self.games = [counts[number] for number in range(len(matches))]
        self.ended: list[dict[int, MatchGame]] = [{} for _ in matches]
        players = [player for match in matches for player in match.players]
        self.times = {player: PlayerTime() for player in players}
        self.interrupted = False

    def end(self) -> None:
        """No more games come."""
        self.games = [len(ended) for ended in self.ended]

    def bars(self, under_way: Sequence[float]) -> tuple[Bar, ...]:
        """The progress of each match. under_way: the shares of its games that are being played,
        added up.
        """
        bars = []
        for match, games, ended, more in zip(self.matches, self.games, self.ended, under_way):
            points = [game.points for game in ended.values()]
            if match.opponent is None:
                note = f"mean {sum(points) / len(points):,.0f}" if points else ""
            else:
                note = f"+{points.count(1.0)} ={points.count(0.5)} -{points.count(0.0)}"
            name = " against ".join(player.name for player in match.players)
            bars.append(Bar(name, len(ended), games, note, more))
        return tuple(bars)

    def ended_games(self) -> set[Key]:
        """The games that have ended."""
        by_match = enumerate(self.ended)
        return {(match, number) for match, ended in by_match for number in ended}

    def result(self, number: int) -> MatchResult | SoloGames:
        """The result of a match."""
        match = self.matches[number]
        played = tuple(game for _, game in sorted(self.ended[number].items()))
        figures = {
            "player": match.player.name,
            "played": played,
            "evaluations": match.player.evaluations,
            "milliseconds_a_move": self.times[match.player].milliseconds_a_move,
            "asked": match.games,
            "interrupted": self.interrupted and len(played) < match.games,
        }
        if match.opponent is None:
            return SoloGames(**figures)
        return MatchResult(
            **figures,
            opponent=match.opponent.name,
            opponent_evaluations=match.opponent.evaluations,
            opponent_milliseconds_a_move=self.times[match.opponent].milliseconds_a_move,
        )


def all_games(matches: Sequence[Match]) -> list[Key]:
    """The games of all matches, opening by opening."""
    games = [
        (match, number) for match, asked in enumerate(matches) for number in range(asked.games)
    ]
    return sorted(games, key=lambda key: opening_of(matches, key))


def opening_of(matches: Sequence[Match], key: Key) -> int:
    """The number of the opening that a game starts from."""
    match, number = key
    return number // (2 if matches[match].opponent else SOLO_STARTS)


class Openings:
    """The openings still to play, in order, as far as room and time go.

    keys: the games, opening by opening. boards: while fewer games are being played, the next
    opening starts, in all matches together. seconds: an opening starts only if its games will end
    within this time. This depends on the games before it, and never on how long its
    own games turn out to be. So the games that count are a fair sample: by Wald's equation, as good
    as a number of games that was fixed beforehand.
    """

    def __init__(self, matches: Sequence[Match], keys: Sequence[Key], boards: int, seconds: float):
        self.boards = boards
        self.seconds = seconds
        self._began = time.monotonic()
        by_opening = groupby(keys, key=lambda key: opening_of(matches, key))
        self.waiting = [list(games) for _, games in by_opening]
        self.started = []

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def next(self, playing: int, seconds_for: Callable[[Sequence[Key]], float]) -> list[Key]:
        """The games to start now, beside the `playing` ones.

        seconds_for: how long those that are being played and these take together.
        """
        games = []
        while self.waiting and playing + len(games) < self.boards:
            together = games + self.waiting[0]
            if self.seconds < math.inf and self.started:  # the first one shows the pace
                if games and len(self.started) == 1:
                    break
                if self.elapsed + seconds_for(together) >= self.seconds:
                    if not playing and not games:  # the time is up
                        self.waiting = []
                    break
            self.started.append(self.waiting.pop(0))
            games = together
        return games
