"""The full tree search: Gumbel MuZero's planning at the root, AlphaZero's below it, batched. It
does not depend on a game.

At the root sequential halving decides which action is tried next (Danihelka et al. 2022, section
5). Below it the action with the highest sum of what it is worth and a bonus for those tried seldom
is next (PUCT: Silver et al. 2017). Gumbel MuZero's own rule there, of appendix D, takes small
differences of noisy values for large ones: more evaluations hardly made it stronger (LOG.md,
2026-11-25). Every simulation adds one node to each row's tree, so all rows advance in lockstep with
one evaluation of B positions. Tests hold the trees equal to those of mctx
(https://github.com/google-deepmind/mctx) with the same rule below the root.

What a node tries next follows from its own numbers, and a simulation changes only the nodes on its
path. So each node stores its choice. Descending only reads these choices; afterwards one call
recomputes them for the whole path.

Chance: an action tried again leads to the outcome that it had the first time.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .search import (
    ILLEGAL,
    MAXVISIT_INIT,
    PolicyOutput,
    Root,
    SearchConfig,
    Step,
    check_root,
    score_considered,
)

UNVISITED = -1
MAX_DEPTH = 12  # plies that a simulation goes down at most
EXPLORATION = 1.0  # AlphaZero's c_puct


class Expansion(NamedTuple):
    """A new node of every row: what led there, and its own prior over `A` columns, as Root has
    it.
    """

    step: Step
    actions: Tensor  # int64 [B, A]
    prior_logits: Tensor  # float32 [B, A], ILLEGAL where a column is left over


# expand(parent int64 [B], action int64 [B], node) -> Expansion: play action[b] at parent[b] of row
# b's tree, and remember the position as row b's node number `node`. A parent is given as node * B +
# b; node 0 is the root.
ExpandFn = Callable[[Tensor, Tensor, int], Expansion]


class Tree:
    """B trees of N nodes with A columns per node. Node i of row b is row i * B + b of every array.

    Values, rewards, discounts and q have the K quantities of search.Root in front of these rows.
    The last row, `nowhere`, is the child of every line that has ended, and of itself, with reward 0
    and discount 1. So all rows of a batch descend equally far and come back up without a mask. A
    column takes 40 bytes: 64 rows of 33 nodes and 64 columns take 5.4 MB, besides the positions.
    """

    def __init__(self, root: Root, nodes: int):
        like, self.static = root.prior_logits, root.static
        self.batch, self.columns = like.shape
        self.nowhere = nodes * self.batch
        rows = self.nowhere + 1
        self.actions = like.new_zeros(rows, self.columns, dtype=torch.int64)
        self.children = torch.full_like(self.actions, UNVISITED)  # rows of these arrays
        self.children[self.nowhere] = self.nowhere
        self.prior_logits, self.prior, self.visits = (
            like.new_zeros(rows, self.columns) for _ in range(3)
        )
        quantities = len(root.value)
        self.q = like.new_zeros(quantities, rows, self.columns)
        self.raw_values, self.node_values, self.rewards = (
            like.new_zeros(quantities, rows) for _ in range(3)
        )
        self.discounts = like.new_ones(quantities, rows)
        self.node_visits = like.new_ones(rows)
        self.choice = like.new_zeros(rows, dtype=torch.int64)  # column to try next
        self.solved = like.new_zeros(rows, dtype=torch.bool)  # node_values is proven
        self.proven = torch.zeros_like(self.actions, dtype=torch.bool)  # q is proven
        self.roots = torch.arange(self.batch, device=like.device)
        self.add(0, root.actions, root.prior_logits, root.value)
        # Views of the roots' visits, of their first q, and of whether it is proven.
        self.root = self.visits[: self.batch], self.q[0, : self.batch], self.proven[: self.batch]

    def add(self, number: int, actions: Tensor, prior_logits: Tensor, value: Tensor) -> None:
        """Put node `number` into every tree."""
        rows = slice(number * self.batch, (number + 1) * self.batch)
        self.actions[rows], self.prior_logits[rows] = actions, prior_logits
        self.prior[rows] = prior_logits.softmax(1).clamp(min=torch.finfo(prior_logits.dtype).tiny)
        self.raw_values[:, rows] = self.node_values[:, rows] = value
        self.choice[rows] = prior_logits.argmax(1)

    def completed(self, config: SearchConfig) -> Tensor:
        """[B, A] sigma(completed q) at the roots: actions never tried count as worth the mixed
        value.
        """
        visits, q, _ = self.root
        tried = visits > 0
        total = visits.sum(1, keepdim=True)
        prior = self.prior[: self.batch] * tried
        tiny = torch.finfo(prior.dtype).tiny
        mean_q = (prior * q).sum(1, keepdim=True) / prior.sum(1, keepdim=True).clamp(min=tiny)
        mixed = (self.raw_values[0, : self.batch].unsqueeze(1) + total * mean_q) / (1 + total)
        q = torch.where(tried, q, mixed)
        low, high = q.amin(1, keepdim=True), q.amax(1, keepdim=True)
        scale = (MAXVISIT_INIT + visits.amax(1, keepdim=True)) * config.value_scale
        return (q - low) * (scale / (high - low).clamp(min=1e-8))


def tree_search(
    root: Root, expand: ExpandFn, config: SearchConfig, gumbel: Tensor, schedules: Tensor
) -> PolicyOutput:
    """`config.num_simulations` evaluations from every row of `root`; gumbel [B, A] is its noise.

    schedules: search.considered_visits_table of the root actions that sequential halving begins
    with, at most as many as there are columns.
    """
    check_root(root, gumbel)
    tree = Tree(root, config.num_simulations + 1)
    batch, logits = tree.batch, root.prior_logits
    legal = (logits > ILLEGAL / 2).sum(1).clamp(max=len(schedules) - 1)
    schedule = schedules[legal].to(gumbel.dtype).t()  # [num_simulations, B]
    completed = torch.zeros_like(gumbel)
    visits, q, proven = tree.root
    for simulation in range(config.num_simulations):
        scores = score_considered(schedule[simulation], gumbel, logits, completed, visits)
        tree.choice[:batch] = scores.argmax(1)
        path = _descend(tree, simulation + 1)
        _expand(tree, expand, path, simulation + 1)
        (_back_up_proofs if config.solve == "all" else _back_up)(tree, path)
        _choose(tree, path)
        completed = tree.completed(config)
    visits = torch.where(
        proven & (q < 0), -1.0, visits
    )  # a proven loss is chosen only where everything is lost
    column = score_considered(visits.amax(1), gumbel, logits, completed, visits).argmax(
        1, keepdim=True
    )
    best = torch.where(proven, q, -torch.inf).argmax(1, keepdim=True)
    column = torch.where(tree.solved[:batch].unsqueeze(1), best, column)
    weights = (logits + completed).softmax(1)
    value = tree.node_values[:, :batch]
    action = root.actions.gather(1, column).squeeze(1)
    return PolicyOutput(action, root.actions, weights, value, tree)


class Path(NamedTuple):
    """The path down each tree. Rows that stopped above a level are `nowhere` in it. An edge is node
    * A + column.
    """

    nodes: Tensor  # int64 [D, B], where each level began
    children: Tensor  # int64 [D, B], where it led
    edges: Tensor  # int64 [D, B], by which edge
    edge: Tensor  # int64 [B], the last
    # int64 [B], and its child: the new node, or one there already where the depth limit ended the
    # way
    leaf: Tensor


def _descend(tree: Tree, number: int) -> Path:
    """From each root by the nodes' choices over an edge not tried before, to node `number`, or to
    the depth limit.
    """
    node, nodes, children, edges = tree.roots, [], [], []
    for _ in range(min(number, MAX_DEPTH)):
        edge = node * tree.columns + tree.choice[node]
        child = tree.children.view(-1)[edge]
        new = child == UNVISITED
        for level, here in zip((nodes, children, edges), (node, child, edge)):
            level.append(here)
        node = torch.where(new, tree.nowhere, child)
        if not tree.static and bool((node == tree.nowhere).all()):
            break  # elsewhere this question would cost more than another level
    nodes, children, edges = torch.stack(nodes), torch.stack(children), torch.stack(edges)
    children = torch.where(children == UNVISITED, tree.roots + number * tree.batch, children)
    last = (nodes != tree.nowhere).sum(0, keepdim=True) - 1
    return Path(
        nodes,
        children,
        edges,
        edges.gather(0, last).squeeze(0),
        children.gather(0, last).squeeze(0),
    )


def _expand(tree: Tree, expand: ExpandFn, path: Path, number: int) -> None:
    """Evaluate what the last action of each path leads to, as node `number` of its tree."""
    parent = path.edge // tree.columns
    step, actions, prior_logits = expand(parent, tree.actions.view(-1)[path.edge], number)
    tree.add(number, actions, prior_logits, step.value)
    tree.children.view(-1)[path.edge] = path.leaf
    tree.rewards[:, path.leaf], tree.discounts[:, path.leaf] = step.reward, step.discount
    if step.proven is not None:
        tree.solved[number * tree.batch : (number + 1) * tree.batch] = step.proven


def _back_up(tree: Tree, path: Path) -> None:
    """Add the leaf's value to every node on its path, and to the q of the edges that were taken."""
    nodes, edges, children = path.nodes, path.edges, path.children
    rewards, discounts = tree.rewards[:, children], tree.discounts[:, children]  # [K, D, B]
    value, values = tree.node_values[:, path.leaf], []
    for level in reversed(range(len(nodes))):
        value = rewards[:, level] + discounts[:, level] * value
        values.insert(0, value)
    count = tree.node_visits[nodes]
    total = tree.node_values[:, nodes] * count + torch.stack(values, 1)
    tree.node_values[:, nodes] = total / (count + 1)
    tree.node_visits[nodes] = count + 1
    tree.q.flatten(1)[:, edges] = rewards + discounts * tree.node_values[:, children]
    tree.visits.view(-1)[edges] += 1


