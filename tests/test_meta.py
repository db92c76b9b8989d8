"""The code for GPUs on `meta` tensors, which have a device, a type and a shape, and no data.

Code that reads data back, lets a size depend on it, or mixes tensors of two devices fails here as it
does on a GPU. Tested: a ply of each search, an update, batch norm's re-estimation, players' choices.
Not tested, because they copy to the host on purpose: start positions, the blocks of finished plies,
a player's look for a win at once.
"""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from chessnn_colab import actor
from chessnn_colab.actor import Actor
from chessnn_colab.arena import players
from chessnn_colab.games.base import map_fields
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.learner import Learner, LearnerConfig
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Lockstep

from .test_device_operators import batch

TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)


@pytest.fixture(autouse=True)
def meta(monkeypatch):
    """torch cannot do these on meta tensors: autocast, and draws from a given generator."""
    autocast, drawn, rand = torch.autocast, torch.Tensor.exponential_, torch.rand

    def without_meta(device, *args, **settings):
        return nullcontext() if device == "meta" else autocast(device, *args, **settings)

    monkeypatch.setattr(torch, "autocast", without_meta)
    monkeypatch.setattr(
        torch.Tensor,
        "exponential_",
        lambda self, generator=None: self if self.is_meta else drawn(self),
    )
    monkeypatch.setattr(
        torch, "rand", lambda *shape, generator=None, device=None: rand(*shape, device=device)
    )


def moved(state):
    return map_fields(lambda field: field.to("meta"), state)


def network(dtype: torch.dtype = torch.float32) -> SpikingNetwork:
    return actor_copy(SpikingNetwork(TINY, portable=True), dtype).to("meta")


def search(name: str) -> SearchConfig:
    return SearchConfig(search=name, num_simulations=2, candidates=4, survivors=2)


def lockstep(name: str, dtype: torch.dtype | None) -> Lockstep:
    """Games that started on the CPU, with everything that a ply touches moved to `meta`."""
    on_cpu = Actor(Chess(), actor_copy(SpikingNetwork(TINY, portable=True)), search(name))
    games = Lockstep(on_cpu, 16, 64, 0)
    games.game = Chess(device="meta")
    games.actor = Actor(games.game, network(dtype or torch.float32), search(name))
    games.state, games.starts = moved(games.state), moved(games.starts)
    for field in ("number", "next_number", "sample_until"):
        setattr(games, field, getattr(games, field).to("meta"))
    return games


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("two-rung", torch.float16),
        ("two-rung", torch.float32),
        ("tree", torch.bfloat16),
        ("policy", None),
    ],
)
def test_a_ply_of_each_search_stays_on_its_device(name, dtype):
    games = lockstep(name, dtype)
    for _ in range(2):
        row = games._ply()
    assert all(tensor.is_meta and len(tensor) == 16 for tensor in row.values())
    assert games.state.words.is_meta and games.number.is_meta and games.next_number.shape == ()


@pytest.mark.parametrize("policy_gradient", [False, True])
def test_an_update_stays_on_its_device(policy_gradient):
    game = Chess()
    learner = Learner(
        SpikingNetwork(TINY, portable=True).to("meta"),
        Chess(device="meta"),
        LearnerConfig(precision="float32"),
        policy_gradient,
    )
    losses = learner.update(batch(game), None, np.random.default_rng(0))
    assert all(loss.is_meta and loss.shape == () for loss in losses)
    assert all(
        parameter.grad is not None and parameter.grad.is_meta
        for parameter in learner.network.parameters()
    )


def test_batch_norms_are_reestimated_on_their_device(monkeypatch):
    learner = Learner(
        SpikingNetwork(TINY, portable=True).to("meta"),
        Chess(device="meta"),
        LearnerConfig(precision="float32"),
    )
    # The cumulative average reads a counter: on purpose, once per batch.
    monkeypatch.setattr(torch.Tensor, "__float__", lambda self: 1.0)
    learner.reestimate_norms([batch(Chess())])
    assert not learner.network.training


@pytest.mark.parametrize("name", ["two-rung", "tree", "policy"])
def test_a_network_player_chooses_on_its_device(monkeypatch, name):
    def nothing(game, state):
        return torch.full_like(state.current_player, -1), torch.ones_like(state.current_player)

    monkeypatch.setattr(actor, "forced_wins", nothing)
    unfolded = SpikingNetwork(TINY, portable=True).to("meta")
    player = players.NetworkPlayer(Chess(device="meta"), unfolded, search(name))
    assert player.choose(moved(Chess().init(3)), torch.Generator()).is_meta


def test_the_random_player_chooses_on_its_device():
    player = players.RandomPlayer(Chess(device="meta"))
    chosen = player.choose(moved(Chess().init(3)), torch.Generator())
    assert chosen.is_meta and chosen.shape == (3,)


def test_mixed_devices_and_reads_are_seen():
    """So that the tests above can fail."""
    tensor = torch.zeros(3, device="meta")
    with pytest.raises(RuntimeError):
        tensor + torch.zeros(3)
    with pytest.raises((RuntimeError, NotImplementedError)):
        bool(tensor.any())
