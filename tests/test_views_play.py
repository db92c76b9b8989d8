"""A game to play by hand: two clicks make a move, and nothing that a person clicks or types can
lose the game.
"""

import asyncio

import chess
import ipywidgets
import pytest

from chessnn_colab.errors import ChessnnError
from chessnn_colab.views import board
from chessnn_colab.views.inside.show import Controlled
from chessnn_colab.views.picture import MARKS
from chessnn_colab.views.play import board as play_board
from chessnn_colab.views.play import play_widget
from chessnn_colab.views.play.controls import SETTLES
from tests.function_player import play_against
from tests.gomoku_run import make_gomoku_run
from tests.small_run import make_run

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MOST_MESSAGES = 12  # of a move and its answer


def first_move(position: chess.Board) -> chess.Move:
    return min(position.legal_moves, key=chess.Move.uci)


def answers(*moves: str):
    left = iter(moves)
    return lambda position: chess.Move.from_uci(next(left))


def square(view, name: str) -> int:
    return list(view.drawing.names).index(name)


def click(view, *names: str) -> None:
    for name in names:
        view.controls.squares.buttons[square(view, name)].click()


def said(view) -> str:
    return view.controls.says.value


def moves(view) -> list[str]:
    return [move.uci() for move in view.drawing.board.move_stack]


@pytest.fixture
def messages(monkeypatch) -> list[dict]:
    """What is sent to the page."""
    sent = []
    monkeypatch.setattr(
        ipywidgets.Widget, "_send", lambda self, message, buffers=None: sent.append(message)
    )
    return sent


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> float:
    """On a busy machine a test would click as quickly as clicks that waited in the kernel; returns
    the real limit.
    """
    limit = play_board.QUEUED
    monkeypatch.setattr(play_board, "QUEUED", 0.0)
    return limit


# Clicks


@pytest.mark.parametrize("game, side", [("chess", "black"), ("gomoku", "white")])
def test_every_move_of_a_long_game_takes_few_messages(game, side, messages, tmp_path):
    """Of Gomoku's 225 squares, too, only those that changed are sent."""
    run = tmp_path / "run"
    view = play_widget(
        make_run(run, (1,)) if game == "chess" else make_gomoku_run(run, (1,), game), human=side
    )
    view.set_evaluations(1)
    view.controls.switch.value = True
    for _ in range(12):
        if view.over:
            break
        path, _ = view.drawing.clicks()[-1]
        messages.clear()
        click(view, *(view.drawing.names[each] for each in path))
        if view.chosen:  # a promotion
            view.choose(0)
        assert len(messages) <= MOST_MESSAGES, messages


def test_the_legal_targets_the_last_move_and_check_are_marked():
    view = play_against(answers("e7e5", "b8c6", "g8f6"))
    click(view, "e2")
    shown = view.controls.squares.picture.value
    assert shown.count(MARKS["target"][0]) == 2 and "white pawn, chosen" in shown
    click(view, "e4")
    assert "black pawn, last move" in view.controls.squares.picture.value
    view.load("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1")
    view.play_as(1)
    assert "black king, in check" in view.controls.squares.picture.value


def test_a_click_can_choose_another_piece_or_none():
    view = play_against(first_move)
    click(view, "e2", "d2", "d4")
    assert moves(view)[0] == "d2d4"
    click(view, "e2", "e2")
    assert view.chosen == () and "Your move" in said(view)
    click(view, "e2", "e7")
    assert "e2 to e7 is not legal" in said(view) and view.chosen == ()
    click(view, "e5")
    assert "No legal move starts at e5" in said(view) and len(moves(view)) == 2


def test_a_point_that_is_taken_is_called_taken(tmp_path):
    view = play_widget(make_gomoku_run(tmp_path / "run", (1,)))
    click(view, "e4", "e4")
    assert "e4 is taken" in said(view) and len(view.drawing.actions) == 2


def test_a_promotion_is_asked_for():
    view = play_against(first_move, position="7k/P7/8/8/8/8/P7/K7 w - - 0 1")
    click(view, "a7", "a8")
    choices = view.controls._choices
    assert choices.layout.display is None and "Promote to what?" in said(view) and not moves(view)
    captions = [button.description for button in choices.children]
    assert sorted(captions) == ["Bishop", "Knight", "Queen", "Rook"]
    click(view, "a8")  # the second half of a double click
    assert choices.layout.display is None
    assert not view.enter("a7 to a9") and choices.layout.display is None, (
        "a wrong move leaves the question"
    )
    view.turn_board()
    assert choices.layout.display is None
    choices.children[captions.index("Knight")].click()
    assert moves(view)[0] == "a7a8n" and choices.layout.display == "none"
    view.choose(0)
    assert len(moves(view)) == 2, "a click on a choice that is gone"


