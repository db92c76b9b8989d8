"""Positions and games as pictures that show anywhere, and a game to play by hand that no input can lose."""

import base64
import re

import chess
import pytest

from chessnn_colab.errors import ChessnnError, ConfigError, NotationError
from chessnn_colab.views import board, play
from tests.sample_reports import MATE

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def test_board_svg_draws_fen_and_board_alike_and_turns_round():
    start = board.board_svg(chess.STARTING_FEN)
    assert start == board.board_svg(chess.Board()) and start.startswith("<svg")
    assert start != board.board_svg(chess.Board(), flipped=True)


@pytest.mark.parametrize("fen", ["xyz", "", "8/8/8/8/8/8/8/8 w - - 0 1", "8/8/8/8/8/8/8/9 w - - 0 1"])
def test_board_svg_quotes_a_wrong_fen(fen):
    with pytest.raises(NotationError, match=re.escape(repr(fen))):
        board.board_svg(fen)


def picture(html: str) -> str:
    """The SVG within a static board."""
    return base64.b64decode(re.search('base64,([^"]+)', html)[1]).decode()


def test_game_html_shows_a_position_and_its_moves_without_a_front_end():
    last = board.game_html(MATE)
    assert "<svg" in picture(last) and "White won" in last and "Qxf7#</b>" in last and "a - b" in last
    assert picture(board.game_html(MATE, 0)) == board.board_svg(chess.Board())
    with pytest.raises(NotationError, match="no ply 8 in this game: expected 0 to 7"):
        board.game_html(MATE, 8)


def test_game_html_numbers_moves_from_any_start_and_escapes_headers():
    fen = "4k3/8/8/8/8/8/4p3/K7 b - - 0 31"
    html = board.game_html(f'[White "<b>x"]\n[FEN "{fen}"]\n[SetUp "1"]\n\n31... e1=Q+ 32. Ka2 *')
    assert "31...&nbsp;e1=Q+ 32.&nbsp;" in html and "&lt;b&gt;x" in html and "stopped without a result" in html


@pytest.mark.parametrize(
    "pgn, reason",
    [("", "no game in PGN ''"), ("hello", "no game in PGN 'hello'"), ("1. e4 e5 2. Ke3", "bad PGN.* illegal san"),
     ('[White "a"]\n\n*', "no move in PGN .*: expected a game"), ('[Variant "Atomic"]\n\n1. e4 *', "this is atomic"),
     ('[FEN "xyz"]\n\n1. e4 *', "bad PGN.*'xyz'"), ('[FEN "8/8/8/8/8/8/8/7R w - - 0 1"]\n\n1. Rg1 *', "no white king"),
     ("1. e4 " * 100_000, "PGN of 600,000 bytes: expected at most 200,000")],
)  # fmt: skip
def test_a_wrong_pgn_is_refused_in_one_sentence(pgn, reason, caplog):
    with pytest.raises(NotationError, match=reason):
        board.GameReplay(pgn)
    assert not caplog.records


def test_a_sample_game_that_is_not_pgn_is_shown_as_it_stands():
    assert board.sample_html(MATE) == board.game_html(MATE)
    assert board.sample_html("Ending: <three> in a row\nx o .") == "<pre>Ending: &lt;three&gt; in a row\nx o .</pre>"


def test_game_replay_moves_by_slider_and_buttons_and_stays_inside_the_game():
    replay = board.GameReplay(MATE)
    start = replay._picture.value
    replay._back.click()
    assert replay.ply == 0 and replay._picture.value == start
    replay._forward.click()
    assert replay.ply == 1 and replay._picture.value != start and "e4</b>" in replay._text.value
    replay.ply = 7
    replay._forward.click()
    assert replay.ply == 7 and "White won" in replay._text.value
    with pytest.raises(NotationError, match="no ply 9"):
        replay.ply = 9


@pytest.mark.parametrize(
    "front_end_there, colab, shown",
    [(False, False, {"text/html"}), (True, False, {"text/html", WIDGET_VIEW}), (True, True, {WIDGET_VIEW})],
)
def test_a_replay_shows_as_widget_or_html_by_the_front_end(monkeypatch, front_end_there, colab, shown):
    monkeypatch.setattr(board, "has_widget_front_end", lambda: front_end_there)
    monkeypatch.setattr(board, "in_colab", lambda: colab)
    for view in (board.GameReplay(MATE), play.play_widget(first_move)):
        bundle = view._repr_mimebundle_()
        assert set(bundle) == shown | {"text/plain"}
        assert "text/html" not in bundle or "data:image/svg+xml" in bundle["text/html"]


# Play


def first_move(position: chess.Board) -> chess.Move:
    return min(position.legal_moves, key=chess.Move.uci)


