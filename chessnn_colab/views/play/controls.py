"""The widgets of a board to play on: squares, messages, buttons, the list of moves, and what the network thinks."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from typing import Any, Protocol

import ipywidgets

from ..drawings import Drawing
from ..squares import Arrow, Squares

EVALUATIONS = (1, 8, 16, 48, 128, 400)  # offered as strengths
MOST_CHOICES = 4
TURN, HINT = "Flip board", "Hint"
SETTLES = 0.2  # seconds in which the text follows the news that Enter was pressed


class Session(Protocol):
    """What the controls show and call: board.PlayBoard."""

    drawing: Drawing
    human: int
    chosen: tuple[int, ...]

    def click(self, square: int) -> None: ...
    def choose(self, number: int) -> None: ...
    def enter(self, text: str) -> bool: ...
    def take_back(self) -> None: ...
    def hint(self) -> None: ...
    def turn_board(self) -> None: ...
    def resign(self) -> None: ...
    def new_game(self) -> None: ...
    def play_as(self, player: int) -> None: ...
    def set_evaluations(self, number: int) -> None: ...
    def load(self, text: str) -> bool: ...
    def show_thoughts(self) -> None: ...


class Controls:
    """All widgets of one board. evaluations: of a network that plays; None for other opponents, which say nothing."""

    def __init__(self, drawing: Drawing, session: Session, evaluations: int | None):
        self.said = ""
        self.squares = Squares(drawing, session.click)
        self.says, self.moves, self.thoughts = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        layout = ipywidgets.Layout(width="150px")
        self.entry = ipywidgets.Text(placeholder=drawing.hint, continuous_update=False, layout=layout)
        self.entry.add_class("cn-entry")
        self.game_text = ipywidgets.Textarea(rows=8, layout=ipywidgets.Layout(width="100%", height="auto"))
        self._choices = self._row([self._button("", lambda n=n: session.choose(n)) for n in range(MOST_CHOICES)])
        self._choices.layout.display = "none"
        self._switch = ipywidgets.ToggleButton(description="What it thinks", layout=ipywidgets.Layout(width="auto"))
        self._switch.observe(lambda _: session.show_thoughts(), names="value")
        self._strength = self._strengths(session, evaluations)
        self.widget = ipywidgets.Box([self._left(session), self._right(session, evaluations is not None)])
        self.widget.add_class("cn-table")
        self.widget.add_class(f"{self.squares.scope}-root")

    def _left(self, session: Session) -> ipywidgets.VBox:
        """The board and what one does with it."""
        self.entry.on_msg(
            lambda _, content, __: self._heed_enter(session) if content.get("event") == "submit" else None
        )
        typed = self._row([self.entry, self._button("Move", lambda: session.enter(self.entry.value))])
        actions = {"Take back": session.take_back, HINT: session.hint, TURN: session.turn_board}
        ends = {"Resign": session.resign, "New game": session.new_game}
        box = self.squares.widget
        box.children = (
            *box.children,
            self.says,
            self._choices,
            typed,
            self._row([self._button(name, act) for name, act in {**actions, **ends}.items()]),
        )
        return box

    def _heed_enter(self, session: Session) -> None:
        """Enter the text a moment later, on the kernel's loop: the page sends it only after this message.

        ipywidgets 8 deprecates on_submit, but every version sends the message.
        """
        asyncio.get_running_loop().call_later(SETTLES, lambda: session.enter(self.entry.value))

    def _right(self, session: Session, network: bool) -> ipywidgets.VBox:
        """Sides and strength, what the network thinks, the moves, the game as text."""
        names = [(f"You play {name}", player) for player, name in enumerate(session.drawing.players)]
        side = ipywidgets.Dropdown(options=names, value=session.human, layout=ipywidgets.Layout(width="160px"))
        side.add_class("cn-your-side")
        side.observe(lambda change: session.play_as(change["new"]), names="value")
        load = self._button("Load", lambda: session.load(self.game_text.value))
        title = ipywidgets.HTML("<b>The game as text.</b> Paste a position or a game here and press Load.")
        column = ipywidgets.VBox(
            [
                self._row([side, *([self._strength, self._switch] if network else [])]),
                self.thoughts,
                self.moves,
                title,
                self.game_text,
                load,
            ]
        )
        column.add_class("cn-side")
        return column

    def _strengths(self, session: Session, evaluations: int | None) -> ipywidgets.Dropdown:
        offered = sorted({*EVALUATIONS, evaluations or 1})
        options = [(f"{number} evaluation{'s' if number > 1 else ''} per move", number) for number in offered]
        layout = ipywidgets.Layout(width="220px")
        strength = ipywidgets.Dropdown(options=options, value=evaluations or 1, layout=layout)
        strength.add_class("cn-strength")
        strength.observe(lambda change: session.set_evaluations(change["new"]), names="value")
        return strength

    def _button(self, name: str, act: Any) -> ipywidgets.Button:
        button = ipywidgets.Button(description=name)
        button.on_click(lambda _: act())
        return button

    def _row(self, children: list[Any]) -> ipywidgets.Box:
        row = ipywidgets.Box(children)
        row.add_class("cn-row")
        return row

    @property
    def thoughts_on(self) -> bool:
        """Whether the person wants to see what the network thinks."""
        return bool(self._switch.value)

    def draw(self, session: Session, message: str, arrows: Sequence[Arrow], told: str | None, busy: bool) -> None:
        """Show the game as it is now. told: HTML about the network's thoughts; None leaves what is there."""
        drawing, self.said = session.drawing, message
        paths = [path for path, _ in drawing.clicks()] if session.chosen else []
        start = len(session.chosen)
        targets = sorted({path[start] for path in paths if path[:start] == session.chosen and len(path) > start})
        standing = drawing.squares()
        marks = {
            "last": drawing.last(),
            "danger": drawing.alarms(),
            "chosen": session.chosen,
            "target": [square for square in targets if not standing[square]],
            "capture": [square for square in targets if standing[square]],
        }
        self.squares.draw(drawing, marks, arrows)
        self.says.value = f'<div class="cn-says{" cn-thinking" if busy else ""}">{html.escape(message)}</div>'
        self.moves.value = f'<div class="cn-moves cn-newest"><div>{moves_html(drawing)}</div></div>'
        if told is not None:
            self.thoughts.value = told

    def ask(self, choices: Sequence[str]) -> None:
        """Offer `choices` as buttons; none of them hides the buttons."""
        for button, name in zip(self._choices.children, choices):
            button.description = name
        self._choices.layout.display = None if choices else "none"


def moves_html(drawing: Drawing) -> str:
    """The moves so far with their numbers as HTML; the last one stands out."""
    moves = drawing.moves()
    words = []
    for ply, (number, move) in enumerate(moves, 1):
        word = html.escape(move)
        before = f"{number}&nbsp;" if number else ""
        words.append(before + (f"<b>{word}</b>" if ply == len(moves) else word))
    return " ".join(words)
