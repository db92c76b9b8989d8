"""PGN to records and back; whatever is not a game of chess is refused in one sentence that quotes it."""

from __future__ import annotations

import random

import chess
import chess.pgn
import numpy as np
import pytest
import torch

from chessnn_colab.errors import NotationError
from chessnn_colab.games.chess.rules import ENDINGS, Chess
from chessnn_colab.games.chess.notation import move_from_action
from chessnn_colab.games.chess.pgn import games_from_pgn, records_from_pgn, records_to_pgn

from .chess_games import MUTATIONS, check_positions, mutated, played_games

SCHOLARS_MATE = '[White "A"]\n\n1. e4 e5 2. Bc4 {a comment} Nc6 (2... Nf6 3. d3) 3. Qh5 Nf6?? $2 4. Qxf7# 1-0\n'


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


def test_words_beside_the_moves_are_left_out():
    text = """\ufeff[Event "e9 and {f9"]
[Round "i4" ]

% Nf9 as an escape
1. e4 {e9 is no move
nor is i4} e5 ; nor f9
2. d2-d4!? $14 exd4 3. Qxd4 +- = dis ch (3. c3) 3... Nc6 N *"""
    (parsed,) = games_from_pgn(text)
    assert [move.uci() for move in parsed.mainline_moves()] == ["e2e4", "e7e5", "d2d4", "e5d4", "d1d4", "b8c6"]


@pytest.mark.parametrize("text", ["{" * 1_000_000, "a" * 1_000_000, "a1" * 500_000, ";{" * 500_000])
def test_a_long_text_of_nothing_is_refused_at_once(text):
    with pytest.raises(NotationError):
        games_from_pgn(text)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "no game"),
        (" \n\n ", "no game"),
        ("hello world, this is no chess", "no game"),
        ("<html></html>", "no game"),
        ("1. e4 e5 2. Ke3 *", "Ke3"),
        ("1. e5 *", "e5"),
        (SCHOLARS_MATE + "\nand some words more", "no game"),
        ('[FEN "xyz"]\n\n1. e4 *', "xyz"),
        ('[FEN "8/8/8/8/8/8/8/K7 w - - 0 1"]\n\n*', "no black king"),
        ('[Variant "Atomic"]\n\n1. e4 *', "atomic"),
        ('[Variant "nonsense"]\n\n1. e4 *', "nonsense"),
        (
            '[Variant "Chess960"]\n[FEN "bqnbnrkr/pppppppp/8/8/8/8/PPPPPPPP/BQNBNRKR w KQkq - 0 1"]\n\n1. e4 *',
            "Chess960",
        ),
        ("1. e4 $" + "9" * 10_000, "bad PGN"),
        ("1. e4 -- 2. d4 *", "0000"),
        (SCHOLARS_MATE.replace("1-0", "0-1"), "0-1"),
        ('[White "A"]\n\n*', "no moves"),
        ("1. e9 e4 *", "e9"),
        ("1. e4 Nf9 2. d4 *", "Nf9"),
        ("1. e4 e5 2. i4 *", "i4"),
        ("1. e4 (1. d9) e5 *", "d9"),
    ],
)
def test_a_bad_pgn_is_refused(text, reason, caplog):
    with pytest.raises(NotationError) as caught:
        records_from_pgn(text, Chess())
    message = str(caught.value)
    assert reason in message and "expected" in message
    assert reason != "no game" or repr(text)[:100] in message
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
        text = mutated(rng, rng.choice(sources), 'abcdefgh12345678NBRQKOx=+#-.*[]{}();$"\n\\ é')
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
