"""Does a device compute what the CPU computes? The package's own work, done on both and compared.

Random plies of the rules must agree bit for bit, the gradient of every parameter within a
tolerance, a ply of each search must choose what the CPU chooses where that is clear, and short
games of self-play must begin as the CPU's begin and go on by its rules.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .actor import Actor
from .config import TrainConfig
from .devices import Inventory, choose_dtype, try_device
from .games.base import Game, finished, forced_wins, random_actions, where
from .games.registry import make_game
from .in_flight import Arrays
from .learner import Learner, LearnerConfig
from .lockstep import Lockstep
from .network import SpikingNetwork, actor_copy, build_network
from .records import POLICY_WIDTH
from .search import PolicyOutput, SearchConfig, best_action

BOARDS = 64
PLIES = 24
SEARCHES = ("two-rung", "tree", "policy")
SIMULATIONS = 8  # of the tree
SHORT = 3  # plies of a game of self-play: too few for a position to come back
# How far a parameter's gradient may be from the CPU's in float32: the norm of the difference over
# the norm of the CPU's. Most of it is rounding: what lifts a membrane over its threshold adds a
# whole spike. float32 is compared without TF32, whose ten bits are as coarse as float16's.
TOLERANCES = {torch.float32: 0.05, torch.float16: 0.5, torch.bfloat16: 0.9}
SMALL = 1e-3  # of all gradients' norm: the denominator for a smaller gradient
SHARPER = 1000.0  # a new network's policy weights times this prefer some moves clearly
TIE_BREAK = 10.0  # what the last action's logit has more than the first's
CLEAR = 0.2  # a move is clear if its weight is larger than the second's by this
AGREEMENT = 0.9  # the share of clear moves that must be the CPU's
COMPARED = (
    f"{PLIES} random plies on {BOARDS} boards bit for bit, every gradient of an update, "
    "a ply of each search, a block of self-play"
)


@functools.cache
def probe(device: str, game: str = "chess", precision: str = "auto") -> dict[str, float]:
    """Do the package's own work on `device` and on the CPU, and compare (see the module's text).

    precision: that of the learner, which is compared beside float32.
    Returns, by precision, how far the furthest gradient is from the CPU's, as a share of its norm.
    Raises RuntimeError with what differs, or what the device raises. A device is probed once per
    process.
    """
    try_device(device)
    here = make_game(game, device="cpu")
    there = make_game(game, device=device)
    state, remote = _compare_rules(here, there)
    network = probe_network(here)
    copy = probe_network(there)
    copy.load_state_dict(network.state_dict())
    batch = batch_of(here, state)
    expected = gradients(here, network, batch, torch.float32)
    furthest = {}
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for dtype in dict.fromkeys((torch.float32, choose_dtype(precision, device))):
            found = gradients(there, copy, batch, dtype)
            furthest[str(dtype)] = _compare_gradients(expected, found, dtype)
        with torch.no_grad():
            network.policy.weight.mul_(SHARPER)
        copy.load_state_dict(network.state_dict())  # batch norm's statistics moved, too
        for name in SEARCHES:
            found = one_ply(there, copy, remote, name)
            _compare_policies(here, state, one_ply(here, network, state, name), found, name)
        _compare_games(game, device, network, copy)
    return furthest


def probe_for(
    game: str, machine: Inventory, precision: str = "auto"
) -> Callable[[str], object] | None:
    """The `probe` argument of detect_device for a game; None on a machine with only a CPU."""
    if not (machine.gpus or machine.mps):
        return None
    return functools.partial(probe, game=game, precision=precision)


def probe_network(game: Game) -> SpikingNetwork:
    """A small new network for a game, on the game's device, in which every layer counts.

    The last gain of a new network's block is zero, which would hide faults in that block.
    """
    config = TrainConfig(game=game.name, preset="cpu", channels=8, blocks=1).network_config(game)
    network = build_network(config, game.device)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
    return network


def _tensors(game: Game, state: Any) -> list[Tensor]:
    """All of `state` and what follows from it, on the CPU."""
    follows = game.legal_action_mask(state), game.pack(state)
    return [tensor.cpu() for tensor in (*vars(state).values(), *follows)]


def _compare_rules(here: Game, there: Game) -> tuple[Any, Any]:
    """The states after PLIES random plies on the CPU and on the device, equal after each."""
    generator = torch.Generator().manual_seed(0)
    start = state = here.init(BOARDS)
    remote_start = remote = there.init(BOARDS)
    for ply in range(PLIES):
        action = random_actions(here.legal_action_mask(state), generator)
        state = here.step(state, action)
        remote = there.step(remote, action.to(there.device))
        if not all(map(torch.equal, _tensors(here, state), _tensors(there, remote))):
            raise RuntimeError(
                f"the rules of {here.name} come out wrong there, after {ply + 1} random plies"
            )
        state = where(finished(state), start, state)
        remote = where(finished(remote), remote_start, remote)
    # On MPS nothing plays by proofs, whose sizes follow the position: it keeps each size for good.
    if here.num_players == 2 and there.device.type != "mps":
        for expected, found in zip(forced_wins(here, state), forced_wins(there, remote)):
            if not torch.equal(expected, found.cpu()):
                raise RuntimeError(f"the proven wins of {here.name} come out wrong there")
    return state, remote


def _compare_games(name: str, device: str, network: SpikingNetwork, copy: SpikingNetwork) -> None:
    """Raise RuntimeError where games of self-play by `copy` on a device begin otherwise than those
    by `network` on the CPU, or do not go on by the rules.
    """
    wrong = "self-play comes out wrong there"
    here = make_game(name, SHORT, "cpu")
    found = short_games(make_game(name, SHORT, device), copy)
    started = []
    for block in (short_games(here, network), found):
        numbers, first = np.unique(block["number"], return_index=True)
        started.append(block["position"].reshape(-1, here.packed_words)[first])
        if not np.array_equal(numbers, np.arange(len(numbers))):
            raise RuntimeError(f"{wrong}: a game is missing")
    shared = min(map(len, started))
    if not np.array_equal(started[0][:shared], started[1][:shared]):
        raise RuntimeError(f"{wrong}: games do not begin as on the CPU")
    goes_on = found["number"][1:] == found["number"][:-1]
    position = torch.from_numpy(found["position"][:-1][goes_on])
    action = torch.from_numpy(found["action"][:-1][goes_on].astype(np.int64))
    after = here.pack(here.step(here.unpack(position), action)).numpy()
    if not here.chance and not np.array_equal(after, found["position"][1:][goes_on]):
        raise RuntimeError(f"{wrong}: games do not go on by the rules")


def short_games(game: Game, network: SpikingNetwork) -> Arrays:
    """A block of self-play on BOARDS boards without a search (see Lockstep.play_block)."""
    actor = Actor(game, actor_copy(network, torch.float32), SearchConfig(search="policy"))
    return Lockstep(actor, BOARDS, seed=0).play_block()


def batch_of(game: Game, state: Any) -> Arrays:
    """A batch for the learner from `state` [B] on the CPU, whose targets are legal actions. Some
    rows are to be learned from as a symmetric image.
    """
    count = len(state.current_player)
    width = min(POLICY_WIDTH, game.num_actions)
    legal = game.legal_action_mask(state).float().topk(width, dim=1)
    points = np.linspace(0, game.score_limit, count, dtype=np.float32)
    outcomes = np.eye(3, dtype=np.float32)[np.arange(count) % 3]
    return {
        "positions": game.pack(state).numpy(),
        "policy_actions": legal.indices.numpy().astype(np.uint16),
        "policy_weights": (legal.values / legal.values.sum(1, keepdim=True)).numpy(),
        "value_targets": points if game.score_limit else outcomes,
        "chance": np.linspace(0, 1, count, endpoint=False, dtype=np.float32),
    }


def gradients(
    game: Game, network: SpikingNetwork, batch: Arrays, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The gradient of each parameter by name, on the CPU, for the loss of an update on `batch`.

    Nothing is clipped.
    """
    precision = str(dtype).removeprefix("torch.")
    learner = Learner(network, game, LearnerConfig(precision=precision))
    network.train()
    _, scaled = learner.gradient(learner.to_tensors(batch))
    parts = learner.parts(scaled / learner.scaler.get_scale())
    return {name: part.cpu() for (name, _), part in zip(network.named_parameters(), parts)}


