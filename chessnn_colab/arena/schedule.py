"""Which games of several matches start when: opening by opening, in every match alike, as far as room and time go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Sequence

# What the games on the table and these take together, in seconds: see table.Table.
SecondsFor = Callable[[Sequence[tuple[int, int]]], float]


class Schedule:
    """The games still to start. A game is given as (match, number in it).

    games: of each match. boards: games side by side at most. seconds: with a limit on time, all matches start an
    opening together or not at all. Whether they do depends on the games before it, and never on how long its own games
    turn out to be. So what is counted is a fair sample (by Wald's equation the games that a rule of this kind lets
    in are as good as a number of games that was fixed beforehand). share: (i, n) for openings i, i + n, i + 2n and so
    on, where n processes share the games.
    """

    def __init__(self, games: Sequence[int], boards: int, seconds: float | None, share: tuple[int, int] = (0, 1)):
        self.boards, self.seconds = boards, seconds
        self.started = time.monotonic()
        self._openings = [
            [(match, 2 * pair + colour) for match, asked in enumerate(games) if 2 * pair < asked for colour in (0, 1)]
            for pair in range(share[0], max(games, default=0) // 2, share[1])
        ]
        self._matches = len(games)
        self.games = self._games(self._openings)  # of each match; fewer than asked for once the time is up
        self._opening = 0  # the first that has not started
        self._rest: list[tuple[int, int]] = []  # what of the opening before it has had no room yet

    def leave_out(self, played: Sequence[Container[int]]) -> None:
        """Start none of the games `played`, of each match by their numbers; they count among `games` all the same."""
        self._openings = [[game for game in games if game[1] not in played[game[0]]] for games in self._openings]

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.started

    @property
    def more(self) -> bool:
        """Whether there are games to start."""
        return bool(self._rest) or self._opening < len(self._openings)

    def next(self, playing: int, seconds_for: SecondsFor) -> list[tuple[int, int]]:
        """The games to start now, beside the `playing` ones that are on the table."""
        games: list[tuple[int, int]] = []
        while self.more and playing + len(games) < self.boards:
            if not self._rest:
                if not self._in_time(games, seconds_for):
                    if not playing and not games:
                        self._give_up()
                    break
                self._rest, self._opening = self._openings[self._opening], self._opening + 1
            room = self.boards - playing - len(games)
            games, self._rest = games + self._rest[:room], self._rest[room:]
        return games

    def _in_time(self, games: Sequence[tuple[int, int]], seconds_for: SecondsFor) -> bool:
        """Whether the next opening can start together with `games`. The first always does, and shows the pace."""
        if self.seconds is None or self._opening == 0:
            return True
        if games and self._opening == 1:
            return False
        return self.elapsed + seconds_for([*games, *self._openings[self._opening]]) < self.seconds

    def _give_up(self) -> None:
        """The time is up, and nothing is left to play."""
        self.games[:] = self._games(self._openings[: self._opening])
        self._opening = len(self._openings)

    def _games(self, openings: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
        """How many games each match has among these."""
        counts = Counter(match for opening in openings for match, _ in opening)
        return [counts[match] for match in range(self._matches)]
