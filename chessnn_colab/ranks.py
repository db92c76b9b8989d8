"""Where several GPUs play, they learn together between two rounds of games.

The replay stays in this process, which draws every batch as a single learner would and sends each
worker its slice. What it does with that is in data_parallel.py.
"""

import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import distributed

from .data_parallel import slice_of
from .errors import WorkerError
from .learner import Learner
from .learner_state import learner_state, load_learner_state
from .learning import Batches, OnUpdate
from .text import Say
from .workers.pool import MAX_RESTARTS, Pool
from .workers.shares import LearnCall

RANK_SECONDS = 60.0  # after which a worker that the others wait for counts as hung
SENT_AHEAD = 3  # updates whose batch is sent before the update is made


class Ranks:
    """The workers of `pool` with these numbers, as one learner; of fewer than two there is none.
    say: gets sentences for the user.
    """

    def __init__(self, pool: Pool, workers: Sequence[int], say: Say):
        self.seconds = RANK_SECONDS
        self._pool = pool
        self._workers = workers if len(workers) > 1 else ()
        self._say = say
        self._failures = 0  # in a row
        self._have_met = False  # and made an update together

    def learn(self, learner: Learner, batches: Batches, on_update: OnUpdate) -> np.ndarray | None:
        """Learn from the batches, and give `learner` what was learned. Returns the losses
        [updates, 4]; None when `learner` is to do it itself, and is as it was.

        When a worker is lost, all begin again without it. Raises WorkerError when that happens too
        often.
        """
        while len(slots := self._pool.ready_slots(self._workers)) > 1:
            try:
                store = new_store(self._pool.host)
            except (AttributeError, OSError, RuntimeError) as error:  # a torch may have no store
                self._give_up(str(error))
                break
            call = self._pool.learn(slots, learner_state(learner), store.port, self.seconds)
            self._follow(call, batches, on_update)
            self._have_met |= call.updates > 0
            if call.failure:
                raise WorkerError(call.failure)
            if call.result is not None and call.stopped_at is None:
                self._failures = 0
                load_learner_state(learner, call.result)
                return call.result["losses"]
            self._failures += 1
            # Until they have met, a rank that says why cannot reach the others: ports may be
            # closed. Those that waited for it are killed, and so are lost, too.
            if call.reason and not (call.lost and self._have_met):
                self._give_up(call.reason)
            elif self._failures > MAX_RESTARTS:
                self._give_up(
                    f"{self._failures} times in a row one of them was lost; what one said: "
                    f"{call.reason or 'nothing'}"
                )
            else:
                self._say(
                    "The learning of this iteration begins again without the worker that is lost"
                )
        return None

    def _follow(self, call: LearnCall, batches: Batches, on_update: OnUpdate) -> None:
        """Send the batches, and wait until every rank has ended, or was lost."""
        for sent, (batch, learning_rate) in enumerate(batches):
            is_update = learning_rate is not None
            while is_update and sent - call.updates >= SENT_AHEAD and call.stopped_at is None:
                self._pool.wait()
            on_update(call.updates)
            if call.stopped_at is not None:
                break
            for rank, slot in enumerate(call.slots):
                part = slice_of(batch, rank, len(call.slots))
                self._pool.tell([slot], "batch", part, learning_rate)
        self._pool.tell(call.slots, "finish")
        while call.busy:
            self._pool.wait()
            on_update(call.updates)

    def _give_up(self, reason: str) -> None:
        self._workers = ()
        self._say(
            f"The workers cannot learn together ({reason}): from now on one device learns while "
            "the others wait. learner_gpu=one does so from the start"
        )


def new_store(host: str) -> Any:
    """A store through which ranks meet, at a free port of this machine's address `host` alone."""
    server = socket.create_server((host, 0))
    return distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]  # it is public
        host,
        server.getsockname()[1],
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=server.detach(),
    )
