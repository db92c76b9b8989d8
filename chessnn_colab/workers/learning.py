"""One call of `learn`: workers that learn together, each from its slice of every batch.

All are needed until the end: without one of them the others' learning is void (data_parallel.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .shares import PlayCall, Slot

GIVE_UP_SECONDS = 10.0  # for the others to say that they have noticed a lost rank


class LearnCall(PlayCall):
    """The ranks of one call of `learn`: rank i is the worker in slots[i], and the slot's `share`.

    lost: how many of them are gone. reason: why it has ended, if none is gone. updates: how many
    were made. result: what was learned.
    """

    stop_seconds = GIVE_UP_SECONDS

    def __init__(self, slots: Sequence[Slot]):
        super().__init__([0] * len(slots), 0, None)
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

    def receive(self, slot: Slot, kind: str, ticket: int, *body: Any) -> None:
        """Take in "update", "learned" or "not learned", unless it is about an earlier call."""
        if slot.share is None or ticket != slot.ticket:
            return
        if kind == "update":
            self.updates = max(self.updates, *body)
            return
        slot.share = None
        if kind == "not learned":
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
