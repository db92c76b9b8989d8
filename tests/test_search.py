"""The search knows no chess: bandits with known answers first, then mates on the board."""

import chess
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.games.chess.notation import action_from_move
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.search import (
    ILLEGAL,
    Root,
    SearchConfig,
    Step,
    sample_gumbel,
    sample_prior,
    two_rung,
)

from .chess_games import state_from_fens

BATCH, ARMS = 256, 12


def improve_policy(root, recurrent_fn, config, generator, gumbel_scale=1.0):
    """The search that needs no game, with the noise that an actor gives it."""
    gumbel = gumbel_scale * sample_gumbel(root.prior_logits, generator)
    return (
        sample_prior(root, gumbel)
        if config.search == "policy"
        else two_rung(root, recurrent_fn, config, gumbel)
    )


def bandit(q: torch.Tensor):
    """A game of one move: the arm pulled pays q [B, A] and the game is over."""

    def recurrent_fn(embedding, rows, action):
        pays = embedding[rows, action] if action is not None else torch.zeros(len(rows))
        over = torch.zeros(1, len(rows))
        return Step(pays.unsqueeze(0), over, over), None

    return recurrent_fn


def bandit_root(seed: int) -> tuple[Root, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(BATCH, ARMS, generator=generator)
    q = torch.rand(BATCH, ARMS, generator=generator) * 2 - 1
    value = (logits.softmax(1) * q).sum(1).unsqueeze(0)
    return Root(torch.arange(ARMS).expand(BATCH, ARMS), logits, value, q), q


@pytest.mark.parametrize("candidates, survivors", [(8, 4), (12, 12), (2, 1), (1, 1), (24, 12)])
@pytest.mark.parametrize("gumbel_scale", [0.0, 1.0])
def test_improved_policy_is_never_worse_than_the_prior_when_q_is_exact(
    candidates, survivors, gumbel_scale
):
    root, q = bandit_root(candidates)
    output = improve_policy(
        root,
        bandit(q),
        SearchConfig(candidates=candidates, survivors=survivors, value_scale=0.1),
        torch.Generator().manual_seed(1),
        gumbel_scale,
    )
    prior_worth = (root.prior_logits.softmax(1) * q).sum(1)
    assert ((output.action_weights * q).sum(1) >= prior_worth - 1e-5).all()
    torch.testing.assert_close(output.action_weights.sum(1), torch.ones(BATCH))


def test_all_arms_looked_at_and_a_flat_prior_find_the_best_arm():
    root, q = bandit_root(3)
    root = root._replace(prior_logits=torch.zeros_like(q), value=q.mean(1).unsqueeze(0))
    output = improve_policy(
        root, bandit(q), SearchConfig(candidates=ARMS, survivors=4), torch.Generator(), 0.0
    )
    assert torch.equal(output.action, q.argmax(1))
    assert torch.equal(output.action_weights.argmax(1), q.argmax(1))


def test_between_arms_of_one_worth_the_choice_is_the_noises():
    """So a move of self-play is drawn from the prior where values say nothing."""
    root, q = bandit_root(6)
    root = root._replace(value=torch.zeros(1, BATCH), embedding=torch.zeros_like(q))
    gumbel = sample_gumbel(root.prior_logits, torch.Generator().manual_seed(2))
    config = SearchConfig(candidates=ARMS, survivors=ARMS)
    output = two_rung(root, bandit(root.embedding), config, gumbel)
    assert torch.equal(output.action, (root.prior_logits + gumbel).argmax(1))


def test_an_illegal_action_is_never_chosen_however_good_its_value():
    root, q = bandit_root(4)
    legal = torch.zeros(BATCH, ARMS, dtype=torch.bool)
    legal[torch.arange(BATCH), torch.arange(BATCH) % ARMS] = (
        True  # a single legal action, another in each row
    )
    root = root._replace(prior_logits=torch.where(legal, root.prior_logits, ILLEGAL))
    output = improve_policy(
        root, bandit(torch.where(legal, q, 1.0)), SearchConfig(), torch.Generator().manual_seed(0)
    )
    assert torch.equal(output.action, torch.arange(BATCH) % ARMS)
    assert torch.equal(output.action_weights > 0, legal)


def test_completed_policy_by_hand():
    """Two arms of three tried, one twice; worked out on paper from Danihelka et al. 2022."""
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]]))
    q = torch.tensor([[0.8, -0.4, 0.0]])
    root = Root(torch.arange(3).unsqueeze(0), logits, torch.tensor([[0.1]]), q)
    output = improve_policy(
        root,
        bandit(q),
        SearchConfig(candidates=2, survivors=1, value_scale=0.1),
        torch.Generator(),
        0.0,
    )
    visits, tried = torch.tensor([2.0, 1.0]), q[0, :2]
    mean_q = (torch.tensor([0.5, 0.3]) * tried).sum() / 0.8
    mixed = (0.1 + visits.sum() * mean_q) / (1 + visits.sum())
    completed = torch.stack((tried[0], tried[1], mixed))
    rescaled = (completed - completed.min()) / (completed.max() - completed.min())
    expected = (logits[0] + 0.1 * 52 * rescaled).softmax(0)
    torch.testing.assert_close(output.action_weights[0], expected)
    torch.testing.assert_close(output.value[0, 0], mixed)
    assert output.action.item() == 0
    # An illegal third arm has no part in it.
    root.prior_logits[0, 2] = ILLEGAL
    config = SearchConfig(candidates=3, survivors=1, value_scale=0.1)
    output = improve_policy(root, bandit(q), config, torch.Generator(), 0.0)
    torch.testing.assert_close(output.value[0, 0], mixed)


