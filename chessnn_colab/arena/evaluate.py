"""A run's network, from its folder: to look into, to measure, to play against."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import chess
import torch

from .match import MATCH_PLIES, play_match
from ..devices import detect_device
from ..errors import ConfigError, RunError
from ..games.chess.rules import Chess
from .chess.match_pgn import GamesFolder
from .result import MatchResult
from ..network import SpikingNetwork
from ..games.chess.notation import move_from_action, state_from_boards
from .players import BASELINES, PLAY_SEARCH, PLAY_TWO_RUNG, NetworkPlayer, Player, make_player
from ..runs.folder import RunFolder
from ..restore import saved_network
from ..search import SearchConfig
from ..runs.snapshot import load_snapshot


def load_network(run: str, snapshot: int | None = None, device: str = "auto") -> tuple[SpikingNetwork, int]:
    """The network of a run folder and the iteration its weights come from: the last snapshot, or the one asked for.

    Raises RunError when there is no such run or snapshot, CheckpointError when the file is damaged.
    """
    paths = {int(path.stem): path for path in RunFolder.open(run).snapshots()}
    if not paths:
        raise RunError(f"{run} has no snapshot of its weights yet; let it train for an iteration")
    iteration = max(paths) if snapshot is None else snapshot
    if iteration not in paths:
        raise RunError(f"{run} has no snapshot {iteration}: expected one of {', '.join(map(str, paths))}")
    checkpoint = load_snapshot(paths[iteration], "chess")
    return saved_network(paths[iteration], checkpoint, detect_device(device).device).eval(), iteration


def evaluate_run(
    run: str,
    opponent: str = "random",
    games: int = 200,
    candidates: int | None = None,
    survivors: int | None = None,
    snapshot: int | None = None,
    seed: int = 0,
    device: str = "auto",
    search: str | None = None,
    simulations: int | None = None,
    save: str | None = None,
) -> MatchResult:
    """Play a run's network against `opponent` (see find_player; arena.play_match has the rules).

    search, candidates, survivors, simulations: see play_search; a network it meets looks as far.
    save: a folder to keep every game in, as PGN.
    Raises ConfigError, RunError or CheckpointError.
    """
    looking = play_search(search, candidates, survivors, simulations)
    folder = None if save is None else GamesFolder(save)
    network, iteration = load_network(run, snapshot, device)
    where = str(next(network.parameters()).device)
    game = Chess(MATCH_PLIES, where)
    player = NetworkPlayer(game, network, looking, name=f"iteration {iteration}")
    other = find_player(opponent, game, looking)
    try:
        result = play_match(player, other, games, seed, where)
    finally:
        other.close()
    if folder is not None:
        folder.save(result)
    return result


def play_search(
    search: str | None = None,
    candidates: int | None = None,
    survivors: int | None = None,
    simulations: int | None = None,
) -> SearchConfig:
    """players.PLAY_SEARCH or, for "two-rung", PLAY_TWO_RUNG, changed: `candidates` and `survivors` of "two-rung",
    `simulations` of "tree". Without `search` the sizes given say which is meant.

    Raises ConfigError, for a size that the search does not have too.
    """
    kind = search or ("two-rung" if candidates or survivors else "tree" if simulations else PLAY_SEARCH.search)
    given = {"candidates": candidates, "survivors": survivors, "simulations": simulations}
    given = {name: value for name, value in given.items() if value is not None}
    sizes = {"two-rung": {"candidates", "survivors"}, "tree": {"simulations"}}.get(kind, set())
    if others := sorted(given.keys() - sizes):
        raise ConfigError(
            f"search {kind!r} has no {' or '.join(others)}: expected {' and '.join(sorted(sizes)) or 'no size at all'}"
        )
    if "simulations" in given:
        given["num_simulations"] = given.pop("simulations")
    return replace(PLAY_TWO_RUNG if kind == "two-rung" else PLAY_SEARCH, search=kind, **given)


def find_player(spec: str, game: Chess, search: SearchConfig) -> Player:
    """A fixed player by name ("random") or "engine:PATH" (see players.make_player); the network of RUN or RUN@SNAPSHOT.

    Raises ConfigError for anything else, RunError and CheckpointError for a run that has no such network.
    """
    if spec in BASELINES or spec.startswith("engine:"):
        return make_player(spec, game)
    run, at, snapshot = spec.rpartition("@")
    if Path(spec).is_dir() or not (at and snapshot.isdecimal()):
        run, snapshot = spec, None
    if not run or not Path(run).is_dir():
        raise ConfigError(
            f"unknown opponent {spec!r}: expected one of {', '.join(BASELINES)}, engine:PATH, or the "
            "folder of a run with or without @SNAPSHOT"
        )
    network, iteration = load_network(run, snapshot and int(snapshot), str(game.device))
    return NetworkPlayer(game, network, search, name=f"{Path(run).resolve().name} iteration {iteration}")


def choose_move(network: SpikingNetwork, search: SearchConfig = PLAY_SEARCH):
    """A function from a chess.Board to the chess.Move the network plays there: what views.play.play_widget takes."""
    game = Chess(device=str(next(network.parameters()).device))
    player = NetworkPlayer(game, network, search)
    generator = torch.Generator(game.device).manual_seed(0)

    def choose(board: chess.Board) -> chess.Move:
        action = player.choose(state_from_boards([board], game), generator)
        return move_from_action(int(action), board)

    return choose
