"""Every legal move and every position after it, as python-chess has them, for both colours."""

from __future__ import annotations

import random
from collections import Counter

import chess
import pytest
import torch

from chessnn_colab.games.base import select, winning_actions
from chessnn_colab.games.chess.notation import state_from_boards
from chessnn_colab.games.chess.rules import Chess

from . import chess_games
from .chess_games import (
    PairedGames,
    any_move,
    both_colours,
    check_legal_moves,
    check_positions,
    every_move,
    mostly_captures,
)
from .counts import full

# name: FEN, moves that must be legal, moves that must not be
CASES = {
    "castling through an attacked square": ("4k3/8/8/8/5r2/8/8/R3K2R w KQ - 0 1", "e1c1", "e1g1"),
    "castling out of check": ("4k3/8/8/8/4r3/8/8/R3K2R w KQ - 0 1", "e1d1", "e1c1 e1g1"),
    "castling into check": ("4k3/8/8/8/6r1/8/8/R3K2R w KQ - 0 1", "e1c1", "e1g1"),
    "castling when only the rook passes an attack": (
        "4k3/8/8/8/1r6/8/8/R3K2R w KQ - 0 1",
        "e1c1 e1g1",
        "",
    ),
    "castling when only the rook is attacked": (
        "4k3/8/8/8/r6r/8/8/R3K2R w KQ - 0 1",
        "e1c1 e1g1",
        "",
    ),
    "castling over a knight on b1": ("4k3/8/8/8/8/8/8/RN2K2R w KQ - 0 1", "e1g1", "e1c1"),
    "castling past a pawn's attack": ("4k3/8/8/8/8/8/3p3p/R3K2R w KQ - 0 1", "e1e2", "e1c1 e1g1"),
    "castling without the right": ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", "e1d1", "e1c1 e1g1"),
    "castling with one right": ("4k3/8/8/8/8/8/8/R3K2R w Q - 0 1", "e1c1", "e1g1"),
    "castling that gives check": ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", ""),
    "en passant, both pawns leave the king's rank": (
        "8/8/8/K1pP3q/8/8/8/7k w - c6 0 1",
        "d5d6",
        "d5c6",
    ),
    "en passant, king on the other side": ("8/8/8/q2pP2K/8/8/8/7k w - d6 0 1", "e5e6", "e5d6"),
    "en passant, another piece still covers the rank": (
        "8/8/8/K1pP1N1q/8/8/8/7k w - c6 0 1",
        "d5c6 d5d6",
        "",
    ),
    "en passant by a pawn pinned across": ("6bk/8/8/2pP4/8/8/K7/8 w - c6 0 1", "", "d5c6 d5d6"),
    "en passant along the pin": ("6bk/8/8/3Pp3/8/8/K7/8 w - e6 0 1", "d5e6", "d5d6"),
    "en passant by a pawn pinned on its file": (
        "3r3k/8/8/2pP4/8/8/8/3K4 w - c6 0 1",
        "d5d6",
        "d5c6",
    ),
    "en passant takes the pawn that hid the king from a bishop": (
        "5b1k/8/8/2pP4/8/K7/8/8 w - c6 0 1",
        "d5d6",
        "d5c6",
    ),
    "en passant takes the pawn that gives check": (
        "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1",
        "e4d3",
        "e4e3",
    ),
    "en passant while the push uncovered a check": (
        "4b2k/8/8/3pP3/K7/8/8/8 w - d6 0 1",
        "a4a3",
        "e5d6 e5e6",
    ),
    "en passant by two pawns": ("7k/8/8/2PpP3/8/8/8/7K w - d6 0 1", "c5d6 e5d6", ""),
    "en passant by one pawn of two, the other pinned": (
        "4r2k/8/8/2PpP3/8/8/8/4K3 w - d6 0 1",
        "c5d6 e5e6",
        "e5d6",
    ),
    "a double push remembered though nobody can capture": (
        "7k/8/8/3p4/8/8/8/7K w - d6 0 1",
        "h1g1",
        "",
    ),
    "double check, only the king moves": (
        "4r2k/8/8/8/8/5n2/3Q4/4K3 w - - 0 1",
        "e1f1 e1d1",
        "d2e2 d2f4 d2d8",
    ),
    "double check along two lines": ("4r2k/8/8/8/7b/8/3R4/4K3 w - - 0 1", "e1f1", "d2e2 d2f2"),
    "two knights check at once": ("7k/8/8/8/1r6/3n1n2/8/R3K3 w Q - 0 1", "e1e2 e1d1 e1f1", "a1a2"),
    "a check from a knight is not blocked": (
        "7k/8/8/8/8/3n4/5P2/R3K3 w Q - 0 1",
        "e1e2 e1d2",
        "a1a2 e1c1 f2f3",
    ),
    "a check is blocked or taken": ("4r2k/8/8/8/B7/8/8/R3K3 w Q - 0 1", "a4e8 e1f2", "a1a2 e1c1"),
    "the king may not retreat along the ray": (
        "7k/8/8/8/4r3/8/4K3/8 w - - 0 1",
        "e2d2",
        "e2e1 e2e3",
    ),
    "the king may not take what is covered": ("7k/8/8/8/8/5b2/4q3/4K3 w - - 0 1", "", "e1e2"),
    "kings keep apart": ("8/8/8/8/8/3k4/8/3K4 w - - 0 1", "d1e1 d1c1", "d1d2 d1e2 d1c2"),
    "a pinned knight stays": ("4r2k/8/8/8/8/4N3/8/4K3 w - - 0 1", "e1d1", "e3d5 e3f5"),
    "a pinned rook slides on its line": (
        "4r2k/8/8/8/4R3/8/8/4K3 w - - 0 1",
        "e4e8 e4e2",
        "e4d4 e4h4",
    ),
    "a pinned bishop slides on its line": (
        "7k/8/8/7b/8/5B2/8/3K4 w - - 0 1",
        "f3e2 f3g4 f3h5",
        "f3g2 f3a8",
    ),
    "a pinned queen does not leave its line": (
        "4r2k/8/8/8/4Q3/8/8/4K3 w - - 0 1",
        "e4e8",
        "e4d5 e4h7",
    ),
    "a pinned pawn captures along the pin": (
        "7k/8/8/8/8/6b1/5P2/4K3 w - - 0 1",
        "f2g3",
        "f2f3 f2f4",
    ),
    "a pinned pawn pushes on its file": ("4r2k/8/8/8/8/3p4/4P3/4K3 w - - 0 1", "e2e3 e2e4", "e2d3"),
    "two pins at once": ("4r2k/8/8/b7/8/2N5/4R3/4K3 w - - 0 1", "e2e8 e2e3", "c3d5 e2d2"),
    "a double push is blocked": ("7k/8/8/8/8/4n3/4P3/7K w - - 0 1", "", "e2e3 e2e4"),
    "a double push is blocked at its end": ("7k/8/8/8/4n3/8/4P3/7K w - - 0 1", "e2e3", "e2e4"),
    "a double push answers a check": ("7k/8/8/8/r6K/8/4P3/8 w - - 0 1", "e2e4", "e2e3"),
    "pawns do not capture around the edge": (
        "7k/8/p7/7P/P7/7p/8/7K w - - 0 1",
        "a4a5 h5h6",
        "h5a6 a4h3",
    ),
    "a capture on h8 lets no other pawn around the edge": (
        "k6r/6PP/8/8/8/8/8/6K1 w - - 0 1",
        "g7h8q g7g8n",
        "h7h8q",
    ),
    "promotion to each piece": ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8q a7a8r a7a8b a7a8n", ""),
    "promotion with captures both ways": (
        "n1n4k/1P6/8/8/8/8/7K/8 w - - 0 1",
        "b7a8n b7c8r b7b8b b7c8q",
        "",
    ),
    "promotion by a pawn pinned on its file": ("1r5k/1P6/8/8/8/8/8/1K6 w - - 0 1", "b1a1", "b7b8q"),
    "promotion takes the checking rook": ("r6k/1P6/8/8/8/8/8/K7 w - - 0 1", "b7a8n b7a8q", "b7b8q"),
    "promotion takes a rook that could castle": (
        "r3k2r/1P4P1/8/8/8/8/8/4K3 w kq - 0 1",
        "b7a8n g7h8q g7g8r",
        "",
    ),
    "a rook takes a rook, both rights go": (chess_games.CASTLING, "a1a8 h1h8 e1g1 e1c1", ""),
    "a king takes a rook": ("4k3/8/8/8/8/8/6r1/R3K2R w KQ - 0 1", "e1c1", "e1g1 e1f2"),
    "no move, no check": ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "", "h8g8 h8h7 h8g7"),
}

