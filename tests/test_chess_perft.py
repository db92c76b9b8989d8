"""perft: the published numbers of leaves (https://www.chessprogramming.org/Perft_Results)."""

from __future__ import annotations

import chess
import pytest

from . import chess_games
from .perft import perft

PUBLISHED = {
    "start": (chess.STARTING_FEN, 4, 197_281),
    "kiwipete": (chess_games.KIWIPETE, 3, 97_862),
    "position 3": (chess_games.POSITION_3, 4, 43_238),
    "position 4": (chess_games.POSITION_4, 3, 9_467),
    "position 5": (chess_games.POSITION_5, 3, 62_379),
    "position 6": (chess_games.POSITION_6, 3, 89_890),
    "promotions": (chess_games.PROMOTIONS, 4, 182_838),
}
# Draws and mates are near, and end no line: counted with python-chess.
COUNTED = {
    "the hundredth half-move": ("8/8/8/8/8/1k6/8/K1n5 w - - 99 80", 3, 20),
    "bare kings": ("8/8/8/4k3/8/4K3/8/8 b - - 0 1", 3, 257),
    "king and queen": ("7k/8/8/8/8/8/6q1/K7 b - - 0 1", 3, 1_140),
    "en passant": ("8/2k5/8/8/3pP3/8/5K2/8 b - e3 0 1", 3, 628),
}


@pytest.mark.parametrize("mirrored", [False, True], ids=["", "mirrored"])
@pytest.mark.parametrize("name", PUBLISHED | COUNTED)
def test_published_number(name, mirrored):
    fen, depth, leaves = (PUBLISHED | COUNTED)[name]
    board = chess.Board(fen).mirror() if mirrored else chess.Board(fen)
    split = perft(board.fen(), depth)
    lines = "\n".join(f"{move}: {count}" for move, count in split.items())
    assert sum(split.values()) == leaves, f"the leaves of each move:\n{lines}"


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(
    "fen", ["7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1"]
)
def test_a_position_without_moves_has_no_leaves(fen, depth):
    assert perft(fen, depth) == {}
