"""The book: legal, varied, fair, and the same for everybody."""

import chess

from chessnn_colab.arena.chess.openings import BOOK, board_after

VALUES = {
    chess.PAWN: 1,
    chess.KNIGHT: 3,
    chess.BISHOP: 3,
    chess.ROOK: 5,
    chess.QUEEN: 9,
    chess.KING: 0,
}


def balance(board: chess.Board) -> int:
    """Material of the side to move less the other's."""
    return sum(
        value * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
        for kind, value in VALUES.items()
    )


def after_captures(board: chess.Board, low: int = -99, high: int = 99, depth: int = 6) -> int:
    """The balance when both sides take what they like."""
    best = balance(board)
    for move in list(board.generate_legal_captures()) if depth else ():
        if best >= high:
            break
        board.push(move)
        best = max(best, -after_captures(board, -high, -max(low, best), depth - 1))
        board.pop()
    return best


def test_the_book_is_varied():
    assert len(BOOK) >= 50
    assert (
        len({opening.name for opening in BOOK})
        == len({board_after(opening).epd() for opening in BOOK})
        == len(BOOK)
    )
    assert {len(opening.moves) for opening in BOOK} == set(range(2, 9))
    # Short matches are varied too.
    for first in range(len(BOOK) - 12):
        assert len({opening.moves[0] for opening in BOOK[first : first + 12]}) >= 3, first
    assert {opening.moves[0] for opening in BOOK[:12]} >= {"e4", "d4", "c4", "Nf3"}


def test_lines_are_legal_and_leave_the_game_open():
    for opening in BOOK:
        board = board_after(opening)  # raises on an illegal move
        assert not board.is_game_over(claim_draw=True) and board.is_valid(), opening.name


def test_nobody_starts_with_more_than_a_pawn_to_win_or_lose():
    for opening in BOOK:
        board = board_after(opening)
        assert abs(balance(board)) <= 1 and abs(after_captures(board)) <= 1, opening.name
