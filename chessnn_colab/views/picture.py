"""A board as a static picture: SVG within an image, which shows anywhere.

It needs no widget front end and no style sheet, and it stays visible in a notebook that is not trusted, from which
Jupyter removes scripts, style sheets and inline SVG.
"""

from __future__ import annotations

import base64
import html
from typing import Any

from ..games.base import Game
from ..games.registry import family
from .cell import Picture
from .drawings import DRAWINGS, EMPTY, Drawing, make_drawing
from .squares import overlay_svg

SIZE = 416  # CSS pixels, the width of the boards in data/board.css
_CELL = 45  # units of a square; a glyph has as many
_LIGHT, _DARK = "#eae6da", "#8fa3b5"
_GROUNDS = {"cn-cells": "#f2efe6", "cn-tiles": "#cdc1b4", "cn-lines": "#dcb877"}
_SMALL = 320  # CSS pixels


def start_picture(game: Game, start: Any) -> Picture:
    """Where a game begins: its board, or its text where it has no board. start: a state of one row."""
    if family(game.name) in DRAWINGS:
        return Picture(picture_html(make_drawing(game), size=_SMALL))
    return Picture(f"<pre>{html.escape(chr(10).join(game.to_text(start)))}</pre>")


def picture_svg(drawing: Drawing, turned: bool = False) -> str:
    """The position on `drawing` as SVG, with the last action marked. turned: the second player is below."""
    count, columns = len(drawing.names), drawing.columns
    defined = "".join(f'<g id="{key}">{_inner(svg)}</g>' for key, (_, svg) in drawing.glyphs.items())
    parts, last = [], set(drawing.last())
    for square, glyph in enumerate(drawing.squares()):
        row, column = divmod(count - 1 - square if turned else square, columns)
        x, y = _CELL * column, _CELL * row
        parts.append(_ground(drawing.css, x, y, (row + column) % 2 == 1))
        if square in last:
            parts.append(f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="#f5d142" fill-opacity="0.65"/>')
        if square in drawing.alarms():
            parts.append(
                f'<circle cx="{x + _CELL / 2}" cy="{y + _CELL / 2}" r="19" fill="#d00000" fill-opacity="0.55"/>'
            )
        if glyph != EMPTY:
            parts.append(f'<use href="#{glyph}" x="{x}" y="{y}"/>')
    box = f"0 0 {_CELL * columns} {_CELL * drawing.rows}"
    named = overlay_svg(drawing, (), turned).replace("<svg ", '<svg width="100%" height="100%" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}"><defs>{defined}</defs>{"".join(parts)}{named}</svg>'
    )


def picture_html(drawing: Drawing, turned: bool = False, size: int = SIZE) -> str:
    """The picture of `picture_svg` as an HTML image of `size` CSS pixels that says in words what stands where."""
    svg = base64.b64encode(picture_svg(drawing, turned).encode()).decode()
    style = f"width:{size}px;max-width:100%;flex:0 0 auto"
    return f'<img src="data:image/svg+xml;base64,{svg}" style="{style}" alt="{html.escape(in_words(drawing))}">'


def in_words(drawing: Drawing) -> str:
    """What stands on the board, for those who do not see it: "white king e1, black king e8"."""
    standing = [
        f"{drawing.glyphs[glyph][0]} {name}" for name, glyph in zip(drawing.names, drawing.squares()) if glyph != EMPTY
    ]
    return f"Board: {', '.join(standing) or 'empty'}. {drawing.ending() or f'{drawing.players[drawing.turn]} to move.'}"


def _inner(svg: str) -> str:
    """An SVG text without its outermost element."""
    return svg[svg.index(">") + 1 : svg.rindex("</svg>")]


def _ground(css: str, x: int, y: int, dark: bool) -> str:
    rect = f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" '
    if css not in _GROUNDS:
        return f'{rect}fill="{_DARK if dark else _LIGHT}"/>'
    if css != "cn-lines":
        return f'{rect}fill="{_GROUNDS[css]}" stroke="#6b7680"/>'
    half = _CELL / 2
    lines = f"M{x} {y + half}h{_CELL}M{x + half} {y}v{_CELL}"
    return f'{rect}fill="{_GROUNDS[css]}"/><path d="{lines}" stroke="#5b4423" fill="none"/>'
