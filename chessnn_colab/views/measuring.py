"""Measure a run in a notebook, with progress."""

from collections.abc import Sequence

from ..arena.evaluate import evaluate_run
from ..arena.players import play_search
from ..arena.registry import arena_game
from ..arena.result import MatchResult
from ..arena.solo import SoloGames
from ..runs.files import AnyPath
from ..runs.folder import RunFolder
from ..runs.networks import run_game
from ..search import SearchConfig
from .progress import watching
from .progress.lines import MAX_BARS

MAX_SECONDS = 180.0
SHARE_OF_TRAINING = 0.25  # of the time that the run has trained
QUICK_SECONDS = 60.0  # below this a network looks ahead as in training, so that enough games fit


def measure(
    run: AnyPath,
    opponents: Sequence[str] | None = None,
    snapshots: Sequence[int | None] = (0, None),
    games: int = 40,
    search: SearchConfig | None = None,
    seconds: float | None = None,
    device: str = "auto",
) -> Sequence[MatchResult | SoloGames]:
    """Measure a run in a notebook: several snapshots against several opponents, with progress, all
    side by side.

    opponents: as arena.evaluate.find_player takes them; None is every fixed player of the game.
    snapshots: iterations; 0 is the untrained network, None the last one saved. games: of each
    match. seconds: start no game that would end later (see arena.parallel.play_matches); None is a
    quarter of the time that the run has trained, three minutes at most. search: None is two rungs,
    which serve a large batch best: 48 evaluations per move, or the 13 of training where there is
    less than a minute. Returns the matches, opponent by opponent. Prints each, unless the bars of a
    notebook show the matches already; what all of them lack, or forfeited, is said once. An
    interrupt ends it, and the games that had ended count. In a game for one player every player
    plays the same number of games, as many as fit into that time (see arena.solo). Raises
    ConfigError, RunError or CheckpointError.
    """
    if seconds is None:
        reports = RunFolder.open(run).read_reports()
        seconds = min(MAX_SECONDS, SHARE_OF_TRAINING * (reports[-1]["seconds"] if reports else 0.0))
    if search is None:
        candidates, survivors = (8, 4) if seconds < QUICK_SECONDS else (None, None)
        search = play_search("two-rung", candidates, survivors)
    if opponents is None:
        opponents = list(arena_game(run_game(str(run))).players)
    with watching() as watch:
        results = evaluate_run(
            str(run), opponents, games, search, snapshots, 0, device, None, watch, seconds
        )
    if not results:
        return results
    shared = set.intersection(*(set(result.shortfall()) for result in results))
    in_bars = (
        watch.face.keeps_bars
        and len(results) <= MAX_BARS
        and all(
            isinstance(result, MatchResult) and set(result.shortfall()) == shared
            for result in results
        )
    )
    for line in [] if in_bars else "\n".join(map(str, results)).splitlines():
        if line not in shared:
            print(line)
    for line in results[0].shortfall():
        if line in shared:
            print(f"Each: {line.strip()}")
    return results
