"""Tests that need a CUDA GPU: `make gpu` runs them there; elsewhere they are skipped."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.arena.players import MATCH_SEARCHES, NetworkPlayer
from chessnn_colab.data_parallel import Group, RankLearner, process_group, slice_of
from chessnn_colab.device_probe import probe
from chessnn_colab.games.base import forced_wins, select
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.graphs import PROOFS
from chessnn_colab.learner import Learner, LearnerConfig
from chessnn_colab.learner_state import learner_state
from chessnn_colab.lockstep import Lockstep, graphs_for
from chessnn_colab.network import actor_copy, build_network
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.ranks import new_store
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Play

from .random_play import batch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"),
]
TINY = NetworkConfig(channels=16, blocks=2, value_hidden=16)


@pytest.mark.parametrize("game", ["chess", "tictactoe", "gomoku:9", "2048"])
def test_rules_and_an_update_agree_with_the_cpu(game):
    probe("cuda", game)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("search", ["two-rung", "tree", "policy"])
def test_every_move_of_self_play_is_legal(search, precision):
    game, here = Chess(max_plies=40, device="cuda"), Chess(max_plies=40)
    actor = Actor(
        game,
        actor_copy(build_network(TINY, "cuda"), precision),
        SearchConfig(search, num_simulations=8),
    )
    parts = []
    Play(actor, 64, 0).run(64 * 60, lambda games, plies, records: parts.append(records) or True)
    assert sum(part.num_games for part in parts) >= 64
    for part in parts:
        if part.num_positions:
            legal = here.legal_action_mask(here.unpack(torch.from_numpy(part.positions)))
            assert legal.gather(
                1, torch.from_numpy(part.actions.astype(np.int64)).unsqueeze(1)
            ).all()


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precisions_learn_what_float32_learns(precision):
    losses = {}
    for name in ("float32", precision):
        learner = Learner(
            build_network(TINY, "cuda"), Chess(device="cuda"), LearnerConfig(precision=name)
        )
        losses[name] = [float(learner.update(batch(Chess())).loss) for _ in range(8)]
    assert losses[precision][-1] < losses[precision][0]
    np.testing.assert_allclose(losses[precision], losses["float32"], rtol=0.1)


def test_a_ply_is_replayed_as_a_graph():
    actor = Actor(Chess(device="cuda"), actor_copy(build_network(TINY, "cuda")), SearchConfig())
    graphs = graphs_for(actor)
    Lockstep(actor, 64, 0, graphs).play_block()
    assert graphs.on and graphs.proofs == {64: PROOFS}, graphs.trouble


def test_the_search_of_a_match_is_replayed_as_a_graph():
    game = Chess(device="cuda")
    player = NetworkPlayer(game, build_network(TINY, "cuda").eval(), MATCH_SEARCHES["two-rung"])
    states = game.starts(64, "few-piece", torch.Generator().manual_seed(0))
    for first in range(0, 64, 16):
        some = select(states, slice(first, first + 16))
        wins, _ = forced_wins(game, some)
        chosen = player.choose(some, torch.Generator("cuda"))
        assert ((wins < 0) | (chosen == wins)).all()
    graphs = player.actor.replays.graphs
    assert graphs.on and graphs.proofs == {16: PROOFS}, graphs.trouble


def test_an_update_is_replayed_as_a_graph():
    """And the losses are those of updates launch by launch, with a rate and a price that change."""
    found = {}
    for on in (True, False):
        network = build_network(TINY, "cuda")
        learner = Learner(network, Chess(device="cuda"), LearnerConfig(spike_penalty=0.1))
        learner.replays.graphs.on = on
        found[on] = []
        for number in range(8):
            learner.config = replace(learner.config, spike_penalty=0.1 + 0.1 * number)
            shown = batch(Chess(), number)
            found[on].append([float(loss) for loss in learner.update(shown, 1e-3 * (1 + number))])
        graphs = learner.replays.graphs
        assert graphs.on == on and graphs.proofs == ({32: PROOFS} if on else {}), graphs.trouble
        paid = [loss - policy - value for loss, policy, value, _ in found[on]]
        assert paid[-1] > 2 * paid[0], (
            "the price of the last update is eight times that of the first"
        )
    np.testing.assert_allclose(found[True], found[False], rtol=0.02)


def test_a_rank_replays_its_updates_too():
    """One rank alone: NCCL takes no GPU twice."""
    losses = {}
    alone = Learner(build_network(TINY, "cuda"), Chess(device="cuda"), LearnerConfig())
    state = learner_state(alone)
    losses["alone"] = [float(alone.update(batch(Chess(), seed)).loss) for seed in range(8)]
    store = new_store("127.0.0.1")
    group = Group(0, 1, "127.0.0.1", store.port, 60.0)
    with process_group(group, torch.device("cuda:0")):
        network = build_network(TINY, "cuda")
        rank = RankLearner(network, Chess(device="cuda"), state)
        parts = [slice_of(batch(Chess(), seed), 0, 1) for seed in range(8)]
        losses["rank"] = [float(rank.update(part).loss) for part in parts]
        graphs = rank.replays.graphs
        assert graphs.on and graphs.proofs == {32: PROOFS}, graphs.trouble
        rank.replays.forget()
    np.testing.assert_allclose(losses["rank"], losses["alone"], rtol=0.02)
