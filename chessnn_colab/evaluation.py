"""A run's network, from its folder: to look into, to measure, to play against."""

from __future__ import annotations

from dataclasses import replace

import chess
import torch

from .arena import MATCH_PLIES, MatchResult, play_match
from .devices import detect_device
from .errors import ConfigError, RunError
from .games.chess import Chess
from .network import NetworkConfig, SpikingNetwork, build_network, load_arrays
from .notation import move_from_action, state_from_boards
from .players import BASELINES, PLAY_SEARCH, NetworkPlayer, baseline
from .run_folder import RunFolder
from .snapshot import load_snapshot


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
    network = build_network(NetworkConfig.from_dict(checkpoint.metadata["network"]), detect_device(device).device)
    load_arrays(network, checkpoint.weights)
    return network.eval(), iteration


def evaluate_run(run: str, opponent: str = "random", games: int = 200, candidates: int = 24, survivors: int = 12,
                 snapshot: int | None = None, seed: int = 0, device: str = "auto") -> MatchResult:
    """Play a run's network against "random" or "greedy" (see arena.play_match for the rules).

    Raises ConfigError, RunError or CheckpointError.
    """
    if opponent not in BASELINES:
        raise ConfigError(f"unknown opponent {opponent!r}: expected one of {', '.join(BASELINES)}")
    search = replace(PLAY_SEARCH, candidates=candidates, survivors=survivors)
    network, iteration = load_network(run, snapshot, device)
    where = str(next(network.parameters()).device)
    game = Chess(MATCH_PLIES, where)
    player = NetworkPlayer(game, network, search, name=f"iteration {iteration}")
    return play_match(player, baseline(opponent, game), games, seed, where)


def choose_move(network: SpikingNetwork, candidates: int = 24, survivors: int = 12):
    """A function from a chess.Board to the chess.Move the network plays there: what views.play.play_widget takes."""
    game = Chess(device=str(next(network.parameters()).device))
    player = NetworkPlayer(game, network, replace(PLAY_SEARCH, candidates=candidates, survivors=survivors))
    generator = torch.Generator(game.device).manual_seed(0)

    def choose(board: chess.Board) -> chess.Move:
        action = player.choose(state_from_boards([board], game), generator)
        return move_from_action(int(action), board)
    return choose
