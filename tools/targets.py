"""What a policy target of a search is worth, and how much of it is noise.

    python tools/targets.py [RUN] [--positions 200] [--simulations 64]

The positions are of the network's own play. What a move is worth there is said by a tree of
`simulations` evaluations after each legal move. The gain of a target is its expected worth less
that of the network's policy. `best` is the gain of the best move. Three columns say how much of a
target's mass moves: between two draws of noise, between a position and its mirror image, and
between float32 and bfloat16.

A target that gains more, and moves less, may teach more; only games show it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from chessnn_colab import search
from chessnn_colab.actor import ROOT_ACTIONS, Actor
from chessnn_colab.games.base import finished, select
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.chess.symmetry import may_mirror, mirror_packed
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.records import GameRecords
from chessnn_colab.runs.networks import load_network, shipped_networks
from chessnn_colab.search import ILLEGAL, Root, SearchConfig
from chessnn_colab.selfplay import Play

ROWS = 64  # positions that are searched together
Rescale = Callable[[Tensor, Tensor, Tensor], Tensor]


def least_range(least: float) -> Rescale:
    """search.rescale with a range of q that is at least `least`."""

    def rescale(q: Tensor, legal: Tensor, value: Tensor) -> Tensor:
        value = value.unsqueeze(1)
        q = torch.where(legal, q, value)
        low = torch.minimum(q.amin(1, keepdim=True), value)
        high = torch.maximum(q.amax(1, keepdim=True), value)
        return (q - low) / (high - low).clamp(min=least) * legal

    return rescale


def as_it_is(q: Tensor, legal: Tensor, value: Tensor) -> Tensor:
    """q without rescaling."""
    return torch.where(legal, q, value.unsqueeze(1))


class Variant(NamedTuple):
    """A search that makes targets."""

    name: str
    config: SearchConfig
    rescale: Rescale = search.rescale
    temperature: float = 1.0  # of the prior at the root
    both_sides: bool = False  # a position is worth the mean of itself and its mirror image


USUAL = SearchConfig()
VARIANTS = [
    Variant("8+4", USUAL),
    *(Variant(f"{n}+{n // 2}", replace(USUAL, candidates=n, survivors=n // 2)) for n in (16, 24)),
    Variant("tree of 32", SearchConfig(search="tree", num_simulations=32)),
    *(Variant(f"8+4, scale {s:g}", replace(USUAL, value_scale=s)) for s in (0.1, 0.15, 0.6)),
    *(Variant(f"8+4, least range {r:g}", USUAL, least_range(r)) for r in (0.25, 0.5)),
    *(
        Variant(f"8+4, not rescaled, {s:g}", replace(USUAL, value_scale=s), as_it_is)
        for s in (0.5, 1.0, 2.0)
    ),
    *(Variant(f"8+4, temperature {t:g}", USUAL, temperature=t) for t in (1.1, 1.25, 1.5)),
    Variant("8+4, both sides", USUAL, both_sides=True),
    Variant("tree of 32, both sides", SearchConfig(search="tree"), both_sides=True),
]


class Searcher(Actor):
    """An actor with a temperature at its root, and with values of both sides of the board."""

    temperature = 1.0
    both_sides = False

    def root(self, state: Any, max_columns: int = ROOT_ACTIONS, min_columns: int = 1) -> Root:
        """Actor.root with the prior's logits divided by the temperature."""
        root = super().root(state, max_columns, min_columns)
        return root._replace(
            prior_logits=torch.where(
                root.prior_logits > ILLEGAL / 2,
                root.prior_logits / self.temperature,
                root.prior_logits,
            )
        )

    def _look(self, state: Any) -> tuple[Tensor, Tensor]:
        rates, logits = super()._look(state)
        if not self.both_sides:
            return rates, logits
        packed = self.game.pack(state)
        image = self.game.unpack(mirror_packed(packed))
        _, other = super()._look(image)
        mean = ((logits.softmax(1) + other.softmax(1)) / 2).log()
        return rates, torch.where(may_mirror(packed).unsqueeze(1), mean, logits)


@contextmanager
def rescaled(rescale: Rescale) -> Iterator[None]:
    """Searches rescale q so."""
    usual = search.rescale
    search.rescale = rescale
    try:
        yield
    finally:
        search.rescale = usual


