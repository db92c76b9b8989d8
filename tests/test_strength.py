"""Strength while a run trains: what is measured, when, for how long, and that it changes nothing
else.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from chessnn_colab import strength
from chessnn_colab.arena.players import RandomPlayer
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.budget import Budget
from chessnn_colab.network import build_network
from chessnn_colab.report import Progress, Report, Strength, strength_points
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.training import train

from .small_run import CONFIG, opinionated, tiny
from .test_training import assert_same, weights


class Clock:
    """Replaces the module `time` of budget and strength; a measurement takes what it says."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in ("budget", "strength"):
            monkeypatch.setattr(
                f"chessnn_colab.{module}.time", SimpleNamespace(monotonic=lambda: self.now)
            )


class Listener(Progress):
    def __init__(self):
        self.told = []
        self.shares = []

    def measuring_update(self, what, share):
        self.told.append(what)
        self.shares.append(share)

    def measured(self, points):
        self.told += points


def probe_of(monkeypatch, seconds: float | None, costs: dict[str, float], game: str = "chess"):
    """A probe whose measures make four moves, take `costs` seconds by the clock and find half of
    everything.
    """
    clock = Clock(monkeypatch)
    budget = Budget(None if seconds is None else seconds / 60, 9 if seconds is None else None)
    probe = strength.StrengthProbe(True, game, "cpu", budget, Listener())
    monkeypatch.setattr(strength, "_Timed", lambda *_: SimpleNamespace())
    for measure in probe.measures:

        def run(player, name=measure.name):
            for _ in range(4):
                clock.now += costs[name] / 4
                player.on_move()
            return 0.5, 0.4, 0.6

        measure.run = run
    return probe, budget, clock


def test_the_first_network_meets_somebody_and_who_is_beaten_makes_room(monkeypatch):
    costs = {POLICY: 0.15, SEARCH: 0.8, RANDOM: 1.0}
    probe, _, clock = probe_of(monkeypatch, 300.0, costs)
    told = []
    probe.progress.message = told.append
    assert RANDOM in {point.measure for point in probe.begin(None, [])}
    (random,) = (measure for measure in probe.measures if measure.name == RANDOM)
    for measure in (random, random.harder, random.harder.harder):
        measure.run = lambda player: (1.0, 0.6, 1.0)
    clock.now = 20.0
    first = probe.measure(None, 1, 20.0, False)
    assert RANDOM in {point.measure for point in first}, "after one iteration, on credit"
    assert told == ["games against random: 8 of 8 points after 20s of training"]
    clock.now = 200.0
    points = [*first, *probe.measure(None, 2, 200.0, False)]
    assert GREEDY in {point.measure for point in points} and len(told) == 2
    again, _, _ = probe_of(monkeypatch, 300.0, {})
    again.begin(None, [SimpleNamespace(strength=points)])
    assert again.measures[-1].name == MINIMAX, "a resumed run meets nobody whom it has beaten"
    assert probe.measures[-1].name == MINIMAX
    assert MINIMAX in {point.measure for point in probe.measure(None, 3, 290.0, True)}
    assert probe.measures[-1].name == MINIMAX, "nobody is stronger"


POLICY, SEARCH, RANDOM, GREEDY, MINIMAX = (
    "puzzles, by policy",
    "puzzles, looking at 12 positions",
    "games against random",
    "games against greedy",
    "games against minimax",
)


def session(probe, budget, clock, each: float) -> list[Strength]:
    """Every point of a session whose iterations take `each` seconds."""
    points, iteration = list(probe.begin(None, [])), 0
    while clock.now < budget.seconds - budget.reserved:
        clock.now = min(clock.now + each, budget.seconds - budget.reserved)
        iteration += 1
        last = clock.now >= budget.seconds - budget.reserved
        points += probe.measure(None, iteration, clock.now, last)
    return points


@pytest.mark.parametrize("seconds, each", [(60, 8), (180, 10), (1200, 25), (7200, 60)])
def test_measuring_takes_a_twentieth_of_the_time_at_most_and_ends_with_the_last_network(
    monkeypatch, seconds, each
):
    costs = {POLICY: 0.15, SEARCH: 0.8, RANDOM: 1.0}
    probe, budget, clock = probe_of(monkeypatch, seconds, costs)
    points = session(probe, budget, clock, each)
    assert sum(point.cost for point in points) <= 0.05 * seconds
    assert clock.now <= seconds + 0.5
    for measure in {point.measure for point in points}:
        iterations = [point.iteration for point in points if point.measure == measure]
        assert iterations[0] == 0 and iterations[-1] == max(point.iteration for point in points)
    assert (
        4 <= len([point for point in points if point.measure == POLICY]) <= 2 + strength.MOST_POINTS
    )
    assert (RANDOM in {point.measure for point in points}) == (seconds >= 180)


def test_what_a_session_cannot_pay_for_twice_is_left_out(monkeypatch):
    probe, budget, clock = probe_of(monkeypatch, 60.0, {POLICY: 0.3, SEARCH: 4.0, RANDOM: 9.0})
    assert {point.measure for point in session(probe, budget, clock, 10)} == {POLICY}


def test_sessions_without_time_for_it_measure_nothing():
    for seconds, wanted in ((10.0, True), (600.0, False), (None, None)):
        budget = Budget(None if seconds is None else seconds / 60, 3 if seconds is None else None)
        probe = strength.StrengthProbe(wanted, "chess", "cpu", budget, Progress())
        assert (
            probe.begin(None, []) == () == probe.measure(None, 1, 9.0, True)
            and budget.reserved == 0
        )


