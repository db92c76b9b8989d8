"""The result of games for one player: its scores."""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from ..runs.files import null_for_nan
from ..text import counted
from .result import PlayedGames, student_95


@dataclass(frozen=True, kw_only=True)
class SoloGames(PlayedGames):
    """One player's games of a game for one player."""

    @property
    def scores(self) -> list[float]:
        """The score of each game."""
        return [game.points for game in self.played]

    @property
    def reached(self) -> dict[str, float]:
        """Milestone, such as "2048" -> share of the games that reached it."""
        milestones = self.played[0].reached if self.played else {}
        return {
            name: sum(game.reached[name] for game in self.played) / self.games
            for name in milestones
        }

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean score, by Student's t; infinite with fewer than two games."""
        games = self.games
        if games < 2:
            return -math.inf, math.inf
        reach = student_95(games - 1) * statistics.stdev(self.scores) / math.sqrt(games)
        return self.score - reach, self.score + reach

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data; None for those that need more games."""
        found = {
            **super().to_dict(),
            "mean_score": self.score,
            "median": statistics.median(self.scores) if self.played else None,
            "best": max(self.scores, default=None),
            "reached": self.reached,
        }
        return null_for_nan(found)

    def __str__(self) -> str:
        if not self.played:
            return f"{self.player}: no game had ended"
        low, high = self.interval
        interval = f" (95 %: {low:,.0f} to {high:,.0f})" if self.games > 1 else ""
        reached = [f"{milestone} in {share:.1%}" for milestone, share in self.reached.items()]
        lines = [
            f"{self.player}: mean score {self.score:,.0f}{interval}, "
            f"median {statistics.median(self.scores):,.0f}, best {max(self.scores):,.0f} "
            f"in {counted(self.games, 'game')}",
            f"  {', '.join(reached)}; {self.average_plies:,.0f} plies per game, "
            f"{self.evaluations} evaluations and {self.milliseconds_a_move:.2f} ms per move",
        ]
        return "\n".join(lines + self.shortfall())
