"""A network that looks ahead: joins a game, a network and the search, batched and on one device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .games.base import Game, select
from .network import SpikingNetwork, expected_value
from .search import ILLEGAL, PolicyOutput, Root, SearchConfig, Step, improve_policy

# Columns kept for the root's legal actions: the likeliest so many. Positions with more are all but unheard of, and
# what they lose is the tail of the prior.
ROOT_ACTIONS = 128


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
        return improve_policy(self.root(state), self.recurrent_fn, self.config, generator, gumbel_scale)

    def root(self, state: Any) -> Root:
        """The network's opinion of `state`: its likeliest legal actions, at most ROOT_ACTIONS, and its value."""
        rates = self.network.firing_rates(self.game.observe(state))
        logits, actions = self._prior(state, rates).topk(min(ROOT_ACTIONS, self.game.num_actions), dim=1)
        return Root(actions, logits, expected_value(self.network.wdl_logits(rates)), Seen(state, rates))

    def recurrent_fn(self, seen: "Seen", rows: Tensor, action: Tensor | None) -> tuple[Step, "Seen"]:
        """Play `action` [N], or each position's likeliest, in rows `rows` [N] of `seen` (search.RecurrentFn)."""
        before = select(seen.state, rows)
        if action is None:
            action = self._prior(before, seen.rates.index_select(0, rows)).argmax(1)
        after = self.game.step(before, action)
        rates = self.network.firing_rates(self.game.observe(after))
        reward = (after.rewards - before.rewards).gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        same_player = after.current_player == before.current_player
        sign = torch.where(same_player, self.discount, -self.discount)
        discount = torch.where(after.terminated, 0.0, sign)
        value = expected_value(self.network.wdl_logits(rates))
        return Step(reward, discount, value), Seen(after, rates)

    def _prior(self, state: Any, rates: Tensor) -> Tensor:
        return torch.where(self.game.legal_action_mask(state), self.network.prior_logits(rates), ILLEGAL)


class Seen(NamedTuple):
    """Positions and what the network's last neurons made of them, so that a policy is worked out only where needed."""

    state: Any
    rates: Tensor  # float32 [N, channels, 8, 8]
