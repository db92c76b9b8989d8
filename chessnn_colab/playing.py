"""The self-play of an iteration as the parent sees it: shares go out, games come back, and what is
unfinished waits for the next iteration.
"""

import time
from collections.abc import Sequence

from .games.base import Game
from .in_flight import Arrays, plies_in
from .iteration import concatenate_worker_games, share_positions, with_unfinished
from .records import GameRecords
from .report import Progress
from .workers.pool import Pool


class Playing:
    """One iteration's self-play after the other, of `positions` positions by `workers` workers."""

    def __init__(self, game: Game, positions: int, workers: int, progress: Progress):
        self.game, self.positions, self.workers = game, positions, workers
        self.progress = progress
        self.in_flight: Sequence[Arrays] = ()  # the games that go on in the next iteration
        self.under_way = False
        self._shares = []

    def play(
        self, pool: Pool, version: int, weights: Arrays, seed: int, deadline: float | None
    ) -> tuple[GameRecords, int, float]:
        """The games of an iteration, the positions played, and the seconds. version: positions that
        the weights were trained with.

        When the deadline ends it, the games in flight are labelled as they stand and are among the
        games; then they do not go on.
        """
        self.pool = pool
        self._shares = share_positions(self.positions, self.in_flight, self.workers)
        self.progress.start_selfplay([share.positions for share in self._shares], pool.descriptions)
        began = time.monotonic()
        pool.set_weights(version, weights)
        self.under_way = True
        before = plies_in(self.in_flight)
        pool.play(self._shares, seed, self.progress.worker_update, deadline)
        seconds = time.monotonic() - began
        self.progress.finish_selfplay(seconds)
        records = self._received()
        played = records.num_positions + plies_in(self.in_flight) - before
        if deadline is not None and time.monotonic() > deadline:
            records = with_unfinished(records, self.in_flight, self.game)
            self.in_flight = ()
        return records, played, seconds

    def keep(self) -> GameRecords:
        """After an interrupt, the games of the shares that are finished. Workers that play hand
        over what they have.
        """
        if self.pool.call.games is not self._shares:  # those of the call before are counted already
            return concatenate_worker_games([], self.game)
        self.pool.stop()
        return self._received()

    def _received(self) -> GameRecords:
        """The games that the finished shares have brought. What these left is in flight now.

        A share that something ended is played again from where it began, and what it brought does
        not count.
        """
        left = self.pool.call.in_flight
        finished = [games for games, rest in zip(self.pool.call.received, left) if rest is not None]
        self.in_flight = [
            share.games if rest is None else rest for share, rest in zip(self._shares, left)
        ]
        return concatenate_worker_games(finished, self.game)
