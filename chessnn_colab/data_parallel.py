"""Learning in several processes at once: each has the whole network and learns from its slice of
every batch (data parallel).

The gradients are summed over the slices before every step, and batch norm's statistics are those of
the whole batch. So the steps are those of one learner with the whole batch, and all processes, the
ranks, keep the same weights bit by bit. workers/ carries the slices; ranks.py decides who learns.
"""

# pyright: reportIncompatibleMethodOverride=false, reportPrivateImportUsage=false
# A layer's forward takes what that layer needs, as torch means it; and its stores are public.

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from .games.base import Game
from .graphs import PROOFS, Graphs, Replays
from .in_flight import Arrays
from .layers import ConvNorm
from .learner import Learner, LearnerConfig, Losses
from .learner_state import learner_state, load_learner_state
from .learning import Batch, OnUpdate, learn_here
from .network import SpikingNetwork


class Group(NamedTuple):
    """Ranks that learn together, as one of them sees them. Plain data that crosses processes."""

    rank: int
    size: int
    host: str  # they meet at this address and port
    port: int
    seconds: float  # after which a rank that is not heard counts as lost


def learn_as_rank(
    network: SpikingNetwork,
    game: Game,
    state: Mapping[str, Any],
    group: Group,
    batches: Iterable[Batch],
    on_update: OnUpdate,
    graphs: Graphs,
) -> dict[str, Any] | None:
    """Go on as the learner of `state` (learner_state) with the other ranks of `group`.

    network: its weights change. graphs: of updates, which each call proves anew, because another
    rank may be new. Returns the state after the last update, with the "losses" [updates, 4]; None
    on all ranks but the first. Raises RuntimeError when the ranks do not meet, or one of them is
    lost.
    """
    with process_group(group, next(network.parameters()).device):
        learner = RankLearner(network, game, state)
        graphs.proofs.clear()
        learner.replays = Replays(graphs)
        try:
            losses = learn_here(learner, batches, False, on_update)
        finally:
            learner.replays.forget()  # NCCL waits for recordings before it lets ranks part
        found = sum_over_ranks(losses).cpu().numpy()
        return {**learner_state(learner), "losses": found} if group.rank == 0 else None


def slice_of(batch: Arrays, rank: int, ranks: int) -> Arrays:
    """What one of so many ranks learns of a batch. whole: int64 [], the positions of the batch."""
    part = {name: array[rank::ranks] for name, array in batch.items()}
    return {**part, "whole": np.array(len(batch["positions"]))}


def sum_over_ranks(numbers: Tensor) -> Tensor:
    """The sum of `numbers` over the ranks, the same bits on each."""
    numbers = numbers.clone()
    distributed.all_reduce(numbers)
    return numbers


