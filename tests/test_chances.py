"""Chances: the search carries them exactly, and what was said is compared with what was played."""

import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.assembler import chances
from chessnn_colab.chances import Correction, calibration, said_and_played
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.iteration import summary_of_games
from chessnn_colab.network import actor_copy, build_network, load_arrays, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.records import GameRecords
from chessnn_colab.search import SearchConfig

from .test_records import make_records

SEARCHES = [
    SearchConfig(search=search, num_simulations=24, solve=solve)
    for search in ("two-rung", "tree")
    for solve in ("off", "all")
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_without_a_discount_what_is_said_is_what_the_search_maximises(search):
    """So no rule of the search forgets the other quantities, nor weighs them otherwise."""
    game = Chess()
    game.discount = 1.0
    network = build_network(NetworkConfig(channels=8, blocks=1, value_hidden=8), "cpu").eval()
    with torch.no_grad():
        for weights in network.value.parameters():
            weights.add_(0.5)
    state = game.starts(48, "few-piece", torch.Generator().manual_seed(0))
    output = Actor(game, actor_copy(network), search).act(state, torch.Generator(), 0.0)
    best, balance, decisive = output.value
    torch.testing.assert_close(balance, best)
    assert (decisive >= balance.abs() - 1e-6).all() and decisive.unique().numel() > 10
    win, draw, loss = chances(output.value.numpy().T).T
    np.testing.assert_allclose(win - loss, balance, atol=1e-5)
    np.testing.assert_allclose(draw, 1 - decisive, atol=1e-5)


def records_of(said: list[list[float]], results: list[int], endings: list[int]) -> GameRecords:
    """Games of two positions, both said to be `said`, whose first player had `results`."""
    lengths = (2,) * len(results)
    ends = [np.eye(3)[1 + result] for result in results]  # of the second player, who moves last
    changed = {
        "root_values": np.repeat(said, 2, 0).astype(np.float16),
        "value_targets": np.repeat(ends, 2, 0).astype(np.float16),
        "endings": np.array(endings, np.uint8),
        "results": np.array(results, np.int8),
    }
    return GameRecords(**{**make_records(lengths).to_arrays(), **changed})


def test_a_report_compares_what_was_said_with_the_games_that_the_rules_ended():
    said = [[0.5, 0.25, 0.25], [0, 1, 0], [1, 0, 0]]
    records = records_of(said, [1, 0, 0], [1, 2, len(Chess.endings) - 1])  # the last at the cap
    summary = summary_of_games(records, Chess())
    won, lost = 0.5**2 + 2 * 0.25**2, 0.5**2 + 0.25**2 + 0.75**2
    assert summary["brier"] == pytest.approx((won + lost) / 4)
    expected, result = [0.25, 0.25, 0, 0], [1, -1, 0, 0]
    assert summary["correlation"] == pytest.approx(np.corrcoef(expected, result)[0, 1])
    nothing = summary_of_games(records_of(said, [0] * 3, [0] * 3), Chess())
    assert np.isnan([nothing["brier"], nothing["correlation"]]).all()


def test_calibration_by_hand():
    said = [[0.5, 0.25, 0.25], [0, 1, 0]]
    compared = said_and_played(records_of(said, [1, 0], [1, 2]), np.array([True, True]))
    found = calibration(*compared)
    assert found.predicted == [0.25, 0.625, 0.125] and found.played == [0.25, 0.5, 0.25]
    assert found.brier_of_constant == pytest.approx(1 - (0.25**2 + 0.5**2 + 0.25**2))
    assert found.positions == 4 and len(found.fifths) == 4
    assert found.fifths[0] == {"predicted": [0, 1, 0], "played": [0, 1, 0]}


def test_chances_that_do_not_vary_have_no_correlation():
    found = calibration(np.array([[0.5, 0.25, 0.25]] * 3), np.eye(3))
    assert str(found).endswith("no correlation, because nothing varies")


def test_an_outcome_is_that_of_the_player_to_move():
    """Games of two and of three positions, each won by who moved last."""
    ends = np.repeat([[1, 0, 0]], 5, 0).astype(np.float16)
    records = GameRecords(**{**make_records((2, 3)).to_arrays(), "value_targets": ends})
    _, played = said_and_played(records, np.array([True, True]))
    won, lost = [1, 0, 0], [0, 0, 1]
    assert played.tolist() == [lost, won, won, lost, won]


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def test_a_correction_finds_how_shy_a_network_is():
    """Outcomes are drawn by chances of which the network says half the logits, and more draws."""
    rng = np.random.default_rng(0)
    correction = Correction()
    for _ in range(60):
        logits = 0.75 * rng.normal(size=(4000, 3))
        said = softmax(logits).astype(np.float32)
        true = 2 * logits - np.array([0, 0.7, 0])
        outcome = (rng.random((4000, 1)) > softmax(true).cumsum(1)).sum(1).clip(max=2)
        correction = correction.after(said, np.eye(3, dtype=np.float32)[outcome])
    assert correction == pytest.approx((2.0, -0.7), abs=0.05)
    assert correction.after(said[:0], said[:0]) == correction, "no game has ended"
    sure, drawn = np.eye(3, dtype=np.float32)[:2]
    missed = Correction().after(sure[None], drawn[None])
    assert abs(missed.sharpness) < 3, "one win that was missed is not all that counts"


def test_rounding_makes_no_chance_below_nothing_or_above_one():
    assert chances(np.array([[0, 1.0001, 1.0]])).tolist() == [[1, 0, 0]]


def test_the_corrected_weights_say_the_corrected_chances():
    network = build_network(NetworkConfig(channels=8, blocks=1, value_hidden=8), "cpu").eval()
    observation = (
        torch.rand(16, 27, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.2
    ).float()
    with torch.no_grad():
        network.value[2].weight.mul_(40)
        before = network(observation)
        correction = Correction(1.5, -0.4)
        load_arrays(network, correction.weights(to_arrays(network)))
        after = network(observation)
    torch.testing.assert_close(after.prior_logits, before.prior_logits, rtol=0, atol=0)
    expected = correction.logits(before.value_logits.numpy())
    assert np.ptp(before.value_logits.numpy()[:, 1]) > 0.1
    np.testing.assert_allclose(after.value_logits, expected, rtol=1e-5, atol=1e-6)
