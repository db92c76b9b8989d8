"""The learning of one iteration: updates on batches from replay, then new statistics for batch norm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from . import spikes
from .budget import Budget
from .cpu import ThreadTrial, use_threads
from .devices import out_of_memory
from .errors import ConfigError
from .learner import Learner, Losses
from .replay import ReplayBuffer
from .report import Progress

NORM_BATCHES = 8  # replay batches over which batch norm is re-estimated
SMALL_UPDATE = (
    1024  # positions times channels up to which one thread makes an update as fast as two
)
PROBE_POSITIONS = 256  # replay positions at which firing rates are measured


def learn(
    learner: Learner,
    replay: ReplayBuffer,
    updates: int,
    batch_size: int,
    budget: Budget,
    progress: Progress,
    generator: np.random.Generator,
    after_update: Callable[[], None],
) -> dict[str, Any]:
    """Make `updates` updates; stop early (after at least one) when time is up.

    generator draws the batches. after_update: called after every update. Returns the fields of a
    Report that are about learning.

    On a CPU with a time budget, the first updates try several numbers of threads and the fastest is
    kept. Without a budget the number is fixed, because it changes the last bits of the weights, and
    N iterations from one seed give the same weights.
    """
    threads = ThreadTrial(most_threads(learner, batch_size))
    tried = learner.device.type == "cpu" and budget.deadline is not None
    collected: list[torch.Tensor] = []
    target_entropies: list[float] = []
    rate = 0.0
    before = learner.updates
    progress.learning_update(0, updates)
    for done in range(1, updates + 1):
        rate = learner.config.learning_rate * budget.learning_rate_factor()
        batch = replay.sample(batch_size, generator)
        started = time.perf_counter()
        with use_threads(threads.count), _advice_on_memory(learner, batch_size):
            collected.append(torch.stack(learner.update(batch, rate, generator)))
        if tried:
            threads.took(time.perf_counter() - started)
        target_entropies.append(_entropy(batch["policy_weights"]))
        progress.learning_update(done, updates)
        after_update()
        if budget.deadline is not None and time.monotonic() > budget.deadline:
            break
    with use_threads(threads.count):
        learner.reestimate_norms(replay.sample(batch_size, generator) for _ in range(NORM_BATCHES))
    made = learner.updates - before
    skipped = len(collected) - made
    losses = torch.stack(collected)
    if skipped:
        losses = losses[losses.isfinite().all(1)]
        progress.message(
            f"{skipped} of {len(collected)} updates were left out: in float16 their gradients "
            "were too large. A few at the start are usual; the loss is scaled down until it fits"
        )
    means = dict(zip(Losses._fields, losses.mean(0).tolist()))
    kl = (
        math.nan
        if learner.policy_gradient
        else means["policy_loss"] - float(np.mean(target_entropies))
    )
    return {"updates": made, "learning_rate": rate, "policy_kl": kl, **means}


def most_threads(learner: Learner, batch_size: int) -> int:
    """How many of the CPU's threads an update is worth: one, or all that torch has."""
    small = batch_size * learner.network.config.channels <= SMALL_UPDATE
    return 1 if small else torch.get_num_threads()


def firing_rates(learner: Learner, replay: ReplayBuffer) -> dict[str, float]:
    """Layer -> spikes per neuron and step, 0 to 1, at PROBE_POSITIONS positions of the replay."""
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
        raise ConfigError(
            f"out of memory on {learner.device} while learning with batch_size={batch_size}: set batch_size lower, "
            "take a smaller preset, or keep players off that device (learner_gpu=own)"
        ) from error


def _entropy(weights: np.ndarray) -> float:
    """The mean entropy, in nats, of policy targets [B, K]; spare places are zero."""
    shares = weights.astype(np.float32)
    return float(-(shares * np.log(np.maximum(shares, 1e-9))).sum(1).mean())
