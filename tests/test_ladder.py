"""The ladder: snapshots and fixed players rated together, kept in the run folder, the best one
named.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from chessnn_colab.__main__ import main
from chessnn_colab.arena.chess.openings import BOOK
from chessnn_colab.arena.ladder import Ladder, _save, rate_run, spread
from chessnn_colab.arena.ratings import rate
from chessnn_colab.arena.result import MatchGame, MatchResult
from chessnn_colab.errors import ConfigError, RunError
from chessnn_colab.runs.files import decode_object
from chessnn_colab.runs.folder import RATINGS_FILE
from chessnn_colab.search import SearchConfig

from .small_run import TICTACTOE, make_run
from .test_arena import result_of

POLICY = SearchConfig(search="policy")
SHELL = "--games 2 --snapshots 2 --search policy --device cpu".split()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("ladder") / "run", (0, 2, 4, 6), "tictactoe", TICTACTOE)


@pytest.fixture(scope="module")
def ladder(run, tmp_path_factory) -> Ladder:
    other = make_run(tmp_path_factory.mktemp("ladder") / "other", (7,), "tictactoe", TICTACTOE)
    return rate_run(run, ("random", other), games=4, snapshots=3, search=POLICY, device="cpu")


def pairings(matches) -> list[tuple]:
    """The points of the games that do not repeat another one."""
    return [
        (match.player, match.opponent, [game.points for game in match.distinct()])
        for match in matches
    ]


def test_snapshots_are_spread_from_the_first_to_the_last():
    assert spread(range(101), 5) == [0, 25, 50, 75, 100]
    assert spread([0, 3, 9], 2) == [0, 9] and spread([0, 3], 9) == [0, 3] and spread([0], 4) == [0]
    assert spread([0, 1, 2, 3], 3)[::2] == [0, 3]
    with pytest.raises(ConfigError, match="snapshots=1"):
        spread([0, 1], 1)
    with pytest.raises(RunError, match="no snapshot"):
        spread([], 4)


def test_a_ladder_that_was_stopped_leaves_the_ratings_of_a_whole_one(run, ladder):
    path = Path(run) / RATINGS_FILE
    whole = path.read_bytes()
    cut_short = tuple(replace(match, interrupted=True) for match in ladder.matches[1:])
    _save(run, replace(ladder, matches=cut_short))
    assert path.read_bytes() == whole
    path.unlink()
    _save(run, replace(ladder, matches=cut_short))
    assert decode_object(path.read_bytes()) != decode_object(whole), "it is better than nothing"
    path.write_bytes(whole)


def test_who_plays_whom(ladder):
    snapshots = list(ladder.snapshots)
    assert [*ladder.snapshots.values()][::2] == [0, 6] and len(snapshots) == 3
    met = {frozenset((match.player, match.opponent)) for match in ladder.matches}
    assert len(met) == len(ladder.matches) == 1 + 3 * 2 + 2 and all(
        match.games == 4 for match in ladder.matches
    )
    assert {
        frozenset(("random", "other iteration 7")),
        frozenset(snapshots[:2]),
        frozenset(snapshots[1:]),
    } <= met


def test_ratings_follow_the_games(ladder):
    expected = rate(pairings(ladder.matches), "random")
    for row in ladder.rows():
        assert row["rating"] == pytest.approx(expected.rating(row["name"]))
        assert row["games"] == (12 if row["snapshot"] in (0, 6) else 16)
    rows = ladder.rows()
    assert ladder.ratings.rating("random") == 0 and rows == sorted(
        rows, key=lambda row: -row["rating"]
    )
    rated = {row["snapshot"]: row["rating"] for row in rows if row["snapshot"] is not None}
    assert rated[ladder.best] == max(rated.values()) and ladder.gain[0] == pytest.approx(
        rated[6] - rated[0]
    )
    assert sum(row["score"] * row["games"] for row in rows) == pytest.approx(
        sum(row["games"] for row in rows) / 2
    )


def test_the_run_keeps_its_ratings_and_names_the_best(run, ladder):
    saved = decode_object((Path(run) / "ratings.json").read_bytes())
    assert saved == json.loads(json.dumps(ladder.to_dict()))
    assert (
        saved["best"] == ladder.best and saved["anchor"] == "random" and len(saved["players"]) == 5
    )
    assert not [name for name in os.listdir(run) if name.startswith(".ratings")]
    assert f"Best snapshot: iteration {ladder.best}." in str(ladder)


def made_match(player: str, points: list[float]) -> MatchResult:
    games = [
        MatchGame(BOOK[0], True, point, "checkmate", (number,))
        for number, point in enumerate(points)
    ]
    return result_of(*games, player=player)


def test_ratings_that_cannot_be_kept_are_shown(tmp_path):
    """The run may be on a disk that can only be read, or is full; the games are played."""
    run = make_run(tmp_path / "run", (0, 2), "tictactoe", TICTACTOE)
    (tmp_path / "run" / RATINGS_FILE).mkdir()
    with pytest.warns(UserWarning, match="ratings are shown, and not kept.*directory"):
        found = rate_run(run, ("random",), games=2, snapshots=2, search=POLICY, device="cpu")
    assert len(found.rows()) == 3


def test_the_best_need_not_be_the_last():
    matches = (
        made_match("iteration 0", [0.5] * 20),
        made_match("iteration 5", [1.0] * 15 + [0.0] * 5),
        made_match("iteration 9", [1.0] * 12 + [0.0] * 8),
    )
    snapshots = {"iteration 0": 0, "iteration 5": 5, "iteration 9": 9}
    ladder = Ladder(rate(pairings(matches), "random"), snapshots, matches, POLICY)
    assert ladder.best == 5 and ladder.gain[0] == pytest.approx(67, abs=5)
    assert [row["name"] for row in ladder.rows()][:2] == ["iteration 5", "iteration 9"]


def test_of_equals_the_last_is_the_best():
    """It has learned longest, and is what `share` takes."""
    points = [1.0, 0.0, 0.5]
    matches = tuple(made_match(f"iteration {each}", points) for each in (0, 5, 9))
    snapshots = {"iteration 0": 0, "iteration 5": 5, "iteration 9": 9}
    assert Ladder(rate(pairings(matches), "random"), snapshots, matches, POLICY).best == 9


def test_anchors_and_messages_from_a_shell(run, capsys):
    assert main(["ladder", run, "--anchor", "iteration 0", *SHELL, "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    rating = {player["name"]: (player["rating"], player["error"]) for player in result["players"]}
    assert rating["iteration 0"] == (0, 0) and rating["random"][1] > 0
    assert "iteration 6 (1 evaluations per move) against iteration 0" in captured.err
    assert main(["ladder", run, "--opponents", "random", *SHELL]) == 0
    assert "Ratings with random at 0" in capsys.readouterr().out


def test_a_chess_run_meets_every_fixed_player_of_chess(tmp_path, capsys, short_games):
    assert main(["ladder", make_run(tmp_path / "run", (0, 1)), *SHELL, "--json"]) == 0
    players = json.loads(capsys.readouterr().out)["players"]
    assert {player["name"] for player in players} == {
        "random",
        "greedy",
        "minimax",
        "iteration 0",
        "iteration 1",
    }


@pytest.mark.parametrize(
    "options",
    [
        ["--anchor", "kasparov"],
        ["--opponents", "random,kasparov"],
        ["--snapshots", "1"],
        ["--opponents", ""],
    ],
)
def test_bad_input_is_one_sentence(run, options, capsys):
    before = (Path(run) / "ratings.json").read_bytes()
    assert main(["ladder", run, *SHELL, *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (Path(run) / "ratings.json").read_bytes() == before
