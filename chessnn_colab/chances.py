"""Win, draw and loss as chances: how the search carries them, and whether what was said happened.

The search carries three quantities of a game that is won, drawn or lost, all for the player to
move: what it maximises, the chance of a win less that of a loss, where a win counts less with every
ply that it is away; the same without that discount; and the chance that anybody wins. The last two
are the three chances again (assembler.chances). So the wish to win sooner is the search's alone,
and what is said and learned is what happens. A game that pays points has one quantity, its points.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .in_flight import Arrays
from .network import score_bins
from .records import GameRecords
from .text import percent

FIFTHS = 5
CORRECTION_STEP = 0.5  # of its slope in an iteration, whose 125 games or so say little alone
LEAST_CHANCE = 1e-3  # of those that a correction is fitted to; a mate that was found says 0
DRAW = np.array([0.0, 1.0, 0.0], np.float32)


def quantities(value_logits: Tensor, score_limit: float = 0.0) -> Tensor:
    """float32 [K, B]: what the search carries, from value logits [B, 3]; with a score_limit
    (NetworkConfig) the mean score alone, from logits [B, bins].
    """
    probabilities = value_logits.softmax(-1)
    if score_limit:
        scores = score_bins(score_limit, value_logits.shape[-1], value_logits.device)
        return (probabilities @ scores).unsqueeze(0)
    win, _, loss = probabilities.unbind(-1)
    balance = win - loss
    return torch.stack((balance, balance, win + loss))


def carried(reward: Tensor, discount: Tensor) -> tuple[Tensor, Tensor]:
    """float32 [3, N] twice: the rewards and discounts of all three quantities, from those of the
    first, [N].
    """
    sign = discount.sign()
    return torch.stack((reward, reward, reward.abs())), torch.stack((discount, sign, sign.abs()))


def said_and_played(records: GameRecords, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 [N, 3] twice, for the player to move: the chances that the search said in each
    position of some games, and the outcome of its game, 1 in its column.

    counted: bool [G], the games. The outcome of one that the rules did not end is an estimate.
    Players move in turn.
    """
    last = np.repeat(records.offsets[1:] - 1, records.game_lengths)
    outcome = records.value_targets[last].astype(np.float32)
    others_turn = (last - np.arange(len(last))) % 2 == 1
    played = np.where(others_turn[:, None], outcome[:, ::-1], outcome)
    kept = np.repeat(counted, records.game_lengths)
    return records.root_values[kept].astype(np.float32), played[kept]


def brier_score(said: np.ndarray, played: np.ndarray) -> float:
    """The mean over N positions of the squared error of three chances, 0 to 2; NaN without one."""
    return float(((said - played) ** 2).sum(1).mean()) if len(played) else np.nan


def correlation(said: np.ndarray, played: np.ndarray) -> float:
    """The correlation of win less loss in `said` and `played` [N, 3]; NaN where one is constant."""
    expected, result = (shares[:, 0] - shares[:, 2] for shares in (said, played))
    if not len(played) or np.ptp(expected) == 0 or np.ptp(result) == 0:
        return np.nan
    return float(np.corrcoef(expected, result)[0, 1])


class Correction(NamedTuple):
    """Two numbers that make the chances that a network says those that happen, fitted to the
    outcomes of its own games (after Guo et al. 2017, arXiv 1706.04599, with a bias for draws).

    A network is too shy while it learns, because an outcome travels back only some plies in each
    round. sharpness: the factor of all three logits. draw: what a draw's logit gets besides.
    """

    sharpness: float = 1.0
    draw: float = 0.0

    def logits(self, value_logits: np.ndarray) -> np.ndarray:
        """The logits [..., 3] of the corrected chances."""
        return value_logits * self.sharpness + DRAW * self.draw

    def weights(self, weights: Arrays) -> Arrays:
        """The weights of the network that says the corrected chances. One with points has none."""
        if self == Correction():
            return weights
        return {
            **weights,
            "value.2.weight": weights["value.2.weight"] * self.sharpness,
            "value.2.bias": self.logits(weights["value.2.bias"]),
        }

    def after(self, said: np.ndarray, played: np.ndarray) -> "Correction":
        """This one after a step down the cross-entropy of outcomes `played`, where a network
        without correction said the chances `said`, both [N, 3].
        """
        if not len(played):
            return self
        logits = np.log(np.maximum(said, LEAST_CHANCE))
        missing = played - torch.from_numpy(self.logits(logits)).softmax(-1).numpy()
        sharper = (missing * logits).sum(1).mean()
        return Correction(
            self.sharpness + CORRECTION_STEP * float(sharper),
            self.draw + CORRECTION_STEP * float(missing[:, 1].mean()),
        )


class Calibration(NamedTuple):
    """Whether the chances that were said in N positions are what happened. Three shares are those
    of wins, draws and losses of the player to move.
    """

    positions: int
    predicted: list[float]  # the mean of the three chances
    played: list[float]  # the three shares of outcomes
    brier: float  # see brier_score
    brier_of_constant: float  # what it would be if `played` were said everywhere
    correlation: float
    # The positions in five parts of equal size, the lowest expected points first: `predicted` and
    # `played` of each.
    fifths: list[dict[str, list[float]]]

    def __str__(self) -> str:
        said, played = (" / ".join(map(percent, each)) for each in (self.predicted, self.played))
        correlated = f"correlation {self.correlation:.3f}"
        if math.isnan(self.correlation):
            correlated = "no correlation, because nothing varies"
        return (
            f"wins, draws and losses said {said}, played {played} in {self.positions:,} positions; "
            f"Brier score {self.brier:.3f} (of constant shares {self.brier_of_constant:.3f}), "
            f"{correlated}"
        )


def calibration(said: np.ndarray, played: np.ndarray) -> Calibration:
    """Compare the chances `said` with the outcomes `played`, both [N, 3] (said_and_played)."""
    shares = _shares(played)
    order = np.argsort(said[:, 0] - said[:, 2], kind="stable")
    fifths = [
        {"predicted": _shares(said[part]), "played": _shares(played[part])}
        for part in np.array_split(order, FIFTHS)
        if len(part)
    ]
    return Calibration(
        positions=len(played),
        predicted=_shares(said),
        played=shares,
        brier=brier_score(said, played),
        brier_of_constant=brier_score(np.array(shares), played),
        correlation=correlation(said, played),
        fifths=fifths,
    )


def _shares(chances: np.ndarray) -> list[float]:
    return chances.mean(0, dtype=float).tolist()
