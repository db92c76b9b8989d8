"""The full Gumbel tree search: Gumbel MuZero's planning with mctx's semantics, batched, knowing no game.

At the root sequential halving decides which action is tried next; below it the action whose share of visits lags
most behind the improved policy softmax(logits + completed q) (Danihelka et al. 2022, section 5 and appendix D). Every
simulation adds one node to each row's tree, so all rows advance in lockstep with one evaluation of B positions. The
reference is mctx.gumbel_muzero_policy with qtransform_completed_by_mix_value
(https://github.com/google-deepmind/mctx); tests hold the trees equal to its own.
"""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

import torch
from torch import Tensor

from .search import ILLEGAL, PolicyOutput, Root, SearchConfig, Step

UNVISITED = -1


class Expansion(NamedTuple):
    """A new node of every row: what led there, and its own prior over `A` columns, as Root has it."""

    step: Step
    actions: Tensor       # int64 [B, A]
    prior_logits: Tensor  # float32 [B, A], ILLEGAL where a column is left over


# expand(parent int64 [B], action int64 [B], node) -> Expansion: play action[i] at node parent[i] of row i's tree, and
# remember the position as that row's node `node` (0 is the root). The same number may be given twice.
ExpandFn = Callable[[Tensor, Tensor, int], Expansion]


class Tree:
    """B trees of N nodes and A columns a node; node i of row b is row b * N + i of every array.

    Memory is 33 bytes a column: 64 rows of 33 nodes and 64 columns take 4.5 MB, besides the positions.
    """

    def __init__(self, root: Root, nodes: int):
        batch, columns = root.prior_logits.shape
        self.batch, self.nodes = batch, nodes
        like = root.prior_logits
        self.base = torch.arange(batch, device=like.device) * nodes  # [B], each row's root
        size = batch * nodes
        self.actions = torch.zeros(size, columns, dtype=torch.int64, device=like.device)
        self.children = torch.full_like(self.actions, UNVISITED)  # node numbers within the row
        self.prior_logits, self.visits, self.values, self.rewards, self.discounts = (
            like.new_zeros(size, columns) for _ in range(5))
        self.node_visits, self.node_values, self.raw_values = (like.new_zeros(size) for _ in range(3))
        self.add(self.base, root.actions, root.prior_logits, root.value)

    def add(self, rows: Tensor, actions: Tensor, prior_logits: Tensor, value: Tensor) -> None:
        """Put nodes into array rows `rows` [B]."""
        self.actions[rows], self.prior_logits[rows] = actions, prior_logits
        self.raw_values[rows] = self.node_values[rows] = value
        self.node_visits[rows] += 1

    def completed(self, rows: Tensor, config: SearchConfig) -> Tensor:
        """[B, A] sigma(completed q) at nodes `rows`: actions never tried count as worth the mixed value."""
        visits, logits = self.visits[rows], self.prior_logits[rows]
        tried = visits > 0
        q = self.rewards[rows] + self.discounts[rows] * self.values[rows]
        prior = logits.softmax(1).clamp(min=torch.finfo(logits.dtype).tiny) * tried
        mean_q = (prior * q).sum(1) / torch.where(tried.any(1), prior.sum(1), 1.0)
        total = visits.sum(1)
        mixed = (self.raw_values[rows] + total * mean_q) / (1 + total)
        q = torch.where(tried, q, mixed.unsqueeze(1))
        low, high = q.amin(1, keepdim=True), q.amax(1, keepdim=True)
        scale = (config.maxvisit_init + visits.amax(1, keepdim=True)) * config.value_scale
        return scale * (q - low) / (high - low).clamp(min=1e-8)


def tree_search(root: Root, expand: ExpandFn, config: SearchConfig, gumbel: Tensor) -> PolicyOutput:
    """`config.num_simulations` evaluations from every row of `root`; gumbel [B, A] is its noise."""
    tree = Tree(root, config.num_simulations + 1)
    considered = min(config.max_num_considered_actions, root.prior_logits.shape[1])
    table = torch.tensor(considered_visits_table(considered, config.num_simulations), device=gumbel.device)
    legal = (root.prior_logits > ILLEGAL / 2).sum(1).clamp(max=considered)
    schedule = table[legal].to(gumbel.dtype)  # [B, num_simulations]
    for simulation in range(config.num_simulations):
        path = _descend(tree, schedule[:, simulation], gumbel, config, simulation)
        _expand(tree, expand, path, simulation + 1)
        _back_up(tree, path)
    completed = tree.completed(tree.base, config)
    visits = tree.visits[tree.base]
    column = _score(visits.amax(1), gumbel, root.prior_logits, completed, visits).argmax(1, keepdim=True)
    weights = (root.prior_logits + completed).softmax(1)
    return PolicyOutput(root.actions.gather(1, column).squeeze(1), root.actions, weights, tree.node_values[tree.base])


