"""2048's players and games in which each plays on its own."""

import json
import math
import statistics

import pytest
import torch

from chessnn_colab.__main__ import main
from chessnn_colab.arena import match, runner
from chessnn_colab.arena.evaluate import find_player
from chessnn_colab.arena.match import SOLO_STARTS, Match
from chessnn_colab.arena.parallel import play_matches
from chessnn_colab.arena.players import NetworkPlayer, RandomPlayer
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.arena.twenty48 import CORNER_ORDER, SNAKE, SNAKE_BASE, ExpectimaxPlayer
from chessnn_colab.errors import ConfigError
from chessnn_colab.search import SearchConfig
from chessnn_colab.training import train
from chessnn_colab.views import measuring

from .counts import full
from .small_run import tiny
from .test_points import small_network
from .test_twenty48 import board


@pytest.fixture(scope="module")
def game():
    return match_game("2048")


def all_solo_games(game, players, games, **options):
    return play_matches(game, [Match(player, None, games) for player in players], **options)


def solo_games(game, player, games, **options):
    return all_solo_games(game, [player], games, **options)[0]


class FixedOrder(RandomPlayer):
    """The first move of CORNER_ORDER that is legal."""

    name = "fixed order"

    def choose(self, state, generator, boards=()):
        order = torch.tensor(CORNER_ORDER)
        return order[state.legal[:, order].int().argmax(1)]


# Mean scores of 2,000 games and their half intervals, from another program, measured before these
# players were written.
KNOWN = {"random": (1101, 24), "fixed order": (2532, 53), "greedy": (3059, 66)}


@pytest.mark.parametrize("name", KNOWN)
def test_players_score_what_such_players_score(game, name):
    player = FixedOrder(game) if name == "fixed order" else find_player(name, game)
    found, (mean, reach) = solo_games(game, player, full(256, 300), seed=1), KNOWN[name]
    low, high = found.interval
    assert abs(found.score - mean) < 1.5 * math.hypot(reach, (high - low) / 2), str(found)


def test_snake_and_expectimax_are_better_than_greedy(game):
    greedy, snake, expectimax = (
        solo_games(game, find_player(name, game), games, seed=0)
        for name, games in (("greedy", 150), ("snake", 150), ("expectimax", 4))
    )
    assert greedy.score < snake.score < expectimax.interval[1] and expectimax.score > 8_000
    assert (
        expectimax.reached["512"] == 1 and expectimax.reached["512"] >= expectimax.reached["2048"]
    )


@pytest.mark.parametrize("search", ["policy", "tree", "two-rung"])
def test_a_networks_game_is_the_same_whatever_is_played_beside_it(game, search):
    network = small_network(game).eval()
    short = match_game("2048")
    short.max_plies = 12
    config = SearchConfig(search=search, num_simulations=5)
    one, other = (NetworkPlayer(short, network, config, name) for name in ("one", "other"))
    alone = solo_games(short, one, 1).played[0]
    together = all_solo_games(short, [other, one], 9)[1].played[0]
    assert alone.actions == together.actions and len(alone.actions) == 12


def expected_by_hand(game, tiles, depth):
    """Expectimax of one board, cell by cell and move by move."""
    best = 0.0
    for way in range(4):
        after, _, moved = game.slide(tiles, torch.tensor([way]))
        if not moved:
            continue
        if depth == 1:
            tiles_and_cells = zip(after[0, list(SNAKE)].tolist(), range(16))
            worth = sum(2.0**tile / SNAKE_BASE**cell for tile, cell in tiles_and_cells if tile)
        else:
            empty, worth = (after[0] == 0).nonzero().flatten().tolist(), 0.0
            for cell in empty:
                for tile, share in ((1, 0.9), (2, 0.1)):
                    grown = after.clone()
                    grown[0, cell] = tile
                    worth += share / len(empty) * expected_by_hand(game, grown, depth - 1)
        best = max(best, worth)
    return best


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_expectimax_is_the_expectation_of_the_maximum(game, depth):
    state = board(
        game, "2 4 8 16", "4 8 16 32", "8 16 32 64", "2 2 64 ." if depth < 3 else "4 . 64 128"
    )
    player = ExpectimaxPlayer(game)
    player.depth = depth
    found = player.values(state.tiles).amax(1)
    torch.testing.assert_close(
        float(found), expected_by_hand(game, state.tiles, depth), rtol=1e-5, atol=0
    )


def test_figures_are_those_of_the_games(game):
    own = solo_games(game, find_player("greedy", game), 60, seed=3)
    values = json.loads(json.dumps(own.to_dict()))
    assert (values["player"], values["games"]) == ("greedy", len(own.scores)) == ("greedy", 60)
    assert values["mean_score"] == statistics.fmean(own.scores)
    assert values["median"] == statistics.median(own.scores)
    half = 2.001 * statistics.stdev(own.scores) / math.sqrt(60)
    assert values["interval"] == pytest.approx([own.score - half, own.score + half], rel=1e-3)
    assert values["reached"].keys() == {"512", "1024", "2048"}
    assert values["endings"] == {"no_moves": 60} and "greedy: mean score" in str(own)
    assert solo_games(game, find_player("greedy", game), 60, seed=3).scores == own.scores


