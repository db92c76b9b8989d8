"""FEN, UCI and SAN go both ways; whatever is not chess is refused in one sentence that quotes
it.
"""

from __future__ import annotations

import chess
import pytest

from chessnn_colab.errors import NotationError
from chessnn_colab.games.base import finished
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import (
    action_from_move,
    board_from_fen,
    move_from_action,
    parse_move,
    state_from_boards,
)
from chessnn_colab.games.chess.rules import ENDINGS, Chess

from . import chess_games
from .chess_games import FENS, action_of, both_colours, check_positions, state_from_fens
from .counts import full


def test_fens_go_both_ways():
    state = state_from_fens(FENS, Chess())
    assert [board.fen(en_passant="fen") for board in boards_from_state(state)] == list(FENS)
    check_positions(state, [chess.Board(fen) for fen in FENS])
    assert not state.plies_played.any() and bool((state.repetitions == 1).all())


@pytest.mark.parametrize(
    "fen, reason",
    [
        ("", "empty fen"),
        ("xyz", "expected 8 rows"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "empty"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "no black king"),
        ("k6k/8/8/8/8/8/8/K7 w - - 0 1", "too many kings"),
        ("k7/8/8/8/8/8/8/K~7 w - - 0 1", "a king that was a pawn"),
        ("k6P/8/8/8/8/8/8/K7 w - - 0 1", "pawns on backrank"),
        ("k7/8/8/8/8/8/8/K6r b - - 0 1", "opposite check"),
        ("k7/8/8/8/8/8/8/K7 w KQ - 0 1", "bad castling rights"),
        ("k7/8/8/8/8/8/8/K7 w - e6 0 1", "invalid ep square"),
        ("k7/8/8/8/8/8/8/K7 w - e9 0 1", "invalid en passant part"),
        ("k7/8/8/8/8/8/8/K7 x - - 0 1", "turn part"),
        ("k7/8/8/8/8/8/8/K7 w - - -1 1", "half-move clock cannot be negative"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 32768", "32,767"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 " + "9" * 100_000, "invalid fullmove number"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 1 1", "more parts"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPPP/RNBQKBNR w KQkq - 0 1", "expected 8 columns"),
        ("rnbqkbnr/pppppppp/8/8/8/P7/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "too many white pawns"),
        ("r" * 1_000_000, "expected 8 rows"),
    ],
)
def test_a_bad_fen_is_refused_with_its_reason(fen, reason):
    with pytest.raises(NotationError) as caught:
        board_from_fen(fen)
    message = str(caught.value)
    assert reason in message and repr(fen)[1:-1][:50] in message
    assert "\n" not in message and len(message) < 500


def test_other_kinds_of_chess_are_refused():
    with pytest.raises(NotationError, match="Chess960"):
        state_from_boards([chess.Board.from_chess960_pos(1)], Chess())


def test_the_past_of_a_board_counts_as_repetition():
    board = chess.Board()
    for move in ["e2e4", "e7e5", *["g1f3", "g8f6", "f3g1", "f6g8"] * 2]:
        board.push_uci(move)
    short = chess.Board()
    short.push_uci("e2e4")
    game = Chess(max_plies=1)
    state = state_from_boards([board, short, chess.Board(board.fen())], game)
    assert state.repetitions.tolist() == [3, 1, 1]
    assert [ENDINGS[index] for index in state.ending] == [
        "threefold_repetition",
        "unfinished",
        "unfinished",
    ]
    assert not state.plies_played.any()


def test_a_board_played_on_past_a_draw_is_taken_as_it_stands():
    board = chess.Board()
    for move in ["g1f3", "g8f6", "f3g1", "f6g8"] * 3 + ["b1c3"]:
        board.push_uci(move)
    state = state_from_boards([board], Chess())
    check_positions(state, [board])
    assert not finished(state) and state.repetitions.tolist() == [1]


def test_an_illegal_past_is_refused():
    board = chess.Board()
    board.push(chess.Move.from_uci("b1b4"))
    with pytest.raises(NotationError, match="illegal move 'b1b4'"):
        state_from_boards([board], Chess())


def test_moves_and_actions_go_both_ways():
    for board in both_colours(FENS):
        actions = [action_from_move(move, board) for move in board.legal_moves]
        assert actions == [action_of(move, board.turn) for move in board.legal_moves]
        assert [move_from_action(action, board) for action in actions] == list(board.legal_moves)


def test_every_action_is_a_legal_move_or_refused():
    boards = both_colours((chess_games.KIWIPETE, chess_games.PROMOTIONS, chess_games.CASTLING))
    for board in full(boards[1:4:2], boards):
        found = []
        for action in range(-5, Chess.num_actions + 5):
            try:
                found.append(move_from_action(action, board))
            except NotationError as error:
                assert f"action {action}" in str(error)
        assert sorted(map(str, found)) == sorted(map(str, board.legal_moves))


# After 1. e4 e5 2. Bd3 Nc6 3. c3 Nf6 4. Bc2 d6.
BISHOP_OR_PAWN = "r1bqkb1r/ppp2ppp/2np1n2/4p3/4P3/2P5/PPBP1PPP/RNBQK1NR w KQkq - 0 5"


@pytest.mark.parametrize(
    "fen, text, uci",
    [
        (chess.STARTING_FEN, "e2e4", "e2e4"),
        (chess.STARTING_FEN, "e4", "e2e4"),
        (chess.STARTING_FEN, " Nf3\n", "g1f3"),
        (chess_games.CASTLING, "O-O", "e1g1"),
        (chess_games.CASTLING, "0-0-0", "e1c1"),
        (chess_games.CASTLING, "e1h1", "e1g1"),
        (chess_games.CASTLING, "Rxa8+", "a1a8"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8n", "a7a8n"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8=Q", "a7a8q"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8q", "a7a8q"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8N", "a7a8n"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "A7A8N", "a7a8n"),
        (chess.STARTING_FEN, "E2E4", "e2e4"),
        (chess.STARTING_FEN, " E2e4", "e2e4"),
        (chess.STARTING_FEN, "b2B3", "b2b3"),
        # In SAN the bishop on the second rank goes to b3. All in lower case, or all in capitals, it
        # is the pawn.
        (BISHOP_OR_PAWN, "B2b3", "c2b3"),
        (BISHOP_OR_PAWN, "b2b3", "b2b3"),
        (BISHOP_OR_PAWN, "B2B3", "b2b3"),
        ("7k/8/8/8/3pP3/8/8/7K b - e3 0 1", "dxe3", "d4e3"),
    ],
)
def test_a_move_is_read_as_uci_or_san(fen, text, uci):
    assert parse_move(text, chess.Board(fen)).uci() == uci


@pytest.mark.parametrize(
    "fen, text, fault, hint",
    [
        (chess.STARTING_FEN, "e2e5", "illegal", "one of its 20 legal moves, such as g1h3"),
        (chess.STARTING_FEN, "Nf4", "illegal", "one of its 20 legal moves"),
        (chess.STARTING_FEN, "", "unreadable", "UCI such as e2e4 or SAN such as Nf3"),
        (chess.STARTING_FEN, "e9e4", "unreadable", "UCI such as e2e4"),
        (chess.STARTING_FEN, "hello", "unreadable", "UCI such as e2e4"),
        (chess.STARTING_FEN, "0000", "null", "one of its 20"),
        (chess.STARTING_FEN, "--", "null", "one of its 20"),
        (chess.STARTING_FEN, "P@e4", "unreadable", "UCI such as e2e4"),
        # No bishop goes there, and the pawn was not meant.
        (chess.STARTING_FEN, "B2b3", "illegal", "one of its 20"),
        ("8/1P5k/8/8/8/8/7K/8 w - - 0 1", "B7b8q", "illegal", "one of its 9"),
        ("k7/8/8/8/8/8/1K6/R6R w - - 0 1", "Rd1", "ambiguous", "as in Nbd2 or b1d2"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8", "illegal", "names its piece, as in a8=Q"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8k", "illegal", "names its piece, as in a8=Q"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "h8g8", "illegal", "the game is over"),
        ("6k1/8/8/8/8/8/5qK1/8 w - - 0 1", "e4", "illegal", "expected g2h3 or g2f2 or g2h1"),
        (chess.STARTING_FEN, "x" * 100_000, "unreadable", "UCI such as e2e4"),
    ],
)
def test_a_bad_move_is_refused_with_the_position_and_what_would_be_a_move(fen, text, fault, hint):
    with pytest.raises(NotationError, match=f"^{fault} move .*{hint}") as caught:
        parse_move(text, chess.Board(fen))
    message = str(caught.value)
    assert repr(text)[:50].rstrip("'") in message and fen in message and len(message) < 400
