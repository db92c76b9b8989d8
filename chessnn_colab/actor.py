"""A network that looks ahead: joins a game, a network and the search, batched and on one device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from .games.base import ChanceGame, Game, finished, forced_wins, map_fields, select, winning_actions
from .network import SpikingNetwork, expected_value
from .search import (
    ILLEGAL,
    PolicyOutput,
    Root,
    SearchConfig,
    Step,
    padded,
    play_wins,
    sample_gumbel,
    sample_prior,
    two_rung,
)
from .shapes import check_shape
from .tree import CONSIDERED, Expansion, tree_search

# Columns kept for the root's likeliest legal actions. Hardly any position has more; what it loses
# is the prior's tail.
ROOT_ACTIONS = 128
TREE_ACTIONS = 64  # the same for every node of a tree
CACHED_ROWS = (
    256  # positions that a CPU's thread looks at in one go, so that they stay in its cache
)


class Actor:
    """Chooses actions for batches of states. `network` should be an `actor_copy`.

    considered: root actions that sequential halving of the tree begins with.
    """

    def __init__(
        self,
        game: Game,
        network: SpikingNetwork,
        config: SearchConfig,
        considered: int = CONSIDERED,
    ):
        self.game = game
        self.network = network
        self.config = (
            config if game.num_players == 2 else replace(config, solve="off")
        )  # a win takes two
        self.discount = game.discount
        self.considered = considered
        self.on_cpu = game.device.type == "cpu"
        self.chance = cast(ChanceGame, game) if game.chance else None
        self.columns = min(TREE_ACTIONS, game.num_actions)  # of every node of a tree

    @torch.no_grad()
    def act(
        self, state: Any, generator: torch.Generator, gumbel_scale: float = 1.0
    ) -> PolicyOutput:
        """One improved policy for every row of `state`; rows of finished games come out
        meaningless.

        gumbel_scale: 1 explores as in training, 0 always takes what looks best. `generator` is on
        the states' device.
        """
        check_shape("state.current_player", state.current_player, None)
        config = self.config
        if self.chance is not None:  # the search must not know what chance will do in the game
            rows = state.plies_played.shape
            # MPS draws numbers of 32 bits with a sign.
            largest = 2**31 - 1 if self.game.device.type == "mps" else 2**32
            fresh = torch.randint(largest, rows, generator=generator, device=self.game.device)
            state = self.chance.reseed(state, fresh)
        max_columns = self.columns
        min_columns = self.columns
        if config.search != "tree":
            max_columns = ROOT_ACTIONS
            # At play sums over a row are rounded alike, however wide the batch's widest row is.
            min_columns = 1 if gumbel_scale else min(ROOT_ACTIONS, self.game.num_actions)
        root = self.root(state, max_columns, min_columns)
        logits = root.prior_logits
        gumbel = (
            gumbel_scale * sample_gumbel(logits, generator)
            if gumbel_scale
            else torch.zeros_like(logits)
        )
        if config.search == "policy":
            return sample_prior(root, gumbel)
        if config.search == "tree":
            states = TreeStates(self, state, config.num_simulations + 1)
            output = tree_search(root, states.expand, config, gumbel, self.considered)
        else:
            output = two_rung(root, self.recurrent_fn, config, gumbel)
        if config.solve == "off":
            return output
        wins, plies = forced_wins(self.game, state)
        return play_wins(output, wins, self.discount ** (plies - 1))

    def root(self, state: Any, max_columns: int = ROOT_ACTIONS, min_columns: int = 1) -> Root:
        """The network's opinion of `state`: its likeliest legal actions (see likeliest) and its
        value.
        """
        rates, value_logits = self._look(state)
        value = expected_value(value_logits, self.game.score_limit)
        return Root(
            *self.likeliest(state, rates, max_columns, min_columns), value, Evaluated(state, rates)
        )

    def recurrent_fn(
        self, evaluated: Evaluated, rows: Tensor, action: Tensor | None
    ) -> tuple[Step, Evaluated]:
        """Play `action` [N], or each position's likeliest, in rows `rows` [N] of `evaluated`
        (search.RecurrentFn).
        """
        before = select(evaluated.state, rows)
        if action is None:
            actions, logits = self._policy(before, evaluated.rates, rows)
            action = actions.gather(1, logits.argmax(1, keepdim=True)).squeeze(1)
        if self.chance is not None:
            before = self.chance.reseed(before, torch.arange(len(rows), device=rows.device))
        return self.play(before, action)

    def play(self, before: Any, action: Tensor) -> tuple[Step, Evaluated]:
        """Play `action` [N] in `before` and look at what it leads to."""
        after = self.game.step(before, action)
        rates, value_logits = self._look(after)
        reward = after.rewards.gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        reward = torch.where(finished(before), 0.0, reward)
        same_player = after.current_player == before.current_player
        sign = torch.where(same_player, self.discount, -self.discount)
        discount = torch.where(after.terminated, 0.0, sign)
        value, proven = expected_value(value_logits, self.game.score_limit), None
        if (
            self.config.solve == "all" and self.on_cpu
        ):  # elsewhere sizes that follow the data cost too much
            proven = (winning_actions(self.game, after) >= 0) & ~finished(after)
            value = torch.where(proven, 1.0, value)
        return Step(reward, discount, value, proven), Evaluated(after, rates)

    def likeliest(
        self, state: Any, rates: Tensor, max_columns: int, min_columns: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Legal actions int64 [N, A] and their logits, ILLEGAL in spare columns;
        min_columns <= A <= max_columns.

        The likeliest are taken if there are more than `max_columns`.
        """
        actions, logits = self._policy(state, rates)
        if logits.shape[1] > max_columns:
            kept, columns = logits.topk(max_columns, dim=1)
            if self.on_cpu:  # in the order of a batch whose rows all fit
                columns = columns.sort(1).values
                kept = logits.gather(1, columns)
            logits, actions = kept, actions.gather(1, columns)
        return padded(actions, min_columns), padded(logits, min_columns, ILLEGAL)

    def _look(self, state: Any) -> tuple[Tensor, Tensor]:
        """SpikingNetwork.features_and_value of `state`; on a CPU in parts that stay in its cache from
        layer to layer.
        """
        rows = len(state.current_player)
        cached = CACHED_ROWS * torch.get_num_threads()
        if not self.on_cpu or rows <= cached:
            return self.network.features_and_value(self.game.observe(state))
        parts = [select(state, slice(first, first + cached)) for first in range(0, rows, cached)]
        rates, value_logits = zip(
            *(self.network.features_and_value(self.game.observe(part)) for part in parts)
        )
        return torch.cat(rates), torch.cat(value_logits)

    def _policy(
        self, state: Any, rates: Tensor, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `likeliest`, without limits. Position i has the rates of row rows[i], or of row i
        without `rows`.

        A CPU lists the legal actions (in chess some 30 of 4,672) and asks for their logits alone.
        Elsewhere the host would have to wait for their number, so all logits are computed and
        masked.
        """
        if not self.on_cpu:
            logits = self.network.prior_logits(
                rates if rows is None else rates.index_select(0, rows)
            )
            logits = torch.where(self.game.legal_action_mask(state), logits, ILLEGAL)
            return torch.arange(logits.shape[1], device=rates.device).expand_as(logits), logits
        listed, actions = self.game.legal_actions(state)
        logits = self.network.prior_logits_at(
            rates, listed if rows is None else rows[listed], actions
        )
        counts = torch.bincount(listed, minlength=len(state.current_player))
        places = listed, torch.arange(len(listed)) - (counts.cumsum(0) - counts)[listed]
        shape = len(counts), max(1, int(counts.max()))
        return (
            actions.new_zeros(shape).index_put(places, actions),
            logits.new_full(shape, ILLEGAL).index_put(places, logits),
        )


class Evaluated(NamedTuple):
    """Evaluated positions, with the last layer's firing rates; policy logits are computed from these
    on demand.
    """

    state: Any
    rates: Tensor  # float32 [N, channels, H, W]


class TreeStates:
    """The positions of the trees that grow from `state` [B]: node i of row b stands in row i * B +
    b.

    They are whole states, so that a line knows what it repeats. In chess a state takes 1.6 kB: half
    of it is the keys of earlier positions and a third the legal moves. 64 trees of 33 nodes take
    3.3 MB.
    """

    def __init__(self, actor: Actor, state: Any, nodes: int):
        self.actor = actor
        self.batch = len(state.current_player)
        self.states = map_fields(
            lambda field: field.new_empty((nodes * len(field), *field.shape[1:])), state
        )
        self._keep(state, 0)

    def expand(self, parent: Tensor, action: Tensor, node: int) -> Expansion:
        """tree.ExpandFn."""
        before = select(self.states, parent)
        if (
            self.actor.chance is not None
        ):  # an action tried again from the same node meets other chance
            before = self.actor.chance.reseed(before, torch.full_like(action, node))
        step, evaluated = self.actor.play(before, action)
        self._keep(evaluated.state, node)
        return Expansion(
            step, *self.actor.likeliest(evaluated.state, evaluated.rates, *[self.actor.columns] * 2)
        )

    def _keep(self, state: Any, node: int) -> None:
        first = node * self.batch
        map_fields(
            lambda kept, new: kept[first : first + self.batch].copy_(new), self.states, state
        )
