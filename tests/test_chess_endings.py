"""How games end: as python-chess says, on played games with their history."""

from __future__ import annotations

from collections import Counter

import chess
import pytest
import torch

from chessnn_colab.games.chess.notation import state_from_boards
from chessnn_colab.games.chess.rules import ENDINGS, Chess, ChessState

from . import chess_games
from .chess_games import (
    PairedGames,
    action_of,
    any_move,
    both_colours,
    check_legal_moves,
    check_positions,
)
from .counts import full

# Few pieces and locked pawns: kings and rooks shuffle until something ends the game.
SHUFFLES = (
    "8/8/4k3/8/8/3K4/8/R7 w - - 0 1",
    "8/8/4k3/8/8/3K4/8/R6r w - - 0 1",
    "8/8/4k3/8/8/3KN3/8/R7 w - - 60 60",
    "7k/8/8/1p1p1p1p/1P1P1P1P/8/8/K7 w - - 0 1",
    "k7/8/K7/1p6/1P6/8/8/8 w - - 0 1",
    chess_games.CASTLING,
    "8/8/4k3/8/8/3K4/8/QQ6 w - - 0 1",
    "8/8/4k3/8/8/3KP3/8/8 w - - 0 1",
    "8/8/4k3/2b5/8/3K1B2/8/8 w - - 0 1",
    "8/8/4k3/2b5/8/3KN3/8/8 w - - 0 1",
    "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1",
    "8/3p4/4k3/8/2P5/3K4/8/7N w - - 0 1",
    chess.STARTING_FEN,
    chess_games.KIWIPETE,
    "7k/8/8/8/8/8/8/K1BN4 w - - 90 70",
    "k1K5/8/8/8/8/8/p6P/8 w - - 0 1",
)


def expected_ending(board: chess.Board) -> str:
    """The rules that end self-play and matches, asked of python-chess one by one."""
    if board.is_checkmate():
        return "checkmate"
    if board.is_insufficient_material():
        return "insufficient_material"
    if board.is_stalemate():
        return "stalemate"
    if board.is_repetition(3):
        return "threefold_repetition"
    return "fifty_moves" if board.halfmove_clock >= 100 else "unfinished"


def test_endings_equal_python_chess_in_played_games():
    games = PairedGames(Chess(max_plies=10_000), both_colours(SHUFFLES), full(64, 128), seed=5)
    endings = Counter()
    repeated = 0
    for _ in range(full(150, 250)):
        games.step(check_legal_moves(games.game, games.state, games.boards), any_move)
        check_positions(games.state, games.boards)
        expected = [expected_ending(board) for board in games.boards]
        for row, (board, ending) in enumerate(zip(games.boards, expected)):
            found = ENDINGS[games.state.ending[row]]
            assert found == ending, (
                f"{board.fen()} after {board.move_stack}: {found}, expected {ending}"
            )
        twice = [board.is_repetition(2) for board in games.boards]
        assert (games.state.repetitions > 1).tolist() == twice
        check_outcome(games.state, games.boards, expected)
        repeated += sum(twice)
        endings.update(expected)
        games.replace_finished()
    assert endings.keys() == set(ENDINGS) - {"truncated"}, endings
    assert repeated > full(50, 100)


def check_outcome(state: ChessState, boards: list[chess.Board], endings: list[str]) -> None:
    """Flags and rewards fit the ending; the loser of a mate is whoever cannot move."""
    assert state.terminated.tolist() == [ending != "unfinished" for ending in endings]
    assert not state.truncated.any()
    assert state.in_check.tolist() == [board.is_check() for board in boards]
    for rewards, board, ending in zip(state.rewards.tolist(), boards, endings):
        white = (-1 if board.turn else 1) if ending == "checkmate" else 0
        assert rewards == [white, -white]


FINISHED = {
    "checkmate": [
        "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1",
        "R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1",
        "7k/6Q1/6K1/8/8/8/8/8 b - - 100 90",
        "4k3/4Q3/4K3/8/8/8/8/8 b - - 150 99",
        "k7/8/8/8/8/8/5PPP/r5K1 w - - 3 9",
        "6rk/5Npp/8/8/8/8/8/7K b - - 0 1",
    ],
    "stalemate": [
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
        "7k/5Q2/6K1/8/8/8/8/8 b - - 100 90",
        "k7/P7/K7/8/8/8/8/8 b - - 0 1",
        "8/8/8/8/8/p7/P1k5/K7 w - - 0 1",
    ],
    "insufficient_material": [
        "8/8/4k3/8/8/3K4/8/8 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/N7 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/b7 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/b1B5 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/B1B1b1b1 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/B7 w - - 120 90",
        "7k/5B2/7K/8/8/8/8/8 b - - 0 1",
    ],
    "fifty_moves": ["8/8/4k3/8/8/3K4/8/R7 w - - 100 90", "8/8/4k3/8/8/3K4/8/R7 b - - 101 90"],
    "unfinished": [
        "8/8/4k3/8/8/3K4/8/R7 w - - 99 90",
        "8/8/4k3/8/8/3K4/8/NN6 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/Nn6 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/BN6 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/BB6 w - - 0 1",
        "8/8/4k3/8/8/3K4/8/Bb6 w - - 0 1",
        "8/8/4k3/8/8/3K4/P7/8 w - - 0 1",
        chess.STARTING_FEN,
    ],
}


@pytest.mark.parametrize(
    "ending, fen", [(ending, fen) for ending, fens in FINISHED.items() for fen in fens]
)
def test_the_ending_of_a_position(ending, fen):
    boards = both_colours([fen])
    assert expected_ending(boards[0]) == ending
    state = state_from_boards(boards, Chess())
    assert [ENDINGS[index] for index in state.ending] == [ending] * 2
    check_outcome(state, boards, [ending] * 2)


