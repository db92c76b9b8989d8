"""One call of `play`: its shares, which worker plays which, and what has come in. One call of
`learn`: workers that learn together.

A share is some games, or some positions, with a seed of its own; there is one per worker. A worker
gets its share under a new ticket number, which all messages about it carry. So messages about a
share that was given up are recognised and dropped.
"""

import itertools
import pickle
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .protocol import Arrays, Games, OnUpdate, WorkerProcess, in_words, worker_seed

STOP_SECONDS = 120.0  # for workers to hand over their games after the message to stop
# For the other ranks to notice a lost one. Ray ends a stopped one late, and gloo does not tell all.
GIVE_UP_SECONDS = 30.0
_TICKETS = itertools.count()


def unheard(share: int, games: int, plies: int) -> None:
    """The OnUpdate of a call whose progress nobody follows."""


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
    failed_starts: int = 0  # since then; after MAX_RESTARTS the others play without it

    def empty(self) -> None:
        """The process has ended; there is none until another is started."""
        self.process = None
        self.ready = False

    def give(self, share: int) -> None:
        """From now on the process works at this share, under a new ticket."""
        self.share = share
        self.ticket = next(_TICKETS)
        self.given_at = time.monotonic()

    def send(self, payload: Any) -> None:
        """Send a message to the process, if there is one."""
        if self.process is not None:
            self.process.send(payload)


class PlayCall:
    """The shares games[0], games[1], ... of one call of play. `received` holds the arrays that came
    in, by share.
    """

    stop_seconds = STOP_SECONDS

    def __init__(self, games: Sequence[Games], seed: int, on_update: OnUpdate = unheard):
        self.games = games
        self.seed = seed
        self.on_update = on_update
        self.received: list[list[Arrays]] = [[] for _ in games]
        # What a finished share left in flight; None: it is not finished.
        self.in_flight: list[Arrays | None] = [None] * len(games)
        self.deaths = [0] * len(games)  # of workers that played the share
        self.waiting = deque(range(len(games)))
        self.stopped_at: float | None = None
        self.failure = ""

    def hand_out(self, slots: Sequence[Slot]) -> None:
        """Hand waiting shares to workers that are ready and free; a worker gets its own share if
        that one waits.
        """
        for slot in slots:
            if self.waiting and slot.ready and slot.share is None:
                share = slot.index if slot.index in self.waiting else self.waiting[0]
                self.waiting.remove(share)
                slot.give(share)
                seed = worker_seed(self.seed, share)
                slot.send(pickle.dumps(("play", slot.ticket, self.games[share], seed)))

    def receive(self, slot: Slot, share: int, kind: str, *body: Any) -> None:
        """Take in "games", "progress" or "done" of the worker's share."""
        if kind == "games":
            self.received[share].append(body[0])
        elif kind == "progress":
            self.on_update(share, *body)
        else:
            parts, in_flight = body
            if len(self.received[share]) == parts:  # else an interrupt has swallowed one
                self.in_flight[share] = in_flight
            slot.share = None
            slot.deaths = slot.failed_starts = 0

    def take_back(self, slot: Slot) -> str:
        """Have the share of a lost worker played again. Returns it in words, or "" if there is no
        such share.

        Once the call is ending nothing is played again.
        """
        share = slot.share
        slot.share = None
        if share is None or self.stopped_at is not None:
            return ""
        self.deaths[share] += 1
        self.received[share].clear()
        self.on_update(share, 0, 0)
        self.waiting.appendleft(share)
        return in_words(self.games[share])

    def end(self, slots: Sequence[Slot]) -> None:
        """Have all workers stop and hand over what they have. A second call does nothing."""
        if self.stopped_at is None:
            self.stopped_at = time.monotonic()
            self.waiting.clear()
            for slot in slots:
                if slot.share is not None:
                    slot.send(pickle.dumps(("stop", slot.ticket)))


class LearnCall(PlayCall):
    """The ranks of one call of `learn`: rank i is the worker in slots[i], and the slot's `share`.
    Each learns from its slice of every batch, and all are needed until the end: without one of them
    the others' learning is void (data_parallel.py).

    lost: how many of them are gone. reason: why it has ended, if a rank said so before one was
    gone. updates: how many were made. result: what was learned.
    """

    stop_seconds = GIVE_UP_SECONDS

    def __init__(self, slots: Sequence[Slot]):
        super().__init__([0] * len(slots), 0)
        self.waiting.clear()
        self.slots = slots
        self.lost = 0
        self.reason = ""
        self.updates = 0
        self.result: dict[str, Any] | None = None
        for rank, slot in enumerate(slots):
            slot.give(rank)

    @property
    def busy(self) -> bool:
        """Whether a rank has not said yet how it ended."""
        return any(slot.share is not None for slot in self.slots)

    def receive(self, slot: Slot, share: int, kind: str, *body: Any) -> None:
        """Take in "update", "learned" or "not learned"."""
        if kind == "update":
            self.updates = max(self.updates, *body)
            return
        slot.share = None
        if kind == "not learned":
            if not self.lost:
                self.reason = self.reason or body[0]
            self.end(self.slots)
        else:
            self.result = self.result or body[0]

    def take_back(self, slot: Slot) -> str:
        """A worker is lost, and with it this call. Returns that nothing is to be played again."""
        if slot.share is not None:
            slot.share = None
            self.lost += 1
            self.end(self.slots)
        return ""
