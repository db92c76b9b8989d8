"""The board in a real browser: a whole game by clicks, keys that stay on the board, and a kernel
that is gone.
"""

import nbformat
import pytest

from chessnn_colab.arena.progress import Bar
from chessnn_colab.views.panel import box, figures_html, live_html, table_html
from chessnn_colab.views.played import played_game
from chessnn_colab.views.replay import game_replay, one_position, panel_replay

from .browser import COLAB, NARROW, WIDE, long, needs_browser, needs_colab, serve
from .sample_reports import MATE, make_report, make_strength

pytestmark = [needs_browser, pytest.mark.timeout(600)]

BOARD = """
import time, torch
from chessnn_colab.arena.opponent import Opponent
from chessnn_colab.arena.players import Player
from chessnn_colab.arena.registry import match_game
from chessnn_colab.games.chess.notation import action_from_move
from chessnn_colab.views.play import play_widget
class Slowly(Player):
    name, wants_boards, seconds = "the network", True, 0.0
    def choose(self, state, generator, boards=()):
        time.sleep(self.seconds)
        board, = boards
        quiet = lambda move: (bool(board.is_capture(move)), move.uci())
        return torch.tensor([action_from_move(min(board.legal_moves, key=quiet), board)])
slowly = Slowly()
position = "7k/P7/8/8/8/8/5PPP/6K1 w - - 0 1"
view = play_widget(Opponent(match_game("chess"), slowly), position=position)
view
"""
NOTHING = "print('the cell below the board')"
LAB, CLASSIC = (), (COLAB, True)  # the classic notebook has ipywidgets 7.7
in_both = pytest.mark.parametrize(
    "page",
    [(LAB, BOARD, NOTHING), pytest.param((CLASSIC, BOARD, NOTHING), marks=[needs_colab, long])],
    indirect=True,
    ids=["lab", "classic"],
)
NETWORK = """
from chessnn_colab.runs.networks import shipped_files
from chessnn_colab.views.play import play_widget
network = play_widget(shipped_files()[-1], evaluations=8)
network
"""


def notebook(path, *cells: str) -> None:
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    written.metadata["kernelspec"] = {"display_name": "Python 3", "name": "python3"}
    nbformat.write(written, path)


class Board:
    """The only board on a page."""

    def __init__(self, page):
        self.page, self.tab = page, page.tab

    def says(self, text: str, seconds: float = 60) -> None:
        """Wait until the board says this."""
        self.page.wait_until(
            lambda: any(text in said for said in self.page.texts(".cn-says")), seconds
        )
        self.tab.wait_for_timeout(300)  # as long as a person needs to see it

    def click(self, *names: str) -> None:
        for name in names:
            self.tab.get_by_role("button", name=name, exact=False).first.click()
            self.tab.wait_for_timeout(300)

    def press(self, name: str) -> None:
        self.tab.get_by_role("button", name=name, exact=True).click()

    def has(self, name: str) -> bool:
        return self.tab.get_by_role("button", name=name, exact=True).count() == 1


@pytest.fixture
def page(tmp_path, browser, request):
    front_end, *cells = request.param
    notebook(tmp_path / "board.ipynb", *cells)
    with serve(tmp_path, *front_end) as server:
        page = server.open(browser, "board.ipynb")
        page.run_all()
        page.wait_until(lambda: page.tab.query_selector(".cn-table[data-keys]"), 120)
        yield page
        page.shut_down()


