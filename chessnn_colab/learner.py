"""One update of the network: targets, losses, gradients. Afterwards batch norm's statistics are
re-estimated.
"""

import copy
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .chances import Correction
from .devices import PRECISIONS, choose_dtype, out_of_memory, time_convolutions
from .errors import ConfigError
from .games.base import Game
from .graphs import Graphs, Replays
from .in_flight import Arrays
from .network import SpikingNetwork, score_bins
from .search import ILLEGAL
from .settings import ABOVE_ZERO, COUNT_FROM_ZERO, FROM_ZERO, LEARNING, Settings, one_of, setting
from .shapes import check_shape
from .spikes import collect_spikes
from .transfer import to_device

LEARNING_RATE = 2e-3  # unless the config says otherwise
WEIGHT_DECAY = 1e-4
CLIP_NORM = 1.0  # the largest norm of a gradient
# float16's first loss scale. Torch's own, 2^16, is found too large by leaving out updates.
LOSS_SCALE = 1024.0
ROUNDING = 0.02  # of a gradient's norm: the most that sums in another order may change it


@dataclass(frozen=True)
class LearnerConfig(Settings):
    """How the network learns. Raises ConfigError for values that are not possible."""

    learning_rate: float | None = setting(
        None,
        "The learning rate of AdamW. It falls towards the end of the time. By default it is 0.002, "
        "and on a GPU 0.001 for presets a100 and h100.",
        LEARNING,
        ABOVE_ZERO,
    )
    precision: str = setting(
        "auto",
        "The precision of the convolutions: float32, bfloat16 or float16. All else is float32. "
        "auto may play in int8 on a CPU.",
        LEARNING,
        one_of(*PRECISIONS),
    )
    spike_penalty: float | None = setting(
        None,
        "The price of spikes, in nats: it is added to the loss for each spike that a neuron fires "
        "in an evaluation, in the mean over all neurons. 0 is no price. By default it is 0.1 in "
        "chess and 0 in other games and without spikes. From two million positions on "
        "it rises with them, to three times after six million. A resumed run keeps its own.",
        LEARNING,
        FROM_ZERO,
    )
    warm_up: int | None = setting(
        None,
        "The number of positions learned from while the learning rate rises from 0. By default "
        "it is 0 on a CPU, and on a GPU the preset decides.",
        LEARNING,
        COUNT_FROM_ZERO,
    )


class Losses(NamedTuple):
    """Scalars of one batch, each a tensor []."""

    loss: Tensor  # what was minimised
    policy_loss: Tensor  # nats
    value_loss: Tensor  # nats
    entropy: Tensor  # of the policy over legal moves, nats


