"""Pictures of positions and games of chess: SVG, static HTML, and a viewer that plays a game back.

Static HTML holds each picture as an image in a data address. It needs no widget front end, and it stays visible in a
notebook that is not trusted, from which Jupyter removes inline SVG.
"""

import base64
import html
from typing import Any

import chess
import chess.svg
import ipywidgets

from ..errors import NotationError
from ..games.chess.notation import board_from_fen, quote
from ..games.chess.pgn import games_from_pgn
from .front_end import has_widget_front_end, in_colab

BOARD_SIZE = 360  # CSS pixels
MAX_PGN_BYTES = 200_000
MILLISECONDS_PER_PLY = 700
TEXT_LAYOUT = {"margin": "2px 2px 2px 16px"}
MARKED = "background:#E9D48A;color:#222;padding:0 2px"
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


class PlayedGame:
    """The first game of a PGN text: the position after each ply, and the moves in SAN.

    Raises NotationError for text that games_from_pgn refuses, and for a game without a move.
    """

    def __init__(self, pgn_text: str):
        game = games_from_pgn(pgn_text, MAX_PGN_BYTES)[0]
        if game.next() is None:
            raise NotationError(f"no move in PGN {quote(pgn_text)}: expected a game such as 1. e4 e5 2. Nf3")
        self.result = game.headers.get("Result", "*")
        self.players = tuple(game.headers.get(colour, "?") for colour in ("White", "Black"))
        self.moves = list(game.mainline_moves())
        board = game.board()
        self.boards = [board.copy(stack=False)]
        self.sans = []
        for move in self.moves:
            self.sans.append(board.san(move))
            board.push(move)
            self.boards.append(board.copy(stack=False))

    @property
    def plies(self) -> int:
        """How many moves the game has, White's and Black's counted one by one."""
        return len(self.moves)

    def check_ply(self, ply: int) -> int:
        """`ply`, if the game has it; else raises NotationError."""
        if not 0 <= ply <= self.plies:
            raise NotationError(f"no ply {ply} in this game: expected 0 to {self.plies}")
        return ply

    def svg(self, ply: int, flipped: bool = False, size: int = BOARD_SIZE) -> str:
        """The position after `ply` plies as `board_svg`, with the last move marked."""
        return board_svg(self.boards[ply], self.moves[ply - 1] if ply else None, flipped, size)

    def image(self, ply: int, flipped: bool = False, size: int = BOARD_SIZE) -> str:
        """The position after `ply` plies as `board_html`, with the last move marked."""
        return board_html(self.boards[ply], self.moves[ply - 1] if ply else None, flipped, size)

    def caption(self, ply: int) -> str:
        """One line of HTML about `ply`: the players, the ply, and the result at the end."""
        ended = f", {_result_words(self.result)}" if ply == self.plies else ""
        names = "" if set(self.players) == {"?"} else f"{self.players[0]} - {self.players[1]}. "
        return html.escape(f"{names}Ply {ply} of {self.plies}{ended}")

    def move_list(self, ply: int, size: int = BOARD_SIZE) -> str:
        """All moves with their numbers as a block of HTML that scrolls; the move that led to `ply` is marked."""
        return _scrolling(numbered_moves(self.boards[0], self.sans, ply), size)


def numbered_moves(start: chess.Board, sans: list[str], marked: int = 0) -> str:
    """Moves in SAN from `start`, with their numbers, as HTML; move number `marked` of the list, from 1, stands out."""
    words = []
    for index, san in enumerate(sans):
        ply = start.ply() + index
        number = f"{ply // 2 + 1}{'...' if ply % 2 else '.'}&nbsp;" if ply % 2 == 0 or index == 0 else ""
        word = html.escape(san)
        words.append(number + (word if index + 1 != marked else f'<b style="{MARKED}">{word}</b>'))
    return " ".join(words)


