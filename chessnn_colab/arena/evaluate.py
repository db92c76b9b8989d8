"""Measure the network of a run in matches, and find the players that a name stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..devices import detect_device
from ..errors import ConfigError
from ..games.base import Game
from ..games.registry import make_game
from ..runs.checkpoint import load_checkpoint
from ..runs.files import unusable
from ..runs.networks import is_run, load_network, networks, run_game, split_run
from ..search import SearchConfig
from .match import Match
from .parallel import play_matches
from .players import PLAY_SEARCH, NetworkPlayer, Player
from .progress import Watch, unwatched
from .registry import arena_game, match_game
from .result import MatchResult
from .solo import SoloResult


def evaluate_run(
    run: str,
    opponent: str = "random",
    games: int = 200,
    search: SearchConfig = PLAY_SEARCH,
    snapshot: int | None = None,
    seed: int = 0,
    device: str = "auto",
    save: str | None = None,
    watch: Watch = unwatched,
) -> MatchResult | SoloResult:
    """Play a match between a run's network and `opponent` (see find_player and parallel.play_match).

    In a game for one player each plays its own games instead.
    search: how far the network looks ahead, and an opponent that is a network too (see
    players.play_search).
    save: a folder that gets the file with every game. watch: see parallel.play_matches, which also
    says what an interrupt does. Raises ConfigError, RunError or CheckpointError.
    """
    return measure_run(run, [opponent], [snapshot], games, search, None, seed, device, save, watch)[
        0
    ]


def measure_run(
    run: str,
    opponents: Sequence[str],
    snapshots: Sequence[int | None] = (None,),
    games: int = 40,
    search: SearchConfig = PLAY_SEARCH,
    seconds: float | None = None,
    seed: int = 0,
    device: str = "auto",
    save: str | None = None,
    watch: Watch = unwatched,
) -> list[MatchResult] | list[SoloResult]:
    """A match of each of `snapshots` of a run against each of `opponents`, all side by side (see
    parallel.play_matches).

    Results come opponent by opponent, in the order of `snapshots`; one that is named twice (0 and
    the last one of a run that has learned nothing yet) plays once. games: of each match, or of each
    player in a game for one. seconds: start no game that would end later. For the rest see
    evaluate_run.
    """
    name = run_game(run)
    folder = None if save is None else arena_game(name).require("games_folder")(save)
    game = match_game(name, detect_device(device).device)
    own = {
        player.name: player
        for player in (network_player(run, number, game, search) for number in snapshots)
    }
    others: list[Player] = []
    try:
        # One by one: an engine that has started will be closed.
        others.extend(find_player(opponent, game, search) for opponent in dict.fromkeys(opponents))
        if game.num_players == 1:
            matches = [Match(player, None, games) for player in [*own.values(), *others]]
        else:
            matches = [Match(player, other, games) for other in others for player in own.values()]
        results = play_matches(game, matches, seed, watch=watch, seconds=seconds, processes=None)
    finally:
        for other in others:
            other.close()
    if game.num_players == 1:
        return [
            SoloResult(mine, theirs)
            for theirs in results[len(own) :]
            for mine in results[: len(own)]
        ]
    if folder is not None:
        try:
            for result in results:
                folder.save(result)
        except ConfigError as error:  # the games are lost, their results are not
            raise ConfigError("\n".join([*map(str, results), str(error)])) from error
    return results


def network_player(
    run: str, snapshot: int | None, game: Game, search: SearchConfig = PLAY_SEARCH, prefix: str = ""
) -> NetworkPlayer:
    """The network of a run as a player, called "iteration N" after `prefix`.

    Raises ConfigError when the run plays another game, and what load_network raises.
    """
    if (played := run_game(run)) != game.name:
        raise ConfigError(
            f"{run} is a run of the game {played!r:.60}: expected one of {game.name!r}"
        )
    network, iteration = load_network(run, snapshot, str(game.device))
    name = f"{prefix}iteration {iteration}"
    if not game.score_limit:
        return NetworkPlayer(game, network, search, name)
    # It knows the points that it learned, whatever the match counts.
    config = load_checkpoint(networks(run)[iteration]).metadata.get("config") or {}
    if not isinstance(config, dict):
        raise unusable(run, "its config is no dict")
    rules = make_game(game.name, game.max_plies, game.device, config.get("reward"))
    return NetworkPlayer(rules, network, search, name)


def find_player(spec: str, game: Game, search: SearchConfig = PLAY_SEARCH) -> Player:
    """The player that `spec` names: a fixed player of the game ("random"), "engine:PATH", RUN or
    RUN@SNAPSHOT.

    search: how far the network of a run looks ahead. Raises ConfigError for any other spec,
    RunError and CheckpointError when a run does not have that network.
    """
    arena = arena_game(game.name)
    if spec in arena.players:
        return arena.players[spec](game)
    if spec.startswith("engine:"):
        return arena.require("engine")(spec)
    run, snapshot = split_run(spec)
    if not is_run(run):
        engine = "engine:PATH, " if arena.engine else ""
        raise ConfigError(
            f"unknown opponent {spec!r}: expected one of {', '.join(arena.players)}, {engine}"
            "or the folder of a run with or without @SNAPSHOT, or a shared file"
        )
    return network_player(run, snapshot, game, search, f"{Path(run).resolve().name} ")
