"""A network that looks ahead: joins a game, a network and the search, batched and on one device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .games.base import Game, map_fields, select
from .network import SpikingNetwork, expected_value
from .search import ILLEGAL, PolicyOutput, Root, SearchConfig, Step, improve_policy, sample_gumbel
from .tree import Expansion, tree_search

# Columns kept for the root's legal actions: the likeliest so many. Positions with more are all but unheard of, and
# what they lose is the tail of the prior.
ROOT_ACTIONS = 128
TREE_ACTIONS = 64   # the same for every node of a tree


class Actor:
    """Chooses actions for batches of states. `network` should be an `actor_copy`.

    discount: what a win is worth a ply later; below 1 the search prefers the quicker mate.
    """

    def __init__(self, game: Game, network: SpikingNetwork, config: SearchConfig, discount: float = 1.0):
        self.game = game
        self.network = network
        self.config = config
        self.discount = discount

    @torch.no_grad()
    def act(self, state: Any, generator: torch.Generator, gumbel_scale: float = 1.0) -> PolicyOutput:
        """One improved policy for every row of `state`; rows of finished games come out meaningless."""
        if self.config.search != "tree":
            return improve_policy(self.root(state), self.recurrent_fn, self.config, generator, gumbel_scale)
        root = self.root(state, TREE_ACTIONS)
        gumbel = gumbel_scale * sample_gumbel(root.prior_logits, generator)
        return tree_search(root, Branches(self, state, self.config.num_simulations + 1).expand, self.config, gumbel)

    def root(self, state: Any, columns: int = ROOT_ACTIONS) -> Root:
        """The network's opinion of `state`: its likeliest legal actions, at most `columns`, and its value."""
        rates = self.network.firing_rates(self.game.observe(state))
        actions, logits = self.likeliest(state, rates, columns)
        return Root(actions, logits, expected_value(self.network.wdl_logits(rates)), Seen(state, rates))

    def recurrent_fn(self, seen: "Seen", rows: Tensor, action: Tensor | None) -> tuple[Step, "Seen"]:
        """Play `action` [N], or each position's likeliest, in rows `rows` [N] of `seen` (search.RecurrentFn)."""
        before = select(seen.state, rows)
        if action is None:
            action = self._prior(before, seen.rates.index_select(0, rows)).argmax(1)
        return self.play(before, action)

    def play(self, before: Any, action: Tensor) -> tuple[Step, "Seen"]:
        """Play `action` [N] in `before` and look at what it leads to."""
        after = self.game.step(before, action)
        rates = self.network.firing_rates(self.game.observe(after))
        reward = (after.rewards - before.rewards).gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        same_player = after.current_player == before.current_player
        sign = torch.where(same_player, self.discount, -self.discount)
        discount = torch.where(after.terminated, 0.0, sign)
        value = expected_value(self.network.wdl_logits(rates))
        return Step(reward, discount, value), Seen(after, rates)

    def likeliest(self, state: Any, rates: Tensor, columns: int) -> tuple[Tensor, Tensor]:
        """The `columns` likeliest legal actions int64 [N, columns] and their logits, ILLEGAL beyond the last."""
        logits, actions = self._prior(state, rates).topk(min(columns, self.game.num_actions), dim=1)
        return actions, logits

    def _prior(self, state: Any, rates: Tensor) -> Tensor:
        return torch.where(self.game.legal_action_mask(state), self.network.prior_logits(rates), ILLEGAL)


class Seen(NamedTuple):
    """Positions and what the network's last neurons made of them, so that a policy is worked out only where needed."""

    state: Any
    rates: Tensor  # float32 [N, channels, 8, 8]


class Branches:
    """The positions of the trees that grow from `state` [B]: node i of row b in row i * B + b.

    Whole states, so that a line knows what it repeats: in chess 1.6 kB each, half of that the keys of earlier
    positions and a third the legal moves; 3.3 MB for 64 trees of 33 nodes.
    """

    def __init__(self, actor: Actor, state: Any, nodes: int):
        self.actor = actor
        self.batch = len(state.current_player)
        self.states = map_fields(lambda field: field.new_empty((nodes * len(field), *field.shape[1:])), state)
        self._keep(state, 0)

    def expand(self, parent: Tensor, action: Tensor, node: int) -> Expansion:
        """tree.ExpandFn."""
        before = select(self.states, parent)
        step, seen = self.actor.play(before, action)
        self._keep(seen.state, node)
        return Expansion(step, *self.actor.likeliest(seen.state, seen.rates, TREE_ACTIONS))

    def _keep(self, state: Any, node: int) -> None:
        first = node * self.batch
        map_fields(lambda kept, new: kept[first:first + self.batch].copy_(new), self.states, state)
