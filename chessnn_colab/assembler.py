"""Lockstep rows become whole games, on the host: numpy in, GameRecords out."""

from typing import Any

import numpy as np

from .in_flight import Arrays, rows_in
from .records import GameRecords


class Assembler:
    """Cuts blocks of lockstep rows of a games.base.Game into whole games.

    version: positions that the run had played before. Before Game.bootstrap_after a position's
    estimate is the game's guess, where it has one; after it what the search said, with another
    td_lambda. Each row keeps both, because its game may go on in a call with another version.
    games: unfinished games of the call before.
    """

    def __init__(self, game: Any, version: int, games: Arrays | None = None):
        self.games = 0  # finished so far
        self.plies = 0  # played so far, in unfinished games too
        self._truncated = game.endings.index("truncated")
        self._discount = game.discount
        self._bootstrap = version >= game.bootstrap_after
        self._td_lambda = game.bootstrap_lambda if self._bootstrap else game.td_lambda
        self._rows = rows_in(games or {})  # of the games still in progress

    def add(self, block: Arrays) -> GameRecords:
        """Take in a block [plies, boards, ...]. Returns the games that ended in it, in order of
        their numbers.
        """
        rows = {name: array.reshape(-1, *array.shape[2:]) for name, array in block.items()}
        rows = {name: array[rows["number"] >= 0] for name, array in rows.items()}
        played = len(rows["number"])
        self.plies += played
        rows["td_lambda"] = np.full(played, self._td_lambda)
        if "reward" not in rows:
            rows["value"] = chances(rows["value"])
        guess = rows.pop("guess", rows["value"])
        rows["estimate"] = rows["value"] if self._bootstrap else guess
        if self._rows:
            rows = {name: np.concatenate((self._rows[name], array)) for name, array in rows.items()}
        done = np.isin(rows["number"], rows["number"][rows["ended"]])
        self._rows = {name: array[~done] for name, array in rows.items()}
        records = self._records({name: array[done] for name, array in rows.items()})
        self.games += records.num_games
        return records

    def rows_of(self, numbers: np.ndarray) -> Arrays:
        """The rows of the games in progress, which are among `numbers` [n]; each game's place there
        is its new number.
        """
        if not self._rows:
            return {}
        place = np.zeros(numbers.max() + 1, np.int64)
        place[numbers] = np.arange(len(numbers))
        return {**self._rows, "number": place[self._rows["number"]]}

    def unfinished(self) -> GameRecords:
        """The games still in progress, one at least: ending 0, and value targets from their
        estimates.
        """
        return self._records(self._rows)

    def _records(self, rows: Arrays) -> GameRecords:
        order = np.argsort(rows["number"], kind="stable")
        rows = {name: array[order] for name, array in rows.items()}
        lengths = np.unique(rows["number"], return_counts=True)[1]
        last = np.cumsum(lengths) - 1
        endings = np.where(rows["ended"][last], rows["ending"][last], 0)
        by_rules = (endings > 0) & (endings != self._truncated)
        if "reward" in rows:
            targets = self._point_targets(rows, last, lengths, by_rules)
            results = np.zeros(len(last))
        else:
            targets = self._value_targets(rows, last, lengths, by_rules)
            results = np.where(by_rules, rows["outcome"][last], 0)
        return GameRecords(
            positions=rows["position"],
            actions=rows["action"].astype(np.uint16),
            policy_actions=rows["policy_actions"].astype(np.uint16),
            policy_weights=rows["policy_weights"].astype(np.float16),
            root_values=rows["value"].astype(targets.dtype),
            value_targets=targets,
            game_lengths=lengths.astype(np.int32),
            endings=endings.astype(np.uint8),
            results=results.astype(np.int8),
        )

    def _value_targets(
        self, rows: Arrays, last: np.ndarray, lengths: np.ndarray, by_rules: np.ndarray
    ) -> np.ndarray:
        """float16 [N, 3]: the chances of each position's mover to win, draw and lose, by
        `td_returns`. A game that the rules did not end is worth the estimate at its last position.
        """
        second = (rows["player"] == 1)[:, None]
        estimate = _turned(rows["estimate"], second)
        result = rows["outcome"][last, None] == (1, 0, -1)
        final = np.where(by_rules[:, None], result, estimate[last])
        returns = td_returns(final, estimate, lengths, rows["td_lambda"])
        return _turned(returns, second).astype(np.float16)

    def _point_targets(
        self, rows: Arrays, last: np.ndarray, lengths: np.ndarray, by_rules: np.ndarray
    ) -> np.ndarray:
        """float32 [N]: the points that each position was still worth. An unfinished game takes its
        last search value.
        """
        final = np.where(by_rules, rows["reward"][last], rows["value"][last])
        ahead = self._discount * rows["value"]
        td_lambda = rows["td_lambda"]
        returns = td_returns(final, ahead, lengths, td_lambda, self._discount, rows["reward"])
        return returns.astype(np.float32)


def chances(value: np.ndarray) -> np.ndarray:
    """[N, 3]: win, draw and loss for the player to move, from what the search carries, [N, 3] (see
    chances.py).
    """
    _, balance, decisive = value.T
    shares = np.stack(((decisive + balance) / 2, 1 - decisive, (decisive - balance) / 2), 1)
    return shares.clip(0, 1)  # rounding


def td_returns(
    final: np.ndarray,
    estimate: np.ndarray,
    lengths: np.ndarray,
    td_lambda: np.ndarray,
    discount: float = 1.0,
    reward: np.ndarray | None = None,
) -> np.ndarray:
    """[N] or [N, 3] lambda-returns of games laid end to end, each of lengths[i] positions (Sutton &
    Barto 2018, 12.1).

    G[last] = final[i] and G[t] = (1 - lambda) estimate[t + 1] + lambda discount G[t + 1]: the
    outcome, mixed with the estimates on the way there. Lambda 0.85 looks some six plies ahead.
    td_lambda: [N], that at t + 1 for G[t]. reward: [N] what each ply paid, added to its G; final[i]
    holds that of the last ply.
    """
    last = np.cumsum(lengths) - 1
    returns = np.empty(estimate.shape)
    running = final.astype(float)
    for back in range(lengths.max(initial=0)):
        live = lengths > back
        at = (last - back)[live]
        if back:
            share = td_lambda[at + 1]
            share = share if estimate.ndim == 1 else share[:, None]
            running[live] = (1 - share) * estimate[at + 1] + share * discount * running[live]
            if reward is not None:
                running[live] += reward[at]
        returns[at] = running[live]
    return returns


def _turned(chances: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The chances [N, 3] of one player as its opponent sees them where `other` (bool [N, 1])
    holds.
    """
    return np.where(other, chances[:, ::-1], chances)
