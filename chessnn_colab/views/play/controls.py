"""The widgets of a board to play on: squares, messages, buttons, the list of moves, and what the
network thinks.
"""

import asyncio
import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from ...text import counted
from ..drawing import Drawing
from ..squares import Arrow, Squares

EVALUATIONS = (1, 8, 16, 48, 128, 400)  # offered as strengths
MOST_CHOICES = 4
SETTLES = 0.2  # seconds in which the text follows the message that Enter was pressed


class Controls:
    """All widgets of one board. play: the board.PlayBoard that they show and call. evaluations: of
    a network that plays; None for other opponents, which have no opinion to show.
    """

    def __init__(self, play: Any, evaluations: int | None):
        self.said = ""
        self.squares = Squares(play.drawing, play.click)
        self.says = ipywidgets.HTML()
        self.moves = ipywidgets.HTML()
        self.thoughts = ipywidgets.HTML()
        self.entry = ipywidgets.Text(
            placeholder=play.drawing.hint, continuous_update=False, layout={"width": "150px"}
        ).add_class("cn-entry")
        self.entry.on_msg(lambda _, content, __: self._heed_enter(play, content))
        self.game_text = ipywidgets.Textarea(rows=8, layout={"width": "100%", "height": "auto"})
        self._choices = _row([_button("", play.choose, number) for number in range(MOST_CHOICES)])
        self._choices.layout.display = "none"
        self.switch = ipywidgets.ToggleButton(
            description="What it thinks", layout={"width": "auto"}
        )
        self.switch.observe(lambda _: play.redraw(), names="value")
        table = ipywidgets.Box([self._left(play), self._right(play, evaluations)])
        self.widget = table.add_class("cn-table").add_class(f"{self.squares.scope}-root")

    def _left(self, play: Any) -> ipywidgets.VBox:
        enter = _button("Move", lambda: play.enter(self.entry.value))
        buttons = [
            _button("Take back", play.take_back),
            _button("Hint", play.hint),
            _button("Flip board", play.turn_board),
            _button("Resign", play.resign),
            _button("New game", play.new_game),
        ]
        box = self.squares.widget
        self._typed = _row([self.entry, enter])
        box.children = (*box.children, self.says, self._choices, self._typed, _row(buttons))
        return box

    def _right(self, play: Any, evaluations: int | None) -> ipywidgets.VBox:
        """Sides and strength, what the network thinks, the moves, the game as text."""
        sides = [(f"You play {name}", player) for player, name in enumerate(play.drawing.players)]
        chosen: list[Any] = [_dropdown(sides, play.human, play.play_as, "cn-your-side", "160px")]
        if evaluations is not None:
            offered = sorted({*EVALUATIONS, evaluations})
            options = [(f"{counted(number, 'evaluation')} per move", number) for number in offered]
            choose = play.set_evaluations
            chosen.append(_dropdown(options, evaluations, choose, "cn-strength", "220px"))
            chosen.append(self.switch)
        load = _button("Load", lambda: play.load(self.game_text.value))
        title = ipywidgets.HTML(
            "<b>The game as text.</b> Paste a position or a game here and press Load."
        )
        return ipywidgets.VBox(
            [_row(chosen), self.thoughts, self.moves, title, self.game_text, load]
        ).add_class("cn-side")

    def _heed_enter(self, play: Any, content: dict[str, Any]) -> None:
        """Enter the text a moment later, on the kernel's loop: the page sends it only after this
        message.

        ipywidgets 8 deprecates on_submit, but every version sends the message.
        """
        if content.get("event") == "submit" and not play.waited():
            loop = asyncio.get_running_loop()
            loop.call_later(SETTLES, lambda: play.enter(self.entry.value))

    def draw(
        self, play: Any, message: str, arrows: Sequence[Arrow], told: str | None, busy: bool
    ) -> None:
        """Show the game as it is now. told: HTML about the network's thoughts; None leaves what is
        there.
        """
        self.said = message
        drawing = play.drawing
        chosen = play.chosen
        targets = set()
        if chosen:
            clicked = len(chosen)
            paths = [path for path, _ in drawing.clicks() if path[:clicked] == chosen]
            targets = {path[clicked] for path in paths if len(path) > clicked}
        captures = {square for square in targets if drawing.squares()[square]}
        marks = {
            "last": drawing.last(),
            drawing.alarm: drawing.alarms(),
            "chosen": chosen,
            "target": targets - captures,
            "capture": captures,
        }
        self.squares.draw(drawing, marks, arrows)
        thinking = " cn-thinking" if busy else ""
        self.says.value = f'<div class="cn-says{thinking}">{html.escape(message)}</div>'
        self.moves.value = f'<div class="cn-moves cn-newest"><div>{moves_html(drawing)}</div></div>'
        if told is not None:
            self.thoughts.value = told

    def ask(self, choices: Sequence[str]) -> None:
        """Offer `choices` as buttons in the place of the typed move; without any, that comes
        back.
        """
        for button, name in zip(self._choices.children, choices):
            button.description = name
        self._choices.layout.display = None if choices else "none"
        self._typed.layout.display = "none" if choices else None


def moves_html(drawing: Drawing) -> str:
    """The moves so far with their numbers as HTML; the last one stands out."""
    moves = [(number, html.escape(move)) for number, move in drawing.moves()]
    if moves:
        number, newest = moves.pop()
        moves.append((number, f"<b>{newest}</b>"))
    return " ".join(f"{number}&nbsp;{move}" if number else move for number, move in moves)


def _button(name: str, act: Callable[..., Any], *arguments: Any) -> ipywidgets.Button:
    button = ipywidgets.Button(description=name)
    button.on_click(lambda _: act(*arguments))
    return button


def _dropdown(
    options: Sequence[tuple[str, int]], value: int, act: Callable[[int], None], css: str, width: str
) -> ipywidgets.Dropdown:
    """A list to choose from, in the CSS class `css`; `act` gets the number that is chosen."""
    dropdown = ipywidgets.Dropdown(options=options, value=value, layout={"width": width})
    dropdown.observe(lambda change: act(change["new"]), names="value")
    return dropdown.add_class(css)


def _row(children: Sequence[Any]) -> ipywidgets.Box:
    return ipywidgets.Box(children).add_class("cn-row")