def test_a_click_while_it_thinks_is_not_taken_for_a_move(monkeypatch, queued):
    now = [100.0]
    monkeypatch.setattr(play_board, "QUEUED", queued)
    monkeypatch.setattr(play_board.time, "monotonic", lambda: now[0])

    def slow(position):
        now[0] += 2.0
        return first_move(position)

    view = play_against(slow)
    click(view, "e2", "e4", "d2", "d4")  # the last two were waiting in the kernel
    assert moves(view) == ["e2e4", "a7a5"] and "while the opponent was thinking" in said(view)
    now[0] += 1
    click(view, "d2", "d4")
    assert len(moves(view)) == 4
    view.controls.entry._handle_custom_msg({"event": "submit"}, [])  # it was waiting there, too
    assert len(moves(view)) == 4 and "while the opponent was thinking" in said(view)


# Typing


@pytest.mark.parametrize("text", ["e2e4", "e4", "E2E4", " e4 "])
@pytest.mark.parametrize("late", [False, True], ids=["text first", "Enter first"])
def test_play_takes_uci_and_san_and_the_network_answers(text, late):
    """A page sends the text after the news that Enter was pressed; it may come before, too."""
    view = play_against(first_move)
    entry = view.controls.entry
    entry.value = "a3" if late else text  # typed before, and not entered

    async def press_enter():
        entry._handle_custom_msg({"event": "submit"}, [])
        entry.value = text
        await asyncio.sleep(2 * SETTLES)

    asyncio.run(press_enter())
    assert moves(view) == ["e2e4", "a7a5"]
    assert view.controls.entry.value == "" and "a5</b>" in view.controls.moves.value


@pytest.mark.parametrize(
    "text, reason",
    [("", "unreadable move"), ("e2e5", "illegal move &#x27;e2e5&#x27; in this position"), ("hello", "unreadable move"),
     ("Qa4", "illegal move"), ("0000", "null move"), ("--", "null move"), ("<b>", "&lt;b&gt;")],
)  # fmt: skip
def test_illegal_input_is_answered_in_words_and_loses_nothing(text, reason):
    view = play_against(first_move)
    view.enter("e4")
    before = view.drawing.board.fen()
    view.controls.entry.value = text
    assert not view.enter(text)
    assert (
        view.drawing.board.fen() == before
        and reason in said(view)
        and view.controls.entry.value == text
    )
    assert view.enter("d4")


# The course of a game


def test_black_gets_the_networks_first_move_and_take_back_undoes_a_pair():
    view = play_against(first_move, human="black")
    assert moves(view) == ["a2a3"] and view.controls.squares.turned
    view.take_back()
    assert len(moves(view)) == 1 and "no move of yours" in said(view)
    view.enter("e5")
    view.take_back()
    assert len(moves(view)) == 1 and view.drawing.turn == 1
    view.new_game()
    assert len(moves(view)) == 1


def test_a_finished_game_takes_no_move_until_it_is_taken_back():
    view = play_against(answers("e7e5", "b8c6", "g8f6"))
    for text in ("e4", "Qh5", "Bc4", "Qxf7#"):
        assert view.enter(text)
    assert (
        "Checkmate: White won." in said(view) and '[Result "1-0"]' in view.controls.game_text.value
    )
    assert not view.enter("a3") and "over" in said(view)
    click(view, "a2")
    assert "over" in said(view)
    view.take_back()
    assert len(moves(view)) == 6 and view.enter("Qxf7")


def test_resigning_ends_the_game_and_says_so_in_its_text():
    view = play_against(first_move)
    view.enter("e4")
    view.resign()
    assert (
        "You resigned: Black won." in said(view)
        and '[Result "0-1"]' in view.controls.game_text.value
    )
    assert not view.enter("d4")
    view.resign()
    assert "This game is over" in said(view)
    view.take_back()
    assert len(moves(view)) == 2 and "The game goes on" in said(view) and view.enter("d4")
    view.resign()
    view.play_as(1)  # for the next game, or from here on
    view.take_back()
    assert len(moves(view)) == 5 and view.drawing.turn == 1 == view._seat
    view.new_game()
    assert not view.resigned and len(moves(view)) == 1


def test_a_choice_that_was_left_is_forgotten():
    view = play_against(first_move, position="7k/P7/8/8/8/8/P7/K7 w - - 0 1")
    for leave in (view.hint, view.resign):
        click(view, "a7", "a8")
        leave()
        assert view.chosen == ()


def test_a_game_that_is_over_stays_as_it_is_when_sides_change_and_the_next_one_has_them():
    view = play_against(first_move)
    view.resign()
    text = view.text()
    assert '[Result "0-1"]' in text and '[White "you"]' in text
    view.play_as(1)
    assert view.over and view.text() == text
    view.new_game()
    assert not view.over and len(moves(view)) == 1 and '[Black "you"]' in view.text()