def test_the_policy_search_samples_the_prior():
    root, q = bandit_root(5)
    root = Root(root.actions, root.prior_logits[:1].expand(BATCH, -1), root.value, q)
    counts = torch.zeros(ARMS)
    for seed in range(40):
        action = improve_policy(
            root, bandit(q), SearchConfig(search="policy"), torch.Generator().manual_seed(seed)
        ).action
        counts += torch.bincount(action, minlength=ARMS)
    assert (counts / counts.sum() - root.prior_logits[0].softmax(0)).abs().max() < 0.02


class Ignorant:
    """A network that prefers nothing, except what `likes` (an action) is shown to it, and values
    everything 0.
    """

    def __init__(self, likes: int | None = None):
        self.likes = likes

    def features_and_value(self, observation):
        return observation, torch.zeros(len(observation), 3)

    def prior_logits(self, rates):
        logits = torch.zeros(len(rates), Chess.num_actions)
        if self.likes is not None:
            logits[:, self.likes] = 3.0
        return logits

    def prior_logits_at(self, rates, rows, actions):
        return self.prior_logits(rates)[rows, actions]


def considering(number: int, actor: Actor) -> Actor:
    """The actor, with a tree that begins with so many actions."""
    actor.considered = number
    actor.look_ahead(actor.config)
    return actor


def test_the_reply_refutes():
    """A knight that leaves a1 alone lets Black mate there; the second rung plays that reply, since
    its prior likes it, and the move loses weight against one that makes luft."""
    fen = "6k1/5ppp/8/8/8/1N6/r4PPP/6K1 w - - 0 1"
    game, board = Chess(), chess.Board(fen)
    leaves = action_from_move(chess.Move.from_uci("b3d4"), board)
    luft = action_from_move(chess.Move.from_uci("h2h3"), board)
    board.push_uci("b3d4")
    likes = action_from_move(chess.Move.from_uci("a2a1"), board)
    actor = Actor(game, Ignorant(likes), SearchConfig(candidates=64, survivors=64))
    output = actor.act(state_from_fens([fen], game), torch.Generator(), 0.0)
    weights = dict(zip(output.actions[0].tolist(), output.action_weights[0].tolist()))
    assert weights[luft] > 2 * weights[leaves]


def test_a_wrong_shape_is_named():
    root, q = bandit_root(1)
    with pytest.raises(ValueError, match=r"gumbel has the shape \[256, 3\]: expected \[256, 12\]"):
        two_rung(root, bandit(q), SearchConfig(), torch.zeros(BATCH, 3))
