"""A game on a board: its squares, what stands on them, and which clicks make which action."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import NotationError
from ..games.base import Game, finished
from ..games.gomoku.notation import cell_name

EMPTY = ""  # the glyph of a square on which nothing stands
QUOTED = 60  # characters of bad input that an error repeats


def ground(fill: str, edge: str = "none", lines: str = "") -> str:
    """SVG of a square with nothing on it. lines: SVG over it."""
    return (
        f'<rect width="45" height="45" fill="{fill}" stroke="{edge}" '
        f'shape-rendering="crispEdges"/>{lines}'
    )


class Drawing:
    """A game being played, and how to draw it. Squares are numbered row after row from the top, as
    the first player sees the board.

    As it stands it draws games in which an action puts a stone on an empty square and nothing
    moves: the action is the square, and the first two planes that the game observes are the mover's
    stones and the opponent's. Other games replace what differs.
    """

    rows: int
    columns: int
    names: Sequence[str]  # of each square
    # SVG of 45 x 45 units without <svg>: the light and the dark squares.
    grounds: tuple[str, str]
    # glyph -> its words ("white pawn") and its picture, SVG as above. Of stones the first player's
    # comes first.
    glyphs: Mapping[str, tuple[str, str]]
    actions: list[int]  # played so far from the start
    hint = "b2"  # examples of what a person may type
    refusal = "{} is taken"  # of a click on a square with which no move begins
    alarm = "won"  # the mark of `alarms`
    edge_names = True  # whether the names of rows and columns stand along the edges
    players: tuple[str, ...]  # the first mover first
    board: Any = None  # for players that want one: of stones the actions, of chess a chess.Board

    def __init__(self, game: Game, square: str, glyphs: Mapping[str, tuple[str, str]]):
        """square: SVG of every square, as in `grounds`."""
        self.game: Any = game
        self.glyphs = glyphs
        self.grounds = (square, square)
        self.players = game.player_names
        _, self.rows, self.columns = game.observation_shape
        self.names = [cell_name(square, self.rows) for square in range(self.rows * self.columns)]
        self.reset()

    @property
    def turn(self) -> int:
        """Whose turn it is: an index into `players`."""
        return int(self._states[-1].current_player)

    def squares(self) -> list[str]:
        """The glyph of each square."""
        stones = (EMPTY, *self.glyphs)
        return [stones[stone] for stone in self._states[-1].board[0].tolist()]

    def clicks(self) -> list[tuple[tuple[int, ...], int]]:
        """Of each legal action, the squares that one clicks for it, in order. Several actions may
        share them.
        """
        if self.ending():
            return []
        legal = self.game.legal_action_mask(self._states[-1])[0].nonzero().squeeze(1).tolist()
        return [((action,), action) for action in legal]

    def choice(self, action: int) -> str:
        """What distinguishes an action from others with the same clicks ("Queen")."""
        return self.move_text(action)

    def last(self) -> Sequence[int]:
        """The squares of the last action, where it ended last."""
        return self.actions[-1:]

    def alarms(self) -> Sequence[int]:
        """Squares that stand out: the line that won, or a king in check."""
        state = self._states[-1]
        if not state.rewards.any():
            return ()
        stones = self.game.stones(state)[:, 1]  # of the side that has just moved
        won = stones & self.game.lines.completes(stones)
        return won[0].nonzero().squeeze(1).tolist()

    def push(self, action: int) -> None:
        """Play a legal action."""
        actions = torch.tensor([action], device=self.game.device)
        self._states.append(self.game.step(self._states[-1], actions))
        self.actions.append(action)

    def pop(self) -> None:
        """Take back the last action."""
        self._states.pop()
        self.actions.pop()

    def parse(self, text: str) -> int:
        """The legal action that `text` means here, such as "b2". Raises NotationError."""
        name = text.strip().lower()
        free = {self.names[action]: action for _, action in self.clicks()}
        if name in free:
            return free[name]
        if name in self.names:
            expected = f"an empty square such as {min(free)}" if free else "none, the game is over"
            raise NotationError(f"{name} is not free: expected {expected}")
        raise NotationError(
            f"unreadable move {text!r:.{QUOTED}}: expected a square such as {self.names[0]}"
        )

    def move_text(self, action: int) -> str:
        """A legal action as its players write it."""
        return self.names[action]

    def moves(self) -> list[tuple[str, str]]:
        """Of each ply, its number where one is written ("1.", else "") and the move."""
        players = len(self.players)
        return [
            ("" if ply % players else f"{ply // players + 1}.", self.move_text(action))
            for ply, action in enumerate(self.actions)
        ]

    def ending(self) -> str:
        """How the game ended, in words; "" for a game that is not over."""
        state = self._states[-1]
        if not bool(finished(state)):
            return ""
        how = self.game.endings[int(state.ending)].replace("_", " ")
        rewards = state.rewards[0].tolist()
        won = [name for name, reward in zip(self.players, rewards) if reward > 0]
        return f"{how.capitalize()}: {f'{won[0]} won' if won else 'drawn'}."

    def opening_words(self) -> str:
        """What is unusual about the position from which the game started; "" for the usual one."""
        return ""

    def states(self, first: int) -> list[Any]:
        """The positions of the game from number `first` on, each as a state of one row."""
        return self._states[first:]

    def state(self) -> Any:
        """The position as a state of one row, for players and networks."""
        return self.states(len(self.actions))[0]

    def text(self, names: Sequence[str] = (), resigned: int | None = None) -> str:
        """The game so far as text that `load` reads. names: of the two sides. resigned: which
        player gave up.
        """
        return " ".join(self.names[action] for action in self.actions)

    def load(self, text: str) -> None:
        """Become the position or game in `text`. Raises NotationError and then stays as it was."""
        other = copy.copy(self)
        other.reset()
        for number, word in enumerate(re.sub(r"\d+\.", " ", text).split(), 1):
            try:
                other.push(other.parse(word))
            except NotationError as error:
                raise NotationError(f"move {number}: {error}") from None
        self._states = other._states
        self.board = self.actions = other.actions

    def reset(self) -> None:
        """Begin again from the usual start position."""
        self.begin(self.game.init(1))

    def begin(self, state: Any) -> None:
        """Begin from a state of one row."""
        self._states = [state]
        self.board = self.actions = []


CELL = ground("#f2efe6", "#6b7680")  # stones within squares
CROSSING = ground(
    "#dcb877",
    lines='<path d="M0 22.5h45M22.5 0v45" stroke="#5b4423" vector-effect="non-scaling-stroke"/>',
)
_DISC = '<circle cx="22.5" cy="22.5" r="19" fill="{}" stroke="{}" stroke-width="1.5"/>'
DISCS = {
    "B": ("black stone", _DISC.format("#1b1b1b", "#000")),
    "W": ("white stone", _DISC.format("#fbfbf6", "#555")),
}
_CROSS = '<path d="M10 10L35 35M35 10L10 35" stroke="#0b5394" stroke-width="6" '
CROSSES = {
    "X": ("X", f'{_CROSS}stroke-linecap="round"/>'),
    "O": (
        "O",
        '<circle cx="22.5" cy="22.5" r="14" fill="none" stroke="#b45309" stroke-width="6"/>',
    ),
}