def _compare_gradients(
    expected: dict[str, Tensor], found: dict[str, Tensor], dtype: torch.dtype
) -> float:
    """The largest difference of a parameter's gradient from the CPU's, as a share of its norm.
    Raises RuntimeError with the first parameter for which it is too large.
    """
    furthest = 0.0
    tolerance = TOLERANCES[dtype]
    total = torch.stack([gradient.norm() for gradient in expected.values()]).norm()
    for name, gradient in expected.items():
        size = torch.maximum(gradient.norm(), SMALL * total)
        difference = float((found[name] - gradient).norm() / size)
        if not difference <= tolerance:
            instead = "" if dtype == torch.float32 else "; try precision='float32'"
            raise RuntimeError(
                f"an update comes out wrong there: in {dtype} the gradient of {name} is "
                f"{difference:.0%} away from the CPU's, expected at most {tolerance:.0%}{instead}"
            )
        furthest = max(furthest, difference)
    return furthest


class Decided(Actor):
    """An actor whose prior has no ties: among equal actions each device would take others."""

    def _policy(
        self, state: Any, rates: Tensor, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        actions, logits = super()._policy(state, rates, rows)
        return actions, logits + TIE_BREAK * actions / self.game.num_actions


def one_ply(game: Game, network: SpikingNetwork, state: Any, search: str) -> PolicyOutput:
    """The policy of a search for `state` [B], without noise, in float32, without proofs."""
    config = SearchConfig(search=search, num_simulations=SIMULATIONS, solve="off")
    actor = Decided(game, actor_copy(network, torch.float32), config)
    generator = torch.Generator(game.device).manual_seed(0)
    return actor.act(state, generator, gumbel_scale=0.0)


def _compare_policies(
    game: Game, state: Any, expected: PolicyOutput, found: PolicyOutput, search: str
) -> None:
    """Raise RuntimeError where a device's policy is invalid, or clearly not the CPU's.

    game, state: on the CPU. In a game of chance the devices draw different numbers, so there the
    two policies are not compared.
    """
    wrong = f"the search {search} comes out wrong there"
    mask = game.legal_action_mask(state)
    action = found.action.cpu()
    weights = found.action_weights.cpu()
    if not (weights.sum(1) - 1).abs().max() < 1e-3:  # this finds NaN too
        raise RuntimeError(f"{wrong}: weights do not sum to one")
    if not mask.gather(1, action.unsqueeze(1)).all():
        raise RuntimeError(f"{wrong}: moves are not legal")
    if game.chance:
        return
    best = expected.action_weights.topk(2, dim=1).values
    clear = best[:, 0] - best[:, 1] >= CLEAR
    chosen = [best_action(each.actions, each.action_weights).cpu() for each in (expected, found)]
    same = chosen[0] == chosen[1]
    if clear.any() and not same[clear].float().mean() >= AGREEMENT:
        raise RuntimeError(
            f"{wrong}: of {int(clear.sum())} clear moves {int(same[clear].sum())} are the CPU's"
        )