class Learner:
    """Holds a network, its optimizer and its precision; `update` makes one step."""

    def __init__(self, network: SpikingNetwork, game: Game, config: LearnerConfig):
        self.network, self.game, self.config = network, game, config
        self.device = next(network.parameters()).device
        self.learning_rate = config.learning_rate or LEARNING_RATE
        self.optimizer = torch.optim.AdamW(
            network.parameters(), self.learning_rate, weight_decay=WEIGHT_DECAY
        )
        self.precision = choose_dtype(config.precision, self.device)
        self.scaler = torch.amp.GradScaler(
            self.device.type, LOSS_SCALE, enabled=self.precision == torch.float16
        )
        self.updates = 0
        self.correction = Correction()
        self.parameters = list(network.parameters())
        # The price of spikes, in the place that a recorded update reads.
        self.price = torch.full((), config.spike_penalty or 0.0, device=self.device)
        self.replays = Replays(graphs_of_updates(self.device))
        # float16's scaler leaves out a step whose gradients are not finite.
        self.optimizer.register_step_post_hook(self._count)
        time_convolutions(self.device)

    def update(self, batch: Arrays, learning_rate: float | None = None) -> Losses:
        """One AdamW step on a batch from replay (see ReplayBuffer.sample). The losses come back as
        device scalars, detached.

        learning_rate: of this step; None: the config's. An entry "chance" of the batch, float32 [B]
        in [0, 1), picks symmetric images (see `augmented`).
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate if learning_rate is None else learning_rate
        self.price.fill_(self.config.spike_penalty or 0.0)
        self.network.train()
        losses, flat = self.replayed(self.to_tensors(batch))
        for parameter, gradient in zip(self.parameters, self.parts(self.shared(flat))):
            parameter.grad = gradient
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.parameters, CLIP_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return Losses(*losses)

    def replayed(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """`gradient`, as a graph where the device has graphs and the memory for one."""
        try:
            return self.replays(self.gradient, len(batch["positions"]), batch)
        except RuntimeError as error:
            if not (self.replays.graphs.on and out_of_memory(error)):
                raise
        self.replays.fail("finds no memory")
        return self.gradient(batch)

    def gradient(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The losses [4] of a batch, and the scaled gradient of all parameters, one after the
        other. A recording of it keeps whether spikes have a price, but not which.
        """
        losses = self.losses(self.augmented(batch))
        found = torch.autograd.grad(self.scaler.scale(losses.loss), self.parameters)
        flat = found[0].new_empty(sum(map(Tensor.numel, found)))
        for kept, part in zip(self.parts(flat), found):
            kept.copy_(part)
        return torch.stack(losses).detach(), flat

    def parts(self, flat: Tensor) -> list[Tensor]:
        """Each parameter's part, laid out in memory as that parameter is."""
        parts = flat.split([parameter.numel() for parameter in self.parameters])
        return [
            part.as_strided(parameter.shape, parameter.stride())
            for part, parameter in zip(parts, self.parameters)
        ]

    def shared(self, gradient: Tensor) -> Tensor:
        """The gradient's sum over all who learn from this batch: here nobody else does."""
        return gradient

    def _count(self, *_: Any) -> None:
        self.updates += 1

    def progress(self) -> dict[str, Any]:
        """Plain data for a checkpoint: the number of updates, the correction of what the network
        says, and in float16 what scales the loss.
        """
        state = self.scaler.state_dict()
        scaler = {"scaler": state} if state else {}
        return {"updates": self.updates, "correction": list(self.correction), **scaler}

    def restore_progress(self, progress: Mapping[str, Any]) -> None:
        """The inverse of `progress`. What is not there (an older version, no scaler in float32)
        starts anew.

        Raises ConfigError when it is no scaler's state, or no correction.
        """
        self.updates = progress["updates"]
        numbers = progress.get("correction", Correction())
        if not np.isfinite(numbers).all():
            raise ConfigError(f"{numbers!r:.100} is not a correction of chances")
        self.correction = Correction(*numbers)
        given, own = progress.get("scaler"), self.scaler.state_dict()
        if given is None or not own:
            return
        scale, tracker = given["scale"], given["_growth_tracker"]
        possible = type(scale) is float and 0 < scale < np.inf and type(tracker) is int
        if not possible or not 0 <= tracker < own["growth_interval"]:
            raise ConfigError(f"{given!r:.100} is not the state of a loss scaler")
        self.scaler.load_state_dict({**own, "scale": scale, "_growth_tracker": tracker})

    def losses(self, batch: Mapping[str, Tensor]) -> Losses:
        """The losses of a batch of tensors (to_tensors).

        With a price for spikes, `loss` has one term more: the price times the spikes of a neuron,
        in the mean. All count alike, because the convolutions that they feed have equally many
        weights.
        """
        if not self.config.spike_penalty:
            return self._plain_losses(batch)
        with collect_spikes(self.network) as spikes:
            losses = self._plain_losses(batch)
        return losses._replace(loss=losses.loss + self.price * torch.stack(spikes).mean())

    def _plain_losses(self, batch: Mapping[str, Tensor]) -> Losses:
        state = self.game.unpack(batch["positions"])
        outputs = self.policy_and_value(state, batch["policy_actions"])
        return losses_of(*outputs, batch, self.game.score_limit)

    def policy_and_value(self, state: Any, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log probabilities [B, m] of `targets`, the policy's entropy [B] over legal actions, and
        the value's logits (see SpikingNetwork.features_and_value).

        A target that is not legal, which fills a spare place, has 0 and teaches nothing. A CPU
        computes the logits of the legal actions alone. Elsewhere their number would keep the host
        waiting and change every shape, so all are computed and masked.
        """
        check_shape("targets", targets, len(state.current_player), None)
        observation = self.game.observe(state)
        with self._autocast():
            rates, value_logits = self.network.features_and_value(observation)
        if self.device.type == "cpu":
            rows, actions = self.game.legal_actions(state)
            logits = self.network.prior_logits_at(rates, rows, actions)
            found = log_policy(logits, rows, actions, targets, self.game.num_actions)
            return *found, value_logits
        logits = self.network.prior_logits(rates)
        return *masked_log_policy(logits, self.game.legal_action_mask(state), targets), value_logits

    def augmented(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The batch, each position and its policy in the symmetry that its "chance" [B] picks, if
        it has that entry.
        """
        if "chance" not in batch:
            return batch
        positions, image = self.game.augment(batch["positions"], batch["chance"])
        images = self.game.action_images
        return {
            **batch,
            "positions": positions,
            "policy_actions": images[image.unsqueeze(1), batch["policy_actions"]],
        }

    @torch.no_grad()
    def reestimate_norms(self, batches: Iterable[Arrays]) -> None:
        """Replace batch norm's running statistics by their means over `batches`.

        The running average trails behind a network that moves and a replay that drifts. Self-play
        needs the statistics of the weights it plays with (CaRe-BN).
        """
        norms = [module for module in self.network.modules() if isinstance(module, nn.BatchNorm2d)]
        before = copy.deepcopy(self.network.state_dict())
        momentum = norms[0].momentum
        try:
            for norm in norms:
                norm.reset_running_stats()
            self.network.train()
            for count, batch in enumerate(batches, 1):
                for norm in norms:
                    # A cumulative average. Batch norm's own, momentum=None, makes the host wait.
                    norm.momentum = 1 / count
                state = self.game.unpack(self.to_tensors(batch)["positions"])
                with self._autocast():
                    self.network.features_and_value(self.game.observe(state))
        except BaseException:  # an interrupt saves the network: half of a mean is none
            self.network.load_state_dict(before)
            raise
        finally:
            for norm in norms:
                norm.momentum = momentum
            self.network.eval()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision == torch.float32:  # some devices know no autocast, even one that is off
            return nullcontext()
        return torch.autocast(self.device.type, self.precision)

    def to_tensors(self, batch: Arrays) -> dict[str, Tensor]:
        """The arrays of a batch on the device, unsigned and half-precision ones in the types torch
        computes with.
        """
        wider = {np.dtype(np.uint16): np.int64, np.dtype(np.float16): np.float32}
        arrays = {
            name: array.astype(wider.get(array.dtype, array.dtype), copy=False)
            for name, array in batch.items()
        }
        return to_device(arrays, self.device)


def graphs_of_updates(device: torch.device) -> Graphs:
    """Replay updates on CUDA, and do without where a recording finds no memory."""
    return Graphs(device.type == "cuda", "updates", about_the_same, fewer_may_fit=False)


def about_the_same(expected: Tensor, found: Tensor) -> bool:
    """Whether two gradients, or two losses, differ by rounding alone. In float16 both may be too
    large.
    """
    if not expected.isfinite().all():
        return not found.isfinite().all()
    return bool((found - expected).norm() <= ROUNDING * expected.norm())


def losses_of(
    target_log_probs: Tensor,
    entropy: Tensor,
    value_logits: Tensor,
    batch: Mapping[str, Tensor],
    score_limit: float = 0.0,
) -> Losses:
    """The losses of a batch of B positions; the first three arguments are the results of
    Learner.policy_and_value.
    """
    target = batch["value_targets"]
    if score_limit:
        target = score_target(target, score_limit, value_logits.shape[1])
    value_loss = -(target * value_logits.log_softmax(1)).sum(1).mean()
    policy_loss = -(batch["policy_weights"] * target_log_probs).sum(1).mean()
    return Losses(policy_loss + value_loss, policy_loss, value_loss, entropy.mean())


def log_policy(
    logits: Tensor, rows: Tensor, actions: Tensor, targets: Tensor, num_actions: int
) -> tuple[Tensor, Tensor]:
    """Log probabilities [B, m] of `targets` int64 [B, m], and the policy's entropy [B] in nats.

    logits [n], rows int64 [n] and actions int64 [n] are of the legal actions of the batch, in the
    order of Game.legal_actions (in chess some 30 of 4,672 per position).
    """
    listed = rows * num_actions + actions
    wanted = torch.arange(len(targets), device=rows.device).unsqueeze(1) * num_actions + targets
    places = torch.searchsorted(listed, wanted).clamp(max=len(rows) - 1)
    zero = logits.new_zeros(len(targets))
    highest = (zero - torch.inf).scatter_reduce(0, rows, logits.detach(), "amax")
    log_total = highest + zero.index_add(0, rows, (logits - highest[rows]).exp()).log()
    log_probs = logits - log_total[rows]
    target_log_probs = torch.where(listed[places] == wanted, log_probs[places], 0.0)
    return target_log_probs, -zero.index_add(0, rows, log_probs.exp() * log_probs)


def masked_log_policy(logits: Tensor, mask: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the logits of all actions [B, A], the legal ones in `mask` bool [B, A]; targets
    int64 [B, m].
    """
    log_all = torch.where(mask, logits, ILLEGAL).log_softmax(1)
    target_log_probs = torch.where(mask.gather(1, targets), log_all.gather(1, targets), 0.0)
    return target_log_probs, -torch.where(mask, log_all.exp() * log_all, 0.0).sum(1)


def score_target(score: Tensor, limit: float, bins: int) -> Tensor:
    """[B, bins] shares for scores [B]: of the two bins around each, so that their mean is the
    score.

    A score outside 0 to `limit` counts as the nearest within (see network.score_bins).
    """
    stands = score_bins(limit, bins, score.device)
    score = score.clamp(0, limit)
    above = torch.searchsorted(stands, score.contiguous()).clamp(1, bins - 1).unsqueeze(1)
    share = (score.unsqueeze(1) - stands[above - 1]) / (stands[above] - stands[above - 1])
    target = torch.zeros(len(score), bins, device=score.device)
    return target.scatter(1, above - 1, 1 - share).scatter(1, above, share)