def test_one_game_has_no_interval(game):
    told = str(solo_games(game, find_player("greedy", game), 1))
    assert " in 1 game\n" in told and "inf" not in told and "95 %" not in told


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("solo") / "run")
    config = tiny(folder, game="2048", iterations=1)
    list(train(config))
    return folder


def test_evaluate_plays_both_on_their_own(run, capsys):
    arguments = ["evaluate", run, *"--games 4 --candidates 4 --survivors 1 --device cpu".split()]
    assert main([*arguments, "--json"]) == 0
    own, others = map(json.loads, capsys.readouterr().out.splitlines())
    assert own["evaluations"] == 6 and others["evaluations"] == 0
    assert own["player"] == "iteration 1" and others["player"] == "random"
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "iteration 1: mean score" in told and "random: mean score" in told


# Progress, time, interrupts


class Clock:
    """In place of `time`: a move of any game takes a hundredth of a second."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic


class Ticking(FixedOrder):
    """Moves the clock on, for each game that it moves in."""

    def __init__(self, game, clock: Clock, name: str = "ticking"):
        super().__init__(game)
        self.clock, self.name = clock, name

    def choose(self, state, generator, boards=()):
        self.clock.now += 0.01 * len(state.score)
        return super().choose(state, generator, boards)


def test_every_player_has_a_bar_and_the_same_games_as_alone(game):
    players, heard = [FixedOrder(game), find_player("greedy", game)], []
    told = all_solo_games(game, players, 20, seed=4, watch=heard.append)
    assert told[1].scores == solo_games(game, players[1], 20, seed=4).scores
    bars = heard[-1].bars
    assert [(bar.name, bar.done, bar.total) for bar in bars] == [
        ("fixed order", 20, 20),
        ("greedy", 20, 20),
    ]
    assert bars[1].note == f"mean {told[1].score:,.0f}" and heard[-1].seconds_left == 0


@pytest.mark.parametrize("seconds", [0.0, 120.0, 240.0])
def test_a_limit_on_time_ends_no_game_and_every_player_plays_as_many(game, monkeypatch, seconds):
    clock, heard = Clock(), []
    monkeypatch.setattr(match, "time", clock)
    monkeypatch.setattr(runner, "time", clock)
    players = [Ticking(game, clock), Ticking(game, clock, "another")]
    told = all_solo_games(game, players, 200, seed=5, watch=heard.append, seconds=seconds)
    (games,) = {len(found.scores) for found in told}
    assert games == SOLO_STARTS if seconds == 0 else 10 < games < 200 and clock.now < seconds
    whole = solo_games(game, FixedOrder(game), 200, seed=5)
    assert told[0].scores == whole.scores[:games], (
        "the first games, all to their ends, the long ones too"
    )
    assert f"there was time for {games} of 200 games" in str(told[0])
    assert heard[-1].done == heard[-1].total == 2 * games
    assert all((progress.seconds_left or 0) <= seconds for progress in heard) or not seconds


def test_an_interrupt_before_a_game_has_ended_is_a_result_too(game):
    def interrupt(progress):
        raise KeyboardInterrupt

    found = solo_games(game, FixedOrder(game), 60, watch=interrupt)
    assert str(found) == "fixed order: no game had ended" and found.interrupted
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["mean_score"] is None and values["games"] == 0


def test_measure_plays_what_there_is_time_for_and_shows_progress(run, capsys):
    search = SearchConfig(search="policy")
    results = measuring.measure(run, ["random"], games=30, search=search, seconds=0.0, device="cpu")
    assert [result.player for result in results] == ["iteration 0", "iteration 1", "random"]
    assert {result.games for result in results} == {SOLO_STARTS}
    out = capsys.readouterr().out
    assert (
        out.startswith("0/90 games")
        and "random: completed 8 games | 3/3 parts done | 24/24 games" in out
    )
    assert "there was time for 8 of 30 games" in out


def test_what_2048_does_not_have_is_said_in_a_sentence(run, capsys):
    assert main(["ladder", run]) == 2
    error = capsys.readouterr().err
    assert "a match of 2 players: expected 1, as the game '2048' has" in error
    assert error.count("\n") == 1


def test_solo_games_are_for_one_player(game):
    with pytest.raises(
        ConfigError, match="a match of 1 player: expected 2, as the game 'chess' has"
    ):
        solo_games(match_game("chess"), RandomPlayer(match_game("chess")), 2)
    with pytest.raises(ConfigError, match="games=0: expected a whole number from 1 to 1,000,000"):
        solo_games(game, RandomPlayer(game), 0)
    with pytest.raises(
        ConfigError, match="unknown opponent 'minimax': expected random, greedy, snake"
    ):
        find_player("minimax", game)
    assert list(arena_game("2048").players) == ["random", "greedy", "snake", "expectimax"]
