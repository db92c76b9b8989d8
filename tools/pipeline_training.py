"""Train a network that does not wait, from scratch, beside one that does.

    python tools/pipeline_training.py RUN FOLDER --seeds 0 1 2

For each seed several networks learn from the same batches of the positions that RUN has kept: one
waits (the usual learner), the others learn in a form of spikes.without_waiting: a spike stays, or
it can be taken back. In each update that form runs for some number of steps, STEPS, and is read
after the last. Its gradient passes as if each layer had waited; batch norm takes the running
statistics, and the batch's own in the last step alone. Then each is read after several steps: the
losses on positions that nobody learned from, how often the likeliest legal move is that of the same
network when it waits, and the score with 16 evaluations a move against two networks, by default
those that come with the package (those of docs/spiking.md were 000007 and 000030 of commit
6bd4c67).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from chessnn_colab.arena.match import Match
from chessnn_colab.arena.parallel import play_matches
from chessnn_colab.arena.players import NetworkPlayer, play_search
from chessnn_colab.arena.registry import match_game
from chessnn_colab.games.registry import make_game
from chessnn_colab.learner import Learner, LearnerConfig, Losses, losses_of, masked_log_policy
from chessnn_colab.network import SpikingNetwork, actor_copy, build_network
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.presets import SPIKE_PRICES
from chessnn_colab.replay import ReplayBuffer
from chessnn_colab.runs.checkpoint import load_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import load_network, shipped_files
from chessnn_colab.spikes import spiking_layers, without_waiting

UPDATES = 3000
BATCH = 256
LEARNING_RATE = 2e-3
STEPS = (4, 5, 6, 7, 8)  # of an update, drawn evenly
READ = (None, 4, 6, 8, 12)  # steps after which a network is read; None: when it has waited
# How a network learns: whether it waits, whether it can take spikes back where it does not, and the
# steps of its matches. After eight steps one that takes back is the one that waits.
LEARNED = {
    "waiting": (True, False, (None, 8)),
    "spikes stay": (False, False, READ),
    "taken back": (False, True, (None, 4, 6)),
}
HELD_OUT = 2000  # the newest positions
MATCH_GAMES = 64  # against each of two networks
EVALUATIONS = 16


@contextmanager
def in_steps(network: SpikingNetwork, take_back: bool) -> Iterator[None]:
    """As without_waiting, but the gradient passes as if each layer had waited."""
    wanted: dict[nn.Module, Tensor] = {}

    def keep(layer: nn.Module, _: Any, spikes: Tensor) -> None:
        wanted[layer] = spikes

    def pass_through(layer: nn.Module, _: Any, fired: Tensor) -> Tensor:
        return wanted[layer] + (fired.to(wanted[layer].dtype) - wanted[layer]).detach()

    with ExitStack() as stack:

        def after_each(hook: Any) -> None:
            for layer in spiking_layers(network).values():
                stack.callback(layer.register_forward_hook(hook).remove)

        after_each(keep)
        stack.enter_context(without_waiting(network, take_back))
        after_each(pass_through)
        yield


class InSteps(Learner):
    """A learner whose network does not wait."""

    def __init__(self, *arguments: Any, take_back: bool, seed: int):
        super().__init__(*arguments)
        self.take_back = take_back
        self.random = random.Random(seed)

    def losses(self, batch: Mapping[str, Tensor]) -> Losses:
        """Of the answer after as many steps as chance says."""
        observation = self.game.observe(self.game.unpack(batch["positions"]))
        with in_steps(self.network, self.take_back):
            self.network.eval()
            with torch.no_grad(), self._autocast():
                for _ in range(self.random.choice(STEPS) - 1):
                    self.network.features_and_value(observation)
            self.network.train()
            return super().losses(batch)


class Stepped:
    """A network that a search asks, and that answers after some steps without waiting."""

    def __init__(self, network: SpikingNetwork, steps: int, take_back: bool):
        self.network, self.steps, self.take_back = network, steps, take_back

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def features_and_value(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """As SpikingNetwork's."""
        with without_waiting(self.network, self.take_back):
            found = [self.network.features_and_value(observation) for _ in range(self.steps)]
        return found[-1]


