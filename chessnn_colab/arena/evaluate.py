"""A run's network, loaded from its folder: to look into, to measure in a match, to play against."""

from __future__ import annotations

from pathlib import Path

from ..devices import detect_device
from ..errors import ConfigError, RunError
from ..files import unusable
from ..games.base import Game
from ..games.registry import make_game
from ..network import SpikingNetwork
from ..restore import saved_network
from ..runs.shared import game_of, is_file, networks
from ..runs.snapshot import load_snapshot
from ..search import SearchConfig
from .match import play_match
from .players import PLAY_SEARCH, NetworkPlayer, Player
from .registry import match_game, match_kit
from .result import MatchResult


def run_game(run: str | Path) -> str:
    """The name of the game that a run or a shared file plays. Raises RunError or CheckpointError when there is none."""
    return game_of(run)


def load_network(run: str | Path, snapshot: int | None = None, device: str = "auto") -> tuple[SpikingNetwork, int]:
    """The network of a run folder or of a shared file, and the iteration that its weights come from.

    snapshot: the iteration to load; None is the last one saved. Raises RunError when there is no such run or snapshot,
    CheckpointError when the file is damaged or its network is for another board than its game's.
    """
    paths = networks(run)
    if not paths:
        raise RunError(f"{run} has no snapshot of its weights yet; let it train for an iteration")
    iteration = max(paths) if snapshot is None else snapshot
    if iteration not in paths:
        raise RunError(f"{run} has no snapshot {iteration}: expected one of {', '.join(map(str, paths))}")
    name = run_game(run)
    network = saved_network(paths[iteration], load_snapshot(paths[iteration], name), detect_device(device).device)
    game, config = make_game(name), network.config
    if (config.planes, config.height, config.width, config.actions) != (*game.observation_shape, game.num_actions):
        raise unusable(paths[iteration], f"its network does not fit the board and the actions of {name}")
    return network.eval(), iteration


def evaluate_run(
    run: str,
    opponent: str = "random",
    games: int = 200,
    search: SearchConfig = PLAY_SEARCH,
    snapshot: int | None = None,
    seed: int = 0,
    device: str = "auto",
    save: str | None = None,
) -> MatchResult:
    """Play a match between a run's network and `opponent` (see find_player and match.play_match).

    search: how far the network looks ahead, and an opponent that is a network too (see players.play_search).
    save: a folder that gets the file with every game. Raises ConfigError, RunError or CheckpointError.
    """
    name = run_game(run)
    folder = None if save is None else match_kit(name).require("games_folder")(save)
    game = match_game(name, detect_device(device).device)
    player = network_player(run, snapshot, game, search)
    other = find_player(opponent, game, search)
    try:
        result = play_match(game, player, other, games, seed)
    finally:
        other.close()
    if folder is not None:
        folder.save(result)
    return result


def network_player(
    run: str, snapshot: int | None, game: Game, search: SearchConfig = PLAY_SEARCH, prefix: str = ""
) -> NetworkPlayer:
    """The network of a run as a player, called "iteration N" after `prefix`.

    Raises ConfigError when the run plays another game, and what load_network raises.
    """
    if (played := run_game(run)) != game.name:
        raise ConfigError(f"{run} is a run of the game {played!r:.60}: expected one of {game.name!r}")
    network, iteration = load_network(run, snapshot, str(game.device))
    return NetworkPlayer(game, network, search, f"{prefix}iteration {iteration}")


def find_player(spec: str, game: Game, search: SearchConfig = PLAY_SEARCH) -> Player:
    """The player that `spec` names: a fixed player of the game ("random"), "engine:PATH", RUN or RUN@SNAPSHOT.

    search: how far the network of a run looks ahead. Raises ConfigError for any other spec, RunError and
    CheckpointError when a run does not have that network.
    """
    kit = match_kit(game.name)
    if spec in kit.players:
        return kit.players[spec](game)
    if spec.startswith("engine:"):
        return kit.require("engine")(spec)
    run, at, snapshot = spec.rpartition("@")
    if Path(spec).is_dir() or is_file(spec) or not (at and snapshot.isdecimal()):
        run, snapshot = spec, ""
    if not run or not (Path(run).is_dir() or is_file(run)):
        engine = "engine:PATH, " if kit.engine else ""
        raise ConfigError(
            f"unknown opponent {spec!r}: expected one of {', '.join(kit.players)}, {engine}or the folder of a run "
            "with or without @SNAPSHOT, or a shared file"
        )
    return network_player(run, int(snapshot) if snapshot else None, game, search, f"{Path(run).resolve().name} ")
