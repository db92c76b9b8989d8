"""Games that pay points: the score head, rewards in returns, one player's plies, chance in both
searches.
"""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.arena.players import NetworkPlayer
from chessnn_colab.assembler import Assembler
from chessnn_colab.chances import quantities
from chessnn_colab.config import TrainConfig
from chessnn_colab.games.base import finished, select
from chessnn_colab.games.registry import make_game
from chessnn_colab.learner import Learner, LearnerConfig, score_target
from chessnn_colab.network import actor_copy, build_network, score_bins
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.records import POLICY_WIDTH, GameRecords
from chessnn_colab.replay import FIELDS, ReplayBuffer
from chessnn_colab.report import Report, score_names
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Play
from chessnn_colab.views.columns import detail_lines, iteration_line
from chessnn_colab.views.curves import small_figure
from chessnn_colab.views.panel import table_html
from chessnn_colab.views.run_table import run_table
from chessnn_colab.views.story import best_facts, headline
from tests.sample_reports import make_report
from tests.small_run import write_reports
from tests.test_selfplay import block_of

LIMIT = 100_000.0


def small_network(game, seed=0):
    config = TrainConfig(game=game.name, channels=8, blocks=1).network_config(game)
    return build_network(config, "cpu", seed)


def test_a_score_is_the_mean_of_its_shares():
    """Of every score from 0 to the limit, and as a network's logits too."""
    scores = torch.tensor([0.0, 1.0, 6.3, 7.0, 500.0, 12_345.6, 99_000.0, LIMIT])
    target = score_target(scores, LIMIT, 128)
    torch.testing.assert_close(target.sum(1), torch.ones(8))
    assert ((target > 0).sum(1) <= 2).all() and (target >= 0).all()
    torch.testing.assert_close(quantities(target.log(), LIMIT)[0], scores, rtol=1e-4, atol=1e-2)
    outside = score_target(torch.tensor([-5.0, 2 * LIMIT]), LIMIT, 128)
    assert outside[0, 0] == 1 and outside[1, -1] == 1


def test_the_bins_are_even_in_the_square_root():
    bins = score_bins(LIMIT, 128, torch.device("cpu"))
    roots = bins.sqrt().diff()
    assert bins[0] == 0 and bins[-1] == LIMIT
    torch.testing.assert_close(roots, roots.mean().expand(127), rtol=1e-3, atol=1e-3)


def test_the_config_says_which_head():
    game = make_game("2048")
    network = small_network(game)
    assert network.config.score_limit == game.score_limit == LIMIT
    output = network(game.observe(game.init(3)))
    assert output.prior_logits.shape == (3, 4) and output.value_logits.shape == (3, 128)
    assert NetworkConfig().value_outputs == 3 and "score_limit" in NetworkConfig().to_dict()
    assert NetworkConfig.from_dict(network.config.to_dict()) == network.config


def test_targets_end_with_a_reward_or_with_what_the_search_said():
    """A game that ends is worth its last reward there; one that the cap or the clock stops, the
    last search's value.
    """
    rows = block_of(
        [[0, 1, 2], [0, 1, 2]],
        value=np.array([[100.0, 200.0, 300.0], [110.0, 220.0, 90_000.0]], np.float32),
        ended=[[False, False, False], [True, True, False]],
        ending=[[0, 0, 0], [1, 2, 0]],
        reward=np.array([[4.0, 8.0, 16.0], [32.0, 64.0, 128.0]], np.float32),
    )
    game = make_game("2048")
    game.discount, game.td_lambda, game.bootstrap_after = 0.5, 0.5, 1
    assembler = Assembler(game, 0)
    records = assembler.add(rows)
    rest = assembler.unfinished()
    mixed = (110 + 32) / 2  # of what the search said there and what came
    assert records.value_targets.tolist() == [4 + 0.5 * mixed, 32, 8 + 0.5 * 220, 220]
    assert rest.value_targets.tolist() == [16 + 0.5 * 90_000, 90_000]  # beyond half precision
    assert records.value_targets.dtype == records.root_values.dtype == np.float32
    assert records.results.tolist() == [0, 0] and records.endings.tolist() == [1, 2]


