"""A network that looks ahead: joins a game, a network and the search, batched and on one device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .games.base import Game, finished, select
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
        output = self.network(self.game.observe(state))
        logits = torch.where(self.game.legal_action_mask(state), output.prior_logits, ILLEGAL)
        logits, actions = logits.topk(min(ROOT_ACTIONS, logits.shape[1]), dim=1)
        return Root(actions, logits, expected_value(output.wdl_logits), state)

    def recurrent_fn(self, state: Any, rows: Tensor, action: Tensor, with_reply: bool) -> tuple[Step, Any]:
        """Play `action` [N] in rows `rows` [N] of `state` and look at what it led to (search.RecurrentFn)."""
        before = select(state, rows)
        after = self.game.step(before, action)
        observation = self.game.observe(after)
        best_action = None
        if with_reply:
            output = self.network(observation)
            value = expected_value(output.wdl_logits)
            mask = self.game.legal_action_mask(after)
            best_action = torch.where(mask, output.prior_logits, ILLEGAL).argmax(1)
        else:
            value = self.network.evaluate(observation)
        reward = (after.rewards - before.rewards).gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        same_player = after.current_player == before.current_player
        sign = torch.where(same_player, self.discount, -self.discount)
        discount = torch.where(after.terminated, 0.0, sign)
        return Step(reward, discount, value, best_action), after
