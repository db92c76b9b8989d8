"""Matches between players: many games in lockstep, both colours, decided by the rules of chess alone.

Checkmate, stalemate, insufficient material, third repetition and fifty moves end a game; one that reaches 300 plies
without an end is a draw. Nobody adjudicates.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .errors import ConfigError
from .games.base import finished, select
from .games.chess import Chess
from .players import Player

MATCH_PLIES = 300
BOARDS = 128           # games in lockstep
NORMAL_95 = 1.959964   # standard deviations either side that hold 95 %


@dataclass(frozen=True)
class MatchResult:
    """A match as the first player sees it."""

    player: str
    opponent: str
    games: int
    wins: int
    draws: int
    losses: int
    endings: dict[str, int]        # kind of ending -> games
    average_plies: float
    evaluations: int               # the player's network evaluations a move
    opponent_evaluations: int
    milliseconds_a_move: float     # the player's, games in lockstep

    @property
    def score(self) -> float:
        """Points a game: 1 a win, 0.5 a draw."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score (Wilson's, which counts a draw as half a win and so errs on the wide side)."""
        return wilson_interval(self.score, self.games)

    @property
    def elo(self) -> float:
        """The rating difference that the score stands for; infinite for 0 and 1."""
        return elo_difference(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        low, high = self.interval
        return elo_difference(low), elo_difference(high)

    def to_dict(self) -> dict[str, Any]:
        """Everything, derived figures too, as plain data (infinite Elo as None)."""
        elo, (low, high) = self.elo, self.elo_interval
        return {**asdict(self), "score": self.score, "interval": list(self.interval),
                "elo": elo if math.isfinite(elo) else None,
                "elo_interval": [x if math.isfinite(x) else None for x in (low, high)]}

    def __str__(self) -> str:
        low, high = self.interval
        elo_low, elo_high = self.elo_interval
        endings = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in self.endings.items() if count)
        return (f"{self.player} ({self.evaluations} evaluations a move) against {self.opponent}: "
                f"{self.wins} wins, {self.draws} draws, {self.losses} losses in {self.games} games\n"
                f"  score {self.score:.3f} (95 %: {low:.3f} to {high:.3f}), "
                f"Elo {self.elo:+.0f} ({elo_low:+.0f} to {elo_high:+.0f})\n"
                f"  {self.average_plies:.0f} plies a game; {endings}; {self.milliseconds_a_move:.1f} ms a move")


def wilson_interval(score: float, games: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion."""
    z2 = NORMAL_95 ** 2
    centre = (score + z2 / (2 * games)) / (1 + z2 / games)
    reach = NORMAL_95 / (1 + z2 / games) * math.sqrt(max(score * (1 - score), 0) / games + z2 / (4 * games ** 2))
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def elo_difference(score: float) -> float:
    """The logistic rating difference at which `score` points a game are expected."""
    if score <= 0 or score >= 1:
        return math.copysign(math.inf, score - 0.5)
    return -400 * math.log10(1 / score - 1)


def play_match(player: Player, opponent: Player, games: int, seed: int = 0, device: str = "cpu") -> MatchResult:
    """`games` games from the standard start, every other one with the colours changed.

    Raises ConfigError for fewer than one game.
    """
    if games < 1:
        raise ConfigError(f"games={games}: expected 1 or more")
    game = Chess(MATCH_PLIES, device)
    generator = torch.Generator(device).manual_seed(seed)
    final, clock = [], [0.0, 0]
    for first in range(0, games, BOARDS):
        colours = torch.arange(first, min(first + BOARDS, games), device=device) % 2
        final.append(_play_batch(game, player, opponent, colours, generator, clock))
    rewards, endings, plies = (np.concatenate(parts) for parts in zip(*final))
    names = [game.endings[i] for i in endings]
    return MatchResult(
        player=player.name, opponent=opponent.name, games=games, wins=int((rewards > 0).sum()),
        draws=int((rewards == 0).sum()), losses=int((rewards < 0).sum()),
        endings={name: names.count(name) for name in game.endings[1:]}, average_plies=float(plies.mean()),
        evaluations=player.evaluations, opponent_evaluations=opponent.evaluations,
        milliseconds_a_move=1000 * clock[0] / max(clock[1], 1))


def _play_batch(game: Chess, player: Player, opponent: Player, colours: Tensor, generator: torch.Generator,
                clock: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Play one game a row, `player` being colours[row]; rewards, endings and plies in the order the games ended."""
    state = game.init(len(colours))
    done = []
    while len(colours):
        own = (state.current_player == colours).nonzero().squeeze(1)
        others = (state.current_player != colours).nonzero().squeeze(1)
        action = torch.zeros_like(colours)
        if len(own):
            started = time.perf_counter()
            action[own] = player.choose(select(state, own), generator)
            clock[0] += time.perf_counter() - started
            clock[1] += len(own)
        if len(others):
            action[others] = opponent.choose(select(state, others), generator)
        state = game.step(state, action)
        over = finished(state)
        reward = state.rewards.gather(1, colours.unsqueeze(1)).squeeze(1)
        done.append(torch.stack((reward.long(), state.ending, state.plies_played), 1)[over].cpu().numpy())
        state, colours = select(state, ~over), colours[~over]
    return tuple(np.concatenate(done).T)