@in_both
def test_a_game_by_clicks_with_a_promotion_and_a_take_back(page):
    board = Board(page)
    assert board.has("a7, white pawn") and board.has("h8, black king") and board.has("e4")
    assert "reload the page" not in page.text()
    assert page.tab.get_by_role("combobox", name="your side").count() == 1
    board.click("a7")
    board.says("Now click where it goes")
    assert board.has("a8, possible") and board.has("a7, white pawn, chosen")
    steady = page.tab.get_by_role("button", name="Take back", exact=True)
    before = steady.bounding_box()
    board.click("a8")
    board.says("Promote to what?")
    assert steady.bounding_box() == before, "the controls stay where they are"
    page.picture("board-promotion")
    board.press("Rook")
    board.says("Your move")
    assert board.has("a8, white rook") and not board.has("h8, black king")
    board.press("Take back")
    board.says("Taken back")
    assert board.has("a7, white pawn") and board.has("h8, black king")
    board.click("a7", "a8")
    board.says("Promote to what?")
    board.press("Queen")
    board.says("Your move")
    text = page.tab.locator(".cn-table textarea")
    assert "a8=Q+" in text.input_value()
    text.fill("6k1/R7/8/8/8/8/8/1R4K1 w - - 0 1")
    board.press("Load")
    board.says("Loaded")
    board.click("b1", "b8")
    board.says("Checkmate: White won.")
    assert '[Result "1-0"]' in text.input_value() and board.has("g8, black king, in check")
    picture, squares = (
        page.tab.locator(f".cn-layers {each}").bounding_box() for each in ("svg", ".cn-squares")
    )
    assert picture == squares, "each button is over the picture of its square"
    page.pictures("board-mate")
    for width in (500, NARROW, WIDE):
        page.width(width)
        assert not page.cut()
    assert not page.errors()


@long
@in_both
def test_keys_on_the_board_do_not_edit_the_notebook(page):
    board, tab = Board(page), page.tab
    cells = tab.locator(".jp-Cell, .code_cell").count()
    board.click("f2")
    tab.keyboard.press("Escape")
    tab.keyboard.type("ddb")
    entry = tab.locator(".cn-entry input")
    assert tab.locator(".jp-Cell, .code_cell").count() == cells and entry.input_value() == "ddb"
    entry.fill("")
    tab.locator(".cn-says").click()
    tab.keyboard.type("g4")
    assert tab.locator(".jp-Cell, .code_cell").count() == cells and entry.input_value() == "g4"
    tab.keyboard.press("Enter")
    board.says("Your move")
    assert board.has("g4, white pawn")
    tab.get_by_role("button", name="h2, white pawn").focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown"):
        tab.keyboard.press(key)
    assert tab.evaluate("document.activeElement.textContent.trim()") == "f2"
    tab.keyboard.press("Enter")
    board.says("Now click where it goes")
    assert tab.evaluate("document.activeElement.textContent.trim()") == "f2", (
        "the focus stays where it was"
    )
    stops = "[...document.activeElement.parentElement.children].filter(each => each.tabIndex === 0).length"
    assert tab.evaluate(stops) == 1, "the Tab key stops at one square of the board"


@long
@pytest.mark.parametrize(
    "page", [(LAB, BOARD.replace("seconds = 0.0", "seconds = 1.5"), NOTHING)], indirect=True
)
def test_clicks_while_it_thinks_and_a_kernel_that_is_gone_are_told(page):
    board, tab = Board(page), page.tab
    board.click("g2")
    board.says("Now click")
    board.click("g4", "h2")  # the second one while it thinks
    board.says("You did that while the opponent was thinking")
    assert board.has("g4, white pawn") and board.has("h2, white pawn")
    page.restart()
    board.click("h2")
    notice = tab.locator(".cn-silence")
    page.wait_until(notice.is_visible, 20)
    assert "restarted" in notice.inner_text() and "press Load" in notice.inner_text()
    assert "1. g4" in tab.locator(".cn-table textarea").input_value(), (
        "the game can still be copied"
    )
    boxes = [tab.get_by_role("button", name=name).first.bounding_box() for name in ("a8", "h1")]
    assert boxes[0]["x"] < boxes[1]["x"] and boxes[0]["y"] < boxes[1]["y"], (
        "the squares are where they were"
    )
    page.picture("board-restarted")


