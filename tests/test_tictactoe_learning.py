"""The whole loop on a game that can be solved: network, self-play, replay, learner, checkpoint,
match.
"""

import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.arena.evaluate import evaluate_run
from chessnn_colab.arena.registry import match_game
from chessnn_colab.assembler import chances
from chessnn_colab.chances import Correction
from chessnn_colab.config import TrainConfig
from chessnn_colab.games.base import finished, select, start_positions
from chessnn_colab.games.tictactoe import TicTacToe
from chessnn_colab.network import actor_copy, to_arrays
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import load_network
from chessnn_colab.search import SearchConfig
from chessnn_colab.training import train

from .tictactoe_solver import kept_share, true_value, unfinished, unfinished_states


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
    """Some twenty seconds of training on one core, with games that sample no moves after their
    start, so that a position is worth what good play makes of it. In float32, which every CPU has:
    what a seed comes to depends on the precision. Everything else is as it comes.
    """
    run = str(tmp_path_factory.mktemp("learning") / "run")
    config = TrainConfig(
        run=run,
        game="tictactoe",
        iterations=20,
        channels=32,
        blocks=2,
        positions_per_iteration=2600,
        boards=256,
        batch_size=256,
        sample_reuse=4,
        device="cpu",
        precision="float32",
        pool="inline",
        workers=1,
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TicTacToe, "sampling_plies", 1)
        reports = list(train(config))
    assert (
        len(reports) == 20
        and sum(reports[-1].wins.values()) > 0
        and set(reports[-1].wins) == {"x", "o"}
    )
    assert "Ending: " in reports[-1].sample_game and " wins" in reports[-1].sample_game
    assert reports[-1].brier < 0.1 and reports[-1].correlation > 0.9
    return run


def test_what_is_kept_to_play_says_corrected_chances_and_learning_goes_on_from_its_own(run):
    checkpoint = RunFolder.open(run).latest_checkpoint().checkpoint
    correction = Correction(*checkpoint.metadata["correction"])
    learned, kept = checkpoint.groups["weights"], to_arrays(load_network(run, None, "cpu")[0])
    print(f"\nmeasured: {correction}")
    assert not np.allclose(kept["value.2.weight"], learned["value.2.weight"], rtol=1e-3)
    for name, array in correction.weights(learned).items():
        np.testing.assert_array_equal(kept[name], array)


def test_the_policy_alone_keeps_the_true_value(run):
    untrained = policy_share(run, 0)
    trained = policy_share(run)
    print(
        f"\nmeasured: true value kept in {trained:.1%} of all reachable positions, untrained {untrained:.1%}"
    )
    assert trained >= 0.95 and untrained < 0.7


def test_drawn_positions_say_draw_and_won_ones_win(run):
    network, _ = load_network(run, None, "cpu")
    game = TicTacToe()
    actor = Actor(game, actor_copy(network), SearchConfig())
    generator = torch.Generator().manual_seed(0)
    packed = game.pack(unfinished_states(game)).tolist()
    values = {tuple(words): true_value(board) for words, board in zip(packed, unfinished())}
    said: dict[int, list[torch.Tensor]] = {1: [], 0: [], -1: []}
    state = start_positions(game, 256, generator)
    while len(state.board):
        for words, value in zip(game.pack(state).tolist(), actor.root(state).value.t()):
            said[values[tuple(words)]].append(value)
        state = game.step(state, actor.act(state, generator, 0.0).action)
        state = select(state, ~finished(state))
    won, drawn, lost = (chances(torch.stack(part).numpy()).mean(0) for part in said.values())
    print(f"\nmeasured: win, draw, loss said where won {won}, drawn {drawn}, lost {lost}")
    assert won[0] > 0.9 and drawn[1] > 0.9


def test_it_never_loses_to_a_random_mover_on_either_side(run):
    (result,) = evaluate_run(run, games=200, device="cpu")
    assert result.losses == 0 and result.wins > 150
