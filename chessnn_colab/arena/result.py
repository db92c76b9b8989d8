"""The result of a match: the figures that follow from its games."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..runs.files import null_for_nan
from ..text import counted

FORFEIT = "forfeit"
NORMAL_95 = 1.959964  # standard deviations either side that hold 95 %
_RESULTS = {1.0: "wins", 0.5: "draws", 0.0: "losses"}


@dataclass(frozen=True)
class Opening:
    """A line from the game's start position, with which match games begin."""

    name: str
    moves: tuple[str, ...]  # as people write them in this game


@dataclass(frozen=True)
class MatchGame:
    """One game, as the match's player sees it. In a game for one player `points` is its score."""

    opening: Opening
    player_is_first: bool  # whether the player moves first in this game, White in chess
    points: float  # 1 won, 0.5 drawn, 0 lost
    ending: str  # one of the game's `endings`, or "forfeit"
    actions: tuple[int, ...]  # played after the opening
    reason: str = ""  # why the game was forfeited
    # For one player: each of the game's `milestones`, and whether this game reached it.
    reached: dict[str, bool] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class PlayedGames:
    """The games of a player, with the figures that games for one and for two players share."""

    player: str
    played: tuple[MatchGame, ...] = field(repr=False)
    evaluations: int  # of the player's network, per move
    milliseconds_a_move: float  # in one process, with many games in lockstep
    asked: int  # games that were to be played
    interrupted: bool = False  # somebody stopped it in the middle of games, which do not count

    @property
    def games(self) -> int:
        """How many games have ended."""
        return len(self.played)

    @property
    def endings(self) -> dict[str, int]:
        """Kind of ending -> number of games, the most frequent kind first."""
        return dict(Counter(game.ending for game in self.played).most_common())

    @property
    def average_plies(self) -> float:
        """Plies per game, without those of the opening; 0 without a game."""
        return sum(len(game.actions) for game in self.played) / max(self.games, 1)

    @property
    def score(self) -> float:
        """Points per game; NaN without a game."""
        return sum(game.points for game in self.played) / self.games if self.played else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, some of them perhaps infinite or NaN."""
        figures = ("player", "games", "interrupted", "endings", "average_plies", "evaluations")
        found = {name: getattr(self, name) for name in (*figures, "milliseconds_a_move")}
        return {**found, "games_asked": self.asked, "interval": self.interval}

    @property
    def forfeits(self) -> list[str]:
        """Why games were forfeited, without repetitions."""
        return list(dict.fromkeys(game.reason for game in self.played if game.ending == FORFEIT))

    def shortfall(self) -> list[str]:
        """Lines about the games that were not played, or not to their end."""
        lines = [f"  forfeit: {reason}" for reason in self.forfeits]
        if self.interrupted:
            lines.append(
                f"  ended early: {self.games} of {self.asked} games had ended; short games end "
                "first, so the result of all games may differ"
            )
        elif self.games < self.asked:
            lines.append(f"  there was time for {self.games} of {self.asked} games")
        return lines


@dataclass(frozen=True, kw_only=True)
class MatchResult(PlayedGames):
    """A match, as its player sees it: wins are the player's."""

    opponent: str
    opponent_evaluations: int
    opponent_milliseconds_a_move: float

    @property
    def wins(self) -> int:
        """Games that `player` won."""
        return self._count(1.0)

    @property
    def draws(self) -> int:
        """Games that were drawn."""
        return self._count(0.5)

    @property
    def losses(self) -> int:
        """Games that `player` lost."""
        return self._count(0.0)

    @property
    def results_by_ending(self) -> dict[str, dict[str, int]]:
        """Kind of ending -> {"wins": ..., "draws": ..., "losses": ...}, the most frequent kind
        first.
        """
        found = {kind: dict.fromkeys(_RESULTS.values(), 0) for kind in self.endings}
        for game in self.played:
            found[game.ending][_RESULTS[game.points]] += 1
        return found

    def distinct(self) -> list[MatchGame]:
        """The games that do not repeat an earlier one move for move.

        Players without chance repeat their games when the book starts again.
        """
        first = {
            (game.opening.moves, game.player_is_first, game.actions): game
            for game in reversed(self.played)
        }
        return list(first.values())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score (see score_interval); everything from 0 to 1 without a
        game.
        """
        if not self.games:
            return 0.0, 1.0
        by_opening = defaultdict(list)
        for game in self.played:
            by_opening[game.opening.moves].append(game.points)
        return score_interval(list(by_opening.values()), len(self.distinct()))

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of the Elo difference; infinite on one side for scores of 0 and 1."""
        low, high = self.interval
        return elo_difference(low), elo_difference(high)

    def to_dict(self) -> dict[str, Any]:
        """Everything except the moves as plain data, computed figures included; None for what is
        infinite or needs more games.
        """
        figures = ("opponent", "opponent_evaluations", "opponent_milliseconds_a_move")
        figures += ("wins", "draws", "losses", "results_by_ending", "forfeits")
        found = {
            **super().to_dict(),
            **{name: getattr(self, name) for name in figures},
            "score": self.score,
            "elo": elo_difference(self.score),
            "elo_interval": self.elo_interval,
            "repeated_games": self.games - len(self.distinct()),
        }
        return null_for_nan(found)

    def __str__(self) -> str:
        if not self.games:
            return f"{self.player} against {self.opponent}: no game had ended"
        low, high = self.interval
        lines = [
            f"{self.player} ({self.evaluations} evaluations per move) against {self.opponent}: "
            f"{self.wins} wins, {self.draws} draws, {self.losses} losses in "
            f"{counted(self.games, 'game')}",
            f"  score {self.score:.3f} (95 %: {low:.3f} to {high:.3f}), Elo {self._describe_elo()}",
            f"  {self.average_plies:.0f} plies per game; {self._describe_endings()}; "
            f"{self.milliseconds_a_move:.1f} ms per move "
            f"({self.opponent}: {self.opponent_milliseconds_a_move:.1f})",
        ]
        if repeated := self.games - len(self.distinct()):
            lines.append(
                f"  {repeated} games repeat another move for move: "
                "the book has no more openings, and fewer games would tell as much"
            )
        return "\n".join(lines + self.shortfall())

    def _describe_elo(self) -> str:
        """ "+191 (+40 to +360)"; of a score of 1 or 0 only one side is known."""
        low, high = self.elo_interval
        if math.isinf(high):
            return f"above {low:+.0f}"
        if math.isinf(low):
            return f"below {high:+.0f}"
        return f"{elo_difference(self.score):+.0f} ({low:+.0f} to {high:+.0f})"

    def _describe_endings(self) -> str:
        """ "8 checkmate (7 won, 1 lost), 2 stalemate"."""
        parts = []
        for kind, results in self.results_by_ending.items():
            won, drawn, lost = results.values()
            detail = "" if drawn else f" ({won} won, {lost} lost)"
            parts.append(f"{won + drawn + lost} {kind.replace('_', ' ')}{detail}")
        return ", ".join(parts)

    def _count(self, points: float) -> int:
        return sum(game.points == points for game in self.played)


