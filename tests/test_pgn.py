"""Games to PGN and back; whatever is not a game of chess is refused in one sentence that quotes
it.
"""

from __future__ import annotations

import chess
import chess.pgn
import pytest

from chessnn_colab.errors import NotationError
from chessnn_colab.games import registry
from chessnn_colab.games.base import Moves
from chessnn_colab.games.chess import pgn
from chessnn_colab.games.chess.endings import ENDINGS
from chessnn_colab.games.chess.notation import action_from_move, state_from_boards
from chessnn_colab.games.chess.pgn import game_from_pgn
from chessnn_colab.games.chess.rules import Chess

from .chess_games import played_games
from .test_chess_endings import expected_ending

GAME = Chess()
SCHOLARS_MATE = (
    '[White "A"]\n\n1. e4 e5 2. Bc4 {a comment} Nc6 (2... Nf6 3. d3) 3. Qh5 Nf6?? $2 4. Qxf7# 1-0\n'
)


def pgn_of(board: chess.Board) -> str:
    """The board's moves as PGN; where the rules do not end the game, the result is open."""
    played = chess.pgn.Game.from_board(board)
    root = board.root()
    played.headers["Result"] = board.result()
    if root.fen() != chess.STARTING_FEN:
        played.headers["FEN"] = root.fen(en_passant="fen")
    return str(played)


def text_of(board: chess.Board, ending: str, result: int, **headers: str) -> str:
    """The board's moves as self-play writes them down."""
    current = board.root()
    actions = []
    for move in board.move_stack:
        actions.append(action_from_move(move, current))
        current.push(move)
    start = state_from_boards([board.root()], GAME)
    return registry.game_text(GAME, Moves(start, actions, ENDINGS.index(ending), result), **headers)