@long
def test_a_page_that_cannot_show_widgets_says_so(tmp_path, browser):
    """As one that JupyterLab opened before ipywidgets was installed."""
    notebook(tmp_path / "board.ipynb", BOARD)
    with serve(tmp_path, widgets=False) as server:
        page = server.open(browser, "board.ipynb")
        page.run_all()
        page.wait_until(lambda: "reload the page (F5)" in page.text(), 120)
        assert page.tab.locator(".cn-still img").is_visible()
        page.picture("board-without-widgets")
        page.shut_down()


@long
@pytest.mark.parametrize("page", [(LAB, NETWORK, NOTHING)], indirect=True)
def test_what_the_network_thinks_is_shown_beside_the_board(page):
    board = Board(page)
    assert page.tab.get_by_role("combobox", name="strength").count() == 1
    board.press("What it thinks")
    page.wait_until(lambda: page.tab.query_selector(".cn-wdl"), 60)
    for origin, target in (("e2", "e4"), ("g1", "f3")):
        board.click(origin)
        board.says("Now click")
        board.click(target)
        board.says("Your move")
    page.wait_until(lambda: page.tab.query_selector(".cn-graph"), 60)
    board.press("Hint")
    board.says("Hint: ")
    page.pictures("board-thinks")
    for width in (500, NARROW):
        page.width(width)
        assert not page.cut()
    assert not page.errors()


@long
def test_a_replay_plays_without_a_kernel(tmp_path, browser):
    path = tmp_path / "replay.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{game_replay(played_game(MATE)).html}")
    tab = browser.new_page(viewport={"width": 500, "height": 800}, offline=True)
    tab.goto(path.as_uri())
    board = tab.get_by_role("img", name="Board: ")
    board.wait_for()
    assert "white queen f7" in board.get_attribute("aria-label")
    tab.locator("[data-replay]").focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.keyboard.press(key)
    assert "Ply 1 of 7: e4" in tab.inner_text("body")
    tab.get_by_role("button", name="Qh5").click()
    assert "white queen h5" in board.get_attribute("aria-label")
    tab.get_by_role("button", name="play or pause").click()
    tab.wait_for_function("() => document.body.innerText.includes('Ply 7 of 7')")
    assert "Checkmate: White won." in tab.inner_text("body")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(path.as_uri())
    assert (
        plain.get_by_alt_text("white queen f7").is_visible() and not plain.locator("button").count()
    )


def test_the_list_of_moves_follows_a_replay(browser):
    steps = [(file, *ranks) for ranks in ((3, 6), (4, 5)) for file in "abcdefgh"]
    moves = " ".join(f"{file}{white} {file}{black}" for file, white, black in steps)
    page = game_replay(played_game(f"{moves} *")).html
    tab = browser.new_page(viewport={"width": 320, "height": 800})
    tab.set_content(f"<div style='position:relative;padding-top:300px'>{page}</div>")
    tab.add_style_tag(content=".cn-moves{max-height:4em!important}")
    tab.locator("[data-replay]").focus()
    for key, ply in (("End", 32), ("ArrowLeft", 31)):
        tab.keyboard.press(key)
        assert f"Ply {ply} of 32" in tab.inner_text("body")
        box, move = (tab.locator(of).bounding_box() for of in (".cn-moves", ".cn-now"))
        assert box["y"] <= move["y"] <= box["y"] + box["height"] - move["height"]


