"""The same network run spike by spike: integrate and fire over time, additions only where a spike
arrives.

python tools/event_driven.py RUN --positions 10000

The package computes a layer at one go: a convolution gives each neuron its current x, and the
neuron's spikes are round(x), between 0 and `levels`. Here the same weights run as events. Every
neuron keeps a membrane. A spike adds one weight to the membrane of each neuron it reaches, and
nothing is ever multiplied. A layer first takes in every spike of the layer before. Then it fires
for `levels` steps, at most one spike per neuron and step.

Rounding is a threshold. A neuron that starts at half a threshold and fires at a whole one, each
spike taking one threshold off, fires round(x) times; this file compares with half a threshold
instead, which is the same without rounding the sum. A tie, x exactly halfway, goes to the even
number as in torch.round: a neuron's first and third spike need more than half a threshold; for its
second and fourth, half of it is enough.

This form waits: no layer fires before the layer below has finished. The tool shows as well what
happens without waiting (spikes.without_waiting); tools/pipeline.py has what that does to moves.
"""

from __future__ import annotations

import argparse
import copy
import sys
from itertools import product

import torch
from torch import Tensor

from chessnn_colab.errors import ChessnnError, ConfigError
from chessnn_colab.games.base import finished, where
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.layers import ConvNorm
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.runs.networks import load_network
from chessnn_colab.spikes import spike_counts, without_waiting

BATCH = 250  # positions at a time


class EventDriven:
    """The weights of a network (batch norm folded) as lists of what a spike adds where.

    Raises ConfigError for a network of several time steps, whose membranes leak in between.
    """

    def __init__(self, network: SpikingNetwork, dtype: torch.dtype = torch.float64):
        shape = network.config
        if shape.steps != 1 or shape.levels < 2 or shape.activation != "spikes":
            raise ConfigError(
                f"a network of {shape.steps} steps with {shape.levels} levels of {shape.activation}: "
                "expected 1 step with 2 levels of spikes or more"
            )
        folded = actor_copy(copy.deepcopy(network).to(dtype), dtype)
        self.config, self.dtype = network.config, dtype
        self.weights: dict[str, Tensor] = {}  # [3, 3, inputs, outputs]
        self.biases: dict[str, Tensor] = {}
        for name, module in folded.named_modules():
            if isinstance(module, ConvNorm):
                assert module.conv.bias is not None
                self.weights[name] = module.conv.weight.detach().permute(2, 3, 1, 0).contiguous()
                self.biases[name] = module.conv.bias.detach()

    def run(self, observation: Tensor) -> tuple[dict[str, Tensor], dict[str, int]]:
        """Spikes [levels, B, channels, H, W] (bool) of every layer, and the additions of every
        convolution.
        """
        fired: dict[str, Tensor] = {}
        additions: dict[str, int] = {}

        def receive(name: str, membrane: Tensor, spikes: Tensor) -> None:
            membrane += self.biases[name]
            additions[name] = sum(self.add(name, membrane, step) for step in spikes)

        stream = self.rest(len(observation))  # the shortcut: one membrane that every block adds to
        receive("stem", stream, observation.bool().unsqueeze(0))
        for block in range(self.config.blocks):
            first, second = f"blocks.{block}.neurons1", f"blocks.{block}.neurons2"
            fired[first] = self.fire(stream)
            inner = self.rest(len(observation))
            receive(f"blocks.{block}.conv1", inner, fired[first])
            fired[second] = self.fire(inner)
            receive(f"blocks.{block}.conv2", stream, fired[second])
        fired["neurons"] = self.fire(stream)
        return fired, additions

    def rest(self, batch: int) -> Tensor:
        """Membranes [B * H * W, channels] at rest."""
        return torch.zeros(batch * self.config.squares, self.config.channels, dtype=self.dtype)

    def add(self, name: str, membrane: Tensor, spikes: Tensor) -> int:
        """Add the weights of convolution `name` for spikes [B, inputs, H, W] to `membrane`; returns
        how many.
        """
        height, width = self.config.height, self.config.width
        batch, channel, row, column = spikes.nonzero(as_tuple=True)
        weights, additions = self.weights[name], 0
        for y, x in product(range(3), range(3)):
            to_row, to_column = row + 1 - y, column + 1 - x
            on_board = (to_row >= 0) & (to_row < height) & (to_column >= 0) & (to_column < width)
            target = ((batch * height + to_row) * width + to_column)[on_board]
            membrane.index_add_(0, target, weights[y, x][channel[on_board]])
            additions += len(target) * membrane.shape[1]
        return additions

    def fire(self, membrane: Tensor) -> Tensor:
        """`levels` steps of firing, bool [levels, B, channels, H, W]; `membrane` itself stays as it
        is.
        """
        left, counts = membrane.clone(), torch.zeros_like(membrane, dtype=torch.uint8)
        return torch.stack([self.fire_once(left, counts) for _ in range(self.config.levels)])

    def fire_once(self, membrane: Tensor, counts: Tensor) -> Tensor:
        """The neurons that fire in this step, bool [B, channels, H, W]; each loses one threshold.

        counts: how often each neuron has fired so far, uint8 like `membrane`; one more for those
        that fire now.
        """
        spikes = torch.where(counts % 2 == 0, membrane > 0.5, membrane >= 0.5)
        membrane[spikes] -= 1
        counts += spikes
        board = spikes.view(-1, self.config.height, self.config.width, self.config.channels)
        return board.permute(0, 3, 1, 2)