STARTS = (
    chess.STARTING_FEN,
    chess_games.KIWIPETE,
    chess_games.POSITION_4,
    chess_games.POSITION_5,
    chess_games.PROMOTIONS,
    chess_games.CASTLING,
    chess.STARTING_FEN,
    chess_games.POSITION_3,
    "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
    "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R b KQkq - 3 9",
)


@pytest.mark.parametrize("name", CASES)
def test_a_named_position(name):
    fen, legal, illegal = CASES[name]
    boards = both_colours([fen])
    game = Chess()
    for board, moves in zip(
        boards, check_legal_moves(game, state_from_boards(boards, game), boards)
    ):
        flip = 0 if board.turn == chess.Board(fen).turn else 56
        found = {
            chess.Move(move.from_square ^ flip, move.to_square ^ flip, move.promotion).uci()
            for move in moves.values()
        }
        assert set(legal.split()) <= found
        assert not set(illegal.split()) & found


def test_the_position_after_every_move_of_the_named_positions_packed_and_not():
    game = Chess()
    state, boards, moves = every_move(game, both_colours([fen for fen, _, _ in CASES.values()]))
    check_positions(state, boards)
    unpacked = game.unpack(game.pack(state))
    check_positions(unpacked, boards)
    assert torch.equal(unpacked.ending, state.ending)
    assert sum(move.promotion is not None for move in moves) > 60


