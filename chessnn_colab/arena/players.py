"""Who can play in a match of any game: the protocol that every player follows, a random mover, and
a network.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from ..actor import Actor
from ..errors import ConfigError
from ..games.base import Game
from ..in_flight import Arrays
from ..int8 import playing_dtype
from ..network import SpikingNetwork, actor_copy, build_network, load_arrays, to_arrays
from ..network_config import NetworkConfig
from ..search import PolicyOutput, SearchConfig

NO_MOVE = -1  # the answer of a player that cannot move
# The size of each search in a match: 48 network evaluations per move for the first two. LOG.md
# has the matches that chose these sizes and value scales.
MATCH_SEARCHES = {
    "tree": SearchConfig(search="tree", num_simulations=47, value_scale=0.15, solve="all"),
    "two-rung": SearchConfig(
        search="two-rung", candidates=31, survivors=16, value_scale=0.3, solve="all"
    ),
    "policy": SearchConfig(search="policy"),
}
PLAY_SEARCH = MATCH_SEARCHES["tree"]
_SIZES = {"tree": ["num_simulations"], "two-rung": ["candidates", "survivors"], "policy": []}


def play_search(
    search: str | None = None,
    candidates: int | None = None,
    survivors: int | None = None,
    num_simulations: int | None = None,
    solve: str = "all",
) -> SearchConfig:
    """One of MATCH_SEARCHES, with the sizes given here instead of its own.

    solve: "off" plays without what the rules prove (see SearchConfig).

    Without `search`, the sizes say which one is meant; with nothing at all it is PLAY_SEARCH.
    Raises ConfigError for an unknown search and for a size that the search does not have.
    """
    kind = search or ("two-rung" if candidates or survivors else PLAY_SEARCH.search)
    base = MATCH_SEARCHES.get(kind) or SearchConfig(search=kind)  # which refuses an unknown name
    given = {"candidates": candidates, "survivors": survivors, "num_simulations": num_simulations}
    given = {name: size for name, size in given.items() if size is not None}
    sizes = _SIZES[kind]
    for name in given:
        if name not in sizes:
            expected = " and ".join(sizes) or "no size at all"
            raise ConfigError(f"search {kind!r} has no {name}: expected {expected}")
    return replace(base, solve=solve, **given)


class Player(Protocol):
    """Chooses a legal action in every row of a batch of unfinished states."""

    name: str
    evaluations: int = 0  # of a network, per move
    wants_boards: bool = (
        False  # whether `choose` needs the game's own board objects (see game.ArenaGame.start)
    )
    reasons: Sequence[
        str
    ] = ()  # why the last `choose` answered NO_MOVE: one reason for each such row, in order

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] = ()) -> Tensor:
        """int64 [B]: an action per row, or NO_MOVE, which loses the game.

        `generator` is on the states' device; in a match it is a GamesChance, and a player that
        draws with `random_per_game` or `one_of_the_best` gives every game its own random numbers.
        boards: B board objects for a player that wants them, else none.
        """
        ...

    def close(self) -> None:
        """Free what the player holds, such as processes. A second call does nothing."""

    def recipe(self) -> Recipe:
        """How another process makes this player: factory(game, **settings), with plain data as
        settings, numpy arrays included.
        """
        return type(self), {}


Recipe = tuple[Callable[..., Player], dict[str, Any]]  # see Player.recipe


class GamesChance(torch.Generator):
    """The generator of games side by side: row i draws from games[i], so no game depends on what
    shares its batch.
    """

    games: Sequence[random.Random]


def random_per_game(rows: int, generator: torch.Generator) -> Tensor:
    """float32 [rows] in [0, 1]: a random number for each row, from its own game where `generator`
    is a GamesChance.
    """
    if isinstance(generator, GamesChance):
        return torch.tensor([game.random() for game in generator.games], device=generator.device)
    return torch.rand(rows, generator=generator, device=generator.device)


def one_of_the_best(scores: Tensor, generator: torch.Generator) -> Tensor:
    """int64 [B]: in each row of `scores` [B, A] a column with the highest score, a random one if
    there are several.
    """
    best = scores == scores.amax(1, keepdim=True)
    count = best.sum(1)
    place = (
        (random_per_game(len(scores), generator).to(count.device) * count).long().minimum(count - 1)
    )
    return (best.cumsum(1) > place.unsqueeze(1)).to(torch.uint8).argmax(1)


class ScoringPlayer(Player):
    """Plays a legal action with the highest score; a random one if there are several."""

    def __init__(self, game: Any):
        self.game = game

    def scores(self, state: Any) -> Tensor:
        """float32 [B, A]: what each action is worth. Those that are not legal do not count."""
        raise NotImplementedError

    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] = ()) -> Tensor:
        mask = self.game.legal_action_mask(state)
        return one_of_the_best(torch.where(mask, self.scores(state), -torch.inf), generator)


class RandomPlayer(ScoringPlayer):
    """Every legal action is equally likely."""

    name = "random"

    def scores(self, state: Any) -> Tensor:
        return torch.zeros(1, device=self.game.device)


class NetworkPlayer(Player):
    """A network that looks ahead as far as `search` says, without chance.

    With solve="all", which every search of MATCH_SEARCHES but "policy" has, a win that the rules
    prove is always played.
    """

    def __init__(
        self,
        game: Game,
        network: SpikingNetwork,
        search: SearchConfig = PLAY_SEARCH,
        name: str = "network",
    ):
        self.name = name
        self._network = network
        self._search = search
        widest = min(search.candidates, game.num_actions)
        survivors = min(search.survivors, widest)
        own_search = replace(search, candidates=widest, survivors=survivors)
        self.evaluations = own_search.evaluations
        self.found: PolicyOutput | None = None  # what the last `choose` found
        dtype = playing_dtype("auto", game.device, network.config)
        self.actor = Actor(game, actor_copy(network, dtype, game.device), own_search)
        self.actor.replays.graphs.on = game.device.type == "cuda"

    @torch.inference_mode()
    def choose(self, state: Any, generator: torch.Generator, boards: Sequence[Any] = ()) -> Tensor:
        timing = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = False  # a match has many sizes
        try:
            noise = self.actor.draw(len(state.current_player), generator, gumbel_scale=0.0)
            if noise.key is not None:  # in a match the chance of each game is its own
                own = random_per_game(len(noise.key), generator)
                noise.key[: len(own)] = (2**31 * own).long()
            self.found = self.actor.improve(state, noise, self.actor.root_columns)
        finally:
            torch.backends.cudnn.benchmark = timing
        return self.found.action

    def recipe(self) -> Recipe:
        return network_player_from_arrays, {
            "config": self._network.config,
            "arrays": to_arrays(self._network),
            "search": self._search,
            "name": self.name,
        }


def network_player_from_arrays(
    game: Game, config: NetworkConfig, arrays: Arrays, **others: Any
) -> NetworkPlayer:
    """A NetworkPlayer with these weights; others: its other arguments."""
    network = build_network(config, game.device)
    load_arrays(network, arrays)
    return NetworkPlayer(game, network.eval(), **others)