def package_spikes(network: SpikingNetwork, observation: Tensor) -> dict[str, Tensor]:
    """Spikes [B, channels, H, W], 0 to levels, of every layer as the package computes them in the
    network's dtype.
    """
    return {name: counts[0].double() for name, counts in spike_counts(network, observation).items()}


def in_float64(network: SpikingNetwork) -> SpikingNetwork:
    """A copy whose stem and blocks compute in float64, batch norm and all; the heads stay as they
    are.
    """
    exact = copy.deepcopy(network).eval()
    exact.stem.double()
    exact.blocks.double()
    exact.stem.register_forward_pre_hook(lambda _, inputs: (inputs[0].double(),))
    return exact


def positions(count: int) -> Tensor:
    """float32 [count, 27, 8, 8]: chess positions from random games, half of them from starts of a
    few pieces.
    """
    game, generator, found = Chess(), torch.Generator().manual_seed(0), []
    starts = [game.starts(128, kind, generator) for kind in ("standard", "few-piece")]
    halves = list(starts)
    while sum(map(len, found)) < count + 1024:  # more than `count`: positions of many plies
        for number, before in enumerate(halves):
            mask = game.legal_action_mask(before)
            action = torch.where(mask, torch.rand(mask.shape, generator=generator), -1.0).argmax(1)
            state = game.step(before, action)
            found.append(game.observe(state)[~finished(state)])
            halves[number] = where(finished(state), starts[number], state)
    every = torch.cat(found)
    return every[torch.randperm(len(every), generator=generator)[:count]]


def differing(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> dict[str, int]:
    """By layer: how many neurons fire another number of spikes. Both are spikes [B, channels, H,
    W].
    """
    return {name: int((ours[name] != theirs[name]).sum()) for name in ours}


def compare(network: SpikingNetwork, observation: Tensor) -> dict[str, dict[str, float]]:
    """Totals over all positions by layer and form: neurons, spikes, additions, and neurons that
    differ.
    """
    events, exact = EventDriven(network), in_float64(network)
    single, half = actor_copy(network), actor_copy(network, torch.bfloat16)
    totals: dict[str, dict[str, float]] = {}

    def tell(figure: str, values: dict[str, int]) -> None:
        row = totals.setdefault(figure, {})
        for name, value in values.items():
            row[name] = row.get(name, 0) + value

    for batch in observation.split(BATCH):
        fired, additions = events.run(batch)
        counts = {name: spikes.sum(0).double() for name, spikes in fired.items()}
        tell("neurons", {name: spikes.numel() for name, spikes in counts.items()})
        tell("spikes", {name: int(spikes.sum()) for name, spikes in counts.items()})
        tell("additions", additions)
        tell("float64", differing(counts, package_spikes(exact, batch)))
        tell("float32", differing(counts, package_spikes(single, batch)))
        tell("bfloat16", differing(counts, package_spikes(half, batch)))
        with without_waiting(exact):
            waitless = [package_spikes(exact, batch) for _ in range(network.config.levels)]
        tell("pipelined", differing(counts, waitless[-1]))
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run folder, or one file of a network")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--positions", type=int, default=10_000)
    options = parser.parse_args()
    try:
        network, iteration = load_network(options.run, options.snapshot, "cpu")
        totals = compare(network, positions(options.positions))
    except ChessnnError as error:
        print(f"event_driven: {error}", file=sys.stderr)
        return 2
    count = options.positions
    print(
        f"{options.run}, iteration {iteration}, {count:,} positions; neurons that differ, by form"
    )
    forms = ("float64", "float32", "bfloat16", "pipelined")
    for name in (*totals["neurons"], "all"):
        row = {figure: values.get(name, sum(values.values())) for figure, values in totals.items()}
        shares = ", ".join(f"{form} {row[form] / row['neurons']:.4%}" for form in forms)
        print(f"{name}: {row['spikes'] / count:,.0f} spikes; {shares}")
    for name, additions in totals["additions"].items():
        print(f"{name}: {additions / count:,.0f} additions")
    print(f"all: {sum(totals['additions'].values()) / count:,.0f} additions")
    return 1 if any(totals["float64"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