class Path(NamedTuple):
    """The way down each tree, a list entry a level; rows that stopped earlier repeat their last level."""

    nodes: list[Tensor]    # int64 [B], array rows
    columns: list[Tensor]  # int64 [B, 1], the action taken at each
    going: list[Tensor]    # bool [B], False in rows that had stopped before this level


def _descend(tree: Tree, considered_visit: Tensor, gumbel: Tensor, config: SearchConfig, simulation: int) -> Path:
    """From each root by the selection rules to an action not tried before, or to the depth limit."""
    node, path = tree.base, Path([], [], [])
    going = torch.ones_like(node, dtype=torch.bool)
    column = torch.zeros_like(node).unsqueeze(1)
    for depth in range(min(simulation + 1, config.max_depth)):
        if depth == 0:
            visits = tree.visits[node]
            scores = _score(considered_visit, gumbel, tree.prior_logits[node], tree.completed(node, config), visits)
        elif going.device.type == "cpu" and not going.any():  # elsewhere asking would cost more than going on
            break
        else:
            visits = tree.visits[node]
            improved = (tree.prior_logits[node] + tree.completed(node, config)).softmax(1)
            scores = improved - visits / (1 + visits.sum(1, keepdim=True))
        column = torch.where(going.unsqueeze(1), scores.argmax(1, keepdim=True), column)
        for level, new in zip(path, (node, column, going)):
            level.append(new)
        child = tree.children[node].gather(1, column).squeeze(1)
        going = going & (child != UNVISITED)
        node = torch.where(going, tree.base + child, node)
    return path


def _expand(tree: Tree, expand: ExpandFn, path: Path, number: int) -> None:
    """Evaluate what the last action of each path leads to, as node `number` of its tree."""
    node, column = path.nodes[-1], path.columns[-1]
    action = tree.actions[node].gather(1, column).squeeze(1)
    step, actions, prior_logits = expand(node - tree.base, action, number)
    tree.add(tree.base + number, actions, prior_logits, step.value)
    column = column.squeeze(1)
    child = tree.children[node, column]  # there already where the depth limit ended the descent
    tree.children[node, column] = torch.where(child == UNVISITED, number, child)
    tree.rewards[node, column], tree.discounts[node, column] = step.reward, step.discount


def _back_up(tree: Tree, path: Path) -> None:
    """Add the new node's value to every node on its path."""
    child = tree.base + tree.children[path.nodes[-1]].gather(1, path.columns[-1]).squeeze(1)
    value = tree.node_values[child]
    for node, column, going in zip(*(reversed(level) for level in path)):
        column = column.squeeze(1)
        child = torch.where(going, tree.base + tree.children[node, column], child)
        backed_up = tree.rewards[node, column] + tree.discounts[node, column] * value
        value = torch.where(going, backed_up, value)
        count = tree.node_visits[node]
        mean = (tree.node_values[node] * count + value) / (count + 1)
        tree.node_values[node] = torch.where(going, mean, tree.node_values[node])
        tree.node_visits[node] = count + going
        tree.values[node, column] = torch.where(going, tree.node_values[child], tree.values[node, column])
        tree.visits[node, column] += going


def _score(considered_visit: Tensor, gumbel: Tensor, logits: Tensor, completed: Tensor, visits: Tensor) -> Tensor:
    """[B, A]: gumbel + logits + sigma(q) of the actions visited `considered_visit` [B] times, the others' far below."""
    logits = logits - logits.amax(1, keepdim=True)
    scores = (gumbel + logits + completed).clamp(min=ILLEGAL)
    scores = torch.where(logits > ILLEGAL / 2, scores, 2 * ILLEGAL)
    return torch.where(visits == considered_visit.unsqueeze(1), scores, 4 * ILLEGAL)


def considered_visits_table(most: int, num_simulations: int) -> list[list[int]]:
    """[most + 1, num_simulations]: by number of actions considered, the visit count of those to try next."""
    return [considered_visits(considered, num_simulations) for considered in range(most + 1)]


def considered_visits(considered: int, num_simulations: int) -> list[int]:
    """Sequential halving's schedule: every action once, again, ..., then the better half of them, and so on to two."""
    if considered <= 1:
        return list(range(num_simulations))
    rungs, visits, sequence = math.ceil(math.log2(considered)), [0] * considered, []
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (rungs * considered))):
            sequence += visits[:considered]
            visits[:considered] = [count + 1 for count in visits[:considered]]
        considered = max(2, considered // 2)
    return sequence[:num_simulations]
