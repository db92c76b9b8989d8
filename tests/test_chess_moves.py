"""Every legal move and every position after it, as python-chess has them, for both colours."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

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

POSITIONS = Path(__file__).parent / "golden" / "positions.txt"  # its first line names the columns
ROWS = (row.split("|") for row in POSITIONS.read_text(encoding="utf-8").splitlines()[1:])
CASES = {name.strip(): fields for name, *fields in ROWS}  # FEN, legal moves, illegal moves

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
                seen.update((kind, board.turn) for kind in kinds_of(board, move))
            check_positions(games.state, games.boards)
            games.replace_finished()
    assert positions >= full(28_000, 50_000)
    assert seen.keys() == set(product(KINDS, chess.COLORS)), dict(seen)


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


KINDS = (
    "castling kingside",
    "castling queenside",
    "en passant",
    "queen promotion",
    "underpromotion",
    "underpromotion with capture",
    "double check",
    "forbidden en passant",
)


def kinds_of(board: chess.Board, move: chess.Move):
    """What is special about `move` on `board`, which is about to play it."""
    if board.is_castling(move):
        yield "castling kingside" if board.is_kingside_castling(move) else "castling queenside"
    if board.is_en_passant(move):
        yield "en passant"
    if move.promotion:
        yield "queen promotion" if move.promotion == chess.QUEEN else "underpromotion"
    if move.promotion and move.promotion != chess.QUEEN and board.is_capture(move):
        yield "underpromotion with capture"
    if (
        board.ep_square is not None
        and board.has_pseudo_legal_en_passant()
        and not board.has_legal_en_passant()
    ):
        yield "forbidden en passant"
    if chess.popcount(board.checkers_mask()) > 1:
        yield "double check"


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