def test_what_was_pasted_stays_until_the_game_changes():
    view = play_against(first_move)
    view.controls.game_text.value = "8/8/8"
    view.turn_board()
    click(view, "a2")
    assert view.controls.game_text.value == "8/8/8"
    view.enter("e4")
    assert view.controls.game_text.value == view.text()


def test_sides_are_changed_in_the_middle_of_a_game():
    view = play_against(first_move)
    view.enter("e4")
    view.play_as(1)
    assert len(moves(view)) == 3 and view.drawing.turn == 1 and view.controls.squares.turned
    view.turn_board()
    assert not view.controls.squares.turned


def test_a_game_goes_on_from_a_text_and_a_wrong_one_changes_nothing():
    view = play_against(first_move)
    view.enter("e4")
    kept = view.controls.game_text.value
    for wrong in ("xyz", "8/8/8/8/8/8/8/8 w - - 0 1", "1. e4 e5 2. Ke3"):
        view.controls.game_text.value = wrong
        assert not view.load(wrong)
        assert "The game stands as it was" in said(view) and len(moves(view)) == 2
        assert view.controls.game_text.value == wrong, "what was pasted is still there to be mended"
    view.new_game()
    assert view.load(kept) and moves(view) == ["e2e4", "a7a5"]
    assert view.load("4k3/8/8/8/8/8/4P3/4K3 b - - 0 1") and len(moves(view)) == 1, (
        "the opponent is to move"
    )


def test_a_hint_marks_the_opponents_own_choice():
    view = play_against(first_move)
    view.hint()
    assert "Hint: Na3. Your move." in said(view) or "Hint: a3" in said(view)
    assert not moves(view) and view._hint[0].path[0] in (square(view, "a2"), square(view, "b1"))
    click(view, "e2", "e4")
    assert not view._hint


def test_an_opponent_that_fails_or_cheats_costs_no_game():
    def failing(position):
        raise ChessnnError("out of memory")

    def broken(position):
        raise ValueError("a bug")

    view = play_against(failing)
    assert view.enter("e4") and not moves(view) and "out of memory" in said(view)
    view.hint()
    assert "out of memory" in said(view) and not moves(view)
    cheat = play_against(answers("e7e4"))
    cheat.enter("e4")
    assert (
        not moves(cheat)
        and "illegal move &#x27;e7e4&#x27;" in said(cheat)
        and "nothing else is lost" in said(cheat)
    )
    for nonsense in (None, "e7e5"):
        silly = play_against(lambda position, nonsense=nonsense: nonsense)
        assert silly.enter("e4") and not moves(silly) and "illegal move" in said(silly)
    bug = play_against(broken)
    with pytest.raises(ValueError, match="a bug"):
        bug.enter("e4")
    assert not moves(bug) and "a bug" in said(bug)


def test_an_opponent_that_is_stopped_before_its_first_move_says_how_to_go_on():
    def stopped(position):
        raise KeyboardInterrupt

    view = play_against(stopped)
    with pytest.raises(KeyboardInterrupt):
        view.play_as(1)
    assert "was stopped. Load or New game tries again." in said(view)


@pytest.mark.parametrize(
    "position, words",
    [("1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8", "Third repetition: drawn."),
     ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "Stalemate"), ("7k/8/6K1/8/8/8/8/8 b - - 0 1", "Insufficient"),
     ("7k/8/6K1/8/8/8/8/R7 b - - 100 90", "Fifty moves")],
)  # fmt: skip
def test_endings_are_those_of_self_play(position, words):
    assert words in said(play_against(first_move, human="black", position=position))


# What a cell shows


def sliders() -> Controlled:
    slider = ipywidgets.FloatSlider(0.5, min=0, max=1)
    view = Controlled("leak of {leak:.0%}".format, {"leak": slider})
    view.controls["leak"].value = 0.2
    return view


@pytest.mark.parametrize(
    "make, alt, silent",
    [(lambda: play_against(first_move), "white king e1", "press Load"),
     (sliders, "leak of 20%", "run the cells above")],
)  # fmt: skip
@pytest.mark.parametrize("front_end_there", [False, True])
def test_a_board_or_sliders_show_as_widget_or_html_by_the_front_end_and_a_still_before(
    monkeypatch, make, alt, silent, front_end_there
):
    monkeypatch.setattr(board, "has_widget_front_end", lambda: front_end_there)
    view = make()
    displayed = []
    monkeypatch.setattr(
        "IPython.display.display", lambda content, raw=False: displayed.append(content)
    )
    view._ipython_display_()
    *before, last = displayed
    assert set(last) == {"text/plain", WIDGET_VIEW if front_end_there else "text/html"}
    assert len(before) == front_end_there and alt in last.get("text/html", alt)
    for content in before:
        notice, still, script = content.data.split("<script>")
        assert "cannot show widgets" in still and f"{view.scope}-root" in notice
        assert alt in still and f'data-of="{view.scope}"' in still
        assert view.scope in script and silent in script
        assert f"{view.scope}-root" in view.widget._dom_classes