@pytest.mark.parametrize("text", ["e2e4", "e4", "E2E4", " e4 "])
def test_play_takes_uci_and_san_and_the_network_answers(text):
    view = play.play_widget(first_move)
    view._entry.value = text
    view._move.click()
    assert [move.uci() for move in view.board.move_stack] == ["e2e4", "a7a5"]
    assert view._entry.value == "" and "Your move" in view._message.value and "a5</b>" in view._moves.value


def test_play_takes_a_knight_move_written_as_squares_and_the_enter_key():
    view = play.play_widget(first_move)
    view._entry.value = "g1f3"
    view._entry._handle_custom_msg({"event": "submit"}, [])
    assert view.board.move_stack[0].uci() == "g1f3"


def test_play_offers_the_legal_moves_and_a_picked_one_is_played():
    view = play.play_widget(first_move)
    assert len(view._legal.options) == 21
    view._legal.value = "Nc3"
    view._move.click()
    assert view.board.move_stack[0].uci() == "b1c3" and view._legal.value == ""


@pytest.mark.parametrize(
    "text, reason",
    [("", "No move entered"), ("e2e5", "illegal move &#x27;e2e5&#x27; in this position"), ("hello", "unreadable move"),
     ("Qa4", "illegal move"), ("0000", "null move"), ("--", "null move"), ("<b>", "&lt;b&gt;")],
)  # fmt: skip
def test_illegal_input_is_answered_in_words_and_loses_nothing(text, reason):
    view = play.play_widget(first_move)
    view.enter("e4")
    before = view.board.fen()
    view._entry.value = text
    view._move.click()
    assert view.board.fen() == before and reason in view._message.value and view._entry.value == text
    assert view.enter("d4")


def test_play_reads_a_bishops_move_as_notation_does():
    answers = iter(["e7e5", "b8c6", "g8f6", "d7d6", "a7a6"])
    view = play.play_widget(lambda position: chess.Move.from_uci(next(answers)))
    for text in ("e4", "Bd3", "c3", "Bc2", "B2b3"):
        assert view.enter(text)
    assert view.board.piece_at(chess.B3) == chess.Piece.from_symbol("B")


def test_black_gets_the_networks_first_move_and_take_back_undoes_a_pair():
    view = play.play_widget(first_move, human="black")
    assert [move.uci() for move in view.board.move_stack] == ["a2a3"]
    view.take_back()
    assert len(view.board.move_stack) == 1 and "no move of yours" in view._message.value
    view.enter("e5")
    view._take_back.click()
    assert len(view.board.move_stack) == 1 and view.board.turn == chess.BLACK
    view._new_game.click()
    assert len(view.board.move_stack) == 1
    with pytest.raises(ConfigError, match="human='green'"):
        play.play_widget(first_move, human="green")


def test_a_finished_game_takes_no_move_until_it_is_taken_back():
    answers = iter(["e7e5", "b8c6", "g8f6"])
    view = play.play_widget(lambda position: chess.Move.from_uci(next(answers)))
    for text in ("e4", "Qh5", "Bc4", "Qxf7#"):
        assert view.enter(text)
    assert "Checkmate: White won." in view._message.value and view._move.disabled
    assert not view.enter("a3") and "over" in view._message.value
    view.take_back()
    assert view.board.ply() == 6 and not view._move.disabled


def test_a_network_that_fails_or_cheats_costs_no_game():
    def failing(position):
        raise ChessnnError("out of memory")

    view = play.play_widget(failing)
    with pytest.raises(ChessnnError):
        view.enter("e4")
    assert view.board.ply() == 0 and "out of memory" in view._message.value
    cheat = play.play_widget(lambda position: chess.Move.from_uci("e7e4"))
    cheat.enter("e4")
    assert cheat.board.ply() == 0 and "e7e4, which is not legal" in cheat._message.value


@pytest.mark.parametrize(
    "fen, words",
    [("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "Stalemate"), ("7k/8/6K1/8/8/8/8/8 b - - 0 1", "Insufficient"),
     ("7k/8/6K1/8/8/8/8/R7 b - - 100 90", "Fifty moves"), (chess.STARTING_FEN, "")],
)  # fmt: skip
def test_endings_are_those_of_self_play(fen, words):
    assert play.ending(chess.Board(fen)).startswith(words) and bool(play.ending(chess.Board(fen))) == bool(words)


def test_third_repetition_ends_a_game():
    position = chess.Board()
    for move in "g1f3 g8f6 f3g1 f6g8".split() * 2:
        assert not play.ending(position)
        position.push_uci(move)
    assert play.ending(position) == "Third repetition: drawn."
