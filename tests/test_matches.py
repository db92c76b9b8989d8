"""Several matches in one batch: each game is what it would be alone, a limit on time is fair,
nothing is lost.
"""

import random

import pytest
import torch

from chessnn_colab.arena import runner
from chessnn_colab.arena.chess.greedy import GreedyPlayer
from chessnn_colab.arena.chess.minimax import MinimaxPlayer
from chessnn_colab.arena.match import Match, Openings, all_games
from chessnn_colab.arena.parallel import play_match, play_matches
from chessnn_colab.arena.players import (
    GamesChance,
    NetworkPlayer,
    RandomPlayer,
    one_of_the_best,
    play_search,
)
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.tictactoe import TicTacToe

from .small_run import opinionated

SEARCHES = {
    "tree": play_search("tree", num_simulations=6),
    "two-rung": play_search("two-rung", 6, 3),
    "policy": play_search("policy"),
}


def played(result) -> list:
    return [
        (game.opening, game.player_is_first, game.actions, game.points, game.ending)
        for game in result.played
    ]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_game_does_not_depend_on_what_shares_its_batch(search, monkeypatch):
    """Alone, with other matches, and with little room, in which finished games make way for the
    next.
    """
    game = Chess(16)
    early, late = (
        NetworkPlayer(game, opinionated(seed=seed), SEARCHES[search], f"network {seed}")
        for seed in (0, 1)
    )
    fixed = [RandomPlayer(game), GreedyPlayer(game), MinimaxPlayer(game)]
    matches = [Match(network, other, 2) for network in (early, late) for other in fixed] + [
        Match(late, early, 4)
    ]
    together = play_matches(game, matches, seed=3)
    monkeypatch.setattr(runner, "BOARDS", 5)
    crowded = play_matches(game, matches, seed=3)
    assert [played(result) for result in together] == [played(result) for result in crowded]
    for match, result in zip(matches, together):
        assert played(
            play_match(game, match.player, match.opponent, match.games, seed=3)
        ) == played(result)
    longer = play_match(game, early, fixed[0], 6, seed=3)
    assert played(longer)[:2] == played(together[0])
    assert len({game.actions for result in together for game in result.played}) == 16


def chance_of(games: list[random.Random]) -> GamesChance:
    chance = GamesChance()
    chance.games = games
    return chance


@pytest.mark.parametrize(
    "chance",
    [
        torch.Generator().manual_seed(0),
        chance_of([random.Random(number) for number in range(6000)]),
    ],
)
def test_one_of_the_best_is_uniform_over_the_best_and_takes_nothing_else(chance):
    scores = torch.tensor([[0.0, 2.0, 1.0, 2.0, 2.0]]).expand(6000, 5)
    counts = torch.bincount(one_of_the_best(scores, chance), minlength=5)
    assert counts[[0, 2]].sum() == 0 and counts[[1, 3, 4]].min() > 1850


def test_the_largest_chance_takes_the_last_of_the_best():
    """A float32 rounds 0.99999999 up to 1."""

    class Largest(random.Random):
        def random(self):
            return 1 - 2**-53

    assert one_of_the_best(torch.tensor([[1.0, 1.0, 0.0]]), chance_of([Largest()])).tolist() == [1]


class Named(RandomPlayer):
    """Random, with a name."""

    def __init__(self, game, name):
        super().__init__(game)
        self.name = name


def test_networks_move_after_their_opponents_and_get_every_game():
    """So a round of two matches is one call of the network with all its games, not two with half of
    them.
    """
    game = TicTacToe()
    sizes = []

    class Network(RandomPlayer):
        name, evaluations = "network", 4

        def choose(self, state, generator, boards=()):
            sizes.append(len(state.current_player))
            generator = torch.Generator().manual_seed(0)
            return super().choose(state, generator, boards)

    play_match(game, Network(game), RandomPlayer(game), 20)
    assert sizes[0] == 24 and all(size % 8 == 0 for size in sizes) and len(sizes) <= 5


# A limit on time


def run_schedule(lengths: list[int], boards: int, seconds: float, monkeypatch) -> list[int]:
    """The games of one match that start: game n lasts lengths[n] <= 30 rounds, and a round takes
    0.01 s a game.
    """
    now, playing, started = [0.0], {}, []
    monkeypatch.setattr("chessnn_colab.arena.match.time.monotonic", lambda: now[0])
    game = TicTacToe()
    match = Match(RandomPlayer(game), RandomPlayer(game), len(lengths))
    openings = Openings([match], all_games([match]), boards, seconds)

    def seconds_for(games):
        return 0.01 * (sum(30 - steps for steps in playing.values()) + 30 * len(games))

    while playing or openings.waiting:
        for _, number in openings.next(len(playing), seconds_for):
            started.append(number)
            playing[number] = 0
        now[0] += 0.01 * len(playing)
        playing = {number: n + 1 for number, n in playing.items() if n + 1 < lengths[number]}
    assert now[0] <= seconds
    return started


