"""The probe of a device: what works passes, and each fault made here on purpose is found."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chessnn_colab import device_probe as module
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingNetwork

probe = module.probe.__wrapped__  # without its memory of what was probed


@pytest.fixture
def on_device(monkeypatch):
    """Applies a change to the second of the two networks and rules: the device's."""

    def change(spoil_network=lambda network: None, spoil_rules=lambda game: None):
        made = {"networks": 0, "games": 0}
        new_network = module.probe_network
        new_game = module.make_game

        def make_network(game):
            network = new_network(game)
            made["networks"] += 1
            if made["networks"] == 2:
                spoil_network(network)
            return network

        def make_game(name, max_plies=None, device="cpu"):
            game = new_game(name, max_plies, device)
            made["games"] += 1
            if made["games"] == 2:
                spoil_rules(game)
            return game

        monkeypatch.setattr(module, "probe_network", make_network)
        monkeypatch.setattr(module, "make_game", make_game)

    return change


@pytest.mark.parametrize(
    "part, factor",
    [
        ("blocks.0.", -1.0),
        ("stem.conv", -1.0),
        (".norm.", 1e7),  # batch norm's backward on MPS (pytorch#175189)
        ("policy.weight", -1.0),
        ("value.0.weight", -1.0),
        ("stem.norm.bias", 0.0),
        ("blocks.0.conv1.conv", float("nan")),
    ],
)
def test_wrong_gradients_are_found(on_device, part, factor):
    def spoil(network: SpikingNetwork) -> None:
        for name, parameter in network.named_parameters():
            if part in name:
                parameter.register_hook(lambda gradient: factor * gradient)

    on_device(spoil)
    with pytest.raises(RuntimeError, match=r"in torch.float32 the gradient of .* away from the"):
        probe("cpu")


def one_more_move(game: Chess) -> None:
    mask = game.legal_action_mask
    action = torch.tensor([0])
    game.legal_action_mask = lambda state: mask(state).index_fill(1, action, True)


def wrong_step(game: Chess) -> None:
    game.step = lambda state, action: game.init(module.BOARDS)


def wrong_past(game: Chess) -> None:
    """The board is right, and what repeats is not."""
    step = game.step
    game.step = lambda state, action: replace(
        after := step(state, action), history=after.history + 1
    )


@pytest.mark.parametrize("spoil", [wrong_step, one_more_move, wrong_past])
def test_wrong_rules_are_found_at_the_first_ply(on_device, spoil):
    on_device(spoil_rules=spoil)
    with pytest.raises(RuntimeError, match="the rules of chess come out wrong there, after 1 rand"):
        probe("cpu")


def test_wrong_images_are_found(on_device):
    """A device that learns from the mirror image as if it were the position."""

    def spoil(game: Chess) -> None:
        augment = game.augment
        game.augment = lambda packed, chance: (packed, augment(packed, chance)[1])

    on_device(spoil_rules=spoil)
    with pytest.raises(RuntimeError, match=r"in torch.float32 the gradient of .* away from the"):
        probe("cpu")


def spoiled_search(monkeypatch, change) -> None:
    """The device's policy is the first of each two; it is as `change` makes it of the right one."""
    plain = module.one_ply
    calls = []

    def one_ply(*given):
        calls.append(given)
        policy = plain(*given)
        return change(policy) if len(calls) % 2 else policy

    monkeypatch.setattr(module, "one_ply", one_ply)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda policy: policy._replace(action_weights=policy.action_weights * torch.nan),
            "weights do not sum to one",
        ),
        (lambda policy: policy._replace(action=policy.action * 0 + 4671), "moves are not legal"),
        (
            lambda policy: policy._replace(actions=policy.actions.roll(1, dims=1)),
            r"of \d+ clear moves \d+ are the CPU's",
        ),
    ],
)
def test_a_wrong_search_is_found(monkeypatch, change, message):
    spoiled_search(monkeypatch, change)
    with pytest.raises(RuntimeError, match=f"the search two-rung comes out wrong there: {message}"):
        probe("cpu")


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("number", lambda array: 2 * array, "a game is missing"),
        ("position", lambda array: np.roll(array, 1, 1), "games do not begin as on the CPU"),
        ("action", lambda array: np.roll(array, 1, 1), "games do not go on by the rules"),
    ],
)
def test_wrong_self_play_is_found(monkeypatch, name, change, message):
    plain, calls = module.short_games, []

    def short_games(*given):
        """The device's are the first."""
        block = plain(*given)
        calls.append(given)
        return {**block, name: change(block[name])} if len(calls) == 1 else block

    monkeypatch.setattr(module, "short_games", short_games)
    with pytest.raises(RuntimeError, match=f"self-play comes out wrong there: {message}"):
        probe("cpu")


def test_an_operator_that_is_missing_is_met_here(monkeypatch):
    def missing(*_, **__):
        raise NotImplementedError("The operator 'aten::sort' is not implemented for MPS")

    monkeypatch.setattr(module.Actor, "act", missing)
    with pytest.raises(NotImplementedError, match="aten::sort"):
        probe("cpu")