@contextmanager
def process_group(group: Group, device: torch.device) -> Iterator[None]:
    """This process is one of the group's ranks inside the block. Raises RuntimeError when they do
    not meet.
    """
    seconds = timedelta(seconds=group.seconds)
    on_cuda = device.type == "cuda"
    if (
        group.host.startswith("127.") and sys.platform == "linux"
    ):  # no other machine is to reach its ports
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # A group's name is a count, which a failed meeting leaves behind: a new worker counts from 0.
    distributed.distributed_c10d._world.group_count = 0  # pyright: ignore[reportPrivateUsage]
    store = distributed.TCPStore(group.host, group.port, is_master=False, timeout=seconds)
    distributed.init_process_group(
        "nccl" if on_cuda else "gloo",
        store=store,
        rank=group.rank,
        world_size=group.size,
        timeout=seconds,
        device_id=device if on_cuda else None,
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


class RankLearner(Learner):
    """The learner of `state`, of which it learns its slice of every batch; `update` makes the step
    of the whole batch.

    Losses come back as the slice's part of the batch's, to be summed over the ranks.
    """

    def __init__(self, network: SpikingNetwork, game: Game, state: Mapping[str, Any]):
        for module in network.modules():
            if isinstance(module, ConvNorm):
                norm = WholeBatchNorm(module.conv.out_channels)
                module.norm = norm.to(module.conv.weight.device)
        super().__init__(network, game, LearnerConfig(**state["settings"]))
        load_learner_state(self, state)
        self.share = 1.0  # of the batch, that the slice is
        self.agreements = 1 + PROOFS  # to come, on whether updates are replayed

    def to_tensors(self, batch: Arrays) -> dict[str, Tensor]:
        """The tensors of a slice."""
        self.share = len(batch["positions"]) / int(batch["whole"])
        return super().to_tensors({name: batch[name] for name in batch if name != "whole"})

    def replayed(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As a Learner's, but by all ranks or by none: each waits for the others' sums."""
        found = self.replays(self.gradient, len(batch["positions"]), batch)
        if self.agreements:
            self.agreements -= 1
            launched = torch.full((1,), 1.0 - self.replays.graphs.on, device=self.device)
            if sum_over_ranks(launched) > 0 and self.replays.graphs.on:
                self.replays.fail("does not work on another device")
        return found

    def losses(self, batch: Mapping[str, Tensor]) -> Losses:
        """The slice's part of the losses of the batch."""
        return Losses(*(loss * self.share for loss in super().losses(batch)))

    def shared(self, gradient: Tensor) -> Tensor:
        """The gradient's sum over the ranks, in one message."""
        return sum_over_ranks(gradient)


class WholeBatchNorm(nn.BatchNorm2d):
    """Batch norm whose statistics, while it trains, are those of the slices of all ranks.

    torch's SyncBatchNorm does this on GPUs alone.
    """

    def forward(self, x: Tensor) -> Tensor:
        """float [N, C, H, W] of x [N, C, H, W]."""
        if not self.training:
            return super().forward(x)
        # torch 2.10 does not say what it returns.
        return NormalizeWholeBatch.apply(  # pyright: ignore[reportReturnType]
            x, self.weight, self.bias, self
        )


class NormalizeWholeBatch(torch.autograd.Function):
    """Ioffe and Szegedy 2015, with every sum over positions taken over the ranks too.

    The passes over memory are those of torch's batch norm, trained and in evaluation: both take
    half precision with statistics in float32.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: Any) -> Tensor:
        """float [N, C, H, W] of x [N, C, H, W], weight [C] and bias [C] of a BatchNorm2d."""
        # Without running statistics the numbers found would be in half precision.
        unused = torch.zeros_like(weight), torch.ones_like(weight)
        mean, variance = torch.batch_norm_update_stats(x, *unused, 0.0)
        count = mean.new_full((1,), x.numel() // x.shape[1])
        # The sums of squares are about a number near the mean: about 0 they could cancel out.
        near = norm.running_mean.nan_to_num()  # one overflow must not spoil what follows
        shift = mean - near
        sums = sum_over_ranks(
            torch.cat((count * shift, count * (variance + shift.square()), count))
        )
        count = sums[-1]
        shift, square = (sums[:-1] / count).chunk(2)
        mean = near + shift
        variance = square - shift.square()
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * count / (count - 1), norm.momentum)
        ctx.save_for_backward(x, weight, mean, variance, count)
        ctx.eps = norm.eps
        return functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, norm.eps)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """The gradients of x, and this slice's part of those of weight and bias."""
        x, weight, mean, variance, count = ctx.saved_tensors
        scale, none = (variance + ctx.eps).rsqrt(), torch.zeros_like(weight)
        # CUDA reads the second pair, and a CPU the first.
        statistics = mean, variance, mean, scale, False, ctx.eps
        _, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            gradient, x, weight, *statistics, [False, True, True]
        )
        # As if the statistics did not depend on x. The operator above would change the layout.
        direct = functional.batch_norm(gradient, none, variance, weight, none, False, 0.0, ctx.eps)
        means = sum_over_ranks(torch.cat((of_weight, of_bias))) / count
        slope, offset = (means.view(2, -1) * weight * scale).unbind()
        through_statistics = functional.batch_norm(
            x, mean, variance, slope, offset, False, 0.0, ctx.eps
        )
        return direct - through_statistics, of_weight, of_bias, None
