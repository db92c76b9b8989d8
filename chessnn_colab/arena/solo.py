"""Games for one player: each player plays its own games, many in lockstep, and mean scores are compared."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..cpu import one_thread
from ..errors import ConfigError
from ..games.base import PointsGame, finished, select
from .players import Player
from .result import NORMAL_95

BOARDS = 256  # games in lockstep


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

    @property
    def mean(self) -> float:
        """Mean score."""
        return statistics.fmean(self.scores)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean score: 1.96 standard errors either side."""
        if len(self.scores) < 2:
            return 0.0, math.inf
        reach = NORMAL_95 * statistics.stdev(self.scores) / math.sqrt(len(self.scores))
        return self.mean - reach, self.mean + reach

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "mean_score": self.mean,
            "interval": [bound if math.isfinite(bound) else None for bound in self.interval],
            "median": statistics.median(self.scores),
            "best": max(self.scores),
            "reached": self.reached,
            "endings": self.endings,
            "average_plies": self.plies / len(self.scores),
            "evaluations": self.evaluations,
            "milliseconds_a_move": self.milliseconds_a_move,
        }

    def __str__(self) -> str:
        low, high = self.interval
        reached = ", ".join(f"{milestone} in {share:.1%}" for milestone, share in self.reached.items())
        return (
            f"{self.player}: mean score {self.mean:,.0f} (95 %: {low:,.0f} to {high:,.0f}), "
            f"median {statistics.median(self.scores):,.0f}, best {max(self.scores):,} in {len(self.scores)} games\n"
            f"  {reached}; {self.plies / len(self.scores):,.0f} plies per game, {self.evaluations} evaluations and "
            f"{self.milliseconds_a_move:.2f} ms per move"
        )


@dataclass(frozen=True)
class SoloResult:
    """The games of a player and, on their own, those of an opponent."""

    own: SoloGames
    others: SoloGames
    interrupted = False  # an interrupt ends these games without a result

    def to_dict(self) -> dict[str, Any]:
        """The player's figures, and the opponent's with "opponent_" before their names."""
        others = {f"opponent_{name}": value for name, value in self.others.to_dict().items()}
        names = {"player": self.own.player, "opponent": self.others.player, "games": len(self.own.scores)}
        return {**names, **self.own.to_dict(), **others}

    def __str__(self) -> str:
        return f"{self.own}\n{self.others}"


@one_thread()
def solo_games(game: PointsGame, player: Player, games: int, seed: int = 0) -> SoloGames:
    """The `games` games of `player` that begin as `seed` says.

    Raises ConfigError for fewer than one game and for a game that is not for one player.
    """
    if games < 1:
        raise ConfigError(f"games={games}: expected a whole number from 1 up")
    if game.num_players != 1:
        raise ConfigError(f"the game {game.name!r} is for two players: expected a game for one")
    generator = torch.Generator(game.device).manual_seed(seed)
    starts = game.starts(games, "standard", torch.Generator().manual_seed(seed))
    ends, seconds = [], 0.0
    for first in range(0, games, BOARDS):
        state = select(starts, slice(first, first + BOARDS))
        while len(state.score):
            began = time.perf_counter()
            action = player.choose(state, generator)
            seconds += time.perf_counter() - began
            state = game.step(state, action)
            over = finished(state)
            if over.any():
                ends.append(select(state, over))
                state = select(state, ~over)
    return _counted(game, player, ends, seconds)


def _counted(game: PointsGame, player: Player, ends: Sequence[Any], seconds: float) -> SoloGames:
    scores = torch.cat([end.score for end in ends])
    reached = torch.cat([game.reached(end) for end in ends]).float().mean(0).tolist()
    kinds = Counter(game.endings[kind] for end in ends for kind in end.ending.tolist())
    plies = int(sum(end.plies_played.sum() for end in ends))
    return SoloGames(
        player=player.name,
        scores=tuple(scores.tolist()),
        reached={str(milestone): share for milestone, share in zip(game.milestones, reached)},
        endings=dict(kinds.most_common()),
        plies=plies,
        evaluations=player.evaluations,
        milliseconds_a_move=1000 * seconds / plies,
    )
