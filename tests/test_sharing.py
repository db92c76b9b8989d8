"""Matches that several processes share: the same games as in one, whatever happens to a process."""

import gc
import math
import multiprocessing
import os
import pickle
import random
import signal
import threading
import time
from contextlib import suppress

import pytest
import torch

from chessnn_colab.arena import parallel
from chessnn_colab.arena.chess.minimax import MinimaxPlayer
from chessnn_colab.arena.engine_processes import ProcessPlayer
from chessnn_colab.arena.match import Match
from chessnn_colab.arena.parallel import (
    MatchJob,
    ParallelMatches,
    job_settings,
    play_matches,
    processes_for,
)
from chessnn_colab.arena.players import NO_MOVE, NetworkPlayer, RandomPlayer, play_search
from chessnn_colab.arena.registry import ARENA_GAMES, arena_game, match_game
from chessnn_colab.arena.runner import MatchRunner
from chessnn_colab.devices import Inventory, WorkerPlan
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.tictactoe import TicTacToe
from chessnn_colab.workers.pool import Pool

from .counts import full
from .small_run import opinionated
from .test_matches import SEARCHES, played


class Resigning(RandomPlayer):
    """Gives a game up whenever it likes none of the moves."""

    name = "resigning"

    def choose(self, state, generator, boards=()):
        actions = super().choose(state, generator)
        gives_up = actions % 7 == 0
        self.reasons = [f"does not like {action}" for action in actions[gives_up].tolist()]
        return torch.where(gives_up, NO_MOVE, actions)


class Mortal(RandomPlayer):
    """The first of its kind in another process dies at its fourth step, when some games have
    ended.
    """

    moves = 0

    def __init__(self, game, mark):
        super().__init__(game)
        self.mark = mark

    def recipe(self):
        return Mortal, {"mark": self.mark}

    def choose(self, state, generator, boards=()):
        self.moves += 1
        if (
            self.moves == 4
            and multiprocessing.parent_process() is not None
            and not self.mark.exists()
        ):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().choose(state, generator)


class Faulty(RandomPlayer):
    """In another process it fails at its fourth step, when some games have ended."""

    moves = 0

    def choose(self, state, generator, boards=()):
        self.moves += 1
        if self.moves == 4 and multiprocessing.parent_process() is not None:
            raise ValueError("lost its way")
        return super().choose(state, generator)


class Homebound(RandomPlayer):
    """Exists in the first process only."""

    def __init__(self, game):
        super().__init__(game)
        if multiprocessing.parent_process() is not None:
            raise ValueError("not here")


class Slow(RandomPlayer):
    """Thinks for a while."""

    def choose(self, state, generator, boards=()):
        time.sleep(0.4)
        return super().choose(state, generator)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bar_moves_with_every_ply(processes):
    game = Chess(12)
    seen = []
    play_matches(
        game, [Match(Slow(game), RandomPlayer(game), 4)], watch=seen.append, processes=processes
    )
    shares = [progress.bars[0].share for progress in seen]
    assert shares == sorted(shares) and shares[-1] == 1
    assert len({progress.bars[0].share for progress in seen if not progress.done}) > 2


def test_two_processes_play_the_games_of_one():
    game = Chess(8)
    early, late = (
        NetworkPlayer(game, opinionated(seed=seed), SEARCHES["tree"], f"network {seed}")
        for seed in (0, 1)
    )
    matches = [
        Match(early, MinimaxPlayer(game), 4),
        Match(late, early, 8),
        Match(late, Resigning(game), 8),
    ]
    seen = []
    shared = play_matches(game, matches, 3, watch=seen.append, processes=2)
    alone = play_matches(game, matches, 3)
    assert [played(result) for result in shared] == [played(result) for result in alone]
    assert shared[2].forfeits and set(shared[2].forfeits) == set(alone[2].forfeits)
    for result, single in zip(shared, alone):
        ours, theirs = result.to_dict(), single.to_dict()
        assert ours.keys() == theirs.keys() and ours["milliseconds_a_move"] > 0
        assert all(
            ours[name] == theirs[name]
            for name in ours
            if not name.startswith(("milliseconds", "opponent_mill"))
        )
    assert (seen[0].done, seen[0].total, seen[0].seconds_left) == (0, 20, None)
    assert (seen[-1].done, seen[-1].total) == (20, 20)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)


def test_a_killed_process_is_replaced_and_no_game_is_lost_or_counted_twice(tmp_path):
    game = TicTacToe()
    matches = [Match(Mortal(game, tmp_path / "died"), RandomPlayer(game), 40)]
    with pytest.warns(
        UserWarning, match=r"was killed by signal 9 .* its 20 games are played again"
    ):
        shared = play_matches(game, matches, 1, processes=2)
    assert [played(result) for result in shared] == [
        played(result) for result in play_matches(game, matches, 1)
    ]


def test_an_interrupt_keeps_the_games_that_ended_and_leaves_no_process():
    game = TicTacToe()

    def interrupt(progress):
        if progress.done > 3:
            raise KeyboardInterrupt

    matches = [Match(RandomPlayer(game), RandomPlayer(game), 400)]
    (result,) = play_matches(game, matches, watch=interrupt, processes=2)
    assert 3 < result.games < 400 and result.interrupted and result.asked == 400
    assert not multiprocessing.active_children()


def test_processes_that_fail_leave_the_games_to_this_one():
    game = TicTacToe()
    matches = [Match(Homebound(game), RandomPlayer(game), 6)]
    with pytest.warns(UserWarning, match="not here\n+One process plays all games instead"):
        shared = play_matches(game, matches, processes=2)
    assert [played(result) for result in shared] == [
        played(result) for result in play_matches(game, matches)
    ]


