"""A ply is one graph of its inputs, and its replay is the ply.

No GPU: dynamo traces the ply whole, and a stand-in for a CUDA graph runs the function again on the
memory that was recorded.
"""

import gc
from dataclasses import replace

import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.device_probe import batch_of, probe_network
from chessnn_colab.games.base import random_plies, select
from chessnn_colab.games.registry import make_game
from chessnn_colab.graphs import PROOFS, Graphs, Recording, Replays, map_tensors
from chessnn_colab.learner import Learner, LearnerConfig, about_the_same, graphs_of_updates
from chessnn_colab.lockstep import Lockstep
from chessnn_colab.network import actor_copy, build_network
from chessnn_colab.search import SearchConfig

from .counts import only_in_full

GAMES = ("chess", "gomoku:7", "2048", "tictactoe")
SEARCHES = ("two-rung", "tree", "policy")


def lockstep(name: str, search: str, graphs: Graphs | None = None) -> Lockstep:
    """Games on the CPU as every other device plays them."""
    game = make_game(name, max_plies=12)
    config = SearchConfig(search=search, num_simulations=3, candidates=4, survivors=2)
    network = actor_copy(probe_network(game), torch.float32)
    return Lockstep(Actor(game, network, config, static=True), 20, 0, graphs)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", [*GAMES[:-1], pytest.param(GAMES[-1], marks=only_in_full)])
def test_a_ply_is_one_graph(name, search):
    games = lockstep(name, search)
    games.play_block()
    noise = games.actor.draw(len(games.boards.number), games.generator)
    inputs = games.boards, noise, noise.gumbel.flip(0)
    torch.compiler.reset()
    with torch.no_grad():
        row, boards = torch.compile(games.ply, backend="eager", fullgraph=True)(*inputs)
        expected_row, expected_boards = games.ply(*inputs)
    assert_equal(row, expected_row)
    assert_equal(boards, expected_boards)


@pytest.mark.parametrize("search", ["two-rung", "tree"])
@pytest.mark.parametrize("name", ["chess", "gomoku:7"])
def test_a_replayed_search_with_proofs_is_the_search(name, search):
    """In positions with wins that the rules prove."""
    game = make_game(name)
    config = SearchConfig(search, candidates=4, survivors=2, num_simulations=6, solve="all")
    actor = Actor(game, actor_copy(probe_network(game), torch.float32), config, static=True)
    generator = torch.Generator().manual_seed(0)
    near_mate = name == "chess"
    starts = game.starts(60, "few-piece" if near_mate else "standard", generator)
    state = starts if near_mate else random_plies(game, 60, 40, generator)
    batches = [select(state, slice(first, first + 12)) for first in range(0, 60, 12)]
    generator.manual_seed(1)
    expected = [actor.act(batch, generator) for batch in batches]
    assert sum(int((output.forced > 0).sum()) for output in expected) > 2
    graphs = actor.replays.graphs = Graphs(on=True, record=stand_in)
    generator.manual_seed(1)
    for batch, output in zip(batches, expected):
        assert_equal(actor.act(batch, generator)._replace(tree=None), output._replace(tree=None))
    assert graphs.on and graphs.proofs == {12: PROOFS}


def assert_equal(found, expected) -> None:
    differing = []

    def compare(one, other):
        if not torch.equal(one, other):
            differing.append(one)
        return one

    map_tensors(compare, found, expected)
    assert differing == []


def stand_in(function, inputs) -> Recording:
    """A graph that reads what was recorded, and nothing else."""
    kept = map_tensors(torch.clone, inputs)
    outputs = map_tensors(torch.clone, function(*kept))

    def replay() -> None:
        map_tensors(lambda one, new: one.copy_(new), outputs, function(*kept))

    return Recording(kept, outputs, replay)


def stale(function, inputs) -> Recording:
    """A graph that does not read its inputs again."""
    recording = stand_in(function, inputs)
    recording.replay = lambda: None
    return recording


def full(function, inputs) -> Recording:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


def test_a_recording_without_memory_is_for_the_caller_to_halve_its_games():
    graphs = Graphs(on=True, record=full)
    with pytest.raises(torch.OutOfMemoryError):
        Replays(graphs)(torch.neg, 1, torch.ones(1))
    assert graphs.on and not graphs.trouble


def test_a_match_without_memory_for_a_recording_goes_on_launch_by_launch():
    actor = Actor(make_game("tictactoe"), None, SearchConfig())
    graphs = actor.replays.graphs
    graphs.on, graphs.record = True, full
    with pytest.warns(match="CUDA out of memory"):
        assert actor.replays(torch.neg, 1, torch.ones(1)) == -1
    assert not graphs.on


