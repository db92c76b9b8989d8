"""A player at a single board, and what a network thinks of a position."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..branches import Branch, branches
from ..cpu import use_threads
from ..errors import RunError
from ..games.base import Game, concatenate
from ..graphs import map_tensors
from ..network import SpikingNetwork
from ..search import ILLEGAL, MOST_SIMULATIONS, SearchConfig
from ..settings import require, whole
from .players import NO_MOVE, NetworkPlayer, Player, play_search


class Opinion(NamedTuple):
    """A network's own estimate of a position, without looking ahead."""

    wdl: tuple[float, float, float]  # probabilities that the first player wins, draws, loses
    actions: list[int]  # legal ones, the likeliest first
    probabilities: list[float]  # of each of `actions`

    @property
    def expected(self) -> float:
        """The points that the first player can expect, from 0 to 1. A draw is worth a half."""
        return self.wdl[0] + self.wdl[1] / 2


class Opponent:
    """`player` at one board of `game`."""

    def __init__(self, game: Game, player: Player):
        self.game = game
        self.player = player
        self.name = player.name
        self._generator = torch.Generator(game.device).manual_seed(0)

    @use_threads(1)
    def choose(self, state: Any, board: Any = None) -> int:
        """The action to play in `state`, which has one row.

        board: the same position as the game's own board object, for players that want it. Raises
        RunError with the player's reason when it has no move to give.
        """
        boards = [board] if self.player.wants_boards else ()
        # The other side may play on another device.
        state = map_tensors(lambda field: field.to(self.game.device), state)
        action = int(self.player.choose(state, self._generator, boards))
        if action == NO_MOVE:
            raise RunError(
                f"{self.name} gave no move: {'; '.join(self.player.reasons) or 'no reason'}"
            )
        return action


class NetworkOpponent(Opponent):
    """A network at one board. `evaluations`, how many positions it looks at per move, may be set at
    any time.
    """

    def __init__(self, game: Game, player: NetworkPlayer):
        super().__init__(game, player)
        self.network_player = player
        self.actor = player.actor

    @property
    def evaluations(self) -> int:
        """Network evaluations per move, the position itself included."""
        return self.actor.config.evaluations

    @evaluations.setter
    def evaluations(self, number: int) -> None:
        self.actor.look_ahead(replace(search_of(number), solve=self.actor.config.solve))

    def candidates(self) -> list[Branch]:
        """What the search of the last `choose` tried, its choice first; none before, and from the
        policy alone.
        """
        found = self.network_player.found
        return branches(found, self.game.discount) if found else []

    @torch.no_grad()
    @use_threads(1)
    def opinions(self, states: Sequence[Any]) -> list[Opinion]:
        """One Opinion for each of `states`, each with one row and not finished."""
        if not states:
            return []
        return opinions_of(self.actor.network, self.game, concatenate(states))[0]


def search_of(evaluations: int) -> SearchConfig:
    """The search with this number of network evaluations per move; 1 is the policy alone.
    Raises ConfigError.
    """
    require("evaluations", evaluations, whole(most=MOST_SIMULATIONS))
    return (
        play_search("policy")
        if evaluations == 1
        else play_search("tree", num_simulations=evaluations - 1)
    )


def opinions_of(network: SpikingNetwork, game: Game, state: Any) -> tuple[list[Opinion], Tensor]:
    """An Opinion for each row of `state` [B], and the last neurons' rates [B, channels, H, W]."""
    rates, value_logits = network.features_and_value(game.observe(state))
    mask = game.legal_action_mask(state)
    shares = torch.where(mask, network.prior_logits(rates), ILLEGAL).softmax(1)
    shares, actions = shares.sort(dim=1, descending=True, stable=True)
    outcomes = value_logits.softmax(1)
    outcomes = torch.where(state.current_player.unsqueeze(1) > 0, outcomes.flip(1), outcomes)
    legal = mask.sum(1)  # they come first
    columns = (each.tolist() for each in (outcomes, actions, shares, legal))
    opinions = [
        Opinion(tuple(wdl), row[:count], of_row[:count])
        for wdl, row, of_row, count in zip(*columns)
    ]
    return opinions, rates
