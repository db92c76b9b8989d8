"""FEN, UCI, SAN and PGN go both ways; whatever is not chess is refused in one sentence that quotes it."""

from __future__ import annotations

import os
import random

import chess
import chess.pgn
import numpy as np
import pytest
import torch

from chessnn_colab.errors import NotationError
from chessnn_colab.games.base import finished
from chessnn_colab.games.chess import ENDINGS, Chess
from chessnn_colab.notation import (
    action_from_move, board_from_fen, boards_from_state, fens_from_state, move_from_action, parse_move,
    state_from_boards, state_from_fens,
)
from chessnn_colab.pgn import games_from_pgn, records_from_pgn, records_to_pgn

from . import chess_games
from .chess_games import action_of, both_colours, check_positions

MUTATIONS = 20_000 if os.environ.get("CHESSNN_FULL") == "1" else 2_000
FENS = (chess.STARTING_FEN, chess_games.KIWIPETE, chess_games.POSITION_3, chess_games.POSITION_4,
        chess_games.POSITION_5, chess_games.POSITION_6, chess_games.PROMOTIONS, chess_games.CASTLING,
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1", "8/8/8/K1pP3q/8/8/8/7k w - c6 0 1",
        "4k3/8/8/8/8/8/8/R3K3 b Q - 77 120", "8/8/4k3/8/8/3K4/8/R7 w - - 99 32767")
SCHOLARS_MATE = '[White "A"]\n[Black "B"]\n\n1. e4 e5 2. Bc4 {a comment} Nc6 (2... Nf6 3. d3) 3. Qh5 Nf6?? $2 4. Qxf7# 1-0\n'


def played_games(count: int, plies: int, seed: int) -> list[chess.Board]:
    """Boards with the moves of random games, half of them from other positions than the start."""
    rng, boards = random.Random(seed), []
    for number in range(count):
        board = chess.Board(FENS[number % len(FENS)] if number % 2 else chess.STARTING_FEN)
        for _ in range(plies):
            moves = list(board.legal_moves)
            if not moves or board.is_insufficient_material() or board.halfmove_clock >= 100 or board.is_repetition(3):
                break
            board.push(rng.choice(moves))
        boards.append(board)
    return boards


# FEN

def test_fens_go_both_ways():
    state = state_from_fens(FENS, Chess())
    assert fens_from_state(state) == list(FENS)
    check_positions(state, [chess.Board(fen) for fen in FENS])
    assert not state.plies_played.any() and bool((state.repetitions == 1).all())


def test_boards_of_played_games_go_both_ways():
    boards = played_games(60, 40, seed=3)
    state = state_from_boards(boards, Chess())
    check_positions(state, boards)
    for board, back in zip(boards, boards_from_state(state)):
        assert back == board and back.ep_square == board.ep_square
        assert back.is_valid() and back.fen() == board.fen()


@pytest.mark.parametrize("fen, reason", [
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
])
def test_a_bad_fen_is_refused_with_its_reason(fen, reason):
    with pytest.raises(NotationError) as caught:
        board_from_fen(fen)
    message = str(caught.value)
    assert reason in message and repr(fen)[1:-1][:50] in message
    assert "\n" not in message and len(message) < 500


def test_no_position_at_all_is_refused():
    with pytest.raises(NotationError, match="at least one"):
        state_from_fens([], Chess())


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
    assert [ENDINGS[index] for index in state.ending] == ["threefold_repetition", "unfinished", "unfinished"]
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


