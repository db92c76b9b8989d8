"""Matches that several processes share: the same games as in one, whatever happens to a process."""

import multiprocessing
import os
import pickle
import signal

import pytest
import torch

from chessnn_colab.arena import sharing
from chessnn_colab.arena.chess.greedy import GreedyPlayer
from chessnn_colab.arena.chess.minimax import MinimaxPlayer
from chessnn_colab.arena.engine_processes import ProcessPlayer
from chessnn_colab.arena.match import Match, play_matches
from chessnn_colab.arena.players import NO_MOVE, NetworkPlayer, RandomPlayer, play_search
from chessnn_colab.arena.registry import KITS, match_game, match_kit
from chessnn_colab.arena.schedule import Schedule
from chessnn_colab.arena.sharing import processes_for
from chessnn_colab.devices import Inventory
from chessnn_colab.errors import ConfigError, WorkerError
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.tictactoe import TicTacToe

from .test_matches import SEARCHES, make_network, played


class Resigning(RandomPlayer):
    """Gives a game up whenever it likes none of the moves."""

    name = "resigning"

    def choose(self, state, generator, boards=None):
        actions = super().choose(state, generator)
        gives_up = actions % 7 == 0
        self.reasons = [f"does not like {action}" for action in actions[gives_up].tolist()]
        return torch.where(gives_up, NO_MOVE, actions)


class Mortal(RandomPlayer):
    """The first of its kind in another process that has moved 25 times dies, with two games or more behind it."""

    moves = 0

    def __init__(self, game, mark):
        super().__init__(game)
        self.mark = mark

    def choose(self, state, generator, boards=None):
        self.moves += 1
        if self.moves == 25 and multiprocessing.parent_process() is not None and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().choose(state, generator)


class Faulty(RandomPlayer):
    """In another process it fails at its move 25, with two games or more behind it."""

    moves = moves_here = 0

    def choose(self, state, generator, boards=None):
        if multiprocessing.parent_process() is None:
            Faulty.moves_here += len(state.current_player)
        self.moves += 1
        if self.moves == 25 and multiprocessing.parent_process() is not None:
            raise ValueError("lost its way")
        return super().choose(state, generator)


class Homebound(RandomPlayer):
    """Exists in the first process only."""

    def __init__(self, game):
        super().__init__(game)
        if multiprocessing.parent_process() is not None:
            raise ValueError("not here")


def test_two_processes_play_the_games_of_one():
    game = Chess(8)
    early, late = (NetworkPlayer(game, make_network(seed), SEARCHES["tree"], f"network {seed}") for seed in (0, 1))
    matches = [Match(early, MinimaxPlayer(game), 4), Match(late, early, 8), Match(late, Resigning(game), 8)]
    ended, seen = [], []
    shared = play_matches(game, matches, 3, watch=seen.append, on_match=ended.append, boards=8, processes=2)
    alone = play_matches(game, matches, 3)
    assert [played(result) for result in shared] == [played(result) for result in alone]
    assert shared[2].forfeits and set(shared[2].forfeits) == set(alone[2].forfeits)
    for result, single in zip(shared, alone):
        ours, theirs = result.to_dict(), single.to_dict()
        assert ours.keys() == theirs.keys() and ours["milliseconds_a_move"] > 0
        assert all(
            ours[name] == theirs[name] for name in ours if not name.startswith(("milliseconds", "opponent_mill"))
        )
    assert sorted(map(played, ended)) == sorted(map(played, shared)), "each is told once, when it is complete"
    assert (seen[0].done, seen[0].total, seen[0].seconds_left) == (0, 20, None)
    assert (seen[-1].done, seen[-1].total) == (20, 20)
    assert [standing.done for standing in seen] == sorted(standing.done for standing in seen)


def test_a_killed_process_is_replaced_and_no_game_is_lost_or_counted_twice(tmp_path):
    game = Chess(20)
    matches = [Match(Mortal(game, tmp_path / "died"), GreedyPlayer(game), 20)]
    with pytest.warns(UserWarning, match=r"was killed by signal 9 .* its 10 games are played again"):
        shared = play_matches(game, matches, 1, boards=2, processes=2)
    assert [played(result) for result in shared] == [played(result) for result in play_matches(game, matches, 1)]


def test_an_interrupt_keeps_the_games_that_ended_and_leaves_no_process():
    game = Chess(120)

    def interrupt(standing):
        if standing.done > 3:
            raise KeyboardInterrupt

    matches = [Match(RandomPlayer(game), RandomPlayer(game), 400)]
    (result,) = play_matches(game, matches, watch=interrupt, boards=8, processes=2)
    assert 3 < result.games < 400 and result.interrupted and result.asked == 400
    assert not multiprocessing.active_children()


