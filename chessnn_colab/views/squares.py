"""The squares of a board as buttons, of which a move changes one message: a style sheet.

There is a Button per square. They share one layout and one style, and their captions never change. What stands on
the squares is a style sheet, because a new caption or class per square would be a message each. (One ToggleButtons
for all squares is made of fewer messages, but its front end holds back the square of a second quick click until the
first one is answered.)
"""

from __future__ import annotations

import base64
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import ipywidgets

from .drawings import EMPTY, Drawing

# Marks of a square: what the style sheet sets, and what a screen reader says. They differ in shape, not only in colour.
MARKS = {
    "last": ("--tint:var(--last)", "last move"),
    "danger": ("--fire:var(--danger);--edge:inset 0 0 0 3px #a00000", "in check"),
    "chosen": ("--edge:inset 0 0 0 4px #10324f", "chosen"),
    "target": ("--dot:var(--target)", "possible"),
    "capture": ("--dot:var(--capture)", "possible"),
}
_LABEL = 'font-family="sans-serif" text-anchor="middle" fill="#111" stroke="#fff" stroke-width="0.7"'
_LABEL += ' paint-order="stroke"'
Marks = Mapping[str, Iterable[int]]  # mark -> squares


class Arrow(NamedTuple):
    """An arrow over the board, or a ring where `path` is one square. weight: from 0 to 1. label: beside its tip."""

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
    glyphs = "".join(f"--{key}:{svg_url(svg)};" for key, (_, svg) in drawing.glyphs.items())
    number = drawing.rows * drawing.columns
    turned = "".join(f".{scope}.cn-turned>:nth-child({place + 1}){{order:{number - place}}}" for place in range(number))
    return f"{data_text('board.css')}.{scope}{{{glyphs}--rows:{drawing.rows};--columns:{drawing.columns}}}{turned}"


def squares_css(scope: str, drawing: Drawing, marks: Marks, overlay: str = "") -> str:
    """The style sheet of what stands on a board in the CSS class `scope`, with its marks and an SVG over it."""
    declarations, words = defaultdict(list), defaultdict(list)
    for square, glyph in enumerate(drawing.squares()):
        if glyph != EMPTY:
            declarations[square].append(f"--g:var(--{glyph})")
            words[square].append(drawing.glyphs[glyph][0])
    for mark, squares in marks.items():
        for square in squares:
            declarations[square].append(MARKS[mark][0])
            words[square].append(MARKS[mark][1])
    alike = defaultdict(list)
    for square, parts in declarations.items():
        says = json.dumps(", ".join(["", *words[square]]))
        alike[";".join([*parts, f"--says:{says}"])].append(f":nth-child({square + 1})")
    rules = [f".{scope}>:is({','.join(places)}){{{rule}}}" for rule, places in alike.items()]
    over = [f".{scope}{{--over:{svg_url(overlay)}}}"] if overlay else []
    return "".join([*rules, *over])


def overlay_svg(drawing: Drawing, arrows: Sequence[Arrow], turned: bool) -> str:
    """The names of rows and columns along two edges, and `arrows`, as SVG of 10 units a square."""
    rows, columns = drawing.rows, drawing.columns

    def centre(square: int) -> tuple[float, float]:
        row, column = divmod(len(drawing.names) - 1 - square if turned else square, columns)
        return 10 * column + 5, 10 * row + 5

    parts = []
    for square, name in enumerate(drawing.names):
        x, y = centre(square)
        size = 0.26 * columns  # the same on the page, however many squares there are
        style = f'font-family="sans-serif" font-size="{size:.2f}" fill="#222" fill-opacity="0.75"'
        if x == 5:
            parts.append(f'<text x="{x - 4.7}" y="{y - 4.6 + 0.9 * size:.2f}" {style}>{name[1:]}</text>')
        if y == 10 * rows - 5:
            parts.append(f'<text x="{x + 4.7}" y="{y + 4.5}" text-anchor="end" {style}>{name[0]}</text>')
    parts += [_arrow_svg([centre(square) for square in arrow.path], arrow) for arrow in arrows]
    labels = {centre(arrow.path[-1]): arrow.label for arrow in arrows if arrow.label}
    parts += [
        f'<text x="{x}" y="{y + 4.4}" {_LABEL} font-size="{0.32 * columns:.2f}">{label}</text>'
        for (x, y), label in labels.items()
    ]
    box = f'viewBox="0 0 {10 * columns} {10 * rows}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" preserveAspectRatio="none" {box}>{"".join(parts)}</svg>'


def _arrow_svg(points: list[tuple[float, float]], arrow: Arrow) -> str:
    width, opacity = 0.7 + 1.6 * arrow.weight, 0.55 + 0.4 * arrow.weight
    style = f'stroke="{arrow.colour}" stroke-width="{width:.2f}" opacity="{opacity:.2f}"'
    (x, y), (to_x, to_y) = points[0], points[-1]
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    if not length:
        return f'<circle cx="{x}" cy="{y}" r="3.6" fill="none" {style}/>'
    head = min(1.5 + width, 4)
    along, across = ((to_x - x) / length, (to_y - y) / length), ((y - to_y) / length, (to_x - x) / length)
    neck = to_x - head * along[0], to_y - head * along[1]
    sides = [(neck[0] + side * head * 0.6 * across[0], neck[1] + side * head * 0.6 * across[1]) for side in (1, -1)]
    tip = " ".join(f"{a:.1f},{b:.1f}" for a, b in ((to_x, to_y), *sides))
    line = f'<line x1="{x}" y1="{y}" x2="{neck[0]:.1f}" y2="{neck[1]:.1f}" stroke-linecap="round" {style}/>'
    return f'{line}<polygon points="{tip}" fill="{arrow.colour}" opacity="{opacity:.2f}"/>'


class Squares:
    """The widget of a board's squares. `on_click` is called with the number of the square."""

    def __init__(self, drawing: Drawing, on_click: Callable[[int], None]):
        self.scope = f"cn-{uuid.uuid4().hex[:10]}"
        self.turned = False
        layout, style = ipywidgets.Layout(), ipywidgets.ButtonStyle()
        self.buttons = [ipywidgets.Button(description=name, layout=layout, style=style) for name in drawing.names]
        for number, button in enumerate(self.buttons):
            button.on_click(lambda _, number=number: on_click(number))
        self._grid = ipywidgets.Box(self.buttons)
        for name in ("cn-squares", drawing.css, self.scope):
            self._grid.add_class(name)
        hidden = ipywidgets.Layout(display="none")
        sheet = f"<style>{board_css(self.scope, drawing)}</style>"
        self._marks = ipywidgets.HTML(layout=hidden)
        self.widget = ipywidgets.VBox([ipywidgets.HTML(sheet, layout=hidden), self._marks, self._grid])
        self.widget.add_class("cn-board")
        self._drawn = 0

    def turn(self, turned: bool) -> None:
        """Show the board from the second player's side, or from the first's. `draw` must follow."""
        self.turned = turned
        (self._grid.add_class if turned else self._grid.remove_class)("cn-turned")

    def draw(self, drawing: Drawing, marks: Marks, arrows: Sequence[Arrow] = ()) -> None:
        """Show what stands on the board: one message. The number in it tells the page that the kernel answers."""
        self._drawn += 1
        css = squares_css(self.scope, drawing, marks, overlay_svg(drawing, arrows, self.turned))
        self._marks.value = f"<style>{css}/*{self._drawn}*/</style>"