def test_a_changed_fen_is_refused_or_is_a_position():
    rng, game, valid = random.Random(11), Chess(), []
    for _ in range(MUTATIONS):
        fen = mutated(rng, rng.choice(FENS), "kqrbnpKQRBNP12345678/ -wbabcdefgh0~é\x00")
        try:
            valid.append(board_from_fen(fen))
        except NotationError as error:
            assert repr(fen)[1:20] in str(error)
    state = state_from_boards(valid, game)
    check_positions(state, valid)
    assert len(valid) > MUTATIONS // 50
    chess_games.check_legal_moves(game, state, valid)


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    """`text` with one to four places changed, cut, doubled, swapped or ended early."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place, other = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        text = rng.choice((
            text[:place] + rng.choice(alphabet) + text[place + 1:],
            text[:place] + rng.choice(alphabet) + text[place:],
            text[:place] + text[place + 1:],
            text[:place] + text[other:] if rng.random() < 0.2 else text,
            text[:other] + text[place:other] + text[other:],
            text[:place] if rng.random() < 0.1 else text,
        ))
    return text


# Moves

def test_moves_and_actions_go_both_ways():
    for board in both_colours(FENS):
        actions = [action_from_move(move, board) for move in board.legal_moves]
        assert actions == [action_of(move, board.turn) for move in board.legal_moves]
        assert [move_from_action(action, board) for action in actions] == list(board.legal_moves)


def test_castling_may_be_given_as_the_king_taking_its_rook():
    for board in both_colours([chess_games.CASTLING]):
        home = chess.E1 if board.turn else chess.E8
        for rook, king in ((3, 2), (-4, -2)):
            moves = [chess.Move(home, home + step) for step in (rook, king)]
            assert action_from_move(moves[0], board) == action_from_move(moves[1], board)


def test_every_action_is_a_legal_move_or_refused():
    for board in both_colours((chess_games.KIWIPETE, chess_games.PROMOTIONS, chess_games.CASTLING)):
        found = []
        for action in range(-5, Chess.num_actions + 5):
            try:
                found.append(move_from_action(action, board))
            except NotationError as error:
                assert f"action {action}" in str(error)
        assert sorted(map(str, found)) == sorted(map(str, board.legal_moves))


@pytest.mark.parametrize("fen, text, uci", [
    (chess.STARTING_FEN, "e2e4", "e2e4"), (chess.STARTING_FEN, "e4", "e2e4"), (chess.STARTING_FEN, " Nf3\n", "g1f3"),
    (chess_games.CASTLING, "O-O", "e1g1"), (chess_games.CASTLING, "0-0-0", "e1c1"),
    (chess_games.CASTLING, "e1h1", "e1g1"), (chess_games.CASTLING, "Rxa8+", "a1a8"),
    ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8n", "a7a8n"), ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8=Q", "a7a8q"),
    # In SAN the bishop on the second rank goes to b3, in lower case it would be the pawn.
    ("7k/8/8/8/B7/8/BP6/7K w - - 0 1", "B2b3", "a2b3"), ("7k/8/8/8/B7/8/BP6/7K w - - 0 1", "b2b3", "b2b3"),
    ("7k/8/8/8/3pP3/8/8/7K b - e3 0 1", "dxe3", "d4e3"),
])
def test_a_move_is_read_as_uci_or_san(fen, text, uci):
    assert parse_move(text, chess.Board(fen)).uci() == uci


@pytest.mark.parametrize("fen, text, fault", [
    (chess.STARTING_FEN, "e2e5", "illegal"), (chess.STARTING_FEN, "Nf4", "illegal"),
    (chess.STARTING_FEN, "", "unreadable"), (chess.STARTING_FEN, "e9e4", "unreadable"),
    (chess.STARTING_FEN, "hello", "unreadable"), (chess.STARTING_FEN, "0000", "null"), (chess.STARTING_FEN, "--", "null"),
    (chess.STARTING_FEN, "e7e5", "illegal"), (chess.STARTING_FEN, "P@e4", "unreadable"),
    ("k7/8/8/8/8/8/1K6/R6R w - - 0 1", "Rd1", "ambiguous"),
    ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8", "illegal"), ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8k", "illegal"),
    ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "h8g8", "illegal"), (chess.STARTING_FEN, "x" * 100_000, "unreadable"),
])
def test_a_bad_move_is_refused_with_the_position(fen, text, fault):
    with pytest.raises(NotationError, match=f"^{fault} move") as caught:
        parse_move(text, chess.Board(fen))
    message = str(caught.value)
    assert repr(text)[:50].rstrip("'") in message and fen in message and len(message) < 400


def test_a_changed_move_is_refused_or_legal():
    rng = random.Random(12)
    boards = [chess.Board(fen) for fen in FENS]
    for _ in range(MUTATIONS):
        board = rng.choice(boards)
        move = rng.choice(list(board.legal_moves))
        text = mutated(rng, rng.choice((move.uci(), board.san(move))), "abcdefgh12345678NBRQKOx=+#-0 @é")
        try:
            assert board.is_legal(parse_move(text, board))
        except NotationError as error:
            assert repr(text) in str(error)


# PGN

def pgn_of(board: chess.Board) -> str:
    """The board's moves as PGN; where the rules do not end the game, the result is open."""
    played, root = chess.pgn.Game.from_board(board), board.root()
    played.headers["Result"] = board.result()
    if root.fen() != chess.STARTING_FEN:
        played.headers["FEN"] = root.fen(en_passant="fen")
    return str(played)