def test_a_limit_on_time_does_not_prefer_short_games(monkeypatch):
    """Half of the pairs last 2 rounds, half 30: of all the games that count in many matches, half
    are long.

    The games that have ended by then, had all started at once, would be short ones nearly without
    exception. What is left is that of any rule that goes on for a time and not for a number: a
    match that begins with short games has more of them, so the mean over matches leans a little to
    long games (0.04 here, with 12 pairs; 0.01 with 50).
    """
    rng = random.Random(0)
    long, counts, shares = 0, [], []
    for _ in range(400):
        lengths = [length for _ in range(100) for length in [rng.choice((2, 30))] * 2]
        started = run_schedule(lengths, 64, 4.0, monkeypatch)
        assert started == list(range(len(started))) and len(started) % 2 == 0, (
            "whole openings, in order"
        )
        counts.append(len(started))
        shares.append(sum(lengths[number] == 30 for number in started) / len(started))
        long += sum(lengths[number] == 30 for number in started)
    assert min(counts) >= 10 and sum(counts) / len(counts) > 20
    assert long / sum(counts) == pytest.approx(0.5, abs=0.02)
    assert sum(shares) / len(shares) == pytest.approx(0.52, abs=0.05)


@pytest.fixture
def slow(monkeypatch):
    """A clock on which every call of a player takes a tenth of a second, and a game of tic-tac-toe
    about one.
    """
    now = [0.0]

    def choose(self, state, generator, boards=()):
        now[0] += 0.02 * len(state.current_player)
        return RandomPlayer(self.game).choose(state, generator, boards)

    monkeypatch.setattr("chessnn_colab.arena.match.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("chessnn_colab.arena.match.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Named, "choose", choose)
    return now


def test_all_matches_stop_at_the_same_opening_and_say_what_more_would_bring(slow):
    game = TicTacToe()
    player, one, other = (Named(game, name) for name in ("player", "one", "other"))
    totals = []
    results = play_matches(
        game,
        [Match(player, one, 200), Match(player, other, 200)],
        watch=lambda progress: totals.append(progress.total),
        seconds=5.0,
    )
    assert (
        slow[0] < 5.0 and totals[0] == 400 and totals[-1] == sum(result.games for result in results)
    )
    assert results[0].games == results[1].games and 4 <= results[0].games < 40
    assert [game.player_is_first for game in results[0].played] == [True, False] * (
        results[0].games // 2
    )
    assert f"there was time for {results[0].games} of 200 games" in str(results[0])
    assert results[0].to_dict()["games_asked"] == 200 and not results[0].interrupted


def test_without_time_for_anything_each_process_plays_its_first_opening():
    game = TicTacToe()
    match = Match(RandomPlayer(game), RandomPlayer(game), 20)
    for processes in (1, 2):
        (result,) = play_matches(game, [match], seconds=1e-9, processes=processes)
        assert result.games == 2 * processes


def test_more_processes_than_openings_are_of_no_harm():
    game = TicTacToe()
    (result,) = play_matches(game, [Match(RandomPlayer(game), RandomPlayer(game), 4)], processes=4)
    assert result.games == 4


# Interrupts and progress


class Impatient(RandomPlayer):
    """Presses Ctrl-C in its tenth move."""

    moves = 0

    def choose(self, state, generator, boards=()):
        self.moves += 1
        if self.moves == 10:
            raise KeyboardInterrupt
        return super().choose(state, generator, boards)


def test_an_interrupt_keeps_the_games_that_ended(monkeypatch):
    monkeypatch.setattr(runner, "BOARDS", 8)
    game = TicTacToe()
    results = play_matches(game, [Match(Impatient(game), RandomPlayer(game), 60)])
    assert 0 < results[0].games < 60 and results[0].interrupted and results[0].asked == 60
    assert results[0].wins + results[0].draws + results[0].losses == results[0].games
    assert f"ended early: {results[0].games} of 60 games had ended; short games end first" in str(
        results[0]
    )
    whole = play_match(game, RandomPlayer(game), RandomPlayer(game), 60)
    assert set(results[0].played) < set(whole.played)


def test_an_interrupt_before_any_game_has_ended_is_a_result_too():
    game = Chess()
    player = Impatient(game)
    player.moves = 8
    (result,) = play_matches(game, [Match(player, RandomPlayer(game), 4)])
    assert result.games == 0 and str(result) == "random against random: no game had ended"
    values = result.to_dict()
    assert (
        values["score"] is None
        and values["elo"] is None
        and values["interval"] == [0, 1]
        and values["interrupted"]
    )


def test_progress_counts_up_to_the_end_and_estimates_what_is_left(monkeypatch):
    monkeypatch.setattr(runner, "BOARDS", 6)
    game, seen = TicTacToe(), []
    player, one, other = (Named(game, name) for name in "abc")
    matches = [Match(player, one, 10), Match(player, other, 30)]
    results = play_matches(game, matches, watch=seen.append)
    done = [progress.done for progress in seen]
    assert done == sorted(done) and done[-1] == seen[-1].total == 40
    assert seen[1].seconds_left > 0 and seen[-1].seconds_left == 0
    assert [bar.name for bar in seen[-1].bars] == ["a against b", "a against c"]
    notes = [f"+{result.wins} ={result.draws} -{result.losses}" for result in results]
    assert [bar.note for bar in seen[-1].bars] == notes