def own_positions(game: Chess, network: SpikingNetwork, count: int) -> Any:
    """`count` unfinished positions of the network's games with itself."""
    parts: list[GameRecords] = []

    def keep(_: int, __: int, records: GameRecords) -> bool:
        parts.append(records)
        return True

    Play(Actor(game, actor_copy(network), USUAL), 32, seed=0, limit=32).run(10**9, keep)
    positions = torch.from_numpy(GameRecords.concatenate(parts).positions)
    order = torch.randperm(len(positions), generator=torch.Generator().manual_seed(0))
    return game.unpack(positions[order[:count]])


def targets(
    game: Chess, network: SpikingNetwork, variant: Variant, state: Any, seed: int = 0
) -> Tensor:
    """float32 [B, A]: the policy that a variant's search teaches."""
    actor = Searcher(game, network, variant.config)
    actor.temperature, actor.both_sides = variant.temperature, variant.both_sides
    generator = torch.Generator().manual_seed(seed)
    with rescaled(variant.rescale):
        output = actor.act(state, generator)
    weights = torch.zeros(len(output.actions), game.num_actions)
    return weights.scatter_add(1, output.actions, output.action_weights)


def worths(game: Chess, network: SpikingNetwork, state: Any, simulations: int) -> Tensor:
    """float32 [B, A]: what each legal move is worth to the mover, by a tree after it; else 0."""
    deep = SearchConfig(search="tree", num_simulations=simulations, value_scale=0.15)
    actor = Actor(game, network, deep)
    rows, actions = game.legal_actions(state)
    found = torch.zeros(len(state.current_player), game.num_actions)
    for part in torch.arange(len(rows)).split(8 * ROWS):
        before = select(state, rows[part])
        after = game.step(before, actions[part])
        reward = after.rewards.gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        value = actor.act(after, torch.Generator(), gumbel_scale=0.0).value[0]
        worth = torch.where(finished(after), reward, -value)
        found[rows[part], actions[part]] = worth
    return found


def moved(one: Tensor, other: Tensor) -> float:
    """The share of a policy's mass that lies elsewhere in another, in the mean over rows."""
    return float((one - other).abs().sum(1).mean()) / 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", help="a run; by default the network that comes with us")
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(1)
    last = list(shipped_networks().values())[-1]
    trained = load_network(options.run, None, "cpu")[0] if options.run else last
    game = Chess()
    network = actor_copy(trained.eval())
    halved = actor_copy(trained.eval(), torch.bfloat16)
    state = own_positions(game, trained.eval(), options.positions)
    worth = worths(game, network, state, options.simulations)
    legal = game.legal_action_mask(state)
    prior = Actor(game, network, replace(USUAL, search="policy"))
    output = prior.act(state, torch.Generator(), gumbel_scale=0.0)
    policy = torch.zeros_like(worth).scatter_add(1, output.actions, output.action_weights)
    base = (policy * worth).sum(1)
    best = torch.where(legal, worth, -torch.inf).amax(1) - base
    top = worth.gather(1, policy.argmax(1, keepdim=True)).squeeze(1) - base
    packed = game.pack(state)
    symmetric = may_mirror(packed)
    image = game.unpack(mirror_packed(packed[symmetric]))
    back = game.action_images[1]
    print("| target | gain (95 %) | other noise | mirror image | bfloat16 |\n|---|---|---|---|---|")
    for name, gain in (("best", best), ("the prior's likeliest", top)):
        print(f"| {name} | {mean_text(gain)} | | | |")
    for variant in VARIANTS:
        target = targets(game, network, variant, state)
        noise = moved(target, targets(game, network, variant, state, seed=1))
        precision = moved(target, targets(game, halved, variant, state))
        mirrored = targets(game, network, variant, image)[:, back]
        plain = targets(game, network, variant, select(state, symmetric.nonzero().squeeze(1)))
        gain = ((target - policy) * worth).sum(1)
        print(
            f"| {variant.name} | {mean_text(gain)} | {noise:.0%} | {moved(plain, mirrored):.0%} | "
            f"{precision:.0%} |",
            flush=True,
        )


def mean_text(gains: Tensor) -> str:
    """The mean with the half of its 95 % interval."""
    values = gains.tolist()
    spread = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):+.4f} ± {spread:.4f}"


if __name__ == "__main__":
    main()
