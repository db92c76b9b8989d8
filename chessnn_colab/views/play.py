"""A widget on which a person plays chess against anything that can choose a move."""

import html
from collections.abc import Callable
from typing import Any

import chess
import ipywidgets

from ..errors import ConfigError, NotationError
from ..games.chess.notation import parse_move
from .board import BOARD_SIZE, TEXT_LAYOUT, WidgetOrHtml, board_html, board_svg, numbered_moves


class PlayBoard(WidgetOrHtml):
    """A game between a person and `choose_move`; made by `play_widget`.

    `board` is the game so far. Nothing that a person types can lose it: an illegal move changes only the message.
    """

    def __init__(self, choose_move: Callable[[chess.Board], chess.Move], human: str = "white"):
        if human not in ("white", "black"):
            raise ConfigError(f"human={human!r}: expected 'white' or 'black'")
        self._choose_move = choose_move
        self._human = chess.WHITE if human == "white" else chess.BLACK
        self.board = chess.Board()
        self._picture, self._message, self._moves = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._entry = ipywidgets.Text(placeholder="e2e4, e4, Nf3, O-O", layout=ipywidgets.Layout(width="150px"))
        self._legal = ipywidgets.Dropdown(options=[""], layout=ipywidgets.Layout(width="110px"))
        self._move, self._take_back, self._new_game = (
            ipywidgets.Button(description=name, layout=ipywidgets.Layout(width=width))
            for name, width in (("Move", "80px"), ("Take back", "110px"), ("New game", "110px"))
        )
        self._connect()
        entry = ipywidgets.HBox([self._entry, self._legal, self._move])
        buttons = ipywidgets.HBox([self._take_back, self._new_game])
        self.widget = ipywidgets.HBox(
            [
                ipywidgets.VBox([self._picture, entry, buttons]),
                ipywidgets.VBox([self._message, self._moves], layout=TEXT_LAYOUT),
            ]
        )
        self.new_game()

    def enter(self, text: str) -> bool:
        """Play a person's move, UCI or SAN, and the answer. An illegal move shows a message and returns False."""
        if self.board.turn != self._human or ending(self.board):
            self._draw("This game is over. Start a new game." if ending(self.board) else "It is not your turn yet.")
            return False
        if not text.strip():
            self._draw("No move entered: type one such as e2e4 or Nf3, or pick one from the list.")
            return False
        try:
            move = parse_move(text, self.board, "this position")
        except NotationError as error:
            self._draw(f"{error}. The game stands as it was.")
            return False
        self.board.push(move)
        self._entry.value = ""
        self._answer()
        return True

    def take_back(self) -> None:
        """Undo the person's last move and the answer to it."""
        if not any(self._human_moved(ply) for ply in range(len(self.board.move_stack))):
            return self._draw("There is no move of yours to take back.")
        undone_own = False
        while not undone_own:
            self.board.pop()
            undone_own = self.board.turn == self._human
        self._draw("Taken back. Your move.")

    def new_game(self) -> None:
        """Begin again from the standard start position."""
        self.board.reset()
        if self._human == chess.WHITE:
            self._draw("Your move.")
        else:
            self._answer()

    def static_html(self) -> str:
        """The position and the moves so far."""
        moves = numbered_moves(chess.Board(), self._sans())
        return f"{board_html(self.board, self._last_move(), self._human == chess.BLACK)}<p>{moves}</p>"

    def _connect(self) -> None:
        self._move.on_click(lambda _: self.enter(self._entry.value))
        # The Enter key: ipywidgets 8 deprecates on_submit, but both send this message.
        self._entry.on_msg(lambda _, content, __: content.get("event") == "submit" and self.enter(self._entry.value))
        self._legal.observe(self._pick, names="value")
        self._take_back.on_click(lambda _: self.take_back())
        self._new_game.on_click(lambda _: self.new_game())

    def _pick(self, change: dict[str, Any]) -> None:
        """Copy a move picked from the list into the text box; the button Move plays it."""
        if change["new"]:
            self._entry.value = change["new"]

    def _answer(self) -> None:
        """Let the opponent move. If it fails, undo the person's move and raise the failure again."""
        if not ending(self.board):
            self._draw("The network is thinking.")
            try:
                move = self._choose_move(self.board.copy())
            except BaseException as error:
                self._undo_unanswered(f"The network failed ({type(error).__name__}: {error}).")
                raise
            if move not in self.board.legal_moves:
                return self._undo_unanswered(f"The network answered {move}, which is not legal here.")
            self.board.push(move)
        self._draw(ending(self.board) or "Your move.")

    def _undo_unanswered(self, reason: str) -> None:
        if not self.board.move_stack:
            return self._draw(f"{reason} New game tries again.")
        self.board.pop()
        self._draw(f"{reason} Your last move is taken back; nothing else is lost.")

    def _human_moved(self, ply: int) -> bool:
        return (ply % 2 == 0) == (self._human == chess.WHITE)

    def _last_move(self) -> chess.Move | None:
        return self.board.move_stack[-1] if self.board.move_stack else None

    def _sans(self) -> list[str]:
        board, sans = chess.Board(), []
        for move in self.board.move_stack:
            sans.append(board.san(move))
            board.push(move)
        return sans

    def _draw(self, message: str) -> None:
        sans = self._sans()
        self._picture.value = board_svg(self.board, self._last_move(), self._human == chess.BLACK, BOARD_SIZE)
        self._message.value = f"<b>{html.escape(message)}</b>"
        moves = numbered_moves(chess.Board(), sans, marked=len(sans))
        self._moves.value = f'<div style="max-width:420px;line-height:1.6">{moves}</div>'
        own_turn = self.board.turn == self._human and not ending(self.board)
        options = ["", *sorted(map(self.board.san, self.board.legal_moves))] if own_turn else [""]
        if list(self._legal.options) != options:
            self._legal.options = options
        self._move.disabled = not own_turn

    def __repr__(self) -> str:
        return f"PlayBoard({self.board.fen()!r})"


def play_widget(choose_move: Callable[[chess.Board], chess.Move], human: str = "white") -> PlayBoard:
    """A game to play by hand; `choose_move(board)` answers for the other side. Make it the last line of a cell.

    human: "white" or "black"; raises ConfigError for anything else.
    """
    return PlayBoard(choose_move, human)


def ending(board: chess.Board) -> str:
    """How the game ended, by the rules that end self-play and matches; "" while it goes on."""
    if board.is_checkmate():
        return f"Checkmate: {'Black' if board.turn else 'White'} won."
    reasons = {
        "Stalemate": board.is_stalemate(),
        "Insufficient material": board.is_insufficient_material(),
        "Third repetition": board.is_repetition(3),
        "Fifty moves without a capture or a pawn move": board.halfmove_clock >= 100,
    }
    return next((f"{reason}: drawn." for reason, holds in reasons.items() if holds), "")
