"""The squares of a board as buttons, of which a move changes one message: a style sheet.

There is a Button per square. They share one layout and one style, and their captions never change.
What stands on the squares is a style sheet, because a new caption or class per square would be a
message each. (One ToggleButtons for all squares is made of fewer messages, but its front end holds
back the square of a second quick click until the first one is answered.)
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import ipywidgets

from .drawing import Drawing, glyph_svg

# Marks of a square: what the style sheet sets, and what a screen reader says. They differ in shape,
# not only in colour.
MARKS = {
    "last": ("--tint:var(--last)", "last move"),
    "danger": ("--fire:var(--danger);--edge:inset 0 0 0 3px #a00000", "in check"),
    "chosen": ("--edge:inset 0 0 0 4px #10324f", "chosen"),
    "target": ("--dot:var(--target)", "possible"),
    "capture": ("--dot:var(--capture)", "possible"),
}
_LABEL = (
    'font-family="sans-serif" text-anchor="middle" fill="#111" stroke="#fff" stroke-width="0.7" '
    'paint-order="stroke"'
)
Marks = Mapping[str, Collection[int]]  # mark -> squares


class Arrow(NamedTuple):
    """An arrow over the board, or a ring where `path` is one square. weight: from 0 to 1. label:
    beside its tip.
    """

    path: Sequence[int]
    weight: float
    colour: str = "#0a6e5c"
    label: str = ""


def data_text(name: str) -> str:
    """A file of views/data."""
    return files("chessnn_colab.views").joinpath("data", name).read_text(encoding="utf-8")


def svg_url(svg: str) -> str:
    """An SVG text as a CSS image."""
    return f'url("data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}")'


def board_css(scope: str, drawing: Drawing) -> str:
    """The style sheet of a board in the CSS class `scope`, without what stands on it."""
    glyphs = "".join(
        f"--{key}:{svg_url(glyph_svg(body))};" for key, (_, body) in drawing.glyphs.items()
    )
    size = f"--rows:{drawing.rows};--columns:{drawing.columns}"
    return f"{data_text('board.css')}.{scope}{{{glyphs}{size}}}"


def squares_css(scope: str, drawing: Drawing, marks: Marks, overlay: str) -> str:
    """The style sheet of what stands on a board in the CSS class `scope`, with its marks and the
    SVG `overlay` over it.
    """
    rules = [f".{scope}{{--over:{svg_url(overlay)}}}"]
    for square, glyph in enumerate(drawing.squares()):
        styles = [f"--g:var(--{glyph})"] if glyph else []
        words = [drawing.glyphs[glyph][0]] if glyph else []
        for mark, squares in marks.items():
            if square in squares:
                style, word = MARKS[mark]
                styles.append(style)
                words.append(word)
        if words:
            says = json.dumps(", ".join(["", *words]))
            styles.append(f"--says:{says}")
            rules.append(f".{scope}>:nth-child({square + 1}){{{';'.join(styles)}}}")
    return "".join(rules)


def square_place(drawing: Drawing, square: int, turned: bool) -> tuple[int, int]:
    """Row and column of a square on the page. turned: the second player is below."""
    return divmod(len(drawing.names) - 1 - square if turned else square, drawing.columns)


def overlay_svg(drawing: Drawing, arrows: Sequence[Arrow], turned: bool) -> str:
    """The names of rows and columns along two edges, and `arrows`, as SVG of 10 units a square."""
    width = 10 * drawing.columns
    height = 10 * drawing.rows

    def centre(square: int) -> tuple[int, int]:
        row, column = square_place(drawing, square, turned)
        return 10 * column + 5, 10 * row + 5

    size = 0.26 * drawing.columns  # the same on the page, however many squares there are
    style = f'font-family="sans-serif" font-size="{size:.2f}" fill="#222" fill-opacity="0.75"'
    parts = []
    for square, name in enumerate(drawing.names):
        x, y = centre(square)
        if x == 5:
            top = y - 4.6 + 0.9 * size
            parts.append(f'<text x="{x - 4.7}" y="{top:.2f}" {style}>{name[1:]}</text>')
        if y == height - 5:
            place = f'x="{x + 4.7}" y="{y + 4.5}" text-anchor="end"'
            parts.append(f"<text {place} {style}>{name[0]}</text>")
    labels = {}  # where two arrows end, the last one's
    for arrow in arrows:
        start, tip = centre(arrow.path[0]), centre(arrow.path[-1])
        parts.append(_arrow_svg(start, tip, arrow))
        if arrow.label:
            labels[tip] = arrow.label
    style = f'{_LABEL} font-size="{0.32 * drawing.columns:.2f}"'
    parts += [
        f'<text x="{x}" y="{y + 4.4}" {style}>{text}</text>' for (x, y), text in labels.items()
    ]
    box = f'preserveAspectRatio="none" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'


def _arrow_svg(start: tuple[int, int], tip: tuple[int, int], arrow: Arrow) -> str:
    """The arrow, drawn along the x axis and then turned; a ring where it starts at its tip."""
    width = 0.7 + 1.6 * arrow.weight
    stroke = f'stroke="{arrow.colour}" stroke-width="{width:.2f}"'
    across, down = tip[0] - start[0], tip[1] - start[1]
    length = math.hypot(across, down)
    head = min(1.5 + width, 4)
    neck = length - head
    shape = f'<path d="M0 0H{neck:.1f}" stroke-linecap="round" {stroke}/>'
    shape += f'<path d="M{length:.1f} 0L{neck:.1f} {0.6 * head:.1f}V{-0.6 * head:.1f}Z" '
    shape += f'fill="{arrow.colour}"/>'
    if not length:
        shape = f'<circle r="3.6" fill="none" {stroke}/>'
    turn = f"translate({start[0]} {start[1]}) rotate({math.degrees(math.atan2(down, across)):.1f})"
    return f'<g transform="{turn}" opacity="{0.55 + 0.4 * arrow.weight:.2f}">{shape}</g>'


class Squares:
    """The widget of a board's squares. `on_click` is called with the number of the square."""

    def __init__(self, drawing: Drawing, on_click: Callable[[int], None]):
        self.scope = f"cn-{uuid.uuid4().hex[:10]}"
        self.turned = False
        layout, style = ipywidgets.Layout(), ipywidgets.ButtonStyle()
        self.buttons = [
            ipywidgets.Button(description=name, layout=layout, style=style)
            for name in drawing.names
        ]
        for number, button in enumerate(self.buttons):
            button.on_click(lambda _, number=number: on_click(number))
        self._grid = ipywidgets.Box(self.buttons)
        for name in ("cn-squares", drawing.css, self.scope):
            self._grid.add_class(name)
        hidden = ipywidgets.Layout(display="none")
        sheet = f"<style>{board_css(self.scope, drawing)}</style>"
        self._marks = ipywidgets.HTML(layout=hidden)
        self.widget = ipywidgets.VBox(
            [ipywidgets.HTML(sheet, layout=hidden), self._marks, self._grid]
        )
        self.widget.add_class("cn-board")
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
        css = squares_css(self.scope, drawing, marks, overlay_svg(drawing, arrows, self.turned))
        self._marks.value = f"<style>{css}/*{self._drawn}*/</style>"
