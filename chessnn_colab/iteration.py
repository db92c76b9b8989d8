"""The games of one iteration: divided among workers, put together again, counted, and one of them
chosen to be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch

from .errors import ConfigError
from .games.base import Game, PointsGame
from .games.registry import game_text
from .records import GameRecords


def share_games(games: int, workers: int) -> list[int]:
    """`games` divided evenly, so that all workers finish together. Raises ConfigError when there are
    fewer games than workers.
    """
    if games < workers:
        raise ConfigError(
            f"games_per_iteration={games} for {workers} workers: expected at least one game each"
        )
    return [games // workers + (i < games % workers) for i in range(workers)]


def concatenate_worker_games(
    chunks: Sequence[Sequence[Mapping[str, np.ndarray]]], game: Game
) -> GameRecords:
    """The games of `game` that workers sent, in the order of the workers."""
    records = [GameRecords.from_arrays(chunk) for worker in chunks for chunk in worker]
    return GameRecords.concatenate(records or [GameRecords.empty(game.packed_words)])


def summary_of_games(records: GameRecords, game: Game) -> dict[str, Any]:
    """The fields of a Report that count games."""
    over = records.endings > 0
    by_rules = ended_by_rules(records, game)
    results = records.results[by_rules]
    wins = {
        name.lower(): int((results == result).sum())
        for name, result in zip(game.player_names, (1, -1))
    }
    counts = {"wins": wins, "draws": int((results == 0).sum())}
    return {
        "games": int(over.sum()),
        "plies": records.num_positions,
        **(summary_of_scores(records, cast(PointsGame, game)) if game.score_limit else counts),
        "endings": {
            name: int((records.endings[over] == i).sum())
            for i, name in enumerate(game.endings)
            if i > 0
        },
        "average_plies": float(records.game_lengths[over].mean()) if over.any() else 0.0,
    }


def summary_of_scores(records: GameRecords, game: PointsGame) -> dict[str, Any]:
    """The same of a game with points: nobody wins, but games end with scores."""
    over = records.endings > 0
    last = (records.offsets[1:] - 1)[over]
    before = game.unpack(torch.from_numpy(records.positions[last]).to(game.device))
    after = game.step(
        before, torch.from_numpy(records.actions[last].astype(np.int64)).to(game.device)
    )
    score = after.score.cpu().numpy()
    reached = game.reached(after).cpu().numpy()
    found = {"mean": np.mean, "median": np.median, "best": np.max}
    return {
        "wins": {},
        "draws": 0,
        "scores": {name: float(of(score)) for name, of in found.items()} if over.any() else {},
        "reached": {str(m): float(share) for m, share in zip(game.milestones, reached.mean(0))}
        if over.any()
        else {},
    }


def sample_game(records: GameRecords, game: Game, **headers: str) -> str:
    """The game most worth a look, as its players write it down: the longest that was won, else
    ended by the rules.
    """
    by_rules = ended_by_rules(records, game)
    won = by_rules & (records.results != 0)
    chosen = int(np.lexsort((records.game_lengths, by_rules, won))[-1])
    first, end = records.offsets[chosen : chosen + 2]
    start = game.unpack(torch.from_numpy(records.positions[first : first + 1]).to(game.device))
    ending = int(records.endings[chosen])
    result = int(records.results[chosen])
    return game_text(game, start, records.actions[first:end].tolist(), ending, result, **headers)


def ended_by_rules(records: GameRecords, game: Game) -> np.ndarray:
    """bool [G]: the games that the rules ended, neither the clock nor the ply cap."""
    return (records.endings > 0) & (records.endings != game.endings.index("truncated"))
