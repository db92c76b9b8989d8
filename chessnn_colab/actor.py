"""A network that looks ahead: joins a game, a network and the search, batched and on one device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from .chances import carried, quantities
from .games.base import ChanceGame, Game, finished, forced_wins, select, winning_actions
from .graphs import Graphs, Replays, map_tensors
from .network import SpikingNetwork
from .search import (
    ILLEGAL,
    PolicyOutput,
    Root,
    SearchConfig,
    Step,
    best_action,
    considered_visits_table,
    padded,
    play_wins,
    sample_gumbel,
    sample_prior,
    two_rung,
)
from .shapes import check_shape
from .tree import Expansion, tree_search

# Columns kept for the root's likeliest legal actions. Hardly any position has more; what it loses
# is the prior's tail.
ROOT_ACTIONS = 128
TREE_ACTIONS = 64  # the same for every node of a tree
CONSIDERED = 16  # root actions that sequential halving of the tree begins with
CACHED_ROWS = (
    256  # positions that a CPU's thread looks at in one go, so that they stay in its cache
)


class Noise(NamedTuple):
    """What chance decides in a ply, drawn before it: the ply itself is then a pure function."""

    gumbel: Tensor  # float32 [B, A], explores at the root
    key: Tensor | None  # int64 [B], of the chance in the search, where the game has chance


class Actor:
    """Chooses actions for batches of states. `network` should be an `actor_copy`.

    static: no size follows from the data, so that the host never waits; None: on every device but
    the CPU.
    """

    def __init__(
        self, game: Game, network: SpikingNetwork, config: SearchConfig, static: bool | None = None
    ):
        self.game = game
        self.network = network
        self.discount = game.discount
        self.static = game.device.type != "cpu" if static is None else static
        self.chance = cast(ChanceGame, game) if game.chance else None
        self.columns = min(TREE_ACTIONS, game.num_actions)  # of every node of a tree
        self.considered = min(CONSIDERED, self.columns)
        self.replays = Replays(Graphs(False, fewer_may_fit=False))  # of searches, which are pure
        self.look_ahead(config)

    def look_ahead(self, config: SearchConfig) -> None:
        """Search as `config` says from now on."""
        # A game for one player has no wins to prove.
        self.config = config if self.game.num_players == 2 else replace(config, solve="off")
        self.schedules = considered_visits_table(
            self.considered, config.num_simulations, self.game.device
        )
        most = TREE_ACTIONS if config.search == "tree" else ROOT_ACTIONS
        self.root_columns = min(most, self.game.num_actions)  # at most
        self.replays = Replays(replace(self.replays.graphs, proofs={}))

    def draw(self, rows: int, generator: torch.Generator, gumbel_scale: float = 1.0) -> Noise:
        """The chance in one ply of `rows` positions. `generator` is on the states' device.

        gumbel_scale: 1 explores as in training, 0 always takes what looks best.
        """
        device = self.game.device
        shape = rows, self.root_columns
        gumbel = torch.zeros(shape, device=device)
        if gumbel_scale:
            gumbel = gumbel_scale * sample_gumbel(gumbel, generator)
        key = None
        if self.chance is not None:
            # MPS draws numbers of 32 bits with a sign.
            largest = 2**31 - 1 if device.type == "mps" else 2**32
            key = torch.randint(largest, (rows,), generator=generator, device=device)
        return Noise(gumbel, key)

    def act(
        self, state: Any, generator: torch.Generator, gumbel_scale: float = 1.0
    ) -> PolicyOutput:
        """One improved policy for every row of `state`, with noise as in `draw`."""
        check_shape("state.current_player", state.current_player, None)
        noise = self.draw(len(state.current_player), generator, gumbel_scale)
        # At play sums over a row are rounded alike, however wide the batch's widest row is.
        return self.improve(state, noise, 1 if gumbel_scale else self.root_columns)

    @torch.no_grad()
    def improve(self, state: Any, noise: Noise, min_columns: int = 1) -> PolicyOutput:
        """One improved policy for every row of `state`; rows of finished games come out
        meaningless. The same arguments give the same policy.

        min_columns: the policy has at least so many. With solve="all" the host waits for the wins
        that the rules prove at the root.
        """
        output = self.replays(self.search, len(noise.gumbel), state, noise, min_columns)
        if self.config.solve == "off" or self.config.search == "policy":
            return output
        wins, plies = forced_wins(self.game, state)
        sure = torch.ones_like(output.value[0])
        worth = torch.stack((self.discount ** (plies - 1), sure, sure))
        return play_wins(output, wins, worth)._replace(forced=torch.where(wins < 0, 0, plies))

    def search(self, state: Any, noise: Noise, min_columns: int = 1) -> PolicyOutput:
        """`improve` without the wins proved at the root. On a GPU the host never waits in it."""
        config = self.config
        if self.chance is not None:  # the search must not know what chance will do in the game
            assert noise.key is not None
            state = self.chance.reseed(state, noise.key)
        if config.search == "tree":
            min_columns = self.columns
        root = self.root(state, self.root_columns, min_columns)
        gumbel = noise.gumbel[:, : root.actions.shape[1]]
        if config.search == "policy":
            return sample_prior(root, gumbel)
        if config.search == "tree":
            states = TreeStates(self, state, config.num_simulations + 1)
            return tree_search(root, states.expand, config, gumbel, self.schedules)
        return two_rung(root, self.recurrent_fn, config, gumbel)

    def root(self, state: Any, max_columns: int = ROOT_ACTIONS, min_columns: int = 1) -> Root:
        """The network's opinion of `state`: its likeliest legal actions (see likeliest) and its
        value.
        """
        rates, value_logits = self._look(state)
        value = quantities(value_logits, self.game.score_limit)
        actions, logits = self.likeliest(state, rates, max_columns, min_columns)
        return Root(actions, logits, value, Evaluated(state, rates), self.static)

    def recurrent_fn(
        self, evaluated: Evaluated, rows: Tensor, action: Tensor | None
    ) -> tuple[Step, Evaluated]:
        """Play `action` [N], or each position's likeliest, in rows `rows` [N] of `evaluated`
        (search.RecurrentFn).
        """
        before = select(evaluated.state, rows)
        if action is None:
            actions, logits = self._policy(before, evaluated.rates, rows)
            action = best_action(actions, logits)
        return self.play(before, action)

    def play(self, before: Any, action: Tensor) -> tuple[Step, Evaluated]:
        """Play `action` [N] in `before` and look at what it leads to. Chance follows from the
        position and the action.
        """
        if self.chance is not None:
            before = self.chance.reseed(before, action)
        after = self.game.step(before, action)
        rates, value_logits = self._look(after)
        reward = after.rewards.gather(1, before.current_player.unsqueeze(1)).squeeze(1)
        reward = torch.where(finished(before), 0.0, reward).unsqueeze(0)
        same_player = after.current_player == before.current_player
        sign = torch.where(same_player, self.discount, -self.discount)
        discount = torch.where(after.terminated, 0.0, sign).unsqueeze(0)
        if not self.game.score_limit:
            reward, discount = carried(reward[0], discount[0])
        value, proven = quantities(value_logits, self.game.score_limit), None
        if self.config.solve == "all":
            proven = (winning_actions(self.game, after, self.static) >= 0) & ~finished(after)
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
            if not self.static:  # in the order of a batch whose rows all fit
                columns = columns.sort(1).values
                kept = logits.gather(1, columns)
            logits, actions = kept, actions.gather(1, columns)
        return padded(actions, min_columns), padded(logits, min_columns, ILLEGAL)

    def _look(self, state: Any) -> tuple[Tensor, Tensor]:
        """SpikingNetwork.features_and_value of `state`; on a CPU in parts that stay in its cache
        from layer to layer.
        """
        rows = len(state.current_player)
        cached = rows if self.static else CACHED_ROWS * torch.get_num_threads()
        if rows <= cached:
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
        if self.static:
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
    """Evaluated positions, with the last layer's firing rates; policy logits are computed from
    these on demand.
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
        self.states = map_tensors(
            lambda field: field.new_empty((nodes * len(field), *field.shape[1:])), state
        )
        self._keep(state, 0)

    def expand(self, parent: Tensor, action: Tensor, node: int) -> Expansion:
        """tree.ExpandFn."""
        step, evaluated = self.actor.play(select(self.states, parent), action)
        self._keep(evaluated.state, node)
        return Expansion(
            step, *self.actor.likeliest(evaluated.state, evaluated.rates, *[self.actor.columns] * 2)
        )

    def _keep(self, state: Any, node: int) -> None:
        first = node * self.batch
        map_tensors(
            lambda kept, new: kept[first : first + self.batch].copy_(new), self.states, state
        )
