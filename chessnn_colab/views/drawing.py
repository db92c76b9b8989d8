"""A game on a board: its squares, what stands on them, and which clicks make which action."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import NotationError
from ..games.base import Game, finished

EMPTY = ""  # the glyph of a square on which nothing stands
QUOTED = 60  # characters of bad input that an error repeats


class Drawing:
    """A game being played, and how to draw it. Squares are numbered row after row from the top, as
    the first player sees the board.
    """

    game: Any  # its rules, a games.base.Game
    rows: int
    columns: int
    css: str  # a class of data/board.css: what squares of this game look like
    names: Sequence[str]  # of each square
    # glyph -> its words ("white pawn") and its picture: SVG of 45 x 45 units without <svg>
    glyphs: Mapping[str, tuple[str, str]]
    actions: list[int]  # played so far from `start`
    hint: str  # examples of what a person may type
    players: tuple[str, ...]  # the first mover first
    board: Any = None  # the game's own board object, for players that want one

    @property
    def turn(self) -> int:
        """Whose turn it is: an index into `players`."""
        raise NotImplementedError

    def squares(self) -> list[str]:
        """The glyph of each square."""
        raise NotImplementedError

    def clicks(self) -> list[tuple[tuple[int, ...], int]]:
        """Of each legal action, the squares that one clicks for it, in order. Several actions may
        share them.
        """
        raise NotImplementedError

    def choice(self, action: int) -> str:
        """What distinguishes an action from others with the same clicks ("Queen")."""
        return self.move_text(action)

    def last(self) -> Sequence[int]:
        """The squares of the last action, where it ended last."""
        raise NotImplementedError

    def alarms(self) -> Sequence[int]:
        """Squares in danger, such as that of a king in check."""
        return ()

    def push(self, action: int) -> None:
        """Play a legal action."""
        raise NotImplementedError

    def pop(self) -> None:
        """Take back the last action."""
        raise NotImplementedError

    def parse(self, text: str) -> int:
        """The legal action that `text` means here. Raises NotationError."""
        raise NotImplementedError

    def move_text(self, action: int) -> str:
        """A legal action as its players write it."""
        raise NotImplementedError

    def moves(self) -> list[tuple[str, str]]:
        """Of each ply, its number where one is written ("1.", else "") and the move."""
        raise NotImplementedError

    def ending(self) -> str:
        """How the game ended, in words; "" for a game that is not over."""
        raise NotImplementedError

    def opening_words(self) -> str:
        """What is unusual about the position from which the game started; "" for the usual one."""
        return ""

    def states(self, first: int) -> list[Any]:
        """The positions of the game from number `first` on, each as a state of one row."""
        raise NotImplementedError

    def state(self) -> Any:
        """The position as a state of one row, for players and networks."""
        return self.states(len(self.actions))[0]

    def text(self, names: Sequence[str] = (), resigned: int | None = None) -> str:
        """The game so far as text that `load` reads. names: of the two sides. resigned: which
        player gave up.
        """
        raise NotImplementedError

    def load(self, text: str) -> None:
        """Become the position or game in `text`. Raises NotationError and then stays as it was."""
        raise NotImplementedError

    def reset(self) -> None:
        """Begin again from the usual start position."""
        raise NotImplementedError


class StonesDrawing(Drawing):
    """A game in which an action puts a stone on an empty square and nothing moves.

    The action is the square, row after row; the first two planes that the game observes are the
    mover's stones and the opponent's. `glyphs` names the first player's stone, then the second's.
    """

    hint = "b2"

    def __init__(self, game: Game, css: str, glyphs: Mapping[str, tuple[str, str]]):
        self.game, self.css, self.glyphs = game, css, glyphs
        self.players = game.player_names
        _, self.rows, self.columns = game.observation_shape
        letters = [chr(ord("a") + column) for column in range(self.columns)]
        self.names = [
            f"{letter}{self.rows - row}" for row in range(self.rows) for letter in letters
        ]
        self.reset()

    @property
    def turn(self) -> int:
        return int(self._states[-1].current_player)

    def squares(self) -> list[str]:
        """The glyph of each square."""
        own, other = self.game.observe(self._states[-1])[0, :2].flatten(1).bool().tolist()
        first, second = (other, own) if self.turn else (own, other)
        marks = list(self.glyphs)
        return [marks[0] if one else marks[1] if two else EMPTY for one, two in zip(first, second)]

    def clicks(self) -> list[tuple[tuple[int, ...], int]]:
        """One click each."""
        if self.ending():
            return []
        legal = self.game.legal_action_mask(self._states[-1])[0].nonzero().squeeze(1).tolist()
        return [((action,), action) for action in legal]

    def last(self) -> Sequence[int]:
        """The newest stone."""
        return self.actions[-1:]

    def push(self, action: int) -> None:
        """Put a stone on a square."""
        actions = torch.tensor([action], device=self.game.device)
        self._states.append(self.game.step(self._states[-1], actions))
        self.actions.append(action)

    def pop(self) -> None:
        """Take back the newest stone."""
        self._states.pop()
        self.actions.pop()

    def parse(self, text: str) -> int:
        """A square by its name, such as "b2". Raises NotationError."""
        name = text.strip().lower()
        free = [action for _, action in self.clicks()]
        if name not in self.names:
            raise NotationError(
                f"unreadable move {text!r:.{QUOTED}}: expected a square such as {self.names[0]}"
            )
        if (action := self.names.index(name)) not in free:
            expected = (
                f"an empty square such as {self.names[free[0]]}"
                if free
                else "none, the game is over"
            )
            raise NotationError(f"{name} is not free: expected {expected}")
        return action

    def move_text(self, action: int) -> str:
        """The square's name."""
        return self.names[action]

    def moves(self) -> list[tuple[str, str]]:
        """Numbered two by two."""
        return [
            ("" if ply % 2 else f"{ply // 2 + 1}.", self.names[action])
            for ply, action in enumerate(self.actions)
        ]

    def ending(self) -> str:
        """Who won and how, or that the game is drawn."""
        state = self._states[-1]
        if not bool(finished(state)):
            return ""
        how = self.game.endings[int(state.ending)].replace("_", " ")
        rewards = state.rewards[0].tolist()
        won = [name for name, reward in zip(self.players, rewards) if reward > 0]
        return f"{how.capitalize()}: {f'{won[0]} won' if won else 'drawn'}."

    def states(self, first: int) -> list[Any]:
        """The positions of the game from number `first` on."""
        return self._states[first:]

    def text(self, names: Sequence[str] = (), resigned: int | None = None) -> str:
        """The squares in the order of play."""
        return " ".join(self.names[action] for action in self.actions)

    def load(self, text: str) -> None:
        """A game as `text` writes it: squares in the order of play. Raises NotationError."""
        other = StonesDrawing(self.game, self.css, self.glyphs)
        for number, word in enumerate(re.sub(r"\d+\.", " ", text).split(), 1):
            try:
                other.push(other.parse(word))
            except NotationError as error:
                raise NotationError(f"move {number}: {error}") from None
        self._states, self.actions = other._states, other.actions

    def reset(self) -> None:
        """An empty board."""
        self.begin(self.game.init(1))

    def begin(self, state: Any) -> None:
        """Begin from a state of one row."""
        self._states, self.actions = [state], []


def glyph_svg(body: str) -> str:
    """The picture of a glyph as an SVG text."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 45 45">{body}</svg>'


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