def random_pgn(count: int, plies: int, seed: int) -> str:
    return "\n\n".join(map(pgn_of, played_games(count, plies, seed)))


def test_records_and_pgn_go_both_ways():
    game = Chess(max_plies=30)
    records = records_from_pgn(random_pgn(40, 60, seed=8), game)
    texts = records_to_pgn(records, game, {"Event": "self-play"})
    assert len(texts) == records.num_games == 40
    back = records_from_pgn("\n\n".join(texts), game)
    for name, array in records.to_arrays().items():
        np.testing.assert_array_equal(array, getattr(back, name), name)
    assert {ENDINGS[index] for index in records.endings} > {"unfinished"}


def test_records_hold_what_was_played():
    game = Chess()
    boards = played_games(20, 50, seed=9)
    records = records_from_pgn("\n\n".join(map(pgn_of, boards)), game)
    for number, board in enumerate(boards):
        rows = slice(records.offsets[number], records.offsets[number + 1])
        current, before = board.root(), []
        for move, action in zip(board.move_stack, records.actions[rows], strict=True):
            assert move_from_action(int(action), current) == move
            before.append(current.copy())
            current.push(move)
        state = game.unpack(torch.from_numpy(records.positions[rows]))
        check_positions(state, before)
        assert (state.repetitions > 1).tolist() == [position.is_repetition(2) for position in before]
    assert (records.policy_actions[:, 0] == records.actions).all()
    assert (records.policy_weights[:, 0] == 1).all() and not records.policy_weights[:, 1:].any()


def test_a_result_becomes_the_value_for_each_mover():
    records = records_from_pgn(SCHOLARS_MATE, Chess())
    assert ENDINGS[records.endings[0]] == "checkmate" and records.results.tolist() == [1]
    assert records.value_targets.tolist() == [1, -1, 1, -1, 1, -1, 1]
    text = records_to_pgn(records, Chess(), {"White": "A"})[0]
    assert "Qxf7# 1-0" in text and '[Termination "normal"]' in text and '[Ending "checkmate"]' in text
    assert "FEN" not in text and '[White "A"]' in text


@pytest.mark.parametrize("result, outcome, value", [("1-0", 1, 1), ("0-1", -1, -1), ("1/2-1/2", 0, 0), ("*", 0, None)])
def test_a_game_that_the_rules_did_not_end(result, outcome, value):
    records = records_from_pgn(f"1. e4 {result}", Chess())
    assert ENDINGS[records.endings[0]] == "unfinished" and records.results.tolist() == [outcome]
    assert np.isnan(records.value_targets[0]) if value is None else records.value_targets[0] == value


def test_a_game_at_the_ply_cap_is_no_draw():
    records = records_from_pgn('[Ending "truncated"]\n\n1. e4 e5 *', Chess(max_plies=2))
    assert ENDINGS[records.endings[0]] == "truncated" and np.isnan(records.value_targets).all()
    text = records_to_pgn(records, Chess())[0]
    assert text.endswith("*") and '[Termination "unterminated"]' in text
    # The cap is self-play's: a game of people that is longer is none of its business.
    assert ENDINGS[records_from_pgn("1. e4 e5 2. d4 *", Chess(max_plies=2)).endings[0]] == "unfinished"