@pytest.fixture(scope="module")
def records():
    """Games of an untrained network, and the actor that played them."""
    game = make_game("2048", max_plies=400)
    actor = Actor(game, actor_copy(small_network(game)), SearchConfig(candidates=4, survivors=2))
    parts = []
    game.td_lambda = 1.0
    game.discount = 1.0
    Play(actor, 8, 0).run(3000, lambda games, plies, new: parts.append(new) or True)
    return game, [part for part in parts if part.num_games]


def test_a_recorded_game_can_be_replayed_and_its_targets_are_the_points_to_come(records):
    game, parts = records
    for part in parts:
        for first, end, ending in zip(part.offsets, part.offsets[1:], part.endings):
            state = game.unpack(torch.from_numpy(part.positions[first : first + 1]))
            scores = []
            for place in range(first, end):
                assert torch.equal(game.pack(state)[0], torch.from_numpy(part.positions[place]))
                scores.append(int(state.score))
                state = game.step(
                    state, torch.from_numpy(part.actions[place : place + 1].astype(np.int64))
                )
            assert (ending == 1) == bool(state.terminated)
            if ending == 1:
                np.testing.assert_allclose(
                    part.value_targets[first:end], int(state.score) - np.array(scores)
                )


def score_batch(game, state, targets: np.ndarray) -> dict[str, np.ndarray]:
    """A policy that prefers nothing, and these values."""
    rows = len(targets)
    return {
        "positions": game.pack(state).numpy(),
        "policy_actions": np.tile(np.arange(POLICY_WIDTH, dtype=np.uint16) % 4, (rows, 1)),
        "policy_weights": np.full((rows, POLICY_WIDTH), 1 / POLICY_WIDTH, np.float16),
        "value_targets": targets.astype(np.float32),
    }


def test_the_learner_learns_a_score():
    game = make_game("2048")
    learner = Learner(small_network(game), game, LearnerConfig(learning_rate=0.01))
    state = game.starts(32, "standard", torch.Generator().manual_seed(0))
    batch = score_batch(game, state, np.full(32, 70_000))
    for _ in range(60):
        learner.update(batch)
    with torch.no_grad():
        (value,) = quantities(
            learner.network.eval()(game.observe(state)).value_logits, game.score_limit
        )
    assert ((value - 70_000).abs() < 3_000).all()


def test_a_network_that_has_played_a_match_can_learn_afterwards():
    """A player is asked in inference mode; what is kept from there must be of use to a gradient."""
    game = make_game("2048")
    rows = 4
    network = small_network(game)
    NetworkPlayer(game, network, SearchConfig(candidates=2, survivors=1)).choose(
        game.init(rows), torch.Generator()
    )
    logits = network(game.observe(game.init(rows))).value_logits
    (value,) = quantities(logits, game.score_limit)
    value.sum().backward()
    assert all(weight.grad is not None for weight in network.value.parameters())


def test_one_player_is_discounted_without_a_sign_and_paid_at_once():
    game = make_game("2048")
    game.discount = 0.9
    actor = Actor(game, actor_copy(small_network(game)), SearchConfig())
    state = game.starts(16, "standard", torch.Generator().manual_seed(0))
    for _ in range(400):
        action = state.legal.int().argmax(1)
        step, seen = actor.play(state, action)
        on = ~finished(state)
        torch.testing.assert_close(step.reward[0, on], (seen.state.score - state.score)[on].float())
        assert (step.reward[0, ~on] == 0).all()
        expected = torch.where(seen.state.terminated, 0.0, 0.9)
        torch.testing.assert_close(step.discount[0], expected)
        state = seen.state
    assert finished(state).all()