def score_interval(groups: Sequence[Sequence[float]], distinct: int) -> tuple[float, float]:
    """The 95 % interval of the mean of all points.

    groups: the points of the games from each opening. distinct: how many games do not repeat
    another one.

    Games from one opening are not independent, so the variance is the one between openings. It is
    converted into the number of independent games, each won or lost, that would vary as much (Korn
    and Graubard 1998, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data"). The result is Wilson's interval for that number. Openings
    can agree by chance, so the number has an upper bound: its value after one more opening that is
    a point off the mean, or `distinct` if that is more.
    """
    openings = len(groups)
    games = sum(map(len, groups))
    score = sum(map(sum, groups)) / games
    if openings < 2 or score in (0.0, 1.0):
        return wilson_interval(score, distinct)
    off = sum((sum(points) - len(points) * score) ** 2 for points in groups)
    variance = (
        openings / (openings - 1) * off / games**2 * (student_95(openings - 1) / NORMAL_95) ** 2
    )
    spread = score * (1 - score)
    bound = max(distinct, 4 * spread * openings**2)
    return wilson_interval(score, min(spread / variance, bound) if variance > 0 else bound)


def wilson_interval(score: float, games: float) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion."""
    z2 = NORMAL_95**2
    centre = (score + z2 / (2 * games)) / (1 + z2 / games)
    reach = (
        NORMAL_95 / (1 + z2 / games) * math.sqrt(score * (1 - score) / games + z2 / (4 * games**2))
    )
    # Exactly 0 and 1, whatever rounding did.
    return centre - reach if score > 0 else 0.0, centre + reach if score < 1 else 1.0


def elo_difference(score: float) -> float:
    """The rating difference, on the logistic Elo curve, at which `score` points per game are
    expected.
    """
    if score <= 0 or score >= 1:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


def student_95(freedom: int) -> float:
    """Student's t for 95 % with `freedom` degrees of freedom."""
    from scipy.special import stdtrit  # here, because workers and training need none of it

    return float(stdtrit(freedom, 0.5 + 0.95 / 2))
