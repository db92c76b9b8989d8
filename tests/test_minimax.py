"""Minimax of depth 2 against the same search written plainly with python-chess."""

import sys
from pathlib import Path

import chess

from chessnn_colab.arena.chess.minimax import MATE, PIECE_VALUES, MinimaxPlayer, bonus
from chessnn_colab.games.chess.notation import move_from_action, state_from_boards
from chessnn_colab.games.chess.rules import Chess

from .chess_games import played_games
from .counts import full

# Mates to give and to avoid, promotions, en passant, castling, stalemate tricks.
FENS = [
    "8/8/8/8/8/3k4/1q6/K7 w - - 0 1",  # only Kxb2, and nobody can mate any more
    "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1",
    "3r2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1",
    "8/P6k/8/8/8/8/7K/8 w - - 0 1",
    "8/2P4k/8/8/8/8/1p5K/8 b - - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1",
    "7k/5Q2/8/6K1/8/8/8/8 w - - 0 1",
    "k7/2Q5/8/1K6/8/8/8/8 w - - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 3",
]

ROOT = Path(__file__).parents[1]


def worth(board: chess.Board, colour: chess.Color) -> float:
    total = 0
    for square, piece in board.piece_map().items():
        rank = chess.square_rank(square) if piece.color else 7 - chess.square_rank(square)
        kind = piece.piece_type - 1
        value = PIECE_VALUES[kind] + bonus(kind, chess.square_file(square), rank)
        total += value if piece.color == colour else -value
    return total


def plain(board: chess.Board, depth: int, colour: chess.Color) -> float:
    if not any(board.legal_moves):
        return 0 if not board.is_check() else -MATE if board.turn == colour else MATE
    if board.is_insufficient_material() or board.is_repetition(3) or board.halfmove_clock >= 100:
        return 0
    if depth == 0:
        return worth(board, colour)
    values = []
    for move in board.legal_moves:
        board.push(move)
        values.append(plain(board, depth - 1, colour))
        board.pop()
    return (max if board.turn == colour else min)(values)


def plain_scores(board: chess.Board) -> dict[chess.Move, float]:
    scores = {}
    for move in list(board.legal_moves):
        board.push(move)
        scores[move] = plain(board, 1, not board.turn)
        board.pop()
    return scores


def checked(boards: list[chess.Board], game: Chess) -> int:
    """Compare every legal move's score; how many there were."""
    state = state_from_boards(boards, game)
    scores = MinimaxPlayer(game).scores(state)
    mask = game.legal_action_mask(state)
    moves = 0
    for row, board in enumerate(boards):
        expected = plain_scores(board)
        found = {
            move_from_action(int(action), board): float(scores[row, action])
            for action in mask[row].nonzero()
        }
        assert found == expected, board.fen()
        moves += len(found)
    return moves


def test_every_score_is_plain_minimaxs():
    game = Chess()
    assert checked([chess.Board(fen) for fen in FENS], game) > 150
    boards = [
        board
        for board in played_games(full(20, 200), 60, seed=3)
        if not board.is_game_over(claim_draw=True)
    ]
    assert checked(boards, game) > 500


def test_the_yardstick_is_the_one_that_the_docs_name():
    """Whoever changes the book, greedy or minimax gives the yardstick another name, in
    docs/strength.md too.
    """
    sys.path.insert(0, str(ROOT / "tools"))
    from strength import yardstick

    assert f"`{yardstick('chess')}`" in (ROOT / "docs" / "strength.md").read_text(encoding="utf-8")
