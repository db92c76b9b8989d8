"""The learning of one iteration: updates on batches from replay, then new statistics for batch
norm.
"""

import copy
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from . import spikes
from .budget import Budget
from .cpu import ThreadTrial, use_threads
from .devices import out_of_memory
from .errors import ConfigError
from .in_flight import Arrays
from .learner import Learner, Losses
from .replay import ReplayBuffer
from .report import Progress

NORM_BATCHES = 8  # replay batches over which batch norm is re-estimated
PROBE_POSITIONS = 256  # replay positions at which firing rates are measured


OnUpdate = Callable[[int], None]  # gets the number of updates made
Batch = tuple[Arrays, float | None]  # with the learning rate; None: for the norms


@dataclass
class Batches:
    """The batches of one iteration: one for each update, until time is up, but at least one; then
    those for batch norm's statistics. Iterating again draws the same ones.

    highest_rate: the learning rate, once `warm_up` positions were learned from; learned: those that
    were before. generator: draws the positions and their symmetric images.
    """

    replay: ReplayBuffer
    updates: int
    size: int
    budget: Budget
    highest_rate: float
    generator: np.random.Generator
    warm_up: int = 0
    learned: int = 0
    learning_rate: float = 0.0  # of the last update
    target_entropies: list[float] = field(default_factory=list)

    def __iter__(self) -> Iterator[Batch]:
        generator = copy.deepcopy(self.generator)
        self.target_entropies.clear()
        for done in range(self.updates):
            deadline = self.budget.deadline
            if done and deadline is not None and time.monotonic() > deadline:
                break
            rise = (self.learned + (done + 1) * self.size) / max(self.warm_up, 1)
            self.learning_rate = (
                self.highest_rate * min(rise, 1.0) * self.budget.learning_rate_factor()
            )
            batch = self.replay.sample(self.size, generator)
            self.target_entropies.append(_entropy(batch["policy_weights"]))
            batch["chance"] = generator.random(self.size, np.float32)
            yield batch, self.learning_rate
        for _ in range(NORM_BATCHES):
            yield self.replay.sample(self.size, generator), None


# Learns on other devices; returns the losses [updates, 4], or None where nobody has learned.
Together = Callable[[Learner, Batches, OnUpdate], np.ndarray | None]


def learn(
    learner: Learner,
    replay: ReplayBuffer,
    updates: int,
    batch_size: int,
    budget: Budget,
    progress: Progress,
    generator: np.random.Generator,
    together: Together | None = None,
) -> dict[str, Any]:
    """Make `updates` updates; stop early (after at least one) when time is up.

    generator draws the batches. together: where it learns, this process does not; None is nobody.
    Returns the fields of a Report that are about learning.

    On a CPU with a time budget, the first updates try several numbers of threads and the fastest is
    kept. Without a budget the number is fixed, because it changes the last bits of the weights, and
    N iterations from one seed give the same weights. Before a game has ended there is nothing to
    learn from.
    """
    if not len(replay):
        return {"updates": 0, "learning_rate": 0.0, **dict.fromkeys(Losses._fields, math.nan)}
    before = learner.updates
    batches = Batches(
        replay,
        updates,
        batch_size,
        budget,
        learner.learning_rate,
        generator,
        learner.config.warm_up or 0,
        before * batch_size,
    )

    def on_update(done: int) -> None:
        progress.learning_update(done, updates)

    on_update(0)
    found = together(learner, batches, on_update) if together else None
    if found is None:
        timed = learner.device.type == "cpu" and budget.deadline is not None
        losses = learn_here(learner, batches, timed, on_update)
    else:
        losses = torch.from_numpy(found)
    made = learner.updates - before
    skipped = len(losses) - made
    if skipped:
        progress.message(
            f"{skipped} of {len(losses)} updates were left out: in float16 their gradients "
            "were too large. A few at the start are usual; the loss is scaled down until it fits"
        )
        losses = losses[losses.isfinite().all(1)]
    means = dict(zip(Losses._fields, losses.mean(0).tolist()))
    kl = means["policy_loss"] - float(np.mean(batches.target_entropies))
    return {"updates": made, "learning_rate": batches.learning_rate, "policy_kl": kl, **means}


def learn_here(
    learner: Learner, batches: Iterable[Batch], timed: bool, on_update: OnUpdate
) -> torch.Tensor:
    """Learn in this process; returns the losses [updates, 4]. timed: find the best number of
    threads.
    """
    threads = ThreadTrial(torch.get_num_threads())
    losses = []
    for_norms = []
    for batch, learning_rate in batches:
        if learning_rate is None:
            for_norms.append(batch)
            continue
        started = time.perf_counter()
        whole = int(batch.get("whole", len(batch["positions"])))  # of a rank's slice
        with use_threads(threads.count), _advice_on_memory(learner, whole):
            losses.append(torch.stack(learner.update(batch, learning_rate)))
        if timed:
            threads.took(time.perf_counter() - started)
        on_update(len(losses))
    with use_threads(threads.count):
        learner.reestimate_norms(for_norms)
    return torch.stack(losses)


def firing_rates(learner: Learner, replay: ReplayBuffer) -> dict[str, float]:
    """Layer -> spikes as a share of those possible, 0 to 1, at PROBE_POSITIONS positions of the
    replay; {} where it has none, and of a network without spikes.
    """
    if not len(replay) or learner.network.config.activation != "spikes":
        return {}
    packed = torch.from_numpy(replay.sample(PROBE_POSITIONS, np.random.default_rng(0))["positions"])
    state = learner.game.unpack(packed.to(learner.device))
    return spikes.firing_rates(learner.network, learner.game.observe(state))


@contextmanager
def _advice_on_memory(learner: Learner, batch_size: int) -> Iterator[None]:
    """Where memory runs out, a ConfigError that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        traceback.clear_frames(error.__traceback__)  # a notebook keeps the error, and with it these
        raise ConfigError(
            f"out of memory on {learner.device} while learning with batch_size={batch_size}: set "
            "batch_size lower, or take a smaller preset"
        ) from error


def _entropy(weights: np.ndarray) -> float:
    """The mean entropy, in nats, of policy targets [B, K]; spare places are zero."""
    shares = weights.astype(np.float32)
    return float(-(shares * np.log(np.maximum(shares, 1e-9))).sum(1).mean())
