"""Chess as a board to click on: python-chess keeps the game, so that its moves read as players
write them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import chess
import chess.pgn
import chess.svg

from ..errors import NotationError
from ..games.chess.notation import (
    action_from_move,
    board_from_fen,
    move_from_action,
    parse_move,
    state_from_boards,
)
from ..games.chess.pgn import game_from_pgn
from ..games.chess.rules import Chess
from .drawing import EMPTY, Drawing, ground

RESULTS = {"1-0": "White won.", "0-1": "Black won.", "1/2-1/2": "drawn."}


class ChessDrawing(Drawing):
    """A game of chess from any position (see drawing.Drawing). Square 0 is a8."""

    rows = columns = 8
    grounds = (ground("#eae6da"), ground("#8fa3b5"))
    names: Sequence[str] = tuple(chess.square_name(number ^ 56) for number in range(64))
    glyphs: Mapping[str, tuple[str, str]] = {
        letter: (
            f"{'white' if letter.isupper() else 'black'} {chess.PIECE_NAMES[kind]}",
            chess.svg.PIECES[letter],
        )
        for kind in chess.PIECE_TYPES
        for letter in (chess.PIECE_SYMBOLS[kind].upper(), chess.PIECE_SYMBOLS[kind])
    }
    hint = "e2e4, e4, Nf3, O-O"
    refusal = "No legal move starts at {}"
    alarm = "danger"
    players: tuple[str, ...] = ("White", "Black")

    def __init__(self, game: Any):
        self.game = game
        self.reset()

    @property
    def turn(self) -> int:
        return 0 if self.board.turn else 1

    def squares(self) -> list[str]:
        """The letter of the piece on each square, as in FEN."""
        pieces = [self.board.piece_at(number ^ 56) for number in range(64)]
        return [piece.symbol() if piece else EMPTY for piece in pieces]

    def clicks(self) -> list[tuple[tuple[int, ...], int]]:
        """Where the piece stands, then where it goes: the king's own squares when it castles."""
        if self.ending():
            return []
        return [
            ((move.from_square ^ 56, move.to_square ^ 56), action_from_move(move, self.board))
            for move in self.board.legal_moves
        ]

    def choice(self, action: int) -> str:
        """The piece that a pawn becomes."""
        promotion = move_from_action(action, self.board).promotion
        return chess.piece_name(promotion).capitalize() if promotion else self.move_text(action)

    def last(self) -> Sequence[int]:
        """From where to where the last move went."""
        if not self.board.move_stack:
            return ()
        move = self.board.peek()
        return move.from_square ^ 56, move.to_square ^ 56

    def alarms(self) -> Sequence[int]:
        """The square of a king in check."""
        king = self.board.king(self.board.turn)
        return [king ^ 56] if king is not None and self.board.is_check() else []

    def push(self, action: int) -> None:
        """Play a move."""
        self.board.push(move_from_action(action, self.board))
        self.actions.append(action)

    def pop(self) -> None:
        """Take the last move back."""
        self.board.pop()
        self.actions.pop()

    def parse(self, text: str) -> int:
        """A move in UCI or SAN. Raises NotationError."""
        return action_from_move(parse_move(text, self.board, "this position"), self.board)

    def move_text(self, action: int) -> str:
        """The move in SAN."""
        return self.board.san(move_from_action(action, self.board))

    def moves(self) -> list[tuple[str, str]]:
        """The moves in SAN with their numbers."""
        written = self.board.root().variation_san(self.board.move_stack)
        return re.findall(r"\s*(\d+\.+)?\s*(\S+)", written)

    def ending(self) -> str:
        """How the game ended, by the rules that end self-play and matches."""
        board = self.board
        if board.is_checkmate():
            return f"Checkmate: {self.players[board.turn]} won."
        reasons = {
            "Stalemate": board.is_stalemate(),
            "Insufficient material": board.is_insufficient_material(),
            "Third repetition": board.is_repetition(3),
            "Fifty moves without a capture or a pawn move": board.halfmove_clock >= 100,
        }
        return next((f"{reason}: drawn." for reason, holds in reasons.items() if holds), "")

    def opening_words(self) -> str:
        """With how many pieces the game starts, where it is not the usual position."""
        start = self.board.root()
        if start.fen() == chess.STARTING_FEN:
            return ""
        men = len(start.piece_map())
        return f"This game starts from another position than usual, with {men} pieces."

    def states(self, first: int) -> list[Any]:
        """The positions of the game from number `first` on; each knows what has occurred before."""
        board = self.board.copy()
        states = []
        for _ in self.actions[first:]:
            states.append(state_from_boards([board], self.game))
            board.pop()
        return [state_from_boards([board], self.game), *reversed(states)]

    def text(self, names: Sequence[str] = (), resigned: int | None = None) -> str:
        """The game as PGN. names: White's and Black's."""
        written = chess.pgn.Game.from_board(self.board)
        for header in ("Event", "Site", "Date", "Round"):  # unknown
            del written.headers[header]
        for colour, name in zip(self.players, names):
            written.headers[colour] = name
        end = self.ending()
        if resigned is not None:
            end = f"{self.players[1 - resigned]} won."
        for result, words in RESULTS.items():
            if words in end:
                written.headers["Result"] = result
        return str(written)

    def load(self, text: str) -> None:
        """A position as FEN, or the first game of a PGN with its moves. Raises NotationError."""
        text = text.strip()
        if "/" in text.split(" ")[0] and "\n" not in text:
            board = board_from_fen(text)
        else:
            board = game_from_pgn(text).end().board()
        self._begin(board.root())
        for move in board.move_stack:
            self.push(action_from_move(move, self.board))

    def reset(self) -> None:
        """The usual start position."""
        self._begin(chess.Board())

    def _begin(self, board: chess.Board) -> None:
        self.board = board
        self.actions = []


def read_pgn(pgn_text: str) -> tuple[ChessDrawing, Mapping[str, str]]:
    """The first game of a PGN text, played to its end, and its headers.

    Raises NotationError for text that game_from_pgn refuses, and for a game without a move.
    """
    drawing = ChessDrawing(Chess())
    drawing.load(pgn_text)
    if not drawing.actions:
        raise NotationError(
            f"no move in PGN {pgn_text!r:.120}: expected a game such as 1. e4 e5 2. Nf3"
        )
    return drawing, game_from_pgn(pgn_text).headers
