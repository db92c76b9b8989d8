"""Policy improvement with Gumbel by two-rung sequential halving. It does not
depend on a game: the game is passed in as `recurrent_fn`.

Danihelka et al. 2022, "Policy improvement by planning with Gumbel": draw candidates without
replacement by gumbel + logit, spend evaluations on them by sequential halving, act on the survivor
with the best gumbel + logit + sigma(q), and teach the network softmax(logits + sigma(completed q)).
Two rungs need no tree: one batch evaluates the candidates, a second one the best reply to each
survivor. So a move costs three network calls, whatever its breadth. Names follow mctx
(https://github.com/google-deepmind/mctx).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .graphs import map_tensors
from .settings import COUNT, FROM_ZERO, SEARCH, Settings, one_of, require, setting, whole
from .shapes import check_shape

MOST_SIMULATIONS = 4096  # of a tree, because it is in memory whole
ILLEGAL = -1e9  # the logit of an action that is not legal
# On a CPU row counts are rounded up to multiples of this: each new batch size costs milliseconds.
ROW_MULTIPLE = 8
# sigma(q) = (MAXVISIT_INIT + most visits) * value_scale * q (mctx's maxvisit_init).
MAXVISIT_INIT = 50.0


class Root(NamedTuple):
    """Positions to improve on. `A` columns hold each row's legal actions; spare columns have logit
    ILLEGAL. A value is K quantities, each in [-1, 1] or points: the search maximises the first; the
    others are averaged like it, and decide nothing.
    """

    actions: Tensor  # int64 [B, A], what to hand to recurrent_fn
    prior_logits: Tensor  # float32 [B, A]
    value: Tensor  # float32 [K, B], for the player to move
    embedding: Any  # the positions themselves, in whatever form recurrent_fn takes
    # Whether no size may follow from the data. A CPU saves work by such sizes; for any other device
    # the host would have to wait.
    static: bool = False


class Step(NamedTuple):
    """What an action led to. q = reward + discount * value of each of the K quantities, for the
    player who acted.
    """

    reward: Tensor  # float32 [K, N], to the player who acted
    discount: Tensor  # float32 [K, N], 0 at an end; the first negative where the other is to move
    value: Tensor  # float32 [K, N], for the player now to move
    proven: Tensor | None = (
        None  # bool [N], whether `value` follows from the rules; an end needs no such proof
    )


# recurrent_fn(embedding, rows int64 [N], action int64 [N] or None) -> (Step, embedding of N
# positions): play action[i] in position rows[i] of the embedding; None plays the likeliest action
# of each position's own prior. Where chance has a part, every one of the N has chance of its own.
RecurrentFn = Callable[[Any, Tensor, Tensor | None], tuple[Step, Any]]


class PolicyOutput(NamedTuple):
    """What a search answers for B positions."""

    action: Tensor  # int64 [B], the search's choice
    actions: Tensor  # int64 [B, A], the root's columns
    action_weights: Tensor  # float32 [B, A], the improved policy over them, summing to 1
    value: Tensor  # float32 [K, B], the root's value after search
    tree: Any = None  # the tree.Tree that was grown, in a search with a tree
    forced: Tensor | None = None  # int64 [B], plies to a win by force; 0: none is proven


@dataclass(frozen=True)
class SearchConfig(Settings):
    """How far to look ahead, and how to weigh what was seen.

    sigma(q) = (MAXVISIT_INIT + most visits) * value_scale * q, with q rescaled to [0, 1] within its
    row (mctx, qtransform_completed_by_mix_value; in two rungs the root's raw value counts among the
    row's).
    """

    search: str = setting(
        "two-rung",
        "How moves are searched in self-play: two-rung or tree. For matches alone: policy, which "
        "does not look ahead.",
        SEARCH,
        one_of("two-rung", "tree", "policy"),
    )
    candidates: int = setting(
        8, "two-rung: the actions of the root that are evaluated.", SEARCH, COUNT
    )
    survivors: int = setting(
        4, "two-rung: the candidates whose best reply is evaluated too.", SEARCH, COUNT
    )
    num_simulations: int = setting(
        32, "tree: the evaluations after the root's.", SEARCH, whole(most=MOST_SIMULATIONS)
    )
    value_scale: float = setting(
        0.3,
        "The weight of the values found by the search against the network's policy.",
        SEARCH,
        FROM_ZERO,
    )
    solve: str = setting(
        "off",
        "all: values that the rules prove count as proven, at the root and in the tree. off: "
        "they count as any other.",
        SEARCH,
        one_of("off", "all"),
    )

    def __post_init__(self):
        super().__post_init__()
        most = whole(most=self.candidates)
        require("survivors", self.survivors, most, f" of candidates={self.candidates}")

    @property
    def evaluations(self) -> int:
        """Network evaluations per move, the root's included."""
        two_rung = self.candidates + self.survivors
        return 1 + {"policy": 0, "two-rung": two_rung, "tree": self.num_simulations}[self.search]


def sample_prior(root: Root, gumbel: Tensor) -> PolicyOutput:
    """No search: an action drawn from the prior of each row; gumbel [B, A] is the noise."""
    action = best_action(root.actions, root.prior_logits + gumbel)
    return PolicyOutput(action, root.actions, root.prior_logits.softmax(1), root.value)


def best_action(actions: Tensor, scores: Tensor) -> Tensor:
    """int64 [B]: in each row of `actions` [B, A] the one with the highest of `scores` [B, A]."""
    return actions.gather(1, scores.argmax(1, keepdim=True)).squeeze(1)


def check_root(root: Root, gumbel: Tensor) -> None:
    """Raise ValueError unless a root's tensors and its noise have the shapes [B, A] and [K, B]."""
    batch, columns = root.prior_logits.shape
    check_shape("root.actions", root.actions, batch, columns)
    check_shape("root.value", root.value, None, batch)
    check_shape("gumbel", gumbel, batch, columns)


def two_rung(
    root: Root, recurrent_fn: RecurrentFn, config: SearchConfig, gumbel: Tensor
) -> PolicyOutput:
    """Sequential halving over two rungs: `candidates` actions looked at once, `survivors` of them
    once more.

    gumbel [B, A] is the noise; zeros take what looks best.
    """
    check_root(root, gumbel)
    scores = root.prior_logits + gumbel
    m = min(config.candidates, scores.shape[1])
    s = min(config.survivors, m)
    columns = scores.topk(m, dim=1).indices  # [B, m]
    batch = torch.arange(len(scores), device=scores.device)

    rows = batch.repeat_interleave(m)
    actions = root.actions.gather(1, columns).flatten()
    considered = scores.gather(1, columns)
    legal = considered > ILLEGAL / 2  # [B, m]
    needed = None if root.static else legal.flatten()
    rung = _ask(recurrent_fn, root.embedding, rows, actions, needed)
    first = rung[0]
    q = (first.reward + first.discount * first.value).unflatten(1, (-1, m))  # [K, B, m]
    visits = torch.ones_like(considered)
    tried = considered + _sigma(root, config, 1, q[0], legal)
    survivors = tried.topk(s, dim=1).indices  # [B, s], into columns

    rows = (batch.unsqueeze(1) * m + survivors).flatten()
    twice = _after_best_reply(root, recurrent_fn, config, rung, legal.flatten(), rows)
    q = q.scatter(2, survivors.expand(len(q), -1, -1), twice.unflatten(1, (-1, s)))
    visits = visits.scatter(1, survivors, 2.0)

    weights, value = completed_policy(root, columns, q, visits, config)
    final = considered + _sigma(root, config, 2, q[0], legal)
    last = root.actions.gather(1, columns.gather(1, survivors))
    action = best_action(last, final.gather(1, survivors))
    return PolicyOutput(action, root.actions, weights, value)


def _after_best_reply(
    root: Root,
    recurrent_fn: RecurrentFn,
    config: SearchConfig,
    rung: tuple[Step, Any, Tensor],
    legal: Tensor,
    rows: Tensor,
) -> Tensor:
    """q [K, N] of the actions in `rows` int64 [N] of the first rung (what _ask returned), after a
    look at the best reply to each. legal: bool, of every row of that rung.

    An action looked at twice is worth the mean of its own value and its best reply's, as a tree
    would back it up.
    """
    first, children, row_of = rung
    unfinished = None
    if not root.static:
        unfinished = legal[rows] & (first.discount[0, rows] != 0)
    second, _, _ = _ask(recurrent_fn, children, row_of[rows], None, unfinished)
    reply_value = second.reward + second.discount * second.value
    tried = map_tensors(lambda part: part[..., rows], first)
    q = tried.reward + tried.discount * (tried.value + reply_value) / 2
    return _proven(tried, second, q) if config.solve == "all" else q


def _proven(first: Step, second: Step, q: Tensor) -> Tensor:
    """q [K, N] of actions looked at twice, exact where the rules prove it: there no mean is taken
    with a guess.

    first: after the actions; second: after the best reply to each. A reply that wins settles its
    action, and so does a child whose value is known.
    """
    refuted = (second.discount[0] == 0) & (second.reward[0] > 0)
    q = torch.where(refuted, first.reward + first.discount * second.reward, q)
    if first.proven is None:
        return q
    return torch.where(first.proven, first.reward + first.discount * first.value, q)


def play_wins(output: PolicyOutput, wins: Tensor, value: Tensor) -> PolicyOutput:
    """`output` with the action of `wins` int64 [B] chosen, and alone in the policy, in the rows
    where one is given.

    wins: an action that wins by force, -1 in rows without one. value: float32 [K, B], what it is
    worth.
    """
    found = (wins >= 0).unsqueeze(1)
    column = (
        (output.actions == wins.unsqueeze(1)).to(torch.uint8).argmax(1, keepdim=True)
    )  # 0 if it is in none
    alone = torch.zeros_like(output.action_weights).scatter(1, column, 1.0)
    return PolicyOutput(
        torch.where(wins >= 0, wins, output.action),
        torch.where(found, output.actions.scatter(1, column, wins.unsqueeze(1)), output.actions),
        torch.where(found, alone, output.action_weights),
        torch.where(wins >= 0, value, output.value),
        output.tree,
    )


def _ask(
    recurrent_fn: RecurrentFn,
    embedding: Any,
    rows: Tensor,
    action: Tensor | None,
    needed: Tensor | None,
) -> tuple[Step, Any, Tensor]:
    """recurrent_fn of the rows that are `needed` (bool [N]; None: of all). The step of other rows
    is zeros.

    Also returns int64 [N]: the row of the new embedding that holds each position.
    """
    size = len(rows)
    if needed is not None:
        blocks = math.ceil(max(1, int(needed.sum())) / ROW_MULTIPLE)
        size = min(size, ROW_MULTIPLE * blocks)
    if needed is None or size == len(rows):
        return *recurrent_fn(embedding, rows, action), torch.arange(size, device=rows.device)
    kept = (~needed).to(torch.uint8).argsort(stable=True)[:size]  # those needed, then others
    step, embedding = recurrent_fn(embedding, rows[kept], None if action is None else action[kept])
    step = map_tensors(
        lambda part: part.new_zeros(*part.shape[:-1], len(rows)).index_copy(-1, kept, part), step
    )
    return step, embedding, torch.zeros_like(rows).index_copy(0, kept, torch.arange(size))


def completed_policy(
    root: Root, columns: Tensor, q: Tensor, visits: Tensor, config: SearchConfig
) -> tuple[Tensor, Tensor]:
    """The improved policy [B, A] and the mixed value [K, B] after the actions in `columns` [B, m]
    got `q` [K, B, m] and `visits` [B, m].

    Actions never tried count as worth the mixed value (Danihelka et al. 2022, equations 10, 11 and
    33).
    """
    legal = root.prior_logits.gather(1, columns) > ILLEGAL / 2
    visits = visits * legal
    prior = root.prior_logits.softmax(1).gather(1, columns).clamp(min=1e-30) * legal
    total = visits.sum(1)
    mean_q = (prior * q).sum(2) / prior.sum(1).clamp(min=1e-30)
    value = (root.value + total * mean_q) / (1 + total)
    completed = value[0].unsqueeze(1).expand_as(root.prior_logits).scatter(1, columns, q[0])
    sigma = _sigma(root, config, 2, completed, root.prior_logits > ILLEGAL / 2)
    return (root.prior_logits + sigma).softmax(1), value


def sample_gumbel(like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise in the shape of `like`.

    MPS draws an exact zero now and then (pytorch#192577), whose noise would be infinite. The least
    number replaces it.
    """
    drawn = torch.empty_like(like).exponential_(generator=generator)
    return -drawn.clamp(min=torch.finfo(like.dtype).tiny).log()


def padded(columns: Tensor, width: int, value: float = 0) -> Tensor:
    """`columns` [B, A] with columns of `value` added up to `width`; as they are where A is `width`
    or more.

    Padding by 0 columns is wrong on some versions of MPS (pytorch#139823), so it is skipped.
    """
    missing = width - columns.shape[1]
    return columns if missing <= 0 else functional.pad(columns, (0, missing), value=value)


def _sigma(root: Root, config: SearchConfig, most_visits: int, q: Tensor, legal: Tensor) -> Tensor:
    """[B, n]: sigma(q) of q [B, n], see SearchConfig and rescale."""
    scale = (MAXVISIT_INIT + most_visits) * config.value_scale
    return scale * rescale(q, legal, root.value[0])


def rescale(q: Tensor, legal: Tensor, value: Tensor) -> Tensor:
    """q [B, n] moved to [0, 1] within each row, over the actions that are `legal`, bool [B, n], and
    the value [B], which counts for the others.
    """
    value = value.unsqueeze(1)
    q = torch.where(legal, q, value)
    low = torch.minimum(q.amin(1, keepdim=True), value)
    high = torch.maximum(q.amax(1, keepdim=True), value)
    return (q - low) / (high - low).clamp(min=1e-8)


def considered_visits_table(most: int, num_simulations: int, device: torch.device) -> Tensor:
    """int64 [most + 1, num_simulations]: by number of actions considered, the visit count of those
    to try next.
    """
    return torch.tensor(
        [considered_visits(number, num_simulations) for number in range(most + 1)], device=device
    )


def considered_visits(considered: int, num_simulations: int) -> list[int]:
    """Sequential halving's schedule: every action once, again, ..., then the better half of them,
    and so on to two.
    """
    if considered <= 1:
        return list(range(num_simulations))
    rungs = math.ceil(math.log2(considered))
    visits = [0] * considered
    sequence = []
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (rungs * considered))):
            sequence += visits[:considered]
            visits[:considered] = [count + 1 for count in visits[:considered]]
        considered = max(2, considered // 2)
    return sequence[:num_simulations]


def score_considered(
    considered_visit: Tensor, gumbel: Tensor, logits: Tensor, completed: Tensor, visits: Tensor
) -> Tensor:
    """[B, A]: gumbel + logits + sigma(q) of the actions visited `considered_visit` [B] times, the
    others' far below.
    """
    scores = torch.where(logits > ILLEGAL / 2, gumbel + logits + completed, 2 * ILLEGAL)
    return torch.where(visits == considered_visit.unsqueeze(1), scores, 4 * ILLEGAL)
