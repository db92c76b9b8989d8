"""Games for one player: each player plays its own games, many in lockstep, and mean scores are compared.

Long games score more than short ones. So games are played in rounds, each to the end of its last game: a limit on time
decides whether a round begins, and never which of its games count.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from ..cpu import use_threads
from ..errors import ConfigError
from ..games.base import PointsGame, finished, select
from .players import Player
from .result import student_95
from .standing import Part, Standing, Watch, unwatched

BOARDS = 256  # games in lockstep
FIRST_ROUND = 8  # games of each player that show the pace, where time is limited
CAUTION = 1.25  # a round is taken to last so many times as long as the one before, game by game


@dataclass(frozen=True)
class SoloGames:
    """What one player made of its games."""

    player: str
    scores: tuple[int, ...] = field(repr=False)
    reached: dict[str, float]  # milestone, such as 2048 -> share of the games
    endings: dict[str, int]  # kind of ending -> games, the most frequent first
    plies: int  # of all games
    evaluations: int  # of a network, per move
    milliseconds_a_move: float  # with many games in lockstep
    asked: int  # games that were to be played
    interrupted: bool = False  # somebody stopped it in the middle of games, which do not count

    @property
    def mean(self) -> float:
        """Mean score; NaN without a game."""
        return statistics.fmean(self.scores) if self.scores else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean score, by Student's t."""
        if len(self.scores) < 2:
            return 0.0, math.inf
        reach = student_95(len(self.scores) - 1) * statistics.stdev(self.scores) / math.sqrt(len(self.scores))
        return self.mean - reach, self.mean + reach

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data; None for those that need more games."""
        return {
            "games": len(self.scores),
            "games_asked": self.asked,
            "interrupted": self.interrupted,
            "mean_score": self.mean if self.scores else None,
            "interval": [bound if math.isfinite(bound) else None for bound in self.interval],
            "median": statistics.median(self.scores) if self.scores else None,
            "best": max(self.scores, default=None),
            "reached": self.reached,
            "endings": self.endings,
            "average_plies": self.plies / max(len(self.scores), 1),
            "evaluations": self.evaluations,
            "milliseconds_a_move": self.milliseconds_a_move,
        }

    def __str__(self) -> str:
        if not self.scores:
            return f"{self.player}: no game had ended"
        low, high = self.interval
        reached = ", ".join(f"{milestone} in {share:.1%}" for milestone, share in self.reached.items())
        return (
            f"{self.player}: mean score {self.mean:,.0f} (95 %: {low:,.0f} to {high:,.0f}), "
            f"median {statistics.median(self.scores):,.0f}, best {max(self.scores):,} in {len(self.scores)} games\n"
            f"  {reached}; {self.plies / len(self.scores):,.0f} plies per game, {self.evaluations} evaluations and "
            f"{self.milliseconds_a_move:.2f} ms per move{self._shortfall()}"
        )

    def _shortfall(self) -> str:
        """A line about the games that were asked for and not played."""
        games = len(self.scores)
        if games >= self.asked:
            return ""
        if self.interrupted:
            return (
                f"\n  interrupted: {games} of {self.asked} games had ended; short games end first and score less, so "
                "the mean of the whole number is probably higher"
            )
        wide = self.interval[1] - self.mean
        return (
            f"\n  there was time for {games} of {self.asked} games: all of them would bring ± {wide:,.0f} to about "
            f"± {wide * math.sqrt(games / self.asked):,.0f}"
        )


@dataclass(frozen=True)
class SoloResult:
    """The games of a player and, on their own, those of an opponent."""

    own: SoloGames
    others: SoloGames

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped either in the middle of its games."""
        return self.own.interrupted or self.others.interrupted

    def to_dict(self) -> dict[str, Any]:
        """The player's figures, and the opponent's with "opponent_" before their names."""
        others = {f"opponent_{name}": value for name, value in self.others.to_dict().items()}
        names = {"player": self.own.player, "opponent": self.others.player}
        return {**names, **self.own.to_dict(), **others}

    def __str__(self) -> str:
        return f"{self.own}\n{self.others}"


@use_threads(1)
def all_solo_games(
    game: PointsGame,
    players: Sequence[Player],
    games: int,
    seed: int = 0,
    watch: Watch = unwatched,
    seconds: float | None = None,
) -> list[SoloGames]:
    """The `games` games of each of `players`. They begin as `seed` says, and alike for all players.

    watch is told the standing often. seconds: begin no round that would probably not end in so many seconds; the first
    one, of FIRST_ROUND games, is played however long it takes. KeyboardInterrupt ends the games: the results, marked as
    `interrupted`, have those that ended before it. Raises ConfigError for fewer than one game and for a game that is
    not for one player.
    """
    if games < 1:
        raise ConfigError(f"games={games}: expected a whole number from 1 up")
    if game.num_players != 1:
        raise ConfigError(f"the game {game.name!r} is for two players: expected a game for one")
    rounds = Rounds(game, players, games, seed, seconds)
    interrupted = False
    try:
        while rounds.begin():
            while rounds.step():
                watch(rounds.standing())
        watch(rounds.standing())
    except KeyboardInterrupt:
        interrupted = True
        with suppress(KeyboardInterrupt):  # a second one is no news
            watch(rounds.standing())
    return [seat.result(games, interrupted) for seat in rounds.seats]


