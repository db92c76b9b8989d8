"""Measuring a run: any opponent by name, another run, every game kept; bad input is one clear error."""

import json

import pytest

from chessnn_colab.__main__ import main
from chessnn_colab.errors import ChessnnError, ConfigError, RunError
from chessnn_colab.arena.evaluate import evaluate_run, find_player, play_search
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.chess.pgn import games_from_pgn
from chessnn_colab.arena.players import PLAY_SEARCH
from chessnn_colab.search import SEARCHES
from tests.small_run import make_run

SMALL = {"candidates": 2, "survivors": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("evaluation") / "one", (0, 3))


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("evaluation") / "other", (0, 2, 11))


def test_every_game_is_kept_when_asked(run, tmp_path):
    result = evaluate_run(run, "random", games=4, save=str(tmp_path / "games"), **SMALL)
    assert result.player == "iteration 3" and result.evaluations == 4
    (path,) = (tmp_path / "games").iterdir()
    games = games_from_pgn(path.read_text(encoding="utf-8"))
    assert path.name == "iteration_3-random.pgn" and len(games) == 4
    points = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
    whites = [points[game.headers["Result"]] for game in games]
    assert [whites[0], 1 - whites[1], whites[2], 1 - whites[3]] == [game.points for game in result.played]
    assert [game.headers["White"] for game in games] == ["iteration 3", "random"] * 2


def test_another_run_is_an_opponent_that_looks_as_far(run, other):
    result = evaluate_run(run, other, games=2, snapshot=0, **SMALL)
    assert (result.player, result.opponent) == ("iteration 0", "other iteration 11")
    assert result.evaluations == result.opponent_evaluations == 4
    assert evaluate_run(run, other + "@2", games=2, search="policy", device="cpu").opponent == "other iteration 2"


def test_its_own_earlier_snapshot_is_an_opponent(run):
    result = evaluate_run(run, run + "@0", games=2, search="policy", device="cpu")
    assert (result.player, result.opponent) == ("iteration 3", "one iteration 0") and result.evaluations == 1


def test_searches_take_their_own_sizes():
    assert play_search() == PLAY_SEARCH
    assert play_search("two-rung", 12, 3).evaluations == 16
    assert play_search("policy").evaluations == 1


@pytest.mark.skipif("tree" not in SEARCHES, reason="search.py has no tree yet")
def test_the_tree_takes_simulations(run):
    tree = play_search("tree", simulations=9)
    assert tree.search == "tree" and tree.num_simulations == 9
    result = evaluate_run(run, "random", games=2, search="tree", simulations=4, device="cpu")
    assert result.games == 2 and result.evaluations == play_search("tree", simulations=4).evaluations


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("guess",), "two-rung"),
        (("policy", 4), "no candidates: expected no size"),
        (("two-rung", None, None, 30), "no simulations: expected candidates and survivors"),
        (("tree", None, 3), "no survivors: expected simulations"),
        (("two-rung", 2, 3), "survivors <= candidates"),
    ],
)
def test_sizes_of_another_search_are_refused(arguments, words):
    with pytest.raises(ConfigError, match=words):
        play_search(*arguments)


@pytest.mark.parametrize(
    "opponent, error, words",
    [
        ("kasparov", ConfigError, "unknown opponent 'kasparov'.*random, greedy.*engine:PATH.*folder"),
        ("kasparov@3", ConfigError, "unknown opponent"),
        ("RUN@77", RunError, "no snapshot 77"),
        ("RUN@last", ConfigError, "unknown opponent"),
        ("RUN/games", RunError, "config.json"),
        ("engine:/no/such/engine", ChessnnError, "/no/such/engine"),
        ("", ConfigError, "unknown opponent ''"),
    ],
)
def test_an_opponent_that_is_not_there_is_one_clear_error(run, opponent, error, words):
    with pytest.raises(error, match=words):
        find_player(opponent.replace("RUN", run), Chess(), PLAY_SEARCH)


def test_evaluate_from_a_shell(run, other, tmp_path, capsys):
    small = ["--games", "2", "--candidates", "2", "--survivors", "1", "--device", "cpu"]
    assert main(["evaluate", run, "--opponent", other, *small, "--save", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["opponent"] == "other iteration 11" and result["wins"] + result["draws"] + result["losses"] == 2
    assert (tmp_path / "iteration_3-other_iteration_11.pgn").exists()
    assert main(["evaluate", run, "--search", "policy", "--games", "2", "--device", "cpu"]) == 0
    assert "iteration 3 (1 evaluations a move) against random: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--opponent", "engine:/no/such/engine"],
        ["--games", "3"],
        ["--search", "guess"],
        ["--search", "policy", "--candidates", "3"],
        ["--save", "RUN/config.json"],
        ["--opponent", "RUN@5"],
    ],
)
def test_bad_input_from_a_shell_is_one_sentence(run, options, capsys):
    assert main(["evaluate", run, "--device", "cpu", *(option.replace("RUN", run) for option in options)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("chessnn_colab: ") and captured.err.count("\n") == 1 and not captured.out