@long
def test_the_games_of_a_panel_play_by_themselves_until_somebody_touches_them(browser):
    pages = [
        panel_replay([make_report(number) for number in range(1, last + 1)], "here")
        for last in (1, 2, 3, 4)
    ]
    tab = browser.new_page()

    def draw(page: str) -> None:
        """As a notebook does when an iteration has ended."""
        tab.evaluate(
            "page => document.body.replaceChildren(document.createRange().createContextualFragment(page))",
            page,
        )

    def shows() -> list[str]:
        game = "[...document.querySelectorAll('.cn-replay-live option')].find(each => each.selected)?.textContent"
        return [tab.evaluate(game), tab.inner_text(".cn-replay-live [aria-live]")]

    def reaches(words: str) -> None:
        tab.wait_for_function("words => document.body.innerText.includes(words)", arg=words)

    draw(pages[0])
    reaches("Ply 2 of 7")
    draw(pages[1])
    assert shows()[0] == "Iteration 1" and shows()[1].startswith(("Ply 2", "Ply 3"))
    reaches("Ply 7 of 7: Qxf7#. Checkmate: White won.")
    reaches("Ply 1 of 7")
    assert shows()[0] == "Iteration 2", "at its end it goes on to the newest game"
    reaches("Ply 7 of 7")
    draw(pages[2])
    assert shows()[0] == "Iteration 3"
    reaches("Ply 1 of 7")
    tab.get_by_role("button", name="play or pause").click()
    stopped = shows()
    draw(pages[3])
    tab.wait_for_timeout(1500)
    assert shows() == stopped and stopped[0] == "Iteration 3"
    tab.locator("select").select_option("Iteration 4")
    assert shows() == ["Iteration 4", "Ply 0 of 7: start"]


def test_one_position_plays_through_the_iterations_by_itself(browser):
    def seen(iteration: int, share: float) -> list:
        return [iteration, [share, 0.1, 0.9 - share], [3733, 10], [share, 0.01], [8] + [0] * 63]

    report = make_report(7, opinions=[seen(0, 0.04), seen(7, 0.89)], strength=[make_strength(7)])
    page = figures_html([report], [], None, 20.0, "", one_position([report], "chess", "here"))
    tab = browser.new_page(viewport={"width": 980, "height": 600})
    tab.set_content(box(page + table_html([report])))
    words = tab.locator("[data-place=here-one] .cn-replay-live .cn-side")
    tab.wait_for_function("() => document.body.innerText.includes('before training')")
    assert "Does it see that White's knight can take the queen?" in tab.inner_text("body")
    tab.wait_for_function("() => document.body.innerText.includes('after iteration 7')")
    assert "White wins 89 %, draw 10 %" in words.inner_text() and "Nxh4\t89 %" in words.inner_text()
    arrows = tab.locator("[data-place=here-one] svg > g:last-child path")
    assert arrows.count() == 2 and tab.locator(".cn-fire i").count() == 64
    board = tab.get_by_role("img", name="black queen h4")
    assert board.bounding_box()["width"] == 150
    tab.wait_for_function(  # it begins again, and the click comes in the same moment
        """() => document.body.innerText.includes('before training')
        && !document.querySelector('[data-place=here-one] [role=img]').click()"""
    )
    tab.wait_for_timeout(1500)
    assert "before training" in words.inner_text(), "a click pauses it"
    tab.set_viewport_size({"width": 640, "height": 900})  # what a cell has at NARROW
    assert tab.evaluate(
        "() => { const t = document.querySelector('table'); "
        "return t.scrollWidth <= t.parentElement.clientWidth; }"
    )
    calm = browser.new_context(reduced_motion="reduce").new_page()
    calm.set_content(page)
    calm.wait_for_function("() => document.body.innerText.includes('after iteration 7')")
    assert "before training" not in calm.inner_text("body")


def test_the_words_of_workers_are_whole_on_a_narrow_page(browser):
    notes = ("14/64, time is up", "64/64 in 1m 53s", "50/64 | 12,389/s")
    workers = [Bar("CPU worker 0", 64, 64, note) for note in notes]
    tab = browser.new_page(viewport={"width": 680, "height": 300})  # what a cell has at NARROW
    tab.set_content(live_html("Iteration 1", [Bar("playing", 1, 2, "1/2 games")], workers))
    cut = """[...document.querySelectorAll('div')]
        .filter(each => !each.children.length && each.scrollWidth > each.clientWidth)
        .map(each => each.textContent)"""
    assert tab.evaluate(cut) == [] and "✓ 64/64 in 1m 53s" in tab.inner_text("body")
