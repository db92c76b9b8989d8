"""Matches shared by several processes, for a CPU with several cores.

Each process plays some of the openings, in every match, with one thread. A game is the one that a single process would
have played: neither its random numbers nor its moves depend on what shares its batch (see match.play_matches).
"""

from __future__ import annotations

import math
import pickle
import time
import warnings
from collections import ChainMap
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ..devices import WorkerPlan, inventory, plan_workers
from ..errors import WorkerError
from ..games.base import Game
from ..workers.local import LocalPool
from ..workers.protocol import Arrays, worker_seed
from .engine_processes import ProcessPlayer
from .ledger import Ledger, Match
from .result import MatchGame, Opening
from .schedule import Schedule
from .standing import Standing
from .table import Table

# Of a process: games times evaluations a move. Its start takes seconds, and its last few games nearly as long as many.
LEAST_EVALUATIONS = 100 * 48
LEAST_SECONDS = 30.0  # in less time the start counts for too much
NEWS_SECONDS = 5.0  # between two estimates of the time left, while no game ends


def processes_for(matches: Sequence[Match], seconds: float | None, device: torch.device) -> int:
    """How many processes `matches` are worth that may take `seconds`.

    One on a GPU, where nobody has measured more; and one with a program among the players, which runs beside this
    process already and would play worse with more programs on the same cores.
    """
    players = [player for match in matches for player in (match.player, match.opponent)]
    if device.type != "cpu" or any(isinstance(player, ProcessPlayer) for player in players):
        return 1
    if seconds is not None and seconds < LEAST_SECONDS:
        return 1
    evaluations = sum(match.games * (match.player.evaluations + match.opponent.evaluations) for match in matches)
    openings = max((match.games for match in matches), default=0) // 2
    return max(1, min(len(plan_workers(inventory(), "cpu").devices), openings, evaluations // LEAST_EVALUATIONS))


class SharedTable:
    """The games of `table`, shared by several processes. The players have to pickle, their classes to be importable.

    When a process dies, a new one plays its share again, as far as the time allows. If that does not help, a warning
    says why, and this process plays the games that have not ended itself. With a limit on time, which has passed in
    part, it does so only if none has ended; else the matches end there, as after an interrupt.
    """

    def __init__(self, table: Table, processes: int):
        self.table, self.matches, self.ledger = table, table.matches, Ledger(table.matches)
        asked = [match.games for match in table.matches]
        self.shares = [
            _Share(self.ledger, Schedule(asked, 0, None, (share, processes)).games) for share in range(processes)
        ]

    def play(self, on_news: Callable[[], None]) -> None:
        """Play all games; calls `on_news` whenever there are any."""
        on_news()  # processes take a while to start
        table, schedule, count = self.table, self.table.schedule, len(self.shares)
        games = pickle.dumps((table.game, table.matches, table.seed, table.book, schedule.boards))
        settings = {
            "ends_at": None if schedule.seconds is None else time.time() + schedule.seconds,
            "shares": {worker_seed(0, share): (share, count) for share in range(count)},
        }

        def on_update(index: int, games: int, plies: int) -> None:
            self.shares[index].take_in(pool.received[index], table.book)
            self._add_up()
            on_news()

        try:
            plan, patience = WorkerPlan(("cpu",) * count, 1), math.inf  # a round of a deep search takes minutes
            with LocalPool(MatchJob, settings, plan, patience, _warn) as pool:
                pool.set_weights(0, {"games": np.frombuffer(games, np.uint8)})
                pool.play([sum(share.games) for share in self.shares], 0, on_update)
        except WorkerError as error:
            if table.schedule.seconds is not None and any(self.ledger.ended):
                _warn(f"{error}\nThe games that had ended count")
                self.ledger.interrupted = True
                return
            _warn(f"{error}\nOne process plays {'the others' if any(self.ledger.ended) else 'all games'} instead")
            if any(self.ledger.ended):
                table.go_on_from(self.ledger)
            self.ledger, self.shares = table.ledger, []
            table.play(on_news)

    def standing(self) -> Standing:
        """How far the matches are."""
        if not self.shares:
            return self.table.standing()
        left = [share.seconds_left for share in self.shares if not math.isnan(share.seconds_left)]
        return Standing(self.ledger.parts(), "game", self.table.schedule.elapsed, max(left, default=None))

    def _add_up(self) -> None:
        ledger, shares = self.ledger, self.shares
        ledger.games = np.sum([share.games for share in shares], 0).tolist()
        ledger.seconds = np.sum([share.seconds for share in shares], 0).tolist()
        ledger.moves = np.sum([share.moves for share in shares], 0).tolist()
        ledger.ended = [dict(ChainMap(*parts)) for parts in zip(*(share.ended for share in shares))]


class _Share:
    """What has come from the process that plays a share."""

    def __init__(self, ledger: Ledger, games: Sequence[int]):
        self.asked, self.players = games, len(ledger.players)
        self._forget()

    def _forget(self) -> None:
        self.read = 0  # messages
        self.games, self.seconds_left = np.array(self.asked), math.nan
        self.seconds, self.moves = np.zeros(self.players), np.zeros(self.players, np.int64)
        self.ended: list[dict[int, MatchGame]] = [{} for _ in self.asked]

    def take_in(self, received: Sequence[Arrays], book: Sequence[Opening]) -> None:
        """Read the messages that are new. There are fewer than before when a lost process's share is played again."""
        if len(received) < self.read:
            self._forget()
        for news in received[self.read :]:
            lines = np.split(news["actions"], np.cumsum(news["plies"])[:-1])
            values = (news[name].tolist() for name in ("match", "number", "points", "ending", "reason"))
            for match, number, points, ending, reason, line in zip(*values, lines):
                opening = book[number // 2 % len(book)]
                game = MatchGame(opening, number % 2 == 0, points, ending, tuple(line.tolist()), reason)
                self.ended[match][number] = game
            self.games, self.seconds, self.moves = news["games"], news["seconds"], news["moves"]
            self.seconds_left = float(news["left"])
        self.read = len(received)


class MatchJob:
    """A worker's job (workers.protocol.Job): the games of one share.

    The players come as its weights and not with its settings: a process that dies while it starts would leave this one
    waiting for it to read more than a pipe holds.
    """

    def __init__(self, device: str, ends_at: float | None, shares: dict[int, tuple[int, int]]):
        """ends_at: the time.time() after which no game should last. shares: by the seed that `play` gets."""
        self.messages: list[str] = []
        self.device, self.ends_at, self.shares = device, ends_at, shares

    def describe(self) -> str:
        return self.device

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """Take the games to play: what Table is made of, pickled."""
        games: tuple[Game, Sequence[Match], int, Sequence[Opening], int] = pickle.loads(arrays["games"].tobytes())
        self.games = games

    def play(self, num_games: int, seed: int, on_progress: Callable[[int, int, Arrays | None], bool]) -> None:
        """Play the share with this seed."""
        seconds = None if self.ends_at is None else max(self.ends_at - time.time(), 0.0)
        table = Table(*self.games, seconds, self.shares[seed])
        sent: set[tuple[int, int]] = set()
        sent_at, more = time.monotonic(), True
        while more:
            more = table.round()
            ended = {(match, number) for match, games in enumerate(table.ledger.ended) for number in games}
            if ended > sent or not more or time.monotonic() > sent_at + NEWS_SECONDS:
                more &= on_progress(len(ended), 0, _news(table, sorted(ended - sent)))
                sent, sent_at = ended, time.monotonic()


def _news(table: Table, ended: Sequence[tuple[int, int]]) -> Arrays:
    """The games that have `ended`, each (match, number), and how things stand, for _Share.take_in."""
    games = [table.ledger.ended[match][number] for match, number in ended]
    left = table.standing().seconds_left
    return {
        "match": np.array([match for match, _ in ended], np.int64),
        "number": np.array([number for _, number in ended], np.int64),
        "points": np.array([game.points for game in games], np.float64),
        "ending": np.array([game.ending for game in games], np.str_),
        "reason": np.array([game.reason for game in games], np.str_),
        "plies": np.array([len(game.actions) for game in games], np.int64),
        "actions": np.array([action for game in games for action in game.actions], np.int64),
        "games": np.array(table.ledger.games, np.int64),
        "seconds": np.array(table.ledger.seconds),
        "moves": np.array(table.ledger.moves, np.int64),
        "left": np.array(math.nan if left is None else left),
    }


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
