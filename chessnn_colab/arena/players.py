"""Who can sit at a board: uniform random, the greedy capturer, minimax, a network with its search. All in batches."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from ..actor import Actor
from ..devices import choose_dtype
from .chess.engine import parse_engine
from ..errors import ConfigError
from ..games.base import Game
from ..games.chess.rules import Chess
from .chess.minimax import MinimaxPlayer
from ..network import SpikingNetwork, actor_copy
from ..search import SearchConfig

# At play: 48 evaluations a move. LOG.md has the matches that chose these.
PLAY_SEARCH = SearchConfig(search="tree", num_simulations=47, value_scale=0.15)
# What a network that plays by two rungs looks at, and how much it trusts that.
PLAY_TWO_RUNG = SearchConfig(candidates=31, survivors=16, value_scale=0.3)


class Player(Protocol):
    """Chooses a legal action in every row of a batch of unfinished states."""

    name: str
    evaluations: int  # network evaluations a move
    wants_boards: bool  # python-chess boards, beside the states

    def choose(self, state: Any, generator: torch.Generator, boards: Any = None) -> Tensor:
        """int64 [B]: an action a row. `generator` lives on the states' device."""


class RandomPlayer:
    """Any legal move, all alike."""

    name = "random"
    evaluations = 0
    wants_boards = False

    def __init__(self, game: Game):
        self.game = game

    def choose(self, state: Any, generator: torch.Generator, boards: Any = None) -> Tensor:
        mask = self.game.legal_action_mask(state)
        noise = torch.rand(mask.shape, generator=generator, device=mask.device)
        return torch.where(mask, noise, -1.0).argmax(1)

    def close(self) -> None:
        """Nothing to let go of."""


class GreedyPlayer:
    """The move that leaves it with the most material, ties at random."""

    name = "greedy"
    evaluations = 0
    wants_boards = False

    def __init__(self, game: Chess):
        self.game = game

    def choose(self, state: Any, generator: torch.Generator, boards: Any = None) -> Tensor:
        mask = self.game.legal_action_mask(state)
        noise = torch.rand(mask.shape, generator=generator, device=mask.device)
        return torch.where(mask, self.game.gains(state) + noise, -1.0).argmax(1)

    def close(self) -> None:
        """Nothing to let go of."""


class NetworkPlayer:
    """A network looking ahead as far as `search` says."""

    wants_boards = False

    def __init__(
        self,
        game: Game,
        network: SpikingNetwork,
        search: SearchConfig = PLAY_SEARCH,
        discount: float = 0.99,
        name: str = "network",
    ):
        self.name = name
        self.evaluations = search.evaluations
        dtype = choose_dtype("auto", next(network.parameters()).device)
        self.actor = Actor(game, actor_copy(network, dtype), search, discount)

    def choose(self, state: Any, generator: torch.Generator, boards: Any = None) -> Tensor:
        return self.actor.act(state, generator, gumbel_scale=0.0).action

    def close(self) -> None:
        """Nothing to let go of."""


BASELINES = {"random": RandomPlayer, "greedy": GreedyPlayer, "minimax": MinimaxPlayer}


def baseline(name: str, game: Chess) -> Player:
    """One of BASELINES by name. Raises ConfigError listing them."""
    if name not in BASELINES:
        raise ConfigError(f"unknown opponent {name!r}: expected one of {', '.join(BASELINES)}")
    return BASELINES[name](game)


def make_player(spec: str, game: Chess) -> Player:
    """One of BASELINES by name, or the UCI engine of "engine:PATH" (see engine_player.parse_engine). Raises ConfigError."""
    return parse_engine(spec) if spec.startswith("engine:") else baseline(spec, game)
