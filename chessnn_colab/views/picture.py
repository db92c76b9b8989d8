"""A board as a static picture: SVG within an image, which shows anywhere.

It needs no widget front end and no style sheet, and it stays visible in a notebook that is not
trusted, from which Jupyter removes scripts, style sheets and inline SVG.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import Any

from ..games.base import Game
from ..games.registry import family
from .cell import HtmlImage
from .drawing import EMPTY, Drawing
from .drawings import DRAWINGS, make_drawing
from .squares import Arrow, overlay_svg, square_place

SIZE = 416  # CSS pixels, the width of the boards in data/board.css
_CELL = 45  # units of a square; a glyph has as many
_SQUARE = f'<rect width="{_CELL}" height="{_CELL}" fill="{{}}"/>'
_OUTLINED = _SQUARE.replace("/>", ' stroke="#6b7680"/>')
_LINES = '<path d="M0 22.5h45M22.5 0v45" stroke="#5b4423" fill="none"/>'
_GROUNDS = {  # class of data/board.css -> its light and its dark squares
    "cn-chess": (_SQUARE.format("#eae6da"), _SQUARE.format("#8fa3b5")),
    "cn-cells": (_OUTLINED.format("#f2efe6"),) * 2,
    "cn-tiles": (_OUTLINED.format("#cdc1b4"),) * 2,
    "cn-lines": (_SQUARE.format("#dcb877") + _LINES,) * 2,
}
_LAST = f'<rect width="{_CELL}" height="{_CELL}" fill="#f5d142" fill-opacity="0.65"/>'
_ALARM = '<circle cx="22.5" cy="22.5" r="19" fill="#d00000" fill-opacity="0.55"/>'
_SMALL = 320  # CSS pixels


def start_picture(game: Game, start: Any) -> HtmlImage:
    """Where a game begins: its board, or its text where it has no board. start: a state of one
    row.
    """
    if family(game.name) in DRAWINGS:
        return HtmlImage(picture_html(make_drawing(game), size=_SMALL))
    return HtmlImage(f"<pre>{html.escape(chr(10).join(game.to_text(start)))}</pre>")


def picture_svg(drawing: Drawing, turned: bool = False, arrows: Sequence[Arrow] = ()) -> str:
    """The position on `drawing` as SVG, with the last action marked, and `arrows` over it.

    turned: the second player is below.
    """
    glyphs = [f'<g id="{key}">{body}</g>' for key, (_, body) in drawing.glyphs.items()]
    parts = [f"<defs>{''.join(glyphs)}</defs>"]
    for square, glyph in enumerate(drawing.squares()):
        row, column = square_place(drawing, square, turned)
        parts.append(f'<g transform="translate({_CELL * column} {_CELL * row})">')
        parts.append(_GROUNDS[drawing.css][(row + column) % 2])
        if square in drawing.last():
            parts.append(_LAST)
        if square in drawing.alarms():
            parts.append(_ALARM)
        if glyph != EMPTY:
            parts.append(f'<use href="#{glyph}"/>')
        parts.append("</g>")
    parts.append(overlay_svg(drawing, arrows, turned))
    box = f"0 0 {_CELL * drawing.columns} {_CELL * drawing.rows}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{"".join(parts)}</svg>'


def picture_html(
    drawing: Drawing, turned: bool = False, size: int = SIZE, arrows: Sequence[Arrow] = ()
) -> str:
    """The picture of `picture_svg` as an HTML image of `size` CSS pixels that says in words what
    stands where.
    """
    svg = base64.b64encode(picture_svg(drawing, turned, arrows).encode()).decode()
    style = f"width:{size}px;max-width:100%;display:block;flex:0 0 auto"
    return f'<img src="data:image/svg+xml;base64,{svg}" style="{style}" alt="{html.escape(in_words(drawing))}">'


def in_words(drawing: Drawing) -> str:
    """What stands on the board, for those who do not see it: "white king e1, black king e8"."""
    standing = [
        f"{drawing.glyphs[glyph][0]} {name}"
        for name, glyph in zip(drawing.names, drawing.squares())
        if glyph != EMPTY
    ]
    now = drawing.ending() or f"{drawing.players[drawing.turn]} to move."
    return f"Board: {', '.join(standing) or 'empty'}. {now}"
