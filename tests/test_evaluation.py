"""Measuring a run: any opponent by name, another run, every game kept; bad input is one clear
error.
"""

import re
from pathlib import Path

import pytest

from chessnn_colab.__main__ import main
from chessnn_colab.arena.evaluate import evaluate_run, find_player
from chessnn_colab.arena.games_folder import GamesFolder
from chessnn_colab.arena.players import PLAY_SEARCH, RandomPlayer, play_search
from chessnn_colab.arena.registry import match_game
from chessnn_colab.errors import CheckpointError, ChessnnError, ConfigError, RunError
from chessnn_colab.games.chess.pgn import game_from_pgn
from chessnn_colab.runs.networks import load_network
from chessnn_colab.search import SearchConfig

from .small_run import TICTACTOE, make_run

SMALL = SearchConfig(candidates=2, survivors=1)
POLICY = SearchConfig(search="policy")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("evaluation") / "one", (0, 3))


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("evaluation") / "other", (0, 2, 11))


@pytest.fixture(scope="module")
def other_game(tmp_path_factory) -> str:
    return make_run(tmp_path_factory.mktemp("evaluation") / "small", (0, 1), "tictactoe", TICTACTOE)


def test_every_game_is_kept_when_asked(run, tmp_path):
    folder = str(tmp_path / "games")
    (result,) = evaluate_run(run, "minimax", 4, SMALL, device="cpu", save=folder)
    assert result.player == "iteration 3" and result.evaluations == 4
    (path,) = (tmp_path / "games").iterdir()
    games = [
        game_from_pgn(text) for text in re.split(r"\n\n(?=\[)", path.read_text(encoding="utf-8"))
    ]
    assert path.name == "iteration_3-minimax.pgn" and len(games) == 4
    points = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
    whites = [points[game.headers["Result"]] for game in games]
    assert [whites[0], 1 - whites[1], whites[2], 1 - whites[3]] == [
        game.points for game in result.played
    ]
    assert [game.headers["White"] for game in games] == ["iteration 3", "minimax"] * 2
    assert set(whites) == {0.0, 1.0}  # minimax mates with both colours


def test_another_run_is_an_opponent_that_looks_as_far(run, other, short_games):
    results = evaluate_run(run, [other, f"{other}@2"], 2, SMALL, [0], device="cpu")
    assert {result.player for result in results} == {"iteration 0"}
    assert [result.opponent for result in results] == ["other iteration 11", "other iteration 2"]
    assert results[0].evaluations == results[0].opponent_evaluations == 4


def test_searches_take_their_own_sizes():
    assert play_search() == PLAY_SEARCH
    assert play_search("two-rung", 12, 3).evaluations == 16
    assert play_search("policy").evaluations == 1
    assert (
        play_search(candidates=20).search == "two-rung"
        and play_search(num_simulations=4).search == "tree"
    )


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("guess",), "two-rung"),
        (("policy", 4), "no candidates: expected no size"),
        (("two-rung", None, None, 30), "no num_simulations: expected candidates and survivors"),
        (("tree", None, 3), "no survivors: expected num_simulations"),
        (("two-rung", 2, 3), "survivors=3 of candidates=2"),
    ],
)
def test_sizes_of_another_search_are_refused(arguments, words):
    with pytest.raises(ConfigError, match=words):
        play_search(*arguments)


@pytest.mark.parametrize(
    "opponent, error, words",
    [
        (
            "kasparov",
            ConfigError,
            "unknown opponent 'kasparov'.*random, greedy.*engine:PATH.*folder",
        ),
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
        find_player(opponent.replace("RUN", run), match_game("chess"), PLAY_SEARCH)


def test_what_came_of_a_match_is_told_though_its_games_cannot_be_saved(
    run, short_games, monkeypatch, tmp_path
):
    def full(*_):
        raise ConfigError("cannot write the games: No space left on device")

    monkeypatch.setattr(GamesFolder, "save", full)
    with pytest.raises(ConfigError, match=r"(?s)against random: .*No space left on device"):
        evaluate_run(run, ["random"], 2, POLICY, device="cpu", save=str(tmp_path))


def test_a_match_that_was_interrupted_before_a_game_ended_leaves_no_file(
    run, monkeypatch, tmp_path
):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RandomPlayer, "choose", interrupted)
    (result,) = evaluate_run(run, ["random"], 2, POLICY, device="cpu", save=str(tmp_path / "games"))
    assert result.interrupted and not list(tmp_path.rglob("*.pgn"))


def test_an_engine_that_runs_is_closed_when_the_next_opponent_is_not_there(run, monkeypatch):
    closed = []
    monkeypatch.setattr(RandomPlayer, "close", lambda player: closed.append(player.name))
    with pytest.raises(ConfigError, match="unknown opponent"):
        evaluate_run(run, ["random", "nobody"], games=2, device="cpu")
    assert closed == ["random"]


def test_a_run_of_another_game_plays_that_game(other_game):
    search = play_search("tree", num_simulations=4)
    opponents = ["random", f"{other_game}@0"]
    result, other = evaluate_run(other_game, opponents, 8, search, device="cpu")
    assert result.games == 8 and result.evaluations == 5
    assert result.endings.keys() <= {"three_in_a_row", "board_full"}
    assert other.opponent == "small iteration 0"


def test_a_run_of_another_game_is_not_an_opponent(run, other_game, capsys):
    for own, opponent, words in (
        (run, other_game, "is a run of the game 'tictactoe': expected a run of 'chess'"),
        (other_game, run, "is a run of the game 'chess': expected a run of 'tictactoe'"),
        (other_game, "minimax", "unknown opponent 'minimax': expected random, RUN or RUN@SNAPSHOT"),
    ):
        with pytest.raises(ConfigError, match=words):
            evaluate_run(own, [opponent], 2, POLICY, device="cpu")
    assert main(["uci", other_game]) == 2
    assert "of the game 'tictactoe': expected a run of 'chess'" in capsys.readouterr().err


def test_a_snapshot_of_another_game_than_its_runs_is_refused(run, other_game, tmp_path):
    mixed = make_run(tmp_path / "mixed", (0,))
    (tmp_path / "mixed" / "config.json").write_bytes(
        (Path(other_game) / "config.json").read_bytes()
    )
    with pytest.raises(CheckpointError, match="is of the game 'chess', expected 'tictactoe'"):
        load_network(mixed, device="cpu")


@pytest.mark.parametrize("arguments", ["evaluate RUN --opponent engine:stockfish", "tactics RUN"])
def test_what_a_game_lacks_is_one_sentence(other_game, arguments, capsys):
    assert main(arguments.replace("RUN", other_game).split()) == 2
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("chessnn_colab: the game 'tictactoe' has no ")
        and captured.err.count("\n") == 1
        and "tictactoe" not in captured.err.split("expected")[1]
    )


def test_match_games_of_any_game_for_two_are_saved(other_game, tmp_path, capsys):
    assert main(["evaluate", other_game, "--games", "2", "--save", str(tmp_path)]) == 0
    (saved,) = tmp_path.glob("*.txt")
    first, second = saved.read_text(encoding="utf-8").strip().split("\n\n")
    assert "X: iteration" in first and "O: iteration" in second


def test_a_run_of_a_game_that_is_not_here_is_one_sentence(tmp_path, capsys):
    assert main(["evaluate", make_run(tmp_path / "run", (0,), "go")]) == 2
    assert "unknown game 'go': expected one of chess" in capsys.readouterr().err
