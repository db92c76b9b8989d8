"""Games played back as HTML with a script, after a static picture that shows where no script
runs.
"""

import json
import math
import random
import re

import pytest
import torch

from chessnn_colab.errors import NotationError, RunError
from chessnn_colab.games.base import Moves, finished, select
from chessnn_colab.games.registry import game_text, make_game
from chessnn_colab.views import replay
from chessnn_colab.views.drawing import CROSSES
from chessnn_colab.views.picture import board_svg
from chessnn_colab.views.played import played_game
from chessnn_colab.views.tiles import TILES
from tests.sample_reports import MATE, make_report
from tests.small_run import write_reports


def held(html: str) -> list[dict]:
    """The games within a replay."""
    data = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1]
    return json.loads(data)["games"]


def sampled(text: str) -> dict:
    """A run's sample game, as its panel holds it."""
    (game,) = held(replay.panel_replay([make_report(4, sample_game=text)], "here"))
    return game


def positions(game: dict) -> list[str]:
    """The board after each ply, as replay.js builds it."""
    standing = list(game["start"])
    boards = ["".join(standing)]
    for ply in game["plies"]:
        for square, glyph in ply["c"].items():
            standing[int(square)] = glyph
        boards.append("".join(standing))
    return boards


def test_a_replay_is_a_picture_then_a_script_and_loads_nothing():
    html = replay.game_replay(played_game(MATE)).html
    assert html.index("data:image/svg+xml") < html.index("<script") and 'alt="Board: ' in html
    assert "<b>a - b</b>" in html and "Checkmate: White won." in html
    outside = re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"base64,[^\")]+", "", html))
    assert not [address for address in outside if address != "http://www.w3.org"], outside


def test_the_changes_of_each_ply_lead_to_the_boards_of_the_game():
    game = sampled(MATE)
    boards = positions(game)
    assert boards[0] == "rnbqkbnrpppppppp" + "." * 32 + "PPPPPPPPRNBQKBNR" and len(boards) == 8
    assert boards[-1][13] == "Q" and boards[-1][59] == "." and game["plies"][-1]["k"] == [4]
    assert [ply["m"] for ply in game["plies"]] == ["e4", "e5", "Qh5", "Nc6", "Bc4", "Nf6", "Qxf7#"]
    assert max(len(ply["c"]) for ply in game["plies"]) == 2


def test_moves_are_numbered_from_any_start_and_headers_cannot_break_out():
    fen = "4k3/8/8/8/8/8/4p3/K7 b - - 0 31"
    pgn = f'[White "</script><b>x"]\n[FEN "{fen}"]\n[SetUp "1"]\n\n31... e1=Q+ 32. Ka2 *'
    html = replay.game_replay(played_game(pgn)).html
    (game,) = held(html)
    assert [ply["n"] for ply in game["plies"]] == ["31...", "32."]
    assert "with 3 pieces" in game["note"]
    assert "with 3 pieces" in html.split("<script")[0]
    assert "</script><b>x" not in html and game["players"] == "</script><b>x - ?"
    assert game["end"] == "Stopped without a result."


@pytest.mark.parametrize(
    "text, reason",
    [('[White "a"]\n\n1. e4 e5 2. Ke3', "bad PGN.* illegal san"), ('[White "a"]\n\n*', "no move in PGN .*: expected"),
     ("Game: go\nStart: 1\nActions: 0", "unknown game"), ("Game: 2048\nActions: 0", "'Start'"),
     ("Game: 2048\nStart: x\nActions: 0", "invalid literal"), ("Game: 2048\nStart: 1\nActions: 0", "cannot be read"),
     ("Game: tictactoe\nStart: 0 0\nActions: 3 3", "move 2: action 3 is not legal"),
     ("Game: chess\nStart: 0 0 0 0 0\nActions: 0", "expected the form that its players write")],
)  # fmt: skip
def test_a_game_that_cannot_be_played_is_refused_in_one_sentence(text, reason, caplog):
    with pytest.raises(NotationError, match=reason):
        played_game(text)
    assert not caplog.records


def test_sample_games_of_a_run_are_chosen_by_iteration(tmp_path):
    long = write_reports(tmp_path / "long", [make_report(iteration) for iteration in range(1, 41)])
    shown = replay.sample_replay(long)
    titles = [game["title"] for game in held(shown.html)]
    assert len(titles) == replay.MOST_GAMES
    assert titles[0] == "Iteration 1" and titles[-1] == "Iteration 40"
    assert "white king" in repr(shown) and shown._repr_html_() == shown.html
    few = [make_report(1), make_report(2, sample_game=""), make_report(3)]
    shown = replay.sample_replay(str(write_reports(tmp_path / "few", few)))
    assert [game["title"] for game in held(shown.html)] == ["Iteration 1", "Iteration 3"]
    empty = replay.sample_replay(write_reports(tmp_path / "empty", []))
    assert "an iteration has to finish first" in empty.html
    with pytest.raises(RunError):
        replay.sample_replay(tmp_path / "nothing")


def test_a_panel_has_the_newest_games():
    shown = replay.panel_replay([make_report(iteration) for iteration in range(1, 41)], "here")
    titles = [f"Iteration {iteration}" for iteration in range(41 - replay.PANEL_GAMES, 41)]
    assert [game["title"] for game in held(shown)] == titles and 'data-place="here"' in shown
    assert replay.panel_replay([], "here") == ""


@pytest.mark.parametrize("name, kind", [("2048", "standard"), ("tictactoe", "random-plies")])
def test_a_game_written_as_a_list_is_played_back_from_its_own_start(name, kind):
    game = make_game(name)
    start = state = game.starts(3, kind, torch.Generator().manual_seed(5))
    start = state = select(start, slice(2, 3))
    chance, boards, actions = random.Random(1), [game.to_text(state)[0]], []
    while not bool(finished(state)[0]) and len(actions) < 60:
        actions.append(
            chance.choice(game.legal_action_mask(state)[0].nonzero().squeeze(1).tolist())
        )
        state = game.step(state, torch.tensor(actions[-1:]))
        boards.append(game.to_text(state)[0])
    result = int(state.rewards[0, 0]) if name != "2048" else 0
    text = game_text(game, Moves(start, actions, int(state.ending), result))
    shown = sampled(text)
    assert len(shown["plies"]) == len(actions) > 1 and shown["title"] == "Iteration 4"
    played = played_game(text)
    pictured = board_svg(played.drawing).count('class="cn-on"')
    assert pictured == math.prod(game.observation_shape[1:]), "each square is in the picture"
    words = {key: told for key, (told, _) in (TILES if name == "2048" else CROSSES).items()} | {
        ".": "."
    }
    for standing, board in zip(positions(shown), boards, strict=True):
        cells = re.findall("[.XO]", board) if name == "tictactoe" else board.split()[:16]
        assert [words[glyph] for glyph in standing] == cells
    if name == "2048":
        assert all(len(ply["l"]) == 1 for ply in shown["plies"]) and shown["plies"][0]["n"] == "1."


def test_the_longest_games_leave_room_for_fewer(monkeypatch):
    reports = [make_report(iteration) for iteration in range(1, 6)]
    monkeypatch.setattr(replay, "MOST_PLIES", 20)
    titles = [game["title"] for game in held(replay.panel_replay(reports, "here"))]
    assert titles == ["Iteration 4", "Iteration 5"], "seven plies each"
    monkeypatch.setattr(replay, "MOST_PLIES", 1)
    assert len(held(replay.panel_replay(reports, "here"))) == 1