def test_legal_moves_and_positions_equal_python_chess_in_played_games():
    seen = Counter()
    positions = 0
    for seed, choose in enumerate((any_move, mostly_captures)):
        games = PairedGames(Chess(), both_colours(STARTS), full(160, 320), seed)
        for _ in range(90):
            positions += len(games.boards)
            moves = check_legal_moves(games.game, games.state, games.boards)
            before = [board.copy(stack=False) for board in games.boards]
            for board, move in zip(before, games.step(moves, choose)):
                seen.update(kinds_of(board, move))
            check_positions(games.state, games.boards)
            games.replace_finished()
    assert positions >= full(28_000, 50_000)
    assert not [kind for kind in KINDS if not seen[kind]], dict(seen)


def thrown(rng: random.Random) -> chess.Board:
    """Pieces anywhere, as long as python-chess calls it a position; often one that no game leads
    to.
    """
    while True:
        board = chess.Board(None)
        board.turn = rng.random() < 0.5
        squares = rng.sample(chess.SQUARES, rng.randint(3, 22))
        kinds = rng.choice(
            ([chess.PAWN], [chess.KNIGHT], list(range(1, 6)), [chess.PAWN, chess.QUEEN])
        )
        for number, square in enumerate(squares):
            kind = chess.KING if number < 2 else rng.choice(kinds)
            if kind != chess.PAWN or 8 <= square < 56:
                board.set_piece_at(
                    square, chess.Piece(kind, rng.random() < 0.5 if number > 1 else number == 0)
                )
        jumped = board.pieces(chess.PAWN, not board.turn) & (
            chess.BB_RANK_5 if board.turn else chess.BB_RANK_4
        )
        for square in (*jumped, None):
            board.ep_square = None if square is None else square + (8 if board.turn else -8)
            if board.is_valid():
                return board


def test_legal_moves_equal_python_chess_in_positions_thrown_on_the_board():
    rng = random.Random(3)
    game = Chess()
    boards = [thrown(rng) for _ in range(full(1000, 3000))]
    state = state_from_boards(boards, game)
    check_legal_moves(game, state, boards)
    assert state.in_check.tolist() == [board.is_check() for board in boards]
    after, boards, _ = every_move(game, boards[:150])
    check_positions(after, boards)
    assert after.in_check.tolist() == [board.is_check() for board in boards]


KINDS = tuple(
    f"{kind} by {colour}"
    for colour in ("White", "Black")
    for kind in (
        "castling kingside",
        "castling queenside",
        "en passant",
        "queen promotion",
        "underpromotion",
        "underpromotion with capture",
        "double check",
        "forbidden en passant",
    )
)


def kinds_of(board: chess.Board, move: chess.Move):
    """What is special about `move` on `board`, which is about to play it."""
    colour = chess.COLOR_NAMES[board.turn].capitalize()
    if board.is_castling(move):
        yield f"castling {'kingside' if board.is_kingside_castling(move) else 'queenside'} by {colour}"
    if board.is_en_passant(move):
        yield f"en passant by {colour}"
    if move.promotion:
        yield f"{'queen promotion' if move.promotion == chess.QUEEN else 'underpromotion'} by {colour}"
    if move.promotion and move.promotion != chess.QUEEN and board.is_capture(move):
        yield f"underpromotion with capture by {colour}"
    if (
        board.ep_square is not None
        and board.has_pseudo_legal_en_passant()
        and not board.has_legal_en_passant()
    ):
        yield f"forbidden en passant by {colour}"
    if chess.popcount(board.checkers_mask()) > 1:
        yield f"double check by {colour}"


def test_black_sees_what_white_sees():
    """Mirrored positions have the same planes: one code path, both colours."""
    game = Chess()
    boards = both_colours([fen for fen, _, _ in CASES.values()] + list(STARTS))
    state = state_from_boards(boards, game)
    planes = game.observe(state)
    assert torch.equal(planes[0::2], planes[1::2])


def test_an_illegal_move_makes_nonsense_and_no_error():
    """Spare rows of a search play one: here the rook goes onto its own king, and what stands there
    moves on.
    """
    game = Chess()
    state = game.step(
        state_from_boards([chess.Board("7k/8/8/8/8/8/KP6/RN6 w - - 0 1")], game), torch.tensor([0])
    )
    rows, actions = game.legal_actions(state)
    state = game.step(state, actions[-1:])
    rows, actions = game.legal_actions(state)
    assert len(rows) > 10 and set((actions % 64).tolist()) >= {8}
    game.step(select(state, rows), actions)
    winning_actions(game, state)