def test_a_game_from_another_position_says_so():
    fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
    records = records_from_pgn(f'[SetUp "1"]\n[FEN "{fen}"]\n\n1... e5 2. Nf3 *', Chess())
    text = records_to_pgn(records, Chess())[0]
    assert f'[FEN "{fen}"]' in text and '[SetUp "1"]' in text and "1... e5 2. Nf3 *" in text


def test_draws_that_nobody_claimed_do_not_end_a_pgn_game():
    shuffled = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8"
    records = records_from_pgn(f"{shuffled} 5. e4 1-0\n\n{shuffled} 0-1\n\n{shuffled} 1/2-1/2", Chess())
    assert [ENDINGS[index] for index in records.endings] == ["unfinished", "unfinished", "threefold_repetition"]
    assert records.results.tolist() == [1, -1, 0] and records.game_lengths.tolist() == [9, 8, 8]


@pytest.mark.parametrize("text, reason", [
    ("", "no game"), (" \n\n ", "no game"), ("hello world, this is no chess", "no game"), ("<html></html>", "no game"),
    ("1. e4 e5 2. Ke3 *", "Ke3"), ("1. e5 *", "e5"), (SCHOLARS_MATE + "\nand some words more", "no game"),
    ('[FEN "xyz"]\n\n1. e4 *', "xyz"), ('[FEN "8/8/8/8/8/8/8/K7 w - - 0 1"]\n\n*', "no black king"),
    ('[Variant "Atomic"]\n\n1. e4 *', "atomic"), ('[Variant "nonsense"]\n\n1. e4 *', "nonsense"),
    ('[Variant "Chess960"]\n[FEN "bqnbnrkr/pppppppp/8/8/8/8/PPPPPPPP/BQNBNRKR w KQkq - 0 1"]\n\n1. e4 *', "Chess960"),
    ("1. e4 $" + "9" * 10_000, "bad PGN"), ("1. e4 -- 2. d4 *", "0000"),
    (SCHOLARS_MATE.replace("1-0", "0-1"), "0-1"), ('[White "A"]\n\n*', "no moves"),
])
def test_a_bad_pgn_is_refused(text, reason, caplog):
    with pytest.raises(NotationError) as caught:
        records_from_pgn(text, Chess())
    message = str(caught.value)
    assert reason in message and "expected" in message
    assert "\n" not in message and len(message) < 600
    assert not caplog.records


def test_a_pgn_too_large_is_refused():
    with pytest.raises(NotationError, match="PGN of 26 bytes: expected at most 20 bytes"):
        games_from_pgn("1. e4 e5 2. Nf3 Nc6 *".ljust(26), max_bytes=20)
    with pytest.raises(NotationError, match="of 4 plies: expected at most 3"):
        games_from_pgn("1. e4 e5 2. Nf3 Nc6 *", max_plies=3)
    assert len(games_from_pgn("1. e4 e5 2. Nf3 Nc6 *", max_plies=4)) == 1


def test_nested_variations_do_no_harm():
    text = "1. e4 " + "(1. d4 " * 20_000 + ")" * 20_000 + " e5 *"
    assert len(list(games_from_pgn(text)[0].mainline_moves())) == 2


def test_records_with_an_impossible_move_are_refused():
    records = records_from_pgn(SCHOLARS_MATE, Chess())
    records.actions[2] = 4671
    with pytest.raises(NotationError, match="illegal action 4671"):
        records_to_pgn(records, Chess())


def test_a_changed_pgn_is_refused_or_holds_legal_games(caplog):
    rng = random.Random(13)
    sources = [SCHOLARS_MATE, random_pgn(2, 12, seed=14), random_pgn(1, 30, seed=15)]
    read = 0
    for _ in range(MUTATIONS):
        text = mutated(rng, rng.choice(sources), "abcdefgh12345678NBRQKOx=+#-.*[]{}();$\"\n\\ é")
        try:
            games = games_from_pgn(text)
        except NotationError as error:
            assert "\n" not in str(error)
            continue
        read += 1
        for played in games:
            board = played.board()
            assert board.is_valid()
            for move in played.mainline_moves():
                assert board.is_legal(move)
                board.push(move)
    assert MUTATIONS // 10 < read < MUTATIONS
    assert not caplog.records
