"""What a tree search has seen of one position, as plain objects to show: its candidates, the line of
play of each, and what the rules prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        return f"{'wins' if self.proof > 0 else 'loses'} in {abs(self.proof)} plies"


def branches(output: PolicyOutput, discount: float) -> list[Branch]:
    """The actions that a search with a tree tried in its first position: the chosen one, then the
    others, the best first. Without a tree there are none. discount: the game's.
    """
    tree = output.tree
    if tree is None:
        return []
    values = tree.q[:2][-1]
    arrays = tree.actions, tree.visits.int(), values, tree.q[0], tree.proven, tree.prior_logits
    columns = [array.tolist() for array in (*arrays, tree.children)]

    def below(node: int) -> list[Branch]:
        found = []
        for action, visits, value, balance, proven, logit, child in zip(
            *(column[node] for column in columns)
        ):
            if visits and logit > ILLEGAL / 2:
                proof = _plies(balance, discount) if proven else None
                found.append(Branch(action, visits, value, proof, below(child)))
        return sorted(found, key=_rank, reverse=True)

    chosen = int(output.action[0])
    found = {branch.action: branch for branch in below(0)}
    if output.forced is not None and output.forced[0]:
        tried = found.get(chosen) or Branch(chosen, 0, 1.0, None, [])
        found[chosen] = replace(tried, proof=int(output.forced[0]))
    return sorted(found.values(), key=lambda branch: branch.action != chosen)


def _plies(balance: float, discount: float) -> int:
    """The plies to a proven end that is worth `balance`, with the sign of that; 0 for a draw."""
    plies = 1 + round(math.log(abs(balance)) / math.log(discount)) if balance else 0
    return plies if balance > 0 else -plies


def _rank(branch: Branch) -> tuple[float, int, float]:
    """Proven wins come first, the fastest before the others, and proven losses last."""
    return 1 / branch.proof if branch.proof else 0.0, branch.visits, branch.value
