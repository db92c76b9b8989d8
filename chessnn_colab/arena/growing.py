"""A search that can stop at any time: one tree after the other, each twice as large as the one before.

The answer is that of the last tree that was complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..actor import Actor, Branches
from ..search import PolicyOutput
from ..tree import Expansion, tree_search

FIRST_TREE = 16  # simulations of the smallest search
MOST_SIMULATIONS = 4096  # of the largest, because its tree is in memory whole


class Stopped(Exception):
    """This search must end: the time is up, or somebody said so."""


def tree_sizes(most: int) -> list[int]:
    """Simulations of each tree: 16, 32 and so on, the last with `most`."""
    return [FIRST_TREE << doubled for doubled in range(32) if FIRST_TREE << doubled < most] + [most]


def grown_tree(actor: Actor, state: Any, num_simulations: int, before: Callable[[], None]) -> PolicyOutput:
    """The policy of a tree of so many simulations for `state`.

    before: is called in front of each evaluation of the network; when it raises Stopped, the tree is given up.
    """
    config = replace(actor.config, num_simulations=num_simulations)
    branches = Branches(actor, state, num_simulations + 1)

    def expand(parent: Tensor, action: Tensor, node: int) -> Expansion:
        before()
        return branches.expand(parent, action, node)

    with torch.no_grad():
        before()
        root = actor.root(state, actor.columns, actor.columns)
        return tree_search(root, expand, config, torch.zeros_like(root.prior_logits))
