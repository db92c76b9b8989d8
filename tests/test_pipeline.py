"""The player of tools/pipeline.py, and the learner of tools/pipeline_training.py, whose networks do
not wait.

What such a network fires is held by test_event_driven.
"""

import sys
from pathlib import Path

import pytest
import torch

from chessnn_colab.arena.registry import match_game
from chessnn_colab.spikes import without_waiting

from .test_event_driven import CONFIG, strong

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from pipeline import StepPlayer, nearness
from pipeline_training import in_steps


def player(steps: int, margin: float, options: dict[str, bool] | None) -> StepPlayer:
    return StepPlayer(strong(CONFIG), match_game("chess"), options, steps, margin, "")


def test_an_answer_stops_when_it_is_sure_and_ends_as_that_of_the_network_that_waits():
    generator = torch.Generator().manual_seed(0)
    state = match_game("chess").starts(24, "few-piece", generator)
    back = {"take_back": True}
    policies = player(16, 0.0, back).answers(state)[0].exp()
    best = policies.topk(2, 2).values
    margin = float((best[:, :, 0] - best[:, :, 1]).quantile(0.7))
    stopping = player(16, margin, back)
    moves = stopping.choose(state, generator)
    used = stopping.used[0][0].long() - 1
    for game, step in enumerate(used.tolist()):
        sure = (best[:, game, 0] - best[:, game, 1] >= margin).tolist()
        assert not any(sure[:step]) and (sure[step] or step == 15), game
        assert moves[game] == policies[step, game].argmax(), game
    assert used.min() < used.max()
    near = nearness(player(24, 2.0, back), player(1, 2.0, None), state)
    assert near[0, 0] < 1 and near[-1, 0] == 1 and near[-1, 1:].abs().max() < 1e-4


@pytest.mark.parametrize("take_back", [False, True])
def test_learning_in_steps_fires_as_without_waiting_and_its_gradient_passes_as_if_it_waited(
    take_back,
):
    network = strong(CONFIG).eval()
    planes = match_game("chess").observe(match_game("chess").init(1))
    with without_waiting(network, take_back), torch.no_grad():
        expected = [network.features_and_value(planes)[0] for _ in range(3)]
    with in_steps(network, take_back):
        with torch.no_grad():
            found = [network.features_and_value(planes)[0] for _ in range(2)]
        last = network.features_and_value(planes)[0]
    for fired, rates in zip([*found, last.detach()], expected, strict=True):
        assert torch.equal(fired, rates)
    assert not torch.equal(expected[-1], network.features_and_value(planes)[0])
    last.sum().backward()
    gradient = network.stem.conv.weight.grad
    assert gradient is not None and gradient.abs().sum() > 0
