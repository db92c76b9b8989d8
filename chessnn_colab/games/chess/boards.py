"""Positions on tensors as python-chess boards, and back.

python-chess shows a position as White sees it, a state shows it as its mover does: where Black
moves, the board is mirrored on the way.
"""

from collections.abc import Sequence

import chess
import torch

from .bitboards import signed
from .state import ChessState, Position


def boards_from_state(state: ChessState) -> list[chess.Board]:
    """One python-chess board per row of `state`, without the moves that led there."""
    return [_board(*row) for row in zip(*(column.tolist() for column in state.position))]


def position_from_boards(boards: Sequence[chess.Board], device: torch.device) -> Position:
    """The position of each board, a row each, without the moves that led there."""
    rows = torch.tensor([_row(board) for board in boards], device=device)
    return Position(rows[:, :12], *rows[:, 12:].unbind(1))


def _board(
    pieces: list[int], castling_rights: int, ep_square: int, clock: int, ply: int, player: int
) -> chess.Board:
    board = chess.Board(None)
    for number, bits in enumerate(pieces):
        piece = chess.Piece(number % 6 + 1, number < 6)
        for square in chess.scan_forward(bits & chess.BB_ALL):
            board.set_piece_at(square, piece)
    board.castling_rights = castling_rights & chess.BB_ALL
    board.ep_square = chess.msb(ep_square) if ep_square else None
    if player:
        board.apply_mirror()
    board.halfmove_clock = clock
    board.fullmove_number = ply // 2 + 1
    return board


def _row(board: chess.Board) -> list[int]:
    """The numbers of a Position: twelve bitboards and five columns."""
    seen = board if board.turn else board.mirror()
    pieces = [
        seen.pieces_mask(kind, colour) for colour in chess.COLORS for kind in chess.PIECE_TYPES
    ]
    ep_square = 0 if seen.ep_square is None else 1 << seen.ep_square
    bitboards = [*pieces, seen.castling_rights, ep_square]
    return [*map(signed, bitboards), board.halfmove_clock, board.ply(), int(not board.turn)]