def full_later(function, inputs) -> Recording:
    """A graph beside which an update does not fit."""

    def replay() -> None:
        raise RuntimeError("GET was unable to find an engine to execute this computation")

    recording = stand_in(function, inputs)
    recording.replay = replay
    return recording


@pytest.mark.parametrize("record", [stand_in, full, full_later])
def test_a_replayed_update_is_the_update(record, recwarn):
    """With a learning rate and a price that change; and where memory is short none is replayed."""
    game = make_game("chess")
    learner = Learner(probe_network(game), game, LearnerConfig(spike_penalty=0.1))
    expected = Learner(probe_network(game), game, LearnerConfig(spike_penalty=0.1))
    graphs = graphs_of_updates(learner.device)
    graphs.on, graphs.record = True, record
    learner.replays = Replays(graphs)
    for number in range(6):
        state = game.starts(32, "random-plies", torch.Generator().manual_seed(number))
        for each in (learner, expected):
            each.config = LearnerConfig(spike_penalty=0.1 + number)
            losses = each.update(batch_of(game, state), 1e-3 * (1 + number))
            assert losses.loss > losses.policy_loss + losses.value_loss
    for one, other in zip(learner.parameters, expected.parameters):
        assert torch.equal(one, other)
    said = [str(warning.message) for warning in recwarn]
    if record in (full, full_later):
        (warning,) = said
        assert "updates run launch by launch, because a CUDA graph" in warning
        assert "memory" in warning
    elif record is stand_in:
        assert graphs.on and graphs.proofs == {32: PROOFS} and said == []


@pytest.mark.parametrize(
    "shape", [{}, {"levels": 1}, {"levels": 1, "steps": 2}, {"activation": "relu"}], ids=str
)
def test_an_update_leaves_no_graph_of_autograd_behind(shape):
    """One that stays belongs to the stream of its update, and a recording that meets it fails."""
    game = make_game("tictactoe")
    network = build_network(replace(probe_network(game).config, **shape), "cpu")
    learner = Learner(network, game, LearnerConfig(spike_penalty=0.1 if not shape else 0.0))
    state = game.starts(8, "random-plies", torch.Generator().manual_seed(0))
    batch = learner.to_tensors(batch_of(game, state))
    gc.disable()
    try:
        network.train()
        learner.gradient(batch)
        for parameter in learner.parameters:
            accumulates(parameter).metadata["kept"] = True
        kept = ["kept" in accumulates(parameter).metadata for parameter in learner.parameters]
    finally:
        gc.enable()
    assert not any(kept)


def accumulates(parameter):
    """The node in which autograd gathers a parameter's gradient; a new one where none is kept."""
    return parameter.view_as(parameter).grad_fn.next_functions[0][0]


def test_gradients_that_differ_by_rounding_alone_are_the_same():
    gradient = torch.arange(1.0, 5.0)
    assert about_the_same(gradient, gradient * 1.01)
    assert not about_the_same(gradient, gradient * 1.05)
    assert not about_the_same(gradient, gradient * torch.nan)
    overflow = torch.tensor([1.0, torch.inf])
    assert about_the_same(overflow, overflow * 2) and not about_the_same(overflow, gradient[:2])


def refused(function, inputs) -> Recording:
    raise RuntimeError("operation not permitted when stream is capturing\nmore")


def blocks(graphs: Graphs | None) -> list[dict[str, np.ndarray]]:
    """Games that end, and others that take their boards."""
    games = lockstep("tictactoe", "two-rung", graphs)
    return [games.play_block() for _ in range(4)]


def assert_same_blocks(found, expected) -> None:
    assert [len(block["number"][0]) for block in found] == [
        len(block["number"][0]) for block in expected
    ]
    for one, other in zip(found, expected):
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name])


def test_replayed_plies_are_the_plies():
    graphs = Graphs(on=True, record=stand_in)
    assert_same_blocks(blocks(graphs), blocks(None))
    assert graphs.on and graphs.proofs == {20: PROOFS}


@pytest.mark.parametrize(
    "record, reason",
    [(stale, "computed something else"), (refused, "could not be recorded .*capturing")],
)
def test_a_graph_that_is_wrong_is_not_used_and_the_reason_is_kept(record, reason):
    graphs = Graphs(on=True, record=record)
    with pytest.warns(UserWarning, match=f"^plies run launch by launch, .* {reason}"):
        found = blocks(graphs)
    assert_same_blocks(found, blocks(None))
    assert not graphs.on
    assert reason.split(" .*")[0] in graphs.trouble
