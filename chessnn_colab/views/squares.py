"""The squares of a board as buttons over one picture of it, of which a move changes one message.

There is a Button per square, which nobody sees. They share one layout and one style, and their
captions never change. What stands on the squares is in the picture, and for screen readers in a
style sheet, because a new caption per square would be a message each. (One ToggleButtons for all
squares is made of fewer messages, but its front end holds back the square of a second quick click
until the first one is answered.)
"""

import json
import secrets
from collections.abc import Callable, Sequence
from importlib.resources import files

import ipywidgets

from .drawing import Drawing
from .picture import MARKS, Arrow, Marks, board_svg


def data_text(name: str) -> str:
    """A file of views/data."""
    return files("chessnn_colab.views").joinpath("data", name).read_text(encoding="utf-8")


def squares_css(scope: str, drawing: Drawing, marks: Marks) -> str:
    """A style sheet that says what stands on each square of a board in the CSS class `scope`, and
    its marks.
    """
    rules = []
    for number, glyph in enumerate(drawing.squares()):
        words = [drawing.glyphs[glyph][0]] if glyph else []
        words += [MARKS[mark][1] for mark, squares in marks.items() if number in squares]
        if words:
            says = json.dumps(", ".join(["", *words]))
            rules.append(f".{scope}>:nth-child({number + 1}){{--says:{says}}}")
    return "".join(rules)


class Squares:
    """The widget of a board's squares. `on_click` is called with the number of the square."""

    def __init__(self, drawing: Drawing, on_click: Callable[[int], None]):
        self.scope = f"cn-{secrets.token_hex(5)}"
        self.turned = False
        layout = ipywidgets.Layout()
        style = ipywidgets.ButtonStyle()
        self.buttons = [
            ipywidgets.Button(description=name, layout=layout, style=style)
            for name in drawing.names
        ]
        for number, button in enumerate(self.buttons):
            button.on_click(lambda _, number=number: on_click(number))
        self._grid = ipywidgets.Box(self.buttons).add_class("cn-squares").add_class(self.scope)
        self.picture = ipywidgets.HTML()
        layers = ipywidgets.Box([self.picture, self._grid]).add_class("cn-layers")
        size = f".{self.scope}{{--rows:{drawing.rows};--columns:{drawing.columns}}}"
        sheet = f"<style>{data_text('board.css')}{size}</style>"
        hidden = ipywidgets.HTML(sheet, layout={"display": "none"})
        self.widget = ipywidgets.VBox([hidden, layers]).add_class("cn-board")
        self._drawn = 0

    def turn(self, turned: bool) -> None:
        """Show the board from the second player's side, or from the first's. `draw` must follow."""
        self.turned = turned
        (self._grid.add_class if turned else self._grid.remove_class)("cn-turned")

    def draw(self, drawing: Drawing, marks: Marks, arrows: Sequence[Arrow] = ()) -> None:
        """Show what stands on the board: one message. The number in it tells the page that the
        kernel answers.
        """
        self._drawn += 1
        svg = board_svg(drawing, marks, arrows, self.turned)
        css = squares_css(self.scope, drawing, marks)
        self.picture.value = (
            f'<div aria-hidden="true">{svg}</div><style>{css}/*{self._drawn}*/</style>'
        )
