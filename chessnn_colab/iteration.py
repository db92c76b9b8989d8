"""The games of one iteration: divided among workers, put together again, counted, and one of them
chosen to be shown.
"""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from .assembler import Assembler
from .chances import brier_score, correlation, said_and_played
from .games.base import Game, Moves, PointsGame
from .games.registry import game_text
from .in_flight import Arrays, Share, count, join, plies_in, take
from .records import GameRecords


def share_positions(positions: int, in_flight: Sequence[Arrays], workers: int) -> list[Share]:
    """`positions`, and all games in flight, divided evenly, so that all workers finish together."""
    games = join(in_flight)
    return [
        Share(
            positions // workers + (worker < positions % workers),
            take(games, np.arange(worker, count(games), workers)),
        )
        for worker in range(workers)
    ]


def with_unfinished(records: GameRecords, in_flight: Sequence[Arrays], game: Game) -> GameRecords:
    """The games, and those in flight as they stand, as unfinished."""
    rest = join(in_flight)
    if not plies_in([rest]):
        return records
    return GameRecords.concatenate([records, Assembler(game, 0, rest).unfinished()])


def concatenate_worker_games(chunks: Sequence[Sequence[Arrays]], game: Game) -> GameRecords:
    """The games of `game` that workers sent, in the order of the workers."""
    records = [GameRecords.from_arrays(chunk) for worker in chunks for chunk in worker]
    return GameRecords.concatenate(records or [GameRecords.empty(game.packed_words)])


def summary_of_games(records: GameRecords, game: Game) -> dict[str, Any]:
    """The fields of a Report that count games. game: on the CPU, as in the functions below."""
    over = records.endings > 0
    by_rules = ended_by_rules(records, game)
    results = records.results[by_rules]
    wins = {
        name.lower(): int((results == result).sum())
        for name, result in zip(game.player_names, (1, -1))
    }
    if game.score_limit:
        found = summary_of_scores(records, cast(PointsGame, game))
    else:
        compared = said_and_played(records, by_rules)
        found = {
            "wins": wins,
            "draws": int((results == 0).sum()),
            "brier": brier_score(*compared),
            "correlation": correlation(*compared),
        }
    return {
        "games": int(over.sum()),
        "plies": records.num_positions,
        **found,
        "endings": {
            name: int((records.endings[over] == i).sum())
            for i, name in enumerate(game.endings)
            if i > 0
        },
        "average_plies": float(records.game_lengths[over].mean()) if over.any() else math.nan,
    }


def summary_of_scores(records: GameRecords, game: PointsGame) -> dict[str, Any]:
    """The same of a game with points: nobody wins, but games end with scores."""
    over = records.endings > 0
    last = (records.offsets[1:] - 1)[over]
    after = _played(records, game, last)
    score = after.score.numpy()
    reached = game.reached(after).numpy()
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
    ended by the rules; "" where there is none.
    """
    if not records.num_games:
        return ""
    by_rules = ended_by_rules(records, game)
    won = by_rules & (records.results != 0)
    chosen = int(np.lexsort((records.game_lengths, by_rules, won))[-1])
    first, end = records.offsets[chosen : chosen + 2]
    start = game.unpack(torch.from_numpy(records.positions[first : first + 1]))
    moves = Moves(
        start,
        records.actions[first:end].tolist(),
        int(records.endings[chosen]),
        int(records.results[chosen]),
        _played(records, game, np.array([end - 1])),
    )
    return game_text(game, moves, **headers)


def _played(records: GameRecords, game: Game, rows: np.ndarray) -> Any:
    """The positions after the plies in these rows, without what came before them."""
    before = game.unpack(torch.from_numpy(records.positions[rows]))
    return game.step(before, torch.from_numpy(records.actions[rows].astype(np.int64)))


def ended_by_rules(records: GameRecords, game: Game) -> np.ndarray:
    """bool [G]: the games that the rules ended, neither the clock nor the ply cap."""
    return (records.endings > 0) & (records.endings != game.endings.index("truncated"))