def test_a_late_failure_loses_no_game_that_had_ended():
    game = TicTacToe()
    match = Match(Faulty(game), RandomPlayer(game), 40)
    with pytest.warns(UserWarning, match="lost its way\n+.*The games that had ended count"):
        (shared,) = play_matches(game, [match], 1, processes=2)
    (alone,) = play_matches(game, [match], 1)
    assert shared.interrupted and 0 < shared.games < 40
    assert set(shared.played) < set(alone.played)


def test_processes_come_where_they_pay(monkeypatch):
    monkeypatch.setattr(parallel, "inventory", lambda: Inventory((), False, 4))
    game, cpu = Chess(4), torch.device("cpu")
    network = NetworkPlayer(game, opinionated(), play_search("tree", num_simulations=47))
    fixed, program = RandomPlayer(game), ProcessPlayer.__new__(ProcessPlayer)

    def found(*games, other=fixed, seconds=math.inf, device=cpu):
        return processes_for([Match(network, other, count) for count in games], seconds, device)

    assert [found(games) for games in (2, 198, 200, 300, 400, 4000)] == [1, 1, 2, 3, 4, 4]
    assert found(100, other=network) == 2
    assert found(*[4] * 100) == 2, "there are two openings"
    assert found(4000, seconds=5.0) == 1 and found(4000, device=torch.device("mps")) == 1
    assert found(4000, other=program) == 1
    with pytest.raises(ConfigError, match="processes=0: expected a whole number from 1 to"):
        play_matches(game, [Match(fixed, fixed, 2)], processes=0)


@pytest.mark.parametrize("name", [*ARENA_GAMES, "gomoku:9:exact"])
def test_every_player_crosses_over_to_a_process_without_a_tensor(name):
    game, generator = match_game(name), torch.Generator()
    players = [make(game) for make in arena_game(name).players.values()]
    if name == "chess":
        players.append(NetworkPlayer(game, opinionated(), SEARCHES["two-rung"], "ours"))
    for player in players:
        recipe = pickle.dumps(player.recipe())
        assert b"torch._utils" not in recipe and b"storage" not in recipe
        factory, settings = pickle.loads(recipe)
        other = factory(game, **settings)
        assert (
            type(other) is type(player)
            and other.name == player.name
            and other.evaluations == player.evaluations
        )
        state = game.init(4)
        assert player.choose(state, generator.manual_seed(1)).equal(
            other.choose(state, generator.manual_seed(1))
        )


class Interrupt(BaseException):
    """Arrives as a KeyboardInterrupt does, and would end this test alone."""


class Repeating:
    """A WorkerProcess in a thread: it sends the same messages for ever."""

    heard_at = math.inf

    def __init__(self, inbox, index, messages):
        self.inbox, self.index, self.messages = inbox, index, messages
        self.ended = False
        self.say(("ready", "cpu"))
        threading.Thread(target=self.repeat, daemon=True).start()

    def say(self, message):
        self.inbox.put((self.index, self, pickle.dumps(message)))

    def repeat(self):
        while not self.ended:
            if self.inbox.qsize() < 8:
                for message in self.messages:
                    self.say(message)
            time.sleep(0.001)

    def send(self, payload):
        """It does as it likes."""

    def wait(self, seconds):
        return True

    def reap(self):
        self.ended = True


class RepeatingPool(Pool):
    def __init__(self, messages):
        self.messages = messages
        super().__init__(MatchJob, {}, WorkerPlan(("cpu",), 1))

    def _new_process(self, slot, blueprint):
        return Repeating(self._inbox, slot.index, self.messages)


class Alarm:
    """A clock that interrupts what runs, once each time that it is set; 0 takes that back."""

    rang = 0

    def set(self, seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def ring(self, *_):
        self.rang += 1
        raise Interrupt


@pytest.fixture
def alarm():
    """Without the collection of garbage, whose callbacks swallow what is raised in them: here it is
    the garbage of other tests.
    """
    made = Alarm()
    gc.collect()
    gc.disable()
    before = signal.signal(signal.SIGALRM, made.ring)
    yield made
    made.set(0)
    signal.signal(signal.SIGALRM, before)
    gc.enable()


@pytest.mark.timeout(method="thread")  # the other method has the same clock
def test_no_interrupt_is_lost_and_none_stops_the_messages(alarm):
    """At any moment while a match takes in what its processes send. numpy's str() lost one in two
    hundred, and one in a thousand left the lock of a Queue locked.
    """
    game = TicTacToe()
    runner = MatchRunner(game, [Match(RandomPlayer(game), Resigning(game), 40)], 0, math.inf)
    shared = ParallelMatches(runner, 1)
    messages, taken = [], 0

    def record(games, plies, arrays):
        messages.extend([("games", 1, arrays), ("progress", 1, games, plies)])
        return True

    def take_in(share, games, plies):
        nonlocal taken
        taken += 1
        shared._take_in(share, pool.call.received[share][-1:])
        shared.progress()

    MatchJob("cpu", **job_settings(runner)).play(shared.shares[0], 0, record)
    moments = random.Random(0)
    with RepeatingPool(messages) as pool:
        slot = pool._slots[0]
        slot.share, slot.ticket = 0, 1
        pool.call.received, pool.call.on_update = [[]], take_in
        for count in range(full(1000, 20_000)):
            with suppress(Interrupt):
                alarm.set(moments.uniform(1e-5, 4e-3))
                while alarm.rang == count:
                    pool.wait()
                pytest.fail(f"interrupt {count} was lost")
        before = taken
        alarm.set(60)  # rather than wait for ever
        while taken == before:
            pool.wait()
        alarm.set(0)
