"""Pictures of positions of chess: SVG, and HTML that holds the SVG as an image in a data address.

Such an image needs no widget front end, and it stays visible in a notebook that is not trusted, from which Jupyter
removes inline SVG.
"""

import base64
import html

import chess
import chess.svg

from ..games.chess.notation import board_from_fen

BOARD_SIZE = 360  # CSS pixels
SQUARE_COLOURS = {"square light": "#EAE6DA", "square dark": "#8FA3B5"}


def board_svg(
    position: str | chess.Board, lastmove: chess.Move | None = None, flipped: bool = False, size: int = BOARD_SIZE
) -> str:
    """A position, given as FEN or as a chess.Board, as SVG of `size` CSS pixels; `flipped` puts Black below.

    Raises NotationError for a FEN that cannot be read.
    """
    board = _board(position)
    return chess.svg.board(
        board,
        orientation=chess.BLACK if flipped else chess.WHITE,
        lastmove=lastmove,
        check=board.king(board.turn) if board.is_check() else None,
        size=size,
        colors=SQUARE_COLOURS | {"square light lastmove": "#E9D48A", "square dark lastmove": "#CDB35C"},
    )


def board_html(
    position: str | chess.Board, lastmove: chess.Move | None = None, flipped: bool = False, size: int = BOARD_SIZE
) -> str:
    """The picture of `board_svg` as an HTML image, which shows anywhere. Raises NotationError."""
    board = _board(position)
    svg = base64.b64encode(board_svg(board, lastmove, flipped, size).encode()).decode()
    text = html.escape(f"Board: {board.fen()}")
    return f'<img src="data:image/svg+xml;base64,{svg}" width="{size}" height="{size}" alt="{text}">'


def _board(position: str | chess.Board) -> chess.Board:
    return board_from_fen(position) if isinstance(position, str) else position
