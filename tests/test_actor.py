"""What the actor asks of game and network: a CPU's parts and lists answer as the whole masked batch
elsewhere.
"""

import math
from typing import cast

import pytest
import torch

from chessnn_colab import actor as actor_module
from chessnn_colab.actor import Actor
from chessnn_colab.games.base import concatenate, select
from chessnn_colab.games.chess.rules import ENDINGS, Chess
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.search import ILLEGAL, SearchConfig

from .chess_games import state_from_fens
from .small_run import opinionated

MATED, ONE_MOVE = "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "7k/8/8/8/8/8/r7/7K w - - 0 1"
MANY_MOVES = "6k1/8/8/8/2p1b1K1/2q5/4r3/q6q b - - 0 1"
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"  # 218


def new_actor() -> Actor:
    """An actor whose network prefers some moves to others."""
    return Actor(Chess(), actor_copy(opinionated()), SearchConfig())


@pytest.fixture
def positions():
    game = Chess()
    named = state_from_fens([MATED, ONE_MOVE, MOST_MOVES], game)
    played = game.starts(61, "random-plies", torch.Generator().manual_seed(3))
    return type(named)(
        **{name: torch.cat((getattr(named, name), getattr(played, name))) for name in vars(named)}
    )


def as_dicts(actions: torch.Tensor, logits: torch.Tensor) -> list[dict[int, float]]:
    """Of each row the legal actions and their logits."""
    return [
        {action: logit for action, logit in zip(*row) if logit > ILLEGAL / 2}
        for row in zip(actions.tolist(), logits.tolist())
    ]


def assert_same(some: list[dict[int, float]], others: list[dict[int, float]]) -> None:
    assert len(some) == len(others)
    for one, other in zip(some, others):
        assert one == pytest.approx(other, abs=1e-3)


@torch.no_grad()
def test_a_list_of_actions_says_what_a_mask_says_and_the_likeliest_are_kept(positions):
    actor = new_actor()
    rates, _ = actor.network.features_and_value(actor.game.observe(positions))
    few = select(positions, torch.tensor([0, 1]))
    opinions = []
    for actor.static in (False, True):
        everything = as_dicts(*actor.likeliest(positions, rates, 4672))
        assert [len(row) for row in everything[:3]] == [0, 1, 218]
        actions, logits = actor.likeliest(positions, rates, 5, 5)
        assert actions.shape == logits.shape == (64, 5)
        for kept, row in zip(as_dicts(actions, logits), everything):
            assert sorted(kept.values()) == sorted(row.values())[-5:]
            assert kept.items() <= row.items()
        actions, logits = actor.likeliest(few, rates[:2], 128, 64)
        assert actions.shape[1] >= 64, "room is left"
        assert [len(row) for row in as_dicts(actions, logits)] == [0, 1] and actions.min() >= 0
        opinions.append(everything)
    assert_same(*opinions)


@torch.no_grad()
def test_the_reply_is_the_likeliest(positions):
    actor = new_actor()
    seen = actor.root(positions).embedding
    rows = torch.tensor([5, 2, 2, 40, 1])
    played = []
    for actor.static in (False, True):
        played.append(actor.recurrent_fn(seen, rows, None)[1].state.pieces)
    assert torch.equal(*played)
    best = torch.tensor(
        [
            max(row, key=row.get)
            for row in as_dicts(*actor.likeliest(positions, seen.rates, 4672))[1:]
        ]
    )
    expected = actor.game.step(select(positions, rows), best[rows - 1])
    assert torch.equal(expected.pieces, played[0])


@torch.no_grad()
def test_looking_in_parts_changes_nothing(positions, monkeypatch):
    actor = new_actor()
    whole = actor.root(positions)
    monkeypatch.setattr(actor_module, "CACHED_ROWS", 5)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    sizes = []
    monkeypatch.setattr(
        actor.game,
        "observe",
        lambda state: sizes.append(len(state.ply)) or Chess.observe(actor.game, state),
    )
    parts = actor.root(positions)
    assert sizes == [5] * 12 + [4]
    torch.testing.assert_close(parts.value, whole.value)
    torch.testing.assert_close(parts.embedding.rates, whole.embedding.rates)
    assert_same(as_dicts(*parts[:2]), as_dicts(*whole[:2]))