def test_games_go_both_ways():
    boards = played_games(40, 60, seed=8)
    results = [(-1 if board.turn else 1) if board.is_checkmate() else 0 for board in boards]
    texts = [
        text_of(board, expected_ending(board), result, Event="Self-play", Round=str(number))
        for number, (board, result) in enumerate(zip(boards, results))
    ]
    for number, (board, result, back) in enumerate(
        zip(boards, results, map(game_from_pgn, texts), strict=True)
    ):
        ending = expected_ending(board)
        assert back.board() == board.root() and list(back.mainline_moves()) == board.move_stack
        written = "*" if ending == "unfinished" else {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[result]
        headers = [back.headers[name] for name in ("Event", "Round", "Result", "Ending")]
        assert headers == ["Self-play", str(number), written, ending]
    assert {expected_ending(board) for board in boards} > {"unfinished"}


@pytest.mark.parametrize(
    "ending, result, written, termination",
    [
        ("truncated", 0, "*", "unterminated"),
        ("truncated", 1, "1-0", "unterminated"),
        ("unfinished", 0, "*", "unterminated"),
        ("fifty_moves", 0, "1/2-1/2", "normal"),
        ("checkmate", 1, "1-0", "normal"),
        ("checkmate", -1, "0-1", "normal"),
    ],
)
def test_a_game_at_the_ply_cap_is_not_a_draw(ending, result, written, termination):
    back = game_from_pgn(text_of(game_from_pgn("1. e4 e5 *").end().board(), ending, result))
    headers = [back.headers[name] for name in ("Result", "Termination", "Ending")]
    assert headers == [written, termination, ending]


def test_what_is_not_chess_is_not_written():
    with pytest.raises(NotationError, match="illegal action 4671"):
        registry.game_text(GAME, Moves(GAME.init(1), [4671], 0, 0))


def test_words_beside_the_moves_are_left_out():
    text = """\ufeff[Event "e9 and {f9"]
[Round "i4" ]

% Nf9 as an escape
1. e4 {e9 is not a move
nor is i4} e5 ; nor f9
2. d2-d4!? $14 exd4 3. Qxd4 +- = dis ch (3. c3) 3... Nc6 N *"""
    parsed = game_from_pgn(text)
    assert [move.uci() for move in parsed.mainline_moves()] == [
        "e2e4",
        "e7e5",
        "d2d4",
        "e5d4",
        "d1d4",
        "b8c6",
    ]


@pytest.mark.parametrize("promotion", ["a8=Q", "a8Q"])
def test_a_pawn_may_move_after_a_promotion(promotion):
    parsed = game_from_pgn(f'[FEN "8/P3p2k/8/8/8/8/7K/8 w - - 0 1"]\n\n1. {promotion} e5 *')
    assert [move.uci() for move in parsed.mainline_moves()] == ["a7a8q", "e7e5"]


@pytest.mark.parametrize(
    "text",
    [
        '\n    [Event "Casual"]\n    [ECO "C45"]\n\n    1. e4 e5\n    2. Nf3\n',
        '[Event "Casual"]\n\n\n1. e4 e5\n\n2. Nf3\n\n[Event "Next"]\n\n1. c4',
        "1. e4 e5\r\n \r\n\r\n2. Nf3 *\r\n\r\n2... Nc6",
        "1. e4\n\n1... e5\n\n2. Nf3\n\n\n1. c4",
        '[Event "Casual"]\n\n{It was fun.}\n\n1. e4 e5\n2. Nf3',
        '[Event "Casual\x85"]\n[ECO "C45"]\n\n1. e4 e5 2. Nf3',
    ],
    ids=["indented", "empty lines", "a result", "the next game", "a comment", "no end of a line"],
)
def test_blanks_and_empty_lines_do_not_end_a_game(text):
    moves = [move.uci() for move in game_from_pgn(text).mainline_moves()]
    assert moves == ["e2e4", "e7e5", "g1f3"]


@pytest.mark.parametrize("text", ["{" * 200_000, "a" * 200_000, "a1" * 100_000, ";{" * 100_000])
def test_a_long_text_of_nothing_is_refused_at_once(text):
    with pytest.raises(NotationError):
        game_from_pgn(text)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "no game"),
        (" \n\n ", "no game"),
        ("hello world, this is not chess", "no game"),
        ("<html></html>", "no game"),
        ("1. e4 e5 2. Ke3 *", "Ke3"),
        ("1. e5 *", "e5"),
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
        ("1. e9 e4 *", "e9"),
        ("1. e4 Nf9 2. d4 *", "Nf9"),
        ("1. e4 e5 2. i4 *", "i4"),
        ("1. e4 (1. d9) e5 *", "d9"),
        ("1. e4 e5 2. Sf3 Sc6 *", "Sf3"),
        ("1. e4 e5 2. ♘f3 ♞c6 *", "♘f3"),
        ("1. e4 e5 2. N f3 *", "N f3"),
        ("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O\u2013O", "O\u2013O"),
        ("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. o-o Nf6", "o-o"),
        ("1. e4 e5 2. Фh5 *", "Фh5"),
        ("1. e4 d5 2. Dxd5 *", "Dxd5"),
        ("1. e4 d5 2. T1xd5 *", "T1xd5"),
        ("1. e4 {a comment\n[of two lines} e5 2. Sf3 Sc6 *", "Sf3"),
        ("1. e4 {a comment\n% of two lines} e5 2. Sf3 Sc6 *", "Sf3"),
    ],
)
def test_a_bad_pgn_is_refused(text, reason, caplog):
    with pytest.raises(NotationError) as caught:
        game_from_pgn(text)
    message = str(caught.value)
    assert reason in message and "expected" in message
    assert reason != "no game" or repr(text)[:100] in message
    assert "\n" not in message and len(message) < 600
    assert not caplog.records


def test_a_pgn_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(pgn, "MAX_PLIES", 4)
    monkeypatch.setattr(pgn, "MAX_LENGTH", 30)
    with pytest.raises(NotationError, match="PGN of 31 characters: expected at most 30"):
        game_from_pgn("1. e4 e5 2. Nf3 Nc6 *".ljust(31))
    with pytest.raises(NotationError, match="of 5 plies: expected at most 4"):
        game_from_pgn("1. e4 e5 2. Nf3 Nc6 3. d4 *")
    assert len(list(game_from_pgn("1. e4 e5 2. Nf3 Nc6 *").mainline())) == 4


def test_nested_variations_do_no_harm():
    text = "1. e4 " + "(1. d4 " * 20_000 + ")" * 20_000 + " e5 *"
    assert len(list(game_from_pgn(text).mainline_moves())) == 2
