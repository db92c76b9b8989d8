"""The code for GPUs on `meta` tensors, which have a device, a type and a shape, and no data.

Code that reads data back, lets a size depend on it, or mixes tensors of two devices fails here as it
does on a GPU. test_other_device sees more, but a later torch may not have what it stands on; so a
ply is tested here, too.
"""

from contextlib import nullcontext

import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.games.base import map_fields
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Boards, Lockstep

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
    games.starts = moved(games.starts)
    games.sample_until = games.sample_until.to("meta")
    state, number, next_number = games.boards
    games.boards = Boards(moved(state), number.to("meta"), next_number.to("meta"))
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
        row = games.play_ply()
    assert all(tensor.is_meta and len(tensor) == 16 for tensor in row.values())
    assert (
        games.boards.state.words.is_meta
        and games.boards.number.is_meta
        and games.boards.next_number.shape == ()
    )


def test_mixed_devices_and_reads_are_seen():
    """So that the tests above can fail."""
    tensor = torch.zeros(3, device="meta")
    with pytest.raises(RuntimeError):
        tensor + torch.zeros(3)
    with pytest.raises((RuntimeError, NotImplementedError)):
        bool(tensor.any())