@torch.no_grad()
def test_what_nobody_wants_to_know_is_not_asked(positions, monkeypatch):
    """Too few moves, and moves that end the game: left out, the same is played and taught."""
    actor, looked, outputs = new_actor(), [], []
    named = state_from_fens(
        ["6k1/5ppp/8/8/8/8/8/R3K2R w KQ - 0 1", "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", ONE_MOVE],
        actor.game,
    )
    positions = concatenate([select(positions, slice(1, 28)), named])
    original = actor.network.features_and_value
    monkeypatch.setattr(
        actor.network,
        "features_and_value",
        lambda planes: looked.append(len(planes)) or original(planes),
    )
    root = actor.root
    for static in (False, True):
        monkeypatch.setattr(
            actor, "root", lambda *args, static=static: root(*args)._replace(static=static)
        )
        outputs.append(actor.act(positions, torch.Generator().manual_seed(1)))
    left_out, asked = looked[:3], looked[3:]
    assert asked == [30, 30 * 8, 30 * 4] and left_out[0] == 30
    legal = torch.bincount(actor.game.legal_actions(positions)[0]).clamp(max=8)
    assert left_out[1] == 8 * math.ceil(int(legal.sum()) / 8) < 30 * 8
    assert 30 * 4 - 16 < left_out[2] < 30 * 4
    for one, other in zip(*outputs):
        torch.testing.assert_close(one, other)


@torch.no_grad()
def test_a_single_move_that_ends_the_game_is_played():
    """Nothing is left to look at after it."""
    actor = new_actor()
    state = state_from_fens(
        ["7k/6Q1/8/8/8/8/8/K7 b - - 0 1"], actor.game
    )  # the king takes the queen: bare kings
    output = actor.act(state, torch.Generator().manual_seed(0))
    after = actor.game.step(state, output.action)
    assert ENDINGS[int(after.ending)] == "insufficient_material"
    assert output.action_weights.max() == 1 and torch.isfinite(output.value).all()


class Exact:
    """Answers as a network does, with numbers that are exact in whatever order they are added
    up.
    """

    def features_and_value(self, observation):
        weights = torch.arange(observation[0].numel()).remainder(97).float()
        seen = (observation.flatten(1) * weights).sum(1, keepdim=True)
        return seen, seen.remainder(torch.tensor([5, 3, 7])) / 4

    def prior_logits_at(self, rates, rows, actions):
        return (rates[rows, 0].remainder(97) * 31 + actions * 7).remainder(
            4673
        ) / 16  # no two actions have the same


@pytest.mark.parametrize(
    "search",
    [
        SearchConfig(search="tree", num_simulations=12, solve="all"),
        SearchConfig(candidates=6, survivors=3, solve="all"),
        SearchConfig(search="policy"),
    ],
    ids=lambda search: search.search,
)
def test_a_search_does_not_depend_on_what_shares_its_batch(search):
    """Beside positions with few moves, beside one with 218 and beside a game that is over. A tree
    keeps 64 columns, also of the row with more.
    """
    game = Chess()
    actor = Actor(game, cast(SpikingNetwork, Exact()), search)
    positions = game.starts(32, "few-piece", torch.Generator().manual_seed(5))
    positions = select(
        positions, (game.legal_action_mask(positions).sum(1) < 60).nonzero().squeeze(1)[:23]
    )
    positions = concatenate([state_from_fens([MANY_MOVES], game), positions])
    assert 64 < game.legal_action_mask(positions).sum(1).max() < 128
    crowd = concatenate([state_from_fens([MATED] + [MOST_MOVES] * 7, game), positions])
    alone, beside = (
        actor.act(state, torch.Generator().manual_seed(0), gumbel_scale=0.0)
        for state in (positions, crowd)
    )
    assert alone.value.equal(beside.value[:, 8:]) and beside.value.isfinite().all()
    for one, other in zip(alone[:3], beside[:3]):
        assert one.equal(other[8:])
