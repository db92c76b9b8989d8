"""Pictures of positions, and boards as a list of legal clicks: chess, and stones on a grid."""

import io

import numpy as np
import pytest
from PIL import Image

from chessnn_colab.errors import NotationError
from chessnn_colab.games.registry import make_game
from chessnn_colab.views import picture
from chessnn_colab.views.drawings import draw_game, make_drawing
from chessnn_colab.views.squares import squares_css
from chessnn_colab.views.svg_image import svg_image

from .browser import browse, needs_browser


def drawing(game: str = "chess"):
    return make_drawing(make_game(game))


# Drawings


def test_clicks_of_chess_are_its_legal_moves():
    position = drawing()
    position.load("r3k2r/1P6/8/3pP3/8/8/8/R3K2R w KQkq d6 0 1")
    expected = {(move.from_square ^ 56, move.to_square ^ 56) for move in position.board.legal_moves}
    assert {path for path, _ in position.clicks()} == expected
    promotions = [action for path, action in position.clicks() if path == (9, 1)]
    assert sorted(map(position.choice, promotions)) == ["Bishop", "Knight", "Queen", "Rook"]
    assert (60, 62) in expected, "the king castles by its own two squares"


def test_stones_are_a_line_in_the_registry():
    position = drawing("tictactoe")
    for name in ("b2", "a3", "c3", "c1", "a1"):
        position.push(position.parse(name))
    assert position.squares() == ["O", "", "X", "", "X", "", "X", "", "O"]
    assert position.ending() == "Three in a row: X won." and not position.clicks()
    assert position.text() == "b2 a3 c3 c1 a1" and position.moves()[2] == ("2.", "c3")
    other = drawing("tictactoe")
    other.load(position.text())
    assert other.squares() == position.squares()
    position.pop()
    assert position.turn == 0 and ((3,), 3) in position.clicks()
    for wrong, why in (("z9", "unreadable move 'z9'"), ("b2", "b2 is not free")):
        with pytest.raises(NotationError, match=why):
            position.parse(wrong)
    with pytest.raises(NotationError, match="move 2: b2 is not free"):
        other.load("b2 b2")
    assert other.ending(), "a wrong game changes nothing"


# Pictures


@pytest.mark.parametrize("game", ["chess", "tictactoe"])
def test_a_picture_shows_every_piece_and_says_it_in_words(game):
    position = drawing(game)
    position.push(position.clicks()[0][1])
    svg = picture.board_svg(position)
    for glyph in position.squares():
        assert not glyph or position.glyphs[glyph][1] in svg
    assert svg != picture.board_svg(position, turned=True)
    words = picture.in_words(position)
    assert words in picture.picture_html(position)
    assert ("white king e1" if game == "chess" else "X a3") in words and "to move" in words


def test_a_picture_for_a_card_has_pieces_marks_and_letters_in_their_places():
    position = drawing()
    position.load("6k1/8/8/8/8/8/8/R5K1 w - - 0 1")
    position.push(position.parse("Ra8+"))
    image = svg_image(picture.board_svg(position), dpi=72)  # a unit is a pixel
    assert image.shape == (360, 360, 4)

    def colours(square: str) -> set[tuple[int, ...]]:
        row, column = divmod(position.names.index(square), 8)
        part = image[45 * row : 45 * row + 45, 45 * column : 45 * column + 45, :3]
        return set(map(tuple, part.reshape(-1, 3).tolist()))

    light, dark, white, black = (234, 230, 218), (143, 163, 181), (255, 255, 255), (0, 0, 0)
    assert colours("e4") == {light} and colours("d4") == {dark}
    assert {white, black} < colours("g1") and {white, black} < colours("a8")
    assert light not in colours("a8"), "the last move is marked"
    assert (160, 0, 0) in colours("g8"), "so is the king in check"
    assert len(colours("a3")) > 2, "a row has its number"


@pytest.mark.parametrize(
    "name, words",
    [("chess", "white king e1"), ("gomoku:9", "Board: empty. Black to move."), ("2048", "Board: ")],
)
def test_the_start_of_every_game_is_a_board(name, words):
    game = make_game(name)
    start = game.init(1)
    assert words in repr(picture.start_picture(game, start))
    if name == "2048":
        board = draw_game(game)
        board.begin(start)
        assert picture.in_words(board) in repr(picture.start_picture(game, start))
        letters = [f">{letter}</text>" for letter in "abcd"]
        assert not any(letter in picture.board_svg(board) for letter in letters)


@pytest.mark.parametrize(
    "game, moves, line",
    [
        ("tictactoe", "a3 a2 b3 b2 c3", ["a3", "b3", "c3"]),
        ("gomoku", "c3 o1 d4 a15 e5 o15 g7 a1 f6", ["c3", "d4", "e5", "f6", "g7"]),
        # Six in a column, which do not win, and five in a row.
        (
            "gomoku:9:exact",
            "e1 a9 e2 c9 e4 e9 e5 g9 e6 i9 a3 a7 b3 c7 c3 e7 d3 g7 e3",
            ["a3", "b3", "c3", "d3", "e3"],
        ),
    ],
)
def test_the_line_that_won_is_marked(game, moves, line):
    position = drawing(game)
    position.load(moves.rpartition(" ")[0])
    assert not position.alarms()
    position.load(moves)
    assert sorted(position.names[square] for square in position.alarms()) == line
    assert picture.board_svg(position).count(picture.MARKS["won"][0]) == len(line)
    assert "in the line that won" in squares_css("here", position, picture.played_marks(position))


@needs_browser
def test_every_line_of_a_grid_is_seen_at_every_width():
    with browse() as browser:
        tab = browser.new_page(viewport={"width": 500, "height": 500})
        for width in (416, 350, 301, 264):
            tab.set_content(picture.picture_html(drawing("gomoku"), size=width))
            image = np.array(Image.open(io.BytesIO(tab.locator("img").screenshot())).convert("L"))
            row = np.median(image, axis=0)  # lines that run along it count little
            cell = width / 15
            darkest = [row[int(cell * n) : int(cell * (n + 1))].min() for n in range(1, 14)]
            assert max(darkest) < np.median(row) - 40, width


def test_marks_are_drawn_below_what_stands_and_said_in_words():
    position = drawing()
    marks = {"last": [52], "target": [36]}
    css = squares_css("here", position, marks)
    assert '.here>:nth-child(53){--says:", white pawn, last move"}' in css
    assert '.here>:nth-child(37){--says:", possible"}' in css
    svg = picture.board_svg(position, marks)
    assert f"{picture.MARKS['last'][0]}{position.glyphs['P'][1]}" in svg
    assert svg.count(picture.MARKS["target"][0]) == 1


def test_arrows_point_from_square_to_square_and_turn_with_the_board():
    position = drawing()
    arrow = picture.Arrow((52, 36), 1.0, label="40 %")
    svg = picture.board_svg(position, arrows=[arrow])
    assert "translate(202.5 292.5) rotate(-90.0)" in svg and "40 %" in svg and ">a</text>" in svg
    turned = picture.board_svg(position, arrows=[arrow], turned=True)
    assert "translate(157.5 67.5) rotate(90.0)" in turned
    other = picture.Arrow((51, 36), 0.2, label="8 %")
    both = picture.board_svg(position, arrows=[other, arrow])
    assert "40 %" in both and "8 %" not in both, "one label where two arrows end: the last one's"
    assert '<circle r="16"' in picture.board_svg(position, arrows=[picture.Arrow((4,), 1.0)])
