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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .result import NORMAL_95

# Every result gets one more game: half of it drawn, a quarter won, a quarter lost. This keeps the
# rating of a perfect score finite: 200 wins in 200 games are worth 1,041 points. A score of 0.75 in
# 100 games moves by 2 points only.
PRIOR_POINTS = 0.5
PRIOR_SQUARES = 0.375  # the mean of its squared points
ELO = 400 / math.log(10)  # rating points per unit of log odds


Result = tuple[str, str, Sequence[float]]  # a player, an opponent, the player's points per game


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of `names`. The anchor has 0, and all errors are relative to it."""

    names: tuple[str, ...]
    anchor: str
    elo: np.ndarray  # float64 [N]; only differences mean something, here and in the next
    covariance: np.ndarray  # float64 [N, N], of `elo`

    def rating(self, name: str) -> float:
        """The rating of the player with this name."""
        return self.difference(name, self.anchor)[0]

    def error(self, name: str) -> float:
        """Half of the 95 % interval of a player's rating above the anchor's."""
        return self.difference(name, self.anchor)[1]

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """How many points `name` is above `other`, and half of the 95 % interval of that."""
        contrast = _contrast(self.names, name, other)
        variance = float(contrast @ self.covariance @ contrast)
        return float(contrast @ self.elo), NORMAL_95 * math.sqrt(variance)


def rate(results: Sequence[Result], anchor: str) -> Ratings:
    """The most likely ratings, given the results, with `anchor` at 0.

    Games must join all players by some chain: two groups that never met cannot be compared.
    """
    names = tuple(dict.fromkeys(name for result in results for name in result[:2]))
    design = np.array([_contrast(names, player, opponent) for player, opponent, _ in results])
    games = np.array([len(points) + 1 for *_, points in results])
    means = [sum(points) + PRIOR_POINTS for *_, points in results] / games
    squares = [sum(point**2 for point in points) + PRIOR_SQUARES for *_, points in results] / games
    strengths, covariance = _maximise(design, games, means, squares - means**2)
    return Ratings(names, anchor, ELO * strengths, ELO**2 * covariance)


def _contrast(names: Sequence[str], player: str, opponent: str) -> np.ndarray:
    """float64 [N]: +1 for the player, -1 for the opponent, 0 for a player against itself."""
    contrast = np.zeros(len(names))
    contrast[names.index(player)] += 1
    contrast[names.index(opponent)] -= 1
    return contrast


def _maximise(
    design: np.ndarray, games: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The most likely log odds [players] and their covariance; the likelihood is concave. means and
    variances: of the points of each result's games.
    """
    from scipy.optimize import root  # takes long to load
    from scipy.special import expit

    def slope(strengths: np.ndarray) -> np.ndarray:
        # The sum keeps all strengths around 0, because games tell only their differences.
        return design.T @ (2 * games * (means - expit(design @ strengths))) - strengths.sum()

    strengths = root(slope, np.zeros(design.shape[1]), tol=1e-12).x
    expected = expit(design @ strengths)
    information = design.T @ np.diag(2 * games * expected * (1 - expected)) @ design + 1
    middle = design.T @ np.diag(4 * games * variances) @ design
    inverse = np.linalg.inv(information)
    return strengths, inverse @ middle @ inverse