def test_processes_that_fail_leave_the_games_to_this_one():
    game = TicTacToe()
    matches = [Match(Homebound(game), RandomPlayer(game), 6)]
    with pytest.warns(UserWarning, match="not here\n+One process plays all games instead"):
        shared = play_matches(game, matches, processes=2)
    assert [played(result) for result in shared] == [played(result) for result in play_matches(game, matches)]


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_a_late_failure_loses_no_game_that_had_ended(monkeypatch, seconds):
    """Without a limit on time this process plays the rest; with one, the matches end there."""
    monkeypatch.setattr(Faulty, "moves_here", 0)
    game = Chess(20)
    match, told = Match(Faulty(game), GreedyPlayer(game), 20), []
    words = "the others instead" if seconds is None else "The games that had ended count"
    with pytest.warns(UserWarning, match=f"lost its way\n+.*{words}"):
        (shared,) = play_matches(game, [match], 1, watch=told.append, seconds=seconds, boards=2, processes=2)
    before = Faulty.moves_here
    assert shared.interrupted == (seconds is not None) and 0 < shared.games <= 20
    (alone,) = play_matches(game, [match], 1)
    if seconds is None:
        assert played(shared) == played(alone)
        assert 0 < before < Faulty.moves_here - before, "what had ended was not played again"
    else:
        assert before == 0 and shared.games < 20 and set(shared.played) < set(alone.played)


def test_a_process_is_started_with_no_more_than_its_pipe_holds(monkeypatch):
    """Else multiprocessing waits for it for ever, as it did in a script without `if __name__ == "__main__":`."""
    started_with = []

    def no_pool(factory, settings, *others):
        started_with.append(len(pickle.dumps((factory, "cpu", settings))))
        raise WorkerError("no process could be started")

    monkeypatch.setattr(sharing, "LocalPool", no_pool)
    game = Chess(4)
    network = NetworkPlayer(game, make_network(0), SEARCHES["policy"])
    with pytest.warns(UserWarning, match="no process could be started\nOne process plays all games instead"):
        play_matches(game, [Match(network, RandomPlayer(game), 4)], processes=16)
    assert started_with[0] < 4096 < len(pickle.dumps(network))


def test_shares_hold_every_game_once_and_a_limit_on_time_counts_in_each():
    games = [10, 4, 6]
    shares = [Schedule(games, 100, None, (share, 3)) for share in range(3)]
    told = sorted(game for share in shares for game in share.next(0, lambda games: 0.0))
    assert told == [(match, number) for match, count in enumerate(games) for number in range(count)]
    assert [sum(share.games[match] for share in shares) for match in range(3)] == games
    late = Schedule(games, 100, 1e-9, (1, 3))
    assert late.next(0, lambda games: 1.0) == [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2), (2, 3)]
    assert late.next(0, lambda games: 1.0) == [] and late.games == [2, 2, 2] and not late.more


def test_processes_come_where_they_pay(monkeypatch):
    monkeypatch.setattr(sharing, "inventory", lambda: Inventory((), False, 4))
    game, cpu = Chess(4), torch.device("cpu")
    network = NetworkPlayer(game, make_network(0), play_search("tree", num_simulations=47))
    fixed, program = RandomPlayer(game), ProcessPlayer("program", "", None, 1)

    def found(*games, other=fixed, seconds=None, device=cpu):
        return processes_for([Match(network, other, count) for count in games], seconds, device)

    assert [found(games) for games in (2, 198, 200, 300, 400, 4000)] == [1, 1, 2, 3, 4, 4]
    assert found(100, 100) == 2 and found(100, other=network) == 2
    assert found(*[4] * 100) == 2, "there are two openings"
    assert processes_for([Match(fixed, fixed, 4000)], None, cpu) == 1
    assert found(4000, seconds=5.0) == 1 and found(4000, seconds=60.0) == 4
    assert found(4000, device=torch.device("cuda")) == found(4000, device=torch.device("mps")) == 1
    assert found(4000, other=program) == 1
    program.close()
    with pytest.raises(ConfigError, match="processes=0: expected a whole number from 1 up"):
        play_matches(game, [Match(fixed, fixed, 2)], processes=0)


@pytest.mark.parametrize("name", [*KITS, "gomoku:9:exact"])
def test_every_player_crosses_over_to_a_process_without_a_tensor(name):
    game, generator = match_game(name), torch.Generator()
    players = [make(game) for make in match_kit(name).players.values()]
    if name == "chess":
        players.append(NetworkPlayer(game, make_network(0), SEARCHES["two-rung"], "ours"))
    for player in players:
        payload = pickle.dumps(player)
        assert b"torch._utils" not in payload and b"storage" not in payload
        other = pickle.loads(payload)
        assert type(other) is type(player) and other.name == player.name and other.evaluations == player.evaluations
        state = game.init(4)
        assert player.choose(state, generator.manual_seed(1)).equal(other.choose(state, generator.manual_seed(1)))
