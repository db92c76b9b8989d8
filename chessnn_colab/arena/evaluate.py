"""Measure the network of a run in matches, and find the players that a name stands for."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ..devices import detect_device
from ..errors import ConfigError
from ..games.base import Game
from ..runs.networks import is_run, load_network, run_game, split_run
from ..search import SearchConfig
from .games_folder import GamesFolder
from .match import Match
from .parallel import play_matches
from .players import PLAY_SEARCH, NetworkPlayer, Player
from .progress import Watch, unwatched
from .registry import arena_game, match_game


def evaluate_run(
    run: str,
    opponents: Sequence[str] = ("random",),
    games: int = 200,
    search: SearchConfig = PLAY_SEARCH,
    snapshots: Sequence[int | None] = (None,),
    seed: int = 0,
    device: str = "auto",
    save: str | None = None,
    watch: Watch = unwatched,
    seconds: float = math.inf,
) -> list[Any]:
    """Play matches between networks of a run and `opponents` (see find_player), all side by side.

    Returns a MatchResult per match, opponent by opponent, in the order of `snapshots`. In a game
    for one player everybody plays alone: returns a SoloGames per network and per opponent.

    games: per match, or per player in a game for one. search: how far the networks look ahead,
    those among the opponents too (see players.play_search). snapshots: iterations; None is the last
    one. A network that is named twice (0 and the last one of a run that has learned nothing yet)
    plays once. save: a folder that gets the file with every game. watch and seconds: see
    parallel.play_matches, which also says what an interrupt does. Raises ConfigError, RunError or
    CheckpointError.
    """
    name = run_game(run)
    folder = None if save is None else GamesFolder(arena_game(name), save)
    game = match_game(name, detect_device(device).device)
    networks = [network_player(run, number, game, search) for number in snapshots]
    own = {player.name: player for player in networks}.values()
    with find_players(opponents, game, search) as players:
        others = players.values()
        if game.num_players == 1:
            matches = [Match(player, None, games) for player in [*own, *others]]
        else:
            matches = [Match(player, other, games) for other in others for player in own]
        results = play_matches(game, matches, seed, watch, seconds, processes=None)
    if folder is not None:
        try:
            for result in results:
                if result.games:
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
            f"{run} is a run of the game {played!r:.60}: expected a run of {game.name!r}"
        )
    network, iteration = load_network(run, snapshot, str(game.device))
    return NetworkPlayer(game, network, search, f"{prefix}iteration {iteration}")


@contextmanager
def find_players(
    specs: Sequence[str], game: Game, search: SearchConfig
) -> Iterator[dict[str, Player]]:
    """Spec -> the player that it names (see find_player). They are closed at the end. A text is one
    spec.
    """
    specs = [specs] if isinstance(specs, str) else specs
    players = {}
    with ExitStack() as opened:
        for spec in dict.fromkeys(specs):
            players[spec] = find_player(spec, game, search)
            opened.callback(players[spec].close)
        yield players


def find_player(spec: str, game: Game, search: SearchConfig = PLAY_SEARCH) -> Player:
    """The player that `spec` names: a fixed player of the game ("random"), "engine:PATH", RUN or
    RUN@SNAPSHOT.

    search: how far the network of a run looks ahead. Close the player of a program: until then the
    program runs, and a script with a UCI engine does not end. Raises ConfigError for any other
    spec, RunError and CheckpointError when a run does not have that network.
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
            f"unknown opponent {spec!r}: expected {', '.join(arena.players)}, {engine}RUN or "
            "RUN@SNAPSHOT (the folder of a run), or a shared file"
        )
    return network_player(run, snapshot, game, search, f"{Path(run).resolve().name} ")
