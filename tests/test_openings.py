"""The book: legal, varied, fair, and the same for everybody."""

import sys
from pathlib import Path

import chess

from chessnn_colab.arena.chess.game import CHESS
from chessnn_colab.arena.chess.openings import BOOK
from chessnn_colab.arena.result import Opening
from chessnn_colab.games.registry import make_game

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from make_tactics import VALUES, best_exchange


def balance(board: chess.Board) -> int:
    """Material of the side to move less the other's."""
    return sum(
        value * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
        for kind, value in VALUES.items()
    )


def board_after(opening: Opening) -> chess.Board:
    return CHESS.start(make_game("chess"), [opening])[1][0]


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
        after_exchanges = balance(board) + best_exchange(board)
        assert abs(balance(board)) <= 1 and abs(after_exchanges) <= 1, opening.name