@pytest.mark.parametrize("search", ["two-rung", "tree"])
def test_no_search_knows_the_tile_that_will_come(search, monkeypatch):
    """Among the tiles that it looks at, the one that the game has in store is as frequent as any
    other.
    """
    game = make_game("2048")
    config = SearchConfig(search=search, candidates=4, survivors=1, num_simulations=1)
    actor = Actor(game, actor_copy(small_network(game)), config)
    state = game.starts(200, "standard", torch.Generator().manual_seed(0))
    looked = []
    play = actor.play
    monkeypatch.setattr(
        actor,
        "play",
        lambda before, action: looked.append((before, action)) or play(before, action),
    )
    actor.act(state, torch.Generator().manual_seed(1))
    before, action = looked[0]
    boards = {tuple(tiles): row for row, tiles in enumerate(state.tiles.tolist())}
    rows = torch.tensor([boards[tuple(tiles)] for tiles in before.tiles.tolist()])
    in_store = game.step(select(state, rows), action)
    assert (
        len(rows) >= 200
        and (game.step(before, action).tiles == in_store.tiles).all(1).float().mean() < 0.2
    )


def test_a_report_tells_scores_in_place_of_wins():
    scores = {"mean": 1234.5, "median": 1000.0, "best": 4000.0}
    report = make_report(wins={}, scores=scores, reached={"512": 0.4, "1024": 0.0})
    assert Report.from_dict(asdict(report)) == report
    line = iteration_line(report)
    assert "mean 1,234, median 1,000, best 4,000" in line and "draws" not in line
    assert "512 in 40 %, 1024 in 0 %" in detail_lines(report)[0]


def test_an_iteration_without_a_score_is_shown_as_one_of_a_game_with_points(tmp_path):
    """An iteration of 2048 may be shorter than its games."""
    scores = {"mean": 1234.5, "median": 1000.0, "best": 4000.0}
    reports = [
        make_report(1, wins={}, scores=scores, endings={"no_moves": 10}),
        make_report(2, wins={}, scores={}, endings={}, games=0),
    ]
    assert score_names(reports) == ["mean", "median", "best"] and score_names(reports[1:]) == []
    table = table_html(reports)
    assert "median" in table and "draws" not in table and "4,000" in table
    assert "points of the best game" in best_facts(reports)
    assert headline({"game": "2048"}, reports).startswith("It taught itself 2048 in ")
    assert [axis.get_title(loc="left") for axis in small_figure("results", reports).axes] == [
        "Best and median score"
    ]
    table = run_table(write_reports(tmp_path / "run", reports, {"game": "2048"}), None)
    assert "median" in [column.header for column in table.columns] and len(table.rows) == 2
    assert {len(list(column.cells)) for column in table.columns} == {2}


def test_no_positions_leave_a_replay_as_it_is():
    """Records of nothing have the types of a game without points: a run interrupted before its
    first game ended.
    """
    replay = ReplayBuffer(100)
    replay.add(GameRecords.empty(2))
    assert replay.to_arrays() == {} and ReplayBuffer.from_arrays(100, {}, 4, 2).to_arrays() == {}
    nothing = GameRecords.empty(2).to_arrays()
    kept = {name: nothing[name] for name in FIELDS}
    restored = ReplayBuffer.from_arrays(100, kept, 4, 2)
    targets = np.array([70_000.0], np.float32)
    one = {name: np.ones((1, *array.shape[1:]), array.dtype) for name, array in nothing.items()}
    points = {"value_targets": targets, "root_values": targets}
    game = GameRecords.from_arrays({**one, **points, "results": np.zeros(1, np.int8)})
    for parts in ([GameRecords.empty(2), game], [game, GameRecords.empty(2)]):
        assert GameRecords.concatenate(parts).value_targets.tolist() == [70_000.0], "none ended yet"
    restored.add(game)
    assert restored.to_arrays()["value_targets"][0].tolist() == [70_000.0]
