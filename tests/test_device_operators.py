"""The operators that a GPU or a Mac must have, looked up in the table that ships with torch.

The code for devices other than the CPU runs here on CPU tensors: a ply of each search, an update,
batch norm's re-estimation. Every operator that reaches the dispatcher must have a CUDA and an MPS
kernel. An exponential draw of exactly zero, which MPS makes now and then (pytorch#192577), must not
choose an illegal move.
"""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from chessnn_colab.actor import Actor
from chessnn_colab.games.base import finished
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.learner import Learner, LearnerConfig
from chessnn_colab.lockstep import Lockstep
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.search import SearchConfig

from .random_play import batch

yaml = pytest.importorskip("yaml")
torchgen = pytest.importorskip("torchgen")
TABLE = Path(torchgen.__path__[0]) / "packaged" / "ATen" / "native" / "native_functions.yaml"
TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)
SEARCHES = ("two-rung", "tree", "policy")
ANY_DEVICE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
# Python's own view of a tensor, or autograd's: nothing runs on the device.
NOT_KERNELS = {"_to_copy.default", "detach.default", "alias.default"}


@functools.cache
def table() -> dict[str, dict]:
    """The operators by name and overload, such as "where.self"."""
    entries = yaml.load(
        TABLE.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return {entry["func"].split("(")[0]: entry for entry in entries}


def has_kernel(name: str, device: str) -> bool:
    """Whether an operator of the table, such as "where.self", runs on "CUDA" or "MPS"."""
    entry = table()[name]
    if "structured_delegate" in entry:
        return has_kernel(entry["structured_delegate"], device)
    if "dispatch" not in entry:
        return True  # written in other operators, each of which arrives here by itself
    keys = {key.strip() for keys in entry["dispatch"] for key in keys.split(",")}
    generated = device == "CUDA" and "ufunc_inner_loop" in entry  # torch writes this kernel itself
    return generated or device in keys or bool(keys & set(ANY_DEVICE))


class Operators(TorchDispatchMode):
    """Collects the names of the operators that reach the dispatcher."""

    def __init__(self):
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "profiler":  # the optimizer's marks for a profiler
            assert func.namespace == "aten", f"{func} is not torch's own"
            overload = func._overloadname
            self.names.add(
                func.overloadpacket.__name__ + ("" if overload == "default" else f".{overload}")
            )
        return func(*args, **(kwargs or {}))


def lockstep(search: str) -> Lockstep:
    """Self-play as another device than the CPU runs it, on a portable network (MPS)."""
    network = actor_copy(SpikingNetwork(TINY, portable=True).eval())
    config = SearchConfig(search=search, num_simulations=6, candidates=4, survivors=2)
    return Lockstep(Actor(Chess(), network, config, static=True), 16, 0)


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The operators of a ply of each search, of an update and of batch norm's re-estimation."""
    with pytest.MonkeyPatch.context() as patch, Operators() as operators:
        for search in SEARCHES:
            games = lockstep(search)
            for _ in range(2):
                games.play_ply()
        game = Chess()
        learner = Learner(
            SpikingNetwork(TINY, portable=True), game, LearnerConfig(precision="float32")
        )
        learner.device = torch.device("meta")  # only its type is read: it is not a CPU
        patch.setattr(learner, "to_tensors", lambda batch: Learner.to_tensors(on_cpu, batch))
        on_cpu = Learner(
            SpikingNetwork(TINY, portable=True), game, LearnerConfig(precision="float32")
        )
        shown = batch(game)
        shown["chance"] = np.zeros(len(shown["positions"]), np.float32)
        learner.update(shown)
        learner.reestimate_norms([batch(game)])
    return operators.names - NOT_KERNELS


@pytest.mark.parametrize("device", ["CUDA", "MPS"])
def test_every_operator_has_a_kernel(used, device):
    known = {name for name in used if name in table()}
    assert len(known) > 60 and "convolution" in known and used - known == set()
    assert sorted(name for name in known if not has_kernel(name, device)) == []


def test_the_table_knows_what_a_mac_lacks():
    """So that the test above can fail."""
    assert not has_kernel("_linalg_eigh", "MPS") and has_kernel("_linalg_eigh", "CUDA")


@pytest.mark.parametrize("search", SEARCHES)
def test_draws_of_exactly_zero_choose_no_illegal_move(monkeypatch, search):
    draw = torch.Tensor.exponential_

    def with_zeros(tensor, *args, **settings):
        drawn = draw(tensor, *args, **settings)
        return drawn.masked_fill_(
            torch.rand(drawn.shape, generator=torch.Generator().manual_seed(1)) < 0.01, 0.0
        )

    monkeypatch.setattr(torch.Tensor, "exponential_", with_zeros)
    games, played = lockstep(search), 0
    step = games.game.step

    def checked(state, action):
        nonlocal played
        legal = games.game.legal_action_mask(state).gather(1, action.unsqueeze(1)).squeeze(1)
        if len(action) == len(games.boards.number):
            assert (legal | finished(state))[games.boards.number >= 0].all()
            played += len(action)
        return step(state, action)

    monkeypatch.setattr(games.game, "step", checked)
    for _ in range(6):
        games.play_ply()
    assert played >= 6 * 16
