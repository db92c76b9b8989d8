"""What a tree search has seen of one position, as plain objects to show: its candidates, the line
of play of each, and what the rules prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice

from .search import ILLEGAL, PolicyOutput


@dataclass(frozen=True)
class Branch:
    """An action that a search tried, as the player sees it who plays it."""

    action: int
    visits: int  # evaluations of what it leads to
    value: float  # what it is worth: -1 (a loss) to 1 (a win), or points
    # Plies to a win that the rules prove, minus those to a loss, 0 for a draw; None: not proven.
    proof: int | None
    replies: list[Branch]  # the best first

    @property
    def line(self) -> list[int]:
        """The line of play: the action, the best reply to it, and so on."""
        return [self.action, *(self.replies[0].line if self.replies else ())]

    def proof_words(self) -> str:
        """Such as "wins in 3 plies"; "" without a proof."""
        if not self.proof:
            return "" if self.proof is None else "draws"
        plies = "1 ply" if abs(self.proof) == 1 else f"{abs(self.proof)} plies"
        return f"{'wins' if self.proof > 0 else 'loses'} in {plies}"


def branches(output: PolicyOutput, discount: float) -> list[Branch]:
    """The actions that a search with a tree tried in its first position: the chosen one, then the
    others, the best first. Without a tree there are none. discount: the game's.
    """
    tree = output.tree
    if tree is None:
        return []
    tried = (tree.visits > 0) & (tree.prior_logits > ILLEGAL / 2)
    values = tree.q[:2][-1]
    arrays = tree.actions, tree.visits.int(), values, tree.q[0], tree.proven, tree.children
    edges = zip(*(array[tried].tolist() for array in arrays))
    edges_of = [list(islice(edges, count)) for count in tried.sum(1).tolist()]
    ends = (tree.discounts[0] == 0).tolist()  # a game that is over goes on in the tree

    def below(node: int) -> list[Branch]:
        found = []
        for action, visits, value, balance, proven, child in edges_of[node]:
            proof = None
            if proven:
                plies = 1 + round(math.log(abs(balance)) / math.log(discount)) if balance else 0
                proof = plies if balance > 0 else -plies
            replies = [] if ends[child] else below(child)
            found.append(Branch(action, visits, value, proof, replies))
        # Proven wins come first, the fastest before the others, and proven losses last.
        found.sort(
            key=lambda each: (1 / (each.proof or math.inf), each.visits, each.value), reverse=True
        )
        return found

    chosen = int(output.action[0])
    found = {branch.action: branch for branch in below(0)}
    if output.forced is not None and output.forced[0]:
        seen = found.get(chosen) or Branch(chosen, 0, 1.0, None, [])
        found[chosen] = replace(seen, value=1.0, proof=int(output.forced[0]))
    return sorted(found.values(), key=lambda branch: branch.action != chosen)