def game_html(pgn_text: str, ply: int | None = None, flipped: bool = False, size: int = BOARD_SIZE) -> str:
    """The position after `ply` plies (None: at the end) beside the moves, as HTML that needs no widget front end.

    Raises NotationError for a PGN that cannot be read, and for a ply that the game does not have.
    """
    game = PlayedGame(pgn_text)
    ply = game.plies if ply is None else game.check_ply(ply)
    return _side_by_side(game.image(ply, flipped, size), f"<p>{game.caption(ply)}</p>{game.move_list(ply, size)}")


def sample_html(text: str) -> str:
    """A sample game of any kind as HTML: a picture beside the moves if `text` is PGN, else the text as it stands.

    Raises NotationError for a PGN that cannot be read.
    """
    return game_html(text) if text.startswith("[") else f"<pre>{html.escape(text)}</pre>"


class WidgetOrHtml:
    """What a cell shows: `self.widget` if the front end can draw it, else `static_html()`."""

    widget: ipywidgets.Widget

    def static_html(self) -> str:
        """HTML that needs no widget front end."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """IPython's hook. Colab gets the widget alone: of the two, it may draw the HTML and leave the widget out."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if has_widget_front_end():
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        if not (has_widget_front_end() and in_colab()):
            bundle["text/html"] = self.static_html()
        return bundle


class GameReplay(WidgetOrHtml):
    """A viewer of the first game in a PGN text, with slider and buttons. `ply`, the ply on show, may be set."""

    def __init__(self, pgn_text: str, flipped: bool = False, size: int = BOARD_SIZE):
        self._game = PlayedGame(pgn_text)
        self._flipped, self._size = flipped, size
        last = self._game.plies
        self._slider = ipywidgets.IntSlider(min=0, max=last, layout=ipywidgets.Layout(width=f"{size}px"))
        self._play = ipywidgets.Play(min=0, max=last, interval=MILLISECONDS_PER_PLY)
        ipywidgets.jslink((self._play, "value"), (self._slider, "value"))
        self._back, self._forward = (
            ipywidgets.Button(description=name, layout=ipywidgets.Layout(width="90px")) for name in ("Back", "Forward")
        )
        self._back.on_click(lambda _: self._go(max(0, self.ply - 1)))
        self._forward.on_click(lambda _: self._go(min(last, self.ply + 1)))
        self._slider.observe(lambda _: self._draw(), names="value")
        self._picture, self._text = ipywidgets.HTML(), ipywidgets.HTML(layout=TEXT_LAYOUT)
        controls = ipywidgets.HBox([self._play, self._back, self._forward])
        self.widget = ipywidgets.HBox([ipywidgets.VBox([self._picture, self._slider, controls]), self._text])
        self._draw()

    @property
    def ply(self) -> int:
        return self._slider.value

    @ply.setter
    def ply(self, ply: int) -> None:
        self._go(self._game.check_ply(ply))

    def _go(self, ply: int) -> None:
        self._slider.value = ply

    def _draw(self) -> None:
        self._picture.value = self._game.svg(self.ply, self._flipped, self._size)
        self._text.value = f"<p>{self._game.caption(self.ply)}</p>{self._game.move_list(self.ply, self._size)}"

    def static_html(self) -> str:
        """The position on show; the end of the game as long as the slider is at the start."""
        ply = self.ply or self._game.plies
        text = f"<p>{self._game.caption(ply)}</p>{self._game.move_list(ply, self._size)}"
        return _side_by_side(self._game.image(ply, self._flipped, self._size), text)

    def __repr__(self) -> str:
        return f"GameReplay({self._game.plies} plies, {self._game.result})"


def _board(position: str | chess.Board) -> chess.Board:
    return board_from_fen(position) if isinstance(position, str) else position


def _result_words(result: str) -> str:
    words = {"1-0": "White won", "0-1": "Black won", "1/2-1/2": "drawn"}
    return words.get(result, "stopped without a result")


def _scrolling(text: str, size: int) -> str:
    style = f"max-width:420px;max-height:{size - 60}px;overflow-y:auto;line-height:1.6;white-space:normal"
    return f'<div style="{style}">{text}</div>'


def _side_by_side(left: str, right: str) -> str:
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f"<div>{left}</div><div>{right}</div></div>"
    )
