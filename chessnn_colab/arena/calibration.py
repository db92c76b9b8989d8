"""Whether the chances that a network's search says are what happens in its own games."""

import sys
import time

from ..chances import Calibration, calibration, said_and_played
from ..devices import detect_device
from ..errors import ConfigError, Interrupted
from ..iteration import ended_by_rules
from ..presets import usual_boards
from ..records import GameRecords
from ..runs.checkpoint import load_checkpoint
from ..runs.networks import find_snapshot, run_game
from ..search import SearchConfig
from ..selfplay import Play
from ..settings import COUNT_FROM_ZERO, require, whole
from ..text import counted
from .evaluate import network_player
from .match import MOST_GAMES
from .progress import Bar, MatchProgress, Watch, unwatched
from .registry import match_game


def calibrate_run(
    run: str,
    games: int = 200,
    snapshot: int | None = None,
    seed: int = 0,
    device: str = "auto",
    watch: Watch = unwatched,
) -> Calibration:
    """Let a run's network play `games` games as in training (its search, its start positions, its
    sampling), but with the longer ply cap of matches, and compare what its search said in each
    position with what was played.

    Games that the cap stops have no outcome and are left out. snapshot: the iteration; None is the
    last. Raises ConfigError for a game that pays points, Interrupted, and what load_network raises.
    """
    game = match_game(run_game(run), detect_device(device).device)
    require("games", games, whole(most=MOST_GAMES))
    require("seed", seed, COUNT_FROM_ZERO)
    if game.score_limit:
        raise ConfigError(f"{game.title} pays points: expected a game that is won, drawn or lost")
    iteration, path = find_snapshot(run, snapshot)
    settings = load_checkpoint(path).part("config")
    search = {name: settings[name] for name in vars(SearchConfig()) if name in settings}
    player = network_player(run, iteration, game, SearchConfig(**search))
    boards = min(games, usual_boards(game.device.type))
    parts = []
    started = time.monotonic()

    def collect(done: int, plies: int, new: GameRecords) -> bool:
        parts.append(new)
        bar = Bar(player.name, done, games, f"{plies:,} positions")
        watch(MatchProgress((bar,), "game", time.monotonic() - started))
        return True

    try:
        Play(player.actor, boards, seed, limit=games).run(sys.maxsize, collect)
    except KeyboardInterrupt:
        raise Interrupted(
            "stopped too early: the games that had ended are mostly short ones and would give a "
            "wrong picture"
        ) from None
    records = GameRecords.concatenate(parts)
    ended = ended_by_rules(records, game)
    if not ended.any():
        raise ConfigError(
            f"the rules ended none of {counted(games, 'game')}, so there is no result: raise games"
        )
    return calibration(*said_and_played(records, ended))
