"""A network that does not wait: its answer after some steps beside the same network's that waits.

python tools/pipeline.py FILE GAMES

First 1,000 positions of the network's own self-play, step by step, for each form: how often the
likeliest move is that of the network that waits, the KL divergence of the policy from there in
nats, the value's mean distance, and the spikes per position in that step. Then a match of GAMES
games (0: none) of each form and number of steps against the same weights that wait, by the policy
alone, without chance. The last ones stop as soon as the likeliest move leads by a margin.
docs/spiking.md says what the forms are.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from chessnn_colab.actor import Actor
from chessnn_colab.arena.match import Match
from chessnn_colab.arena.parallel import play_matches
from chessnn_colab.arena.players import Player
from chessnn_colab.arena.registry import match_game
from chessnn_colab.chances import quantities
from chessnn_colab.network import actor_copy
from chessnn_colab.records import GameRecords
from chessnn_colab.runs.networks import load_network
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Play
from chessnn_colab.spikes import spike_counts, without_waiting

# Each form's options, and the steps after which it is read in a match.
FORMS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "one spike": ({"first": 0}, (4, 6, 8, 12)),
    "late": ({"first": 2, "lag": 1}, (8, 10, 12)),
    "later": ({"first": 3, "lag": 2}, (16, 18)),
    "taken back": ({"take_back": True}, (2, 4, 6)),
}
MARGINS = (0.02, 0.05, 0.1, 0.15, 0.2)
GAMES = 24  # of self-play


class StepPlayer(Player):
    """The policy's likeliest move after `steps` steps, or as soon as it is likelier by `margin`
    than the next; when every layer has waited if there are no options.
    """

    def __init__(self, network: Any, game: Any, options: Any, steps: int, margin: float, name: str):
        self.network, self.game, self.options, self.name = network, game, options, name
        self.steps, self.margin = steps, margin
        self.used: list[Tensor] = []  # steps of every move

    @torch.no_grad()
    def answers(self, state: Any) -> tuple[Tensor, Tensor]:
        """After each step the policy's log probabilities [steps, B, A] and the values [steps, B]."""
        planes, illegal = self.game.observe(state), ~self.game.legal_action_mask(state)
        with without_waiting(self.network, **self.options) if self.options else nullcontext():
            logits, values = zip(*(self.network(planes) for _ in range(self.steps)))
        policies = torch.stack(logits).masked_fill(illegal, -1e9).log_softmax(2)
        return policies, quantities(torch.stack(values))[0]

    def choose(self, state: Any, generator: torch.Generator, boards: Any = None) -> Tensor:
        likeliest = self.answers(state)[0].exp().topk(2, 2)
        sure = likeliest.values[:, :, 0] - likeliest.values[:, :, 1] >= self.margin
        sure[-1] = True
        step = sure.int().argmax(0, keepdim=True)
        self.used.append(step + 1.0)
        return likeliest.indices[:, :, 0].gather(0, step)[0]


def nearness(player: StepPlayer, waiting: StepPlayer, state: Any) -> Tensor:
    """float32 [steps, 4]: after each step the share of positions with the likeliest move of
    `waiting`, the KL divergence from there, the value's distance, and the spikes in this step.
    """
    planes = player.game.observe(state)
    fired, spikes = torch.zeros(1), []
    with without_waiting(player.network, **player.options):
        for _ in range(player.steps):  # a spike that takes another back counts as well
            counts = torch.cat(list(spike_counts(player.network, planes).values()))
            spikes.append((counts - fired).abs().sum() / len(planes))
            fired = counts
    policies, values = player.answers(state)
    expected, worth = waiting.answers(state)
    same = (policies.argmax(2) == expected.argmax(2)).float().mean(1)
    apart = (expected.exp() * (expected - policies)).sum(2).mean(1)
    return torch.stack((same, apart, (values - worth).abs().mean(1), torch.stack(spikes)), 1)


def main() -> None:
    torch.set_printoptions(sci_mode=False)
    game = match_game("chess")
    run, games = sys.argv[1], int(sys.argv[2])
    network = actor_copy(load_network(run, None, "cpu")[0])

    def player(form: str, steps: int, margin: float = 2.0) -> StepPlayer:
        name = f"{form} {steps} {margin}"
        return StepPlayer(network, game, FORMS[form][0], steps, margin, name)

    waiting = StepPlayer(network, game, None, 1, 2.0, "waiting")
    played: list[GameRecords] = []
    play = Play(Actor(game, network, SearchConfig()), GAMES, seed=6, limit=GAMES)
    play.run(sys.maxsize, lambda _, __, records: played.append(records) is None)
    positions = torch.from_numpy(GameRecords.concatenate(played).positions)
    order = torch.randperm(len(positions), generator=torch.Generator().manual_seed(0))
    parts = positions[order[:1000]].split(200)
    for form in FORMS:
        each = [nearness(player(form, 18), waiting, game.unpack(part)) for part in parts]
        print(form, torch.stack(each).mean(0), sep="\n", flush=True)
    if games:
        players = [player(form, steps) for form in FORMS for steps in FORMS[form][1]]
        players += [player("taken back", 8, margin) for margin in MARGINS]
        results = play_matches(game, [Match(each, waiting, games) for each in players])
        for each, result in zip(players, results):
            print(result, result.interval, f"{torch.cat(each.used, 1).mean():.2f} steps")


if __name__ == "__main__":
    main()
