"""One call of `play`: its shares, which worker plays which, and what has come in.

A share is some games with a seed of its own; there is one per worker. A worker gets its
share under a new ticket number, which all messages about it carry. So messages about a share that
was given up are recognised and dropped.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .protocol import Arrays, Games, OnUpdate, WorkerProcess, count_games, worker_seed

_TICKETS = itertools.count()


@dataclass
class Slot:
    """A worker's place in the pool: the process that fills it now, and what that process is
    doing.
    """

    index: int
    device: str
    process: WorkerProcess | None = None  # None: there is none until the next call of play
    started_at: float = 0.0
    ready: bool = False
    description: str = ""  # the device in words
    share: int | None = None  # the one being played
    ticket: int = 0
    given_at: float = 0.0  # when the share was handed out
    deaths: int = 0  # since a share was last finished here

    def empty(self) -> None:
        """The process has ended; there is none until another is started."""
        self.process = None
        self.ready = False

    def send(self, payload: Any) -> None:
        """Send a message to the process, if there is one."""
        if self.process is not None:
            self.process.send(payload)


class PlayCall:
    """The shares games[0], games[1], ... of one call of play. `received` holds the arrays that came
    in, by share.
    """

    def __init__(self, games: Sequence[Games], seed: int, on_update: OnUpdate | None):
        self.games = games
        self.seed = seed
        self.on_update = on_update or (lambda share, games, plies: None)
        self.received: list[list[Arrays]] = [[] for _ in games]
        self.deaths = [0] * len(games)  # of workers that played the share
        self.waiting: deque[int] = deque(range(len(games)))
        self.stopped_at: float | None = None
        self.failure = ""

    def hand_out(self, slots: Sequence[Slot]) -> None:
        """Hand waiting shares to workers that are ready and free; a worker gets its own share if
        that one waits.
        """
        for slot in slots:
            if self.waiting and slot.ready and slot.share is None:
                slot.share = slot.index if slot.index in self.waiting else self.waiting[0]
                self.waiting.remove(slot.share)
                slot.ticket = next(_TICKETS)
                slot.given_at = time.monotonic()
                seed = worker_seed(self.seed, slot.share)
                slot.send(pickle.dumps(("play", slot.ticket, self.games[slot.share], seed)))

    def receive(self, slot: Slot, kind: str, ticket: int, *body: Any) -> None:
        """Take in "games", "progress" or "done" from a worker, unless it is about a share that was
        given up.
        """
        if slot.share is None or ticket != slot.ticket:
            return
        if kind == "games":
            self.received[slot.share].append(body[0])
        elif kind == "progress":
            self.on_update(slot.share, *body)
        else:
            slot.share = None
            slot.deaths = 0

    def take_back(self, slot: Slot) -> int:
        """Have the share of a lost worker played again. Returns its number of games, or 0 if there
        is no such share.

        Once the call is ending nothing is played again, and what the worker had handed over counts.
        """
        share = slot.share
        slot.share = None
        if share is None or self.stopped_at is not None:
            return 0
        self.deaths[share] += 1
        self.received[share].clear()
        self.on_update(share, 0, 0)
        self.waiting.appendleft(share)
        return count_games(self.games[share])

    def end(self, slots: Sequence[Slot]) -> None:
        """Have all workers stop and hand over what they have. A second call does nothing."""
        if self.stopped_at is None:
            self.stopped_at = time.monotonic()
            self.waiting.clear()
            for slot in slots:
                if slot.share is not None:
                    slot.send(pickle.dumps(("stop", slot.ticket)))
