"""A board as SVG: the one picture of it that the board to play on, a replay, a card and a page
show.

As an image it needs no widget front end and no style sheet, and it stays visible in a notebook that
is not trusted, from which Jupyter removes scripts, style sheets and inline SVG.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..games.base import Game
from .cell import HtmlImage, image_html
from .drawing import EMPTY, Drawing
from .drawings import draw_game

SIZE = 416  # CSS pixels, the width of the boards in data/board.css
CELL = 45  # units of a square; a glyph has as many
_SMALL = 320  # CSS pixels
_EDGE = '<rect x="2" y="2" width="41" height="41" fill="none" stroke="{}" stroke-width="4"/>'
# Marks of a square: what is drawn below what stands there, and what a screen reader says. They
# differ in shape, not only in colour.
MARKS = {
    "last": ('<rect width="45" height="45" fill="#6fae00" fill-opacity="0.6"/>', "last move"),
    "danger": (
        '<circle cx="22.5" cy="22.5" r="19" fill="#d00000" fill-opacity="0.6"/>'
        f"{_EDGE.format('#a00000')}",
        "in check",
    ),
    "won": (_EDGE.format("#a00000"), "in the line that won"),
    "chosen": (_EDGE.format("#10324f"), "chosen"),
    "target": ('<circle cx="22.5" cy="22.5" r="7" fill="#10324f" fill-opacity="0.7"/>', "possible"),
    "capture": (
        '<circle cx="22.5" cy="22.5" r="20" fill="none" stroke="#10324f" stroke-width="3"/>',
        "possible",
    ),
}
Marks = Mapping[str, Collection[int]]  # mark -> squares


class Arrow(NamedTuple):
    """An arrow over the board, or a ring where `path` is one square. weight: from 0 to 1. label:
    beside its tip.
    """

    path: Sequence[int]
    weight: float
    colour: str = "#0a6e5c"
    label: str = ""


def start_picture(game: Game, start: Any) -> HtmlImage:
    """The board where a game begins. start: a state of one row."""
    drawing = draw_game(game)
    if drawing.game.num_players == 1:  # its first tiles are drawn by lot
        drawing.begin(start)
    return HtmlImage(picture_html(drawing, size=_SMALL))


def played_marks(drawing: Drawing) -> dict[str, Collection[int]]:
    """What every picture of a position marks."""
    return {"last": drawing.last(), drawing.alarm: drawing.alarms()}


def board_svg(
    drawing: Drawing, marks: Marks | None = None, arrows: Sequence[Arrow] = (), turned: bool = False
) -> str:
    """The position on `drawing`, the names of rows and columns along two edges, and `arrows`, as
    SVG of CELL units per square.

    marks: played_marks where none are given. turned: the second player is below. What stands on a
    square is in an element of the class cn-on; a replay changes it.
    """
    marks = played_marks(drawing) if marks is None else marks
    corners = _corners(drawing, turned)
    below = []
    on = []
    for (x, y), glyph, square in zip(corners, drawing.squares(), range(len(corners))):
        place = f'transform="matrix(1 0 0 1 {x} {y})"'
        below.append(f"<g {place}>{drawing.grounds[(x + y) % 2]}</g>")
        here = [MARKS[mark][0] for mark, squares in marks.items() if square in squares]
        if glyph:
            here.append(drawing.glyphs[glyph][1])
        on.append(f'<g class="cn-on" {place}>{"".join(here)}</g>')
    parts = [*below, *on, *_names_svg(drawing, corners), arrows_svg(drawing, arrows, turned)]
    box = f"0 0 {CELL * drawing.columns} {CELL * drawing.rows}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{"".join(parts)}</svg>'


def _corners(drawing: Drawing, turned: bool) -> list[tuple[int, int]]:
    across = range(0, CELL * drawing.columns, CELL)
    corners = [(x, y) for y in range(0, CELL * drawing.rows, CELL) for x in across]
    return corners[::-1] if turned else corners


def _names_svg(drawing: Drawing, corners: Sequence[tuple[int, int]]) -> list[str]:
    """The names of the rows along the left edge, those of the columns along the lower edge."""
    if not drawing.edge_names:
        return []
    size = round(1.17 * drawing.columns)  # the same on the page, however many squares there are
    style = f'font-family="sans-serif" font-size="{size}" fill="#222" fill-opacity="0.75"'
    bottom = CELL * drawing.rows
    parts = []
    for (x, y), name in zip(corners, drawing.names):
        if x == 0:
            parts.append(f'<text x="2" y="{y + 1 + size}" {style}>{name[1:]}</text>')
        if y + CELL == bottom:
            place = f'x="{x + CELL - 2}" y="{bottom - 3}" text-anchor="end"'
            parts.append(f"<text {place} {style}>{name[0]}</text>")
    return parts


def arrows_svg(drawing: Drawing, arrows: Sequence[Arrow], turned: bool = False) -> str:
    """The arrows, then their labels, as SVG of CELL units per square."""
    corners = _corners(drawing, turned)
    style = (
        f'font-family="sans-serif" font-size="{round(1.44 * drawing.columns)}" text-anchor="middle"'
    )
    style += ' fill="#111" stroke="#fff" stroke-width="3" paint-order="stroke"'
    parts = []
    labels = {}  # where two arrows end, the last one's
    for arrow in arrows:
        start = corners[arrow.path[0]]
        tip = corners[arrow.path[-1]]
        parts.append(_arrow_svg(start, tip, arrow))
        if arrow.label:
            x, y = tip
            labels[tip] = f'<text x="{x + CELL / 2}" y="{y + 42}" {style}>{arrow.label}</text>'
    return "".join([*parts, *labels.values()])


def _arrow_svg(start: tuple[int, int], tip: tuple[int, int], arrow: Arrow) -> str:
    """The arrow, drawn along the x axis and then turned; a ring where it starts at its tip."""
    width = round(3 + 7 * arrow.weight)
    style = f'stroke="{arrow.colour}" stroke-width="{width}" opacity="{0.55 + 0.4 * arrow.weight}"'
    length = math.dist(start, tip)
    shape = '<circle r="16" fill="none"/>'
    if length:
        outline = f"M0 0H{length - 9 - width / 2}V6l9 -6l-9 -6V0"
        shape = f'<path d="{outline}" fill="{arrow.colour}" stroke-linejoin="round"/>'
    angle = math.degrees(math.atan2(tip[1] - start[1], tip[0] - start[0]))
    place = f"translate({start[0] + CELL / 2} {start[1] + CELL / 2}) rotate({angle})"
    return f'<g transform="{place}" {style}>{shape}</g>'


def picture_html(
    drawing: Drawing, turned: bool = False, size: int = SIZE, arrows: Sequence[Arrow] = ()
) -> str:
    """The picture of `board_svg` as an HTML image of `size` CSS pixels that says in words what
    stands where.
    """
    svg = board_svg(drawing, None, arrows, turned).encode()
    return image_html(svg, "svg+xml", size, size, in_words(drawing))


def in_words(drawing: Drawing) -> str:
    """What stands on the board, for those who do not see it: "white king e1, black king e8"."""
    standing = [
        f"{drawing.glyphs[glyph][0]} {name}"
        for name, glyph in zip(drawing.names, drawing.squares())
        if glyph != EMPTY
    ]
    now = drawing.ending() or f"{drawing.players[drawing.turn]} to move."
    return f"Board: {', '.join(standing) or 'empty'}. {now}"