def test_a_resumed_session_knows_the_cost_and_leaves_the_untrained_network_alone(monkeypatch):
    probe, _, clock = probe_of(monkeypatch, 60.0, {POLICY: 0.3, SEARCH: 0.6, RANDOM: 0.9})
    history = [SimpleNamespace(strength=(Strength(POLICY, 0, 0.0, 0.1, 0.0, 0.2, 300, 0.3),))]
    assert probe.begin(None, history) == ()
    clock.now = 55.0
    assert [point.iteration for point in probe.measure(None, 8, 90.0, True)] == [8, 8, 8]
    probe, _, _ = probe_of(monkeypatch, 60.0, {POLICY: 0.3, SEARCH: 0.6, RANDOM: 0.9})
    assert probe.begin(None, [], updates=2) == (), "it has learned from its first games"
    assert len(probe.measures) == 3, "they are measured later"


def test_a_measurement_says_how_far_it_is_and_ends_when_its_time_is_up(monkeypatch):
    costs = {POLICY: 0.4, SEARCH: 0.6, RANDOM: 0.6}
    probe, _, clock = probe_of(monkeypatch, 600.0, costs)
    probe.begin(None, [])
    shares = probe.progress.shares
    assert shares == [0.0] * 15, "the first duration is not known before"
    clock.now = 300.0
    assert len(probe.measure(None, 1, 300.0, False)) == 3
    assert shares[15:] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0] * 3)
    costs[POLICY] = 100.0
    clock.now = 590.0
    assert [point.measure for point in probe.measure(None, 2, 590.0, True)] == [SEARCH, RANDOM]


def test_a_match_is_given_up_in_the_middle_of_a_game(monkeypatch):
    monkeypatch.setattr(strength, "TIME_SHARE", 1e-9)
    monkeypatch.setattr(strength, "FIRST_SECONDS", 0.0)
    budget = Budget(1.0, None)
    probe = strength.StrengthProbe(True, "tictactoe", "cpu", budget, Progress())
    game = match_game("tictactoe")
    network = build_network(tiny("unused", game="tictactoe").network_config(game), "cpu", 0)
    assert len(probe.measures) == 1
    assert probe.begin(network, []) == () and not probe.measures


def test_a_match_counts_the_networks_points_and_its_interrupt_ends_the_run(monkeypatch):
    game = match_game("tictactoe")
    network, other = RandomPlayer(game), RandomPlayer(game)
    measure = strength.games_against("other", lambda _: other, game, strength.BY_POLICY, None)
    played = []

    def won(*match):
        played.append(match)
        return SimpleNamespace(interrupted=len(played) > 1, score=0.75, interval=(0.5, 0.9))

    monkeypatch.setattr(strength, "play_match", won)
    assert measure.run(network) == (0.75, 0.5, 0.9)
    assert played == [(game, network, other, strength.MATCH_GAMES)]
    with pytest.raises(KeyboardInterrupt):
        measure.run(network)


@pytest.mark.parametrize("game, evaluations", [("chess", [1, 13, 13]), ("tictactoe", [1])])
def test_each_measure_looks_ahead_as_far_as_its_name_says(game, evaluations):
    measures = strength.measures_of(match_game(game), arena_game(game))
    assert [measure.search.evaluations for measure in measures] == evaluations


@pytest.mark.parametrize("activation", ["spikes", "relu"])
def test_spikes_of_the_one_position_begin_with_the_last_rank(monkeypatch, activation):
    game = match_game("chess")
    network = opinionated(replace(CONFIG, activation=activation))
    look = strength.opinions_of

    def fired_by_rank(network, game, state):
        opinions, rates = look(network, game, state)
        return opinions, torch.arange(8.0).view(8, 1).expand_as(rates)

    monkeypatch.setattr(strength, "opinions_of", fired_by_rank)
    ((iteration, *_, spikes),) = strength.opinion_of_position(network, game, 7)
    assert iteration == 7
    if activation == "relu":
        assert spikes is None
    else:
        by_rank = [1000 * rank // network.config.levels for rank in reversed(range(8))]
        assert spikes == [spikes for spikes in by_rank for _ in range(8)]


def test_a_run_learns_the_same_with_and_without_it_and_keeps_its_points(tmp_path, monkeypatch):
    monkeypatch.setattr(strength, "TIME_SHARE", 100.0)  # however busy this machine is
    monkeypatch.setattr(strength, "RUNG_GAMES", 2)
    monkeypatch.setattr(strength, "RUNG_PLIES", 8)
    listener = Listener()
    plain = tiny(tmp_path / "plain")
    measuring = tiny(tmp_path / "measured", measure_strength=True)
    assert strength_points(list(train(plain))) == []
    measured = list(train(measuring, listener))
    assert_same(weights(plain.run), weights(measuring.run))
    points = strength_points(measured)
    assert listener.told[0] == "300 puzzles, by policy"
    assert [told for told in listener.told if isinstance(told, Strength)] == points
    folder = RunFolder.open(measuring.run)
    kept = [repr(Report.from_dict(values)) for values in folder.read_reports()]
    assert kept == [*map(repr, measured)]  # NaN is not equal to itself
    list(train(measuring))
    kept = strength_points([Report.from_dict(values) for values in folder.read_reports()])
    assert kept[: len(points)] == points
    assert [point.measure for point in kept if point.iteration == 0] == [POLICY, SEARCH, RANDOM]
    assert {point.iteration for point in kept} == {0, 1, 2, 3, 4}


def test_a_report_says_how_far_the_policy_is_from_its_targets(tmp_path):
    (report,) = train(tiny(tmp_path / "a", iterations=1))
    assert 0 < report.policy_kl < report.policy_loss