class Ended(NamedTuple):
    """A game that has ended."""

    score: int
    plies: int
    ending: str
    reached: list[bool]  # each milestone of the game


class Seat:
    """A player, its games of this round as rows of a state, and what it has played."""

    def __init__(self, game: PointsGame, player: Player, seed: int, state: Any):
        self.game, self.player = game, player
        self.generator = torch.Generator(game.device).manual_seed(seed)
        self.state = state
        self.ended: list[Ended] = []
        self.thinking, self.seconds, self.moves = 0.0, 0.0, 0  # thinking: the part of `seconds` that the player takes

    def step(self) -> None:
        """One ply in every game of this round that has not ended."""
        began = time.perf_counter()
        action = self.player.choose(self.state, self.generator)
        action[:1].tolist()  # a GPU has thought when there is an answer
        self.thinking += time.perf_counter() - began
        self.moves += len(action)
        state = self.game.step(self.state, action)
        over = finished(state)
        if over.any():
            self.state = select(state, ~over)
            self.ended += self._ended(select(state, over))
        else:
            self.state = state
        self.seconds += time.perf_counter() - began

    def _ended(self, state: Any) -> list[Ended]:
        endings = [self.game.endings[kind] for kind in state.ending.tolist()]
        reached = self.game.reached(state).tolist()
        return [Ended(*row) for row in zip(state.score.tolist(), state.plies_played.tolist(), endings, reached)]

    def seconds_left(self, to_come: int) -> float:
        """For the games of this round and `to_come` others. A game of n plies is taken to last half as long again."""
        running = self.state.plies_played.tolist()
        still = [max(plies / 2, 30.0) for plies in running]
        plies = sum(game.plies for game in self.ended) + sum(running) + sum(still)
        likely = plies / max(len(self.ended) + len(running), 1)
        return (sum(still) + to_come * likely) * self.seconds / max(self.moves, 1)

    def result(self, asked: int, interrupted: bool) -> SoloGames:
        """What has been played."""
        games = len(self.ended)
        columns = zip(self.game.milestones, zip(*(game.reached for game in self.ended)))
        return SoloGames(
            player=self.player.name,
            scores=tuple(game.score for game in self.ended),
            reached={str(milestone): sum(reached) / games for milestone, reached in columns},
            endings=dict(Counter(game.ending for game in self.ended).most_common()),
            plies=sum(game.plies for game in self.ended),
            evaluations=self.player.evaluations,
            milliseconds_a_move=1000 * self.thinking / max(self.moves, 1),
            asked=asked,
            interrupted=interrupted and games < asked,
        )


class Rounds:
    """The games of a call, round by round. In a round every player plays the same starts, to their ends."""

    def __init__(self, game: PointsGame, players: Sequence[Player], games: int, seed: int, seconds: float | None):
        self.starts = game.starts(games, "standard", torch.Generator().manual_seed(seed))
        nothing = select(self.starts, slice(0, 0))
        self.seats = [Seat(game, player, seed, nothing) for player in players]
        self.games, self.seconds = games, seconds
        self.begun = 0  # games of each player, this round's too
        self.started = self.round_began = time.monotonic()
        self.round_size = 0

    def begin(self) -> bool:
        """Begin the next round; False when there is none."""
        size, now = self._next_size(), time.monotonic()
        if size == 0:
            self.games = self.begun
            return False
        for seat in self.seats:
            seat.state = select(self.starts, slice(self.begun, self.begun + size))
        self.begun, self.round_size, self.round_began = self.begun + size, size, now
        return True

    def step(self) -> bool:
        """One ply of every game; False when the round is over."""
        playing = [seat for seat in self.seats if len(seat.state.score)]
        for seat in playing:
            seat.step()
        return bool(playing)

    def _next_size(self) -> int:
        """Games of the next round. It is taken to last as long as the one before, or longer if it has more games."""
        left = min(self.games - self.begun, BOARDS)
        if self.seconds is None or not left:
            return left
        if not self.begun:
            return min(left, FIRST_ROUND)
        now = time.monotonic()
        fit = (self.seconds - (now - self.started)) / (CAUTION * (now - self.round_began))
        return min(left, int(self.round_size * fit)) if fit >= 1 else 0

    def standing(self) -> Standing:
        """How far the players are."""
        parts = []
        for seat in self.seats:
            scores = [game.score for game in seat.ended]
            note = f"mean {statistics.fmean(scores):,.0f}" if scores else ""
            parts.append(Part(seat.player.name, len(scores), self.games, note))
        seconds = time.monotonic() - self.started
        left, of_round = (sum(seat.seconds_left(n) for seat in self.seats) for n in (self.games - self.begun, 0))
        limited = left if self.seconds is None else min(left, max(self.seconds - seconds, of_round))
        return Standing(tuple(parts), "game", seconds, limited)