@pytest.mark.parametrize(
    "fen, move, ending",
    [
        ("7k/8/5K2/8/8/8/P7/6Q1 w - - 99 90", "g1g7", "checkmate"),
        ("7k/8/5K2/8/8/8/P7/6Q1 w - - 99 90", "g1g6", "stalemate"),
        ("7k/8/5K2/8/8/8/P7/6Q1 w - - 99 90", "g1b1", "fifty_moves"),
        ("7k/8/5K2/8/8/8/P7/6Q1 w - - 98 90", "g1b1", "unfinished"),
        ("7k/8/5K2/8/8/8/P7/6Q1 w - - 99 90", "a2a4", "unfinished"),
        ("7k/8/5K2/8/8/8/P6r/6Q1 w - - 99 90", "g1h2", "unfinished"),
    ],
)
def test_the_hundredth_half_move(fen, move, ending):
    for board in both_colours([fen]):
        flip = 0 if board.turn else 56
        played = chess.Move.from_uci(move)
        played = chess.Move(played.from_square ^ flip, played.to_square ^ flip)
        state = play(Chess(), board, [played.uci()])
        assert ENDINGS[state.ending] == ending
        white = (1 if board.turn else -1) if ending == "checkmate" else 0
        assert state.rewards.tolist() == [[white, -white]]


def play(game: Chess, board: chess.Board, moves: list[str]) -> ChessState:
    """The state after `moves` (UCI) from `board`, which stays as it is."""
    state = state_from_boards([board], game)
    board = board.copy()
    for uci in moves:
        move = chess.Move.from_uci(uci)
        assert board.is_legal(move)
        state = game.step(state, torch.tensor([action_of(move, board.turn)]))
        board.push(move)
    return state


KNIGHTS_OUT_AND_BACK = ["g1f3", "g8f6", "f3g1", "f6g8"]


@pytest.mark.parametrize(
    "fen, moves, repetitions",
    [
        (chess.STARTING_FEN, KNIGHTS_OUT_AND_BACK, 2),
        (chess.STARTING_FEN, KNIGHTS_OUT_AND_BACK * 2, 3),
        (chess.STARTING_FEN, [*KNIGHTS_OUT_AND_BACK, "e2e4"], 1),
        # After e2e4 nobody can capture en passant: the square does not make the position another.
        (chess.STARTING_FEN, ["e2e4", *"g8f6 g1f3 f6g8 f3g1".split() * 2], 3),
        # Here d4xe3 is possible the first time only.
        ("4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1", ["e2e4", *"e8d8 e1d1 d8e8 d1e1".split()], 1),
        ("4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1", ["e2e4", *"e8d8 e1d1 d8e8 d1e1".split() * 2], 2),
        # The capture would uncover the king: en passant is not possible even the first time.
        ("8/8/8/8/R2p3k/8/4P3/4K3 w - - 0 1", ["e2e4", *"h4h5 e1d1 h5h4 d1e1".split()], 2),
        # The king's first trip costs the right to castle.
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1e2 e8d8 e2e1 d8e8".split(), 1),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1e2 e8d8 e2e1 d8e8".split() * 2, 2),
        # The same pieces, the other side to move.
        ("4k3/8/8/8/8/8/8/4K2R b - - 0 1", "e8d8 h1h2 d8e7 h2h3 e7e8 h3h1".split(), 2),
        ("4k3/8/8/8/8/8/8/4K2R b - - 0 1", "e8d8 h1h2 d8e8 h2h3 e8d8 h3h1 d8e8".split(), 1),
    ],
)
def test_which_positions_are_the_same(fen, moves, repetitions):
    board = chess.Board(fen)
    state = play(Chess(), board, moves)
    for move in moves:
        board.push_uci(move)
    assert [board.is_repetition(count) for count in (2, 3)] == [repetitions >= 2, repetitions >= 3]
    assert state.repetitions.tolist() == [repetitions]
    assert bool(state.terminated) == (repetitions == 3)


def test_a_repetition_is_seen_across_the_whole_history():
    """A rook goes twice round 23 squares while a king steps to and fro: the first position returns
    after 92 plies.
    """
    board = chess.Board("k7/8/8/8/8/8/8/K2R4 w - - 0 1")
    game = Chess()
    tour = "e1 f1 g1 h1 h2 g2 f2 e2 d2 d3 e3 f3 g3 h3 h4 g4 f4 e4 d4 c4 c2 c1 d1".split() * 2 + [
        "e1",
        "d1",
    ]
    state = state_from_boards([board], game)
    repetitions = []
    for target in tour:
        for square in (target, "a7" if board.king(chess.BLACK) == chess.A8 else "a8"):
            move = next(move for move in board.legal_moves if move.uci().endswith(square))
            state = game.step(state, torch.tensor([action_of(move, board.turn)]))
            board.push(move)
            assert bool(state.repetitions >= 2) == board.is_repetition(2)
            repetitions.append(int(state.repetitions))
    assert repetitions == [1] * 91 + [2, 2, 2, 2, 3]
    assert ENDINGS[state.ending] == "threefold_repetition" and board.is_repetition(3)


def test_a_mate_at_the_ply_cap_is_a_mate():
    state = play(Chess(max_plies=1), chess.Board("7k/8/5KQ1/8/8/8/8/8 w - - 0 1"), ["g6g7"])
    assert ENDINGS[state.ending] == "checkmate" and not state.truncated