def _back_up_proofs(tree: Tree, path: Path) -> None:
    """As _back_up, level by level, and what the rules prove is kept apart from what the network
    guesses.

    An end of the game and a node that is solved prove the q of the action before them. A node is
    solved by an action that is proven to win, or when all its actions are proven; its value is then
    the best of these. What is proven to lose is left out of the mean of a node that is not solved
    (MCTS-Solver: Winands, Bjornsson and Saito 2008).
    """
    for node, child, edge in zip(path.nodes.flip(0), path.children.flip(0), path.edges.flip(0)):
        known = (tree.discounts[0, child] == 0) | tree.solved[child]
        tree.q.flatten(1)[:, edge] = (
            tree.rewards[:, child] + tree.discounts[:, child] * tree.node_values[:, child]
        )
        tree.proven.view(-1)[edge] = known
        tree.visits.view(-1)[edge] += 1
        tree.node_visits[node] += 1
        q, proven, there = tree.q[:, node], tree.proven[node], tree.prior_logits[node] > ILLEGAL / 2
        counted = torch.where(proven & (q[0] < 0), 0.0, tree.visits[node])
        mean = (tree.raw_values[:, node] + (counted * q).sum(2)) / (1 + counted.sum(1))
        # A node with all columns in use may have more actions than columns.
        all_known = (proven | ~there).all(1) & ~there.all(1)
        solved = ((proven & (q[0] > 0)).any(1) | all_known) & (node != tree.nowhere)
        best = torch.where(proven, q[0], -torch.inf).argmax(1)
        value = torch.where(solved, q[:, tree.roots, best], mean)
        before = tree.solved[node]
        tree.node_values[:, node] = torch.where(before, tree.node_values[:, node], value)
        tree.solved[node] = before | solved


def _choose(tree: Tree, path: Path) -> None:
    """Choose anew at the nodes of the path below the roots.

    An action never tried counts as worth its node. The bonus is in units of 1, or of the spread of
    what the node's actions are worth where that is more: points need no other rule than chances.
    """
    below = path.nodes[1:].flatten()
    visits, q = tree.visits.index_select(0, below), tree.q[0].index_select(0, below)
    worth = torch.where(visits > 0, q, tree.node_values[0, below].unsqueeze(1))
    unit = (worth.amax(1, keepdim=True) - worth.amin(1, keepdim=True)).clamp(min=1.0)
    unit *= EXPLORATION * tree.node_visits[below].sqrt().unsqueeze(1)
    scores = worth + unit * tree.prior.index_select(0, below) / (1 + visits)
    there = tree.prior_logits.index_select(0, below) > ILLEGAL / 2
    lost = tree.proven.index_select(0, below) & (q < 0)
    tree.choice[below] = torch.where(there & ~lost, scores, ILLEGAL).argmax(1)
