"""Ratings: true ones are found again, and errors mean what they say."""

import numpy as np
import pytest

from chessnn_colab.arena.ratings import rate
from chessnn_colab.arena.result import elo_difference

TRUE = {"random": 0.0, "untrained": 60.0, "greedy": 150.0, "trained": 420.0, "minimax": 500.0}


def pairing(player: str, opponent: str, wins: int, draws: int, losses: int) -> tuple:
    return player, opponent, [1.0] * wins + [0.5] * draws + [0.0] * losses


def simulate(rng: np.random.Generator, games: int, drawish: float) -> list[tuple]:
    """Everybody against everybody; expected scores are Elo's, `drawish` of what can be drawn is."""
    pairings, names = [], list(TRUE)
    for number, player in enumerate(names):
        for opponent in names[:number]:
            score = 1 / (1 + 10 ** ((TRUE[opponent] - TRUE[player]) / 400))
            draw = drawish * 2 * min(score, 1 - score)
            counts = rng.multinomial(games, [score - draw / 2, draw, 1 - score - draw / 2])
            pairings.append(pairing(player, opponent, *map(int, counts)))
    return pairings


@pytest.mark.parametrize("drawish", [0.0, 0.4, 0.85])
def test_true_ratings_are_found_and_intervals_cover_them(drawish):
    rng = np.random.default_rng(7)
    off, covered, apart = [], [], []
    for _ in range(150):
        ratings = rate(simulate(rng, 60, drawish), "random")
        for name in list(TRUE)[1:]:
            off.append(ratings.rating(name) - TRUE[name])
            covered.append(abs(off[-1]) <= ratings.error(name))
        gain, error = ratings.difference("trained", "untrained")
        apart.append(abs(gain - 360) <= error)
    assert 0.92 <= np.mean(covered) <= 0.975 and 0.90 <= np.mean(apart) <= 0.99
    assert abs(np.mean(off)) < 10  # the weak prior pulls together a little


def test_two_players_differ_by_the_elo_of_their_score():
    for wins, draws, losses in ((600, 0, 200), (400, 400, 0), (500, 200, 100)):
        ratings = rate([pairing("a", "b", wins, draws, losses)], "b")
        assert ratings.rating("a") == pytest.approx(elo_difference(0.75), abs=0.5)
    # Draws carry less chance: the same score is surer.
    decided, drawn = (
        rate([pairing("a", "b", *counts)], "b").error("a")
        for counts in ((600, 0, 200), (400, 400, 0))
    )
    assert drawn < 0.75 * decided


def test_the_anchor_has_its_rating_and_no_error_and_differences_do_not_depend_on_it():
    pairings = simulate(np.random.default_rng(2), 50, 0.3)
    ones, others = rate(pairings, "random"), rate(pairings, "minimax")
    assert others.rating("minimax") == others.error("minimax") == ones.rating("random") == 0
    assert ones.difference("trained", "greedy") == pytest.approx(
        others.difference("trained", "greedy"), abs=1e-4
    )
    assert ones.error("minimax") == pytest.approx(others.error("random"))


def test_perfect_scores_stay_finite_and_grow_with_the_games():
    few, many = (rate([pairing("a", "b", games, 0, 0)], "b") for games in (10, 200))
    assert 0 < few.rating("a") < many.rating("a") < 1100
    assert 100 < many.error("a") < 1000
    assert rate([pairing("a", "b", 0, 0, 200)], "b").rating("a") == pytest.approx(-many.rating("a"))
    assert rate([pairing("a", "b", 0, 200, 0)], "b").rating("a") == pytest.approx(0)