def split(run: str) -> tuple[ReplayBuffer, dict[str, np.ndarray]]:
    """The positions that a run has kept: those to learn from, and the newest, held out."""
    checkpoint = load_checkpoint(max(RunFolder.open(run).checkpoints_folder.glob("*.safetensors")))
    arrays = checkpoint.groups["replay"]
    kept = {name: array[:-HELD_OUT] for name, array in arrays.items()}
    game = make_game("chess")
    replay = ReplayBuffer.from_arrays(
        len(kept["positions"]), kept, game.num_actions, game.packed_words
    )
    return replay, {name: array[-HELD_OUT:] for name, array in arrays.items()}


def learned(replay: ReplayBuffer, how: str, seed: int) -> SpikingNetwork:
    """A network that learned from UPDATES batches, from scratch."""
    network = build_network(NetworkConfig(), "cpu", seed)
    config = LearnerConfig(spike_penalty=SPIKE_PRICES["chess"])
    arguments = network, make_game("chess"), config
    waits, take_back, _ = LEARNED[how]
    learner = Learner(*arguments) if waits else InSteps(*arguments, take_back=take_back, seed=seed)
    generator = np.random.default_rng(seed)
    for done in range(UPDATES):
        batch = replay.sample(BATCH, generator)
        batch["chance"] = generator.random(BATCH, np.float32)
        fall = min(1.0, max(0.05, 1 - 1.9 * (done / UPDATES - 0.5)))
        losses = learner.update(batch, LEARNING_RATE * fall)
        if done % 100 == 99:
            print(f"seed {seed}, {how}, update {done + 1}: {losses.loss:.3f}", flush=True)
    return network.eval()


@torch.no_grad()
def answers(network: SpikingNetwork, planes: Tensor, steps: int | None, take_back: bool) -> Any:
    """What a network says after some steps, or when it has waited."""
    with nullcontext() if steps is None else without_waiting(network, take_back):
        found = [network(planes) for _ in range(steps or 1)]
    return found[-1]


def read(
    network: SpikingNetwork, held: dict[str, np.ndarray], steps: int | None, take_back: bool
) -> dict[str, Any]:
    """The losses on the held-out positions, and how often the likeliest move is that of waiting."""
    game, actor = make_game("chess"), actor_copy(network)
    batch = Learner(network, game, LearnerConfig()).to_tensors(held)
    state = game.unpack(batch["positions"])
    legal, planes = game.legal_action_mask(state), game.observe(state)
    found, waiting = (answers(actor, planes, each, take_back) for each in (steps, None))
    told = masked_log_policy(found.prior_logits, legal, batch["policy_actions"])
    losses = losses_of(*told, found.value_logits, batch)
    first, second = (
        each.prior_logits.masked_fill(~legal, -torch.inf).argmax(1) for each in (found, waiting)
    )
    return {
        "policy_loss": float(losses.policy_loss),
        "value_loss": float(losses.value_loss),
        "same_move": float((first == second).float().mean()),
    }


def score(
    network: SpikingNetwork, opponents: list[Path], steps: int | None, take_back: bool
) -> float:
    """Against other networks, all with EVALUATIONS and without proofs."""
    game = match_game("chess")
    search = play_search(num_simulations=EVALUATIONS - 1, solve="off")
    player = NetworkPlayer(game, network, search, f"{steps} steps")
    if steps is not None:
        stepped: Any = Stepped(player.actor.network, steps, take_back)
        player.actor.network = stepped
    others = [
        NetworkPlayer(game, load_network(file, None, "cpu")[0], search, file.stem)
        for file in opponents
    ]
    results = play_matches(game, [Match(player, each, MATCH_GAMES) for each in others])
    if any(result.interrupted for result in results):
        raise KeyboardInterrupt
    return sum(result.score for result in results) / len(results)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--learned", nargs="+", choices=LEARNED, default=list(LEARNED))
    _, early, middle, _ = shipped_files()
    parser.add_argument("--opponents", type=Path, nargs=2, default=[early, middle])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    replay, held = split(options.run)
    for seed in options.seeds:
        for how in options.learned:
            _, take_back, matched = LEARNED[how]
            network = learned(replay, how, seed)
            for steps in READ:
                row = {"seed": seed, "learned": how, "steps": steps}
                row |= read(network, held, steps, take_back)
                if steps in matched:
                    row["score"] = score(network, options.opponents, steps, take_back)
                with (options.folder / "rows.jsonl").open("a", encoding="utf-8") as file:
                    print(json.dumps(row), file=file)
                print(row, flush=True)


if __name__ == "__main__":
    main()
