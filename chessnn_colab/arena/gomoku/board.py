"""A game being played, as engines and files need it: the board's size and rule, and all moves from
the empty board.
"""

from dataclasses import dataclass, field


@dataclass
class GomokuBoard:
    """A board object (see ArenaGame.start)."""

    size: int
    exact: bool
    actions: list[int] = field(default_factory=list)

    def push(self, action: int) -> None:
        """Play `action`, which must be legal."""
        self.actions.append(action)
