"""The whole loop on a game that can be solved: network, self-play, replay, learner, checkpoint,
match.
"""

import pytest
import torch

from chessnn_colab.arena.evaluate import evaluate_run
from chessnn_colab.arena.registry import match_game
from chessnn_colab.config import TrainConfig
from chessnn_colab.network import actor_copy
from chessnn_colab.runs.networks import load_network
from chessnn_colab.training import train

from .tictactoe_solver import kept_share


def policy_share(run: str, iteration: int | None = None) -> float:
    """The share of reachable positions in which the network's move, without search, keeps the
    game's true value.
    """
    network, _ = load_network(run, iteration, "cpu")
    game = match_game("tictactoe", "cpu")
    actor = actor_copy(network)

    @torch.no_grad()
    def choose(state):
        logits = actor(game.observe(state)).prior_logits
        return torch.where(game.legal_action_mask(state), logits, -1e9).argmax(1)

    return kept_share(choose)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    """Some ten seconds of training on one core, everything else as it comes."""
    run = str(tmp_path_factory.mktemp("learning") / "run")
    config = TrainConfig(
        run=run,
        game="tictactoe",
        iterations=10,
        channels=32,
        blocks=2,
        games_per_iteration=512,
        boards=256,
        batch_size=256,
        sample_reuse=4,
        device="cpu",
        pool="inline",
        workers=1,
    )
    reports = list(train(config))
    assert (
        len(reports) == 10
        and sum(reports[-1].wins.values()) > 0
        and set(reports[-1].wins) == {"x", "o"}
    )
    assert "Ending: " in reports[-1].sample_game and " wins" in reports[-1].sample_game
    return run


def test_the_policy_alone_keeps_the_true_value(run):
    untrained = policy_share(run, 0)
    trained = policy_share(run)
    print(
        f"\nmeasured: true value kept in {trained:.1%} of all reachable positions, untrained {untrained:.1%}"
    )
    assert trained >= 0.95 and untrained < 0.7


def test_it_never_loses_to_a_random_mover_on_either_side(run):
    (result,) = evaluate_run(run, games=200, device="cpu")
    assert result.losses == 0 and result.wins > 150
