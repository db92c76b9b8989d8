"""Lockstep rows become whole games, on the host: numpy in, GameRecords out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .records import GameRecords


class Assembler:
    """Cuts blocks of lockstep rows into whole games.

    truncated: index of the ending "truncated"; discount and td_lambda: see `td_returns`; bootstrap:
    a position's estimate is the search's value, instead of the game's own label.
    """

    def __init__(self, truncated: int, discount: float, td_lambda: float, bootstrap: bool = False):
        self.games = 0  # finished so far
        self.plies = 0  # played so far, in unfinished games too
        self._truncated = truncated
        self._discount = discount
        self._td_lambda = td_lambda
        # With lambda 1 only outcomes count, and there are no estimates.
        self._bootstrap = bootstrap and td_lambda < 1
        self._rows: dict[str, np.ndarray] = {}  # of the games still in progress

    def add(self, block: Mapping[str, np.ndarray]) -> GameRecords:
        """Take in a block [plies, boards, ...]. Returns the games that ended in it, in order of
        their numbers.
        """
        rows = {name: array.reshape(-1, *array.shape[2:]) for name, array in block.items()}
        rows = {name: array[rows["number"] >= 0] for name, array in rows.items()}
        self.plies += len(rows["number"])
        if self._rows:
            rows = {name: np.concatenate((self._rows[name], array)) for name, array in rows.items()}
        done = np.isin(rows["number"], rows["number"][rows["ended"]])
        self._rows = {name: array[~done] for name, array in rows.items()}
        records = self._records({name: array[done] for name, array in rows.items()})
        self.games += records.num_games
        return records

    def unfinished(self) -> GameRecords:
        """The games still in progress: ending 0, and value targets from their estimates."""
        return self._records(self._rows)

    def _records(self, rows: Mapping[str, np.ndarray]) -> GameRecords:
        order = np.argsort(rows["number"], kind="stable")
        rows = {name: array[order] for name, array in rows.items()}
        lengths = np.unique(rows["number"], return_counts=True)[1]
        last = np.cumsum(lengths) - 1
        ended = rows["ended"][last]
        endings = np.where(ended, rows["ending"][last], 0)
        if "reward" in rows:
            targets = self._point_targets(rows, lengths, endings)
            results = np.zeros(len(last))
        else:
            targets = self._value_targets(rows, lengths, endings)
            by_rules = ended & (endings != self._truncated)
            results = np.where(by_rules, np.sign(rows["outcome"][last]), 0)
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
        self, rows: Mapping[str, np.ndarray], lengths: np.ndarray, endings: np.ndarray
    ) -> np.ndarray:
        """float16 [N]: what each position was worth to its mover, by `td_returns`; NaN in an
        unfinished game without estimates.
        """
        last = np.cumsum(lengths) - 1
        capped = endings == self._truncated
        for_first = np.where(rows["player"] == 0, 1.0, -1.0)
        # What each position is worth to the first player, before the game is over.
        estimate = rows["value"] * for_first if self._bootstrap else rows["estimate"]
        outcome = np.where(capped & self._bootstrap, estimate[last], rows["outcome"][last])
        unfinished = estimate[last] if self._td_lambda < 1 else np.nan
        final = np.where(rows["ended"][last], outcome, unfinished)
        # A label is not a win: it does not fade with distance unless the estimates before it do.
        discount = np.where(capped & (self._td_lambda == 1), 1.0, self._discount)
        returns = td_returns(final, estimate, lengths, self._td_lambda, discount)
        return (returns * for_first).astype(np.float16)

    def _point_targets(
        self, rows: Mapping[str, np.ndarray], lengths: np.ndarray, endings: np.ndarray
    ) -> np.ndarray:
        """float32 [N]: the points that each position was still worth. An unfinished game takes its
        last search value.
        """
        last = np.cumsum(lengths) - 1
        over = (endings > 0) & (endings != self._truncated)
        final = np.where(over, rows["reward"][last], rows["value"][last])
        ahead = self._discount * rows["value"]
        discount = np.full(len(lengths), self._discount)
        return td_returns(final, ahead, lengths, self._td_lambda, discount, rows["reward"]).astype(
            np.float32
        )


def td_returns(
    final: np.ndarray,
    estimate: np.ndarray,
    lengths: np.ndarray,
    td_lambda: float,
    discount: np.ndarray,
    reward: np.ndarray | None = None,
) -> np.ndarray:
    """[N] lambda-returns of games laid end to end, each of lengths[i] positions (Sutton & Barto
    2018, 12.1).

    G[last] = final[i] and G[t] = (1 - lambda) estimate[t + 1] + lambda discount[i] G[t + 1]: the
    outcome, mixed with the estimates on the way there. Lambda 0.85 looks some six plies ahead.
    reward: [N] what each ply paid, added to its G; final[i] holds that of the last ply.
    """
    last = np.cumsum(lengths) - 1
    returns = np.empty(len(estimate))
    running = final.astype(float)
    for back in range(lengths.max(initial=0)):
        live = lengths > back
        at = (last - back)[live]
        if back:
            running[live] = (1 - td_lambda) * estimate[at + 1] + td_lambda * discount[
                live
            ] * running[live]
            if reward is not None:
                running[live] += reward[at]
        returns[at] = running[live]
    return returns
