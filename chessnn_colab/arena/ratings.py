"""Ratings from the results of matches: maximum likelihood on the Elo scale, with errors.

The model is Bradley and Terry's with the draws of Davidson (1970, "On extending the Bradley-Terry
model to accommodate ties", JASA 65) at nu = 2: a game is two half points, and each goes to player i
with the probability q = 1 / (1 + 10^((r_j - r_i) / 400)). So the game is won with the probability
q^2 and drawn with 2 q (1 - q). The expected score is q, which is Elo's curve. With a free nu,
ratings would differ from Elo's where draws are frequent.

Real draws are rarer or more frequent than in this model. So the covariance is not just the inverse
of the Fisher
information: that inverse stands on both sides of the variance of the real points (White 1982,
"Maximum likelihood estimation of misspecified models", Econometrica 50). Games count as
independent. The two games of an opening, and games of a book that repeats, are not quite: in
matches of 200 and 400 games the interval by openings was 0.95 to 1.26 of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError
from .result import NORMAL_95

# Every pairing gets one more game: half of it drawn, a quarter won, a quarter lost. This keeps the
# rating of a perfect score finite: 200 wins in 200 games are worth 1,041 points. A score of 0.75 in
# 100 games moves by 2 points only.
PRIOR = np.array([0.25, 0.5, 0.25])
POINTS = np.array([1.0, 0.5, 0.0])
ELO = 400 / math.log(10)  # rating points per unit of log odds


Result = tuple[str, str, Sequence[float]]  # a player, an opponent, the player's points per game


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of `names`. The anchor's is given, and all errors are relative to it."""

    names: tuple[str, ...]
    anchor: str
    elo: np.ndarray  # float64 [N]
    covariance: np.ndarray  # float64 [N, N], of `elo`; 0 for the anchor

    def rating(self, name: str) -> float:
        """The rating of the player with this name."""
        return float(self.elo[self._index(name)])

    def error(self, name: str) -> float:
        """Half of the 95 % interval of a player's rating above the anchor's."""
        return self.difference(name, self.anchor)[1]

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """How many points `name` is above `other`, and half of the 95 % interval of that."""
        one, two = self._index(name), self._index(other)
        variance = (
            self.covariance[one, one] + self.covariance[two, two] - 2 * self.covariance[one, two]
        )
        return float(self.elo[one] - self.elo[two]), NORMAL_95 * math.sqrt(max(variance, 0.0))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise ConfigError(f"{name!r} has no rating: expected one of {', '.join(self.names)}")
        return self.names.index(name)


def rate(results: Sequence[Result], anchor: str, anchor_elo: float = 0.0) -> Ratings:
    """The most likely ratings, given the results, with `anchor` at `anchor_elo`.

    Raises ConfigError when the anchor did not play, when a result has no games or one player twice,
    and when no chain of games joins all players, because two groups that never met cannot be
    compared.
    """
    for player, opponent, points in results:
        if player == opponent or not points:
            raise ConfigError(
                f"{player} against {opponent}, {len(points)} games: expected two different players "
                "and at least one game between them"
            )
    names = tuple(dict.fromkeys(name for result in results for name in result[:2]))
    if anchor not in names:
        known = ", ".join(names) or "no players"
        raise ConfigError(f"the anchor {anchor!r} played no game: expected one of {known}")
    counts = _counts(names, results)
    _require_connected(names, counts.keys())
    design = np.zeros((len(counts), len(names)))  # +1 the player, -1 the opponent
    for row, (player, opponent) in enumerate(counts):
        design[row, player] = 1.0
        design[row, opponent] = -1.0
    free = [place for place, name in enumerate(names) if name != anchor]
    strengths, covariance = _maximise(design[:, free], np.array(list(counts.values())) + PRIOR)
    elo = np.full(len(names), anchor_elo)
    elo[free] += ELO * strengths
    full = np.zeros((len(names), len(names)))
    full[np.ix_(free, free)] = ELO**2 * covariance
    return Ratings(names, anchor, elo, full)


def _maximise(design: np.ndarray, results: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most likely log odds [players] and their covariance, by Newton's method; the likelihood
    is concave.
    """
    games = results.sum(1)
    points = results @ POINTS

    def likelihood(strengths: np.ndarray) -> float:
        odds = design @ strengths
        return -2 * float(
            points @ np.logaddexp(0, -odds) + (games - points) @ np.logaddexp(0, odds)
        )

    strengths = np.zeros(design.shape[1])
    while True:
        expected = 1 / (1 + np.exp(-(design @ strengths)))
        information = design.T @ (design * (2 * games * expected * (1 - expected))[:, None])
        step = np.linalg.solve(information, design.T @ (2 * (points - games * expected)))
        while likelihood(strengths + step) < likelihood(strengths) - 1e-9:
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max(initial=0.0) <= 1e-9:
            break
    mean = points / games
    variance = games * (results @ POINTS**2 / games - mean**2)  # of a pairing's points
    middle = design.T @ (design * (4 * variance)[:, None])
    inverse = np.linalg.inv(information)
    return strengths, inverse @ middle @ inverse


def _counts(names: Sequence[str], results: Sequence[Result]) -> dict[tuple[int, int], np.ndarray]:
    """Wins, draws and losses of each pair that met, by the places of their names."""
    counts: dict[tuple[int, int], np.ndarray] = {}
    for player, opponent, points in results:
        one = names.index(player)
        other = names.index(opponent)
        number = Counter(points)
        count = np.array([number[value] for value in POINTS], float)
        if one > other:
            one, other = other, one
            count = count[::-1]
        counts[one, other] = counts.get((one, other), 0) + count
    return counts


def _require_connected(names: Sequence[str], pairs: Iterable[tuple[int, int]]) -> None:
    group = np.arange(len(names))  # players with the same number are joined by games
    for one, other in pairs:
        group[group == group[one]] = group[other]
    missing = [name for name, number in zip(names, group) if number != group[0]]
    if missing:
        reached = sorted(set(names) - set(missing))
        raise ConfigError(
            f"no chain of games joins {', '.join(reached)} with {', '.join(missing)}: "
            "let one of these play one of those"
        )
