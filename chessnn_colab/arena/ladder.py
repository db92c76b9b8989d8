"""A ladder: the snapshots of a run, rated together with fixed players from matches between them."""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from ..devices import detect_device
from ..errors import ConfigError, Interrupted, RunError
from ..runs.files import encode_object, refused, write_atomically
from ..runs.folder import RATINGS_FILE, RunFolder
from ..runs.networks import run_game
from ..search import SearchConfig
from ..settings import require, whole
from .evaluate import find_players, network_player
from .match import Match
from .parallel import play_matches
from .players import PLAY_SEARCH
from .progress import Watch, unwatched
from .ratings import Ratings, rate
from .registry import arena_game, match_game
from .result import MatchResult


@dataclass(frozen=True, eq=False)
class Ladder:
    """The ratings of a run's snapshots and of the fixed players, with the matches that they come
    from.
    """

    ratings: Ratings
    snapshots: dict[str, int]  # player's name -> iteration, the earliest first
    matches: tuple[MatchResult, ...]
    search: SearchConfig  # of every network

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it in the middle of games, which do not count."""
        return any(match.interrupted for match in self.matches)

    @property
    def best(self) -> int:
        """The iteration of the snapshot with the highest rating, in whole points; of equals the
        last.
        """
        points = {name: round(self.ratings.rating(name)) for name in reversed(self.snapshots)}
        return self.snapshots[max(points, key=points.__getitem__)]

    @property
    def gain(self) -> tuple[float, float]:
        """How many rating points the last snapshot is above the first, and half of the 95 %
        interval of that.
        """
        names = list(self.snapshots)
        return self.ratings.difference(names[-1], names[0])

    def rows(self) -> list[dict[str, Any]]:
        """A dict per player, best first: name, snapshot (None for a fixed player), rating, error,
        score (points per game) and games.
        """
        points = Counter()
        games = Counter()
        for match in self.matches:
            won = match.score * match.games
            points.update({match.player: won, match.opponent: match.games - won})
            games.update({match.player: match.games, match.opponent: match.games})
        return [
            {
                "name": name,
                "snapshot": self.snapshots.get(name),
                "rating": self.ratings.rating(name),
                "error": self.ratings.error(name),
                "score": points[name] / games[name],
                "games": games[name],
            }
            for name in sorted(self.ratings.names, key=self.ratings.rating, reverse=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, which is what ratings.json holds."""
        gain, error = self.gain
        return {
            "anchor": self.ratings.anchor,
            "interrupted": self.interrupted,
            "best": self.best,
            "gain": gain,
            "gain_error": error,
            "evaluations": self.search.evaluations,
            "search": asdict(self.search),
            "players": self.rows(),
            "matches": [match.to_dict() for match in self.matches],
        }

    def __str__(self) -> str:
        gain, error = self.gain
        width = max(map(len, self.ratings.names))
        lines = [
            f"Ratings with {self.ratings.anchor} at 0; ± is half of the 95 % interval; networks "
            f"look at {self.search.evaluations} positions per move",
            f"{'player':{width}}  rating     ±  score  games",
        ]
        lines += [
            f"{row['name']:{width}} {row['rating']:7.0f} {row['error']:5.0f} {row['score']:6.3f} "
            f"{row['games']:6}"
            for row in self.rows()
        ]
        lines.append(
            f"Best snapshot: iteration {self.best}. From the first to the last: {gain:+.0f} ± "
            f"{error:.0f}"
        )
        if self.interrupted:
            played = sum(match.games for match in self.matches)
            asked = sum(match.asked for match in self.matches)
            lines.append(
                f"Interrupted: {played} of {asked} games had ended; ratings.json has these "
                "ratings, unless it had others before"
            )
        return "\n".join(lines)


def rate_run(
    run: str,
    opponents: Sequence[str] | None = None,
    games: int = 40,
    snapshots: int = 5,
    anchor: str = "random",
    search: SearchConfig = PLAY_SEARCH,
    seed: int = 0,
    device: str = "auto",
    watch: Watch = unwatched,
    seconds: float = math.inf,
) -> Ladder:
    """Rate `snapshots` of a run, evenly spread from the untrained one to the last, and save that in
    its ratings.json.

    Every snapshot plays `games` games against each of `opponents` (see evaluate.find_player; None
    is every fixed player of the game) and against the snapshots before and after it. The opponents
    play each other. All matches are played side by side. anchor: who is rated 0, one of `opponents`
    or "iteration N" of a rated snapshot. watch gets the progress. seconds: start no game that would
    end later. After KeyboardInterrupt the ladder has the games that ended before it, and
    is saved if the run has no ratings.json yet. Raises ConfigError, RunError or CheckpointError,
    and Interrupted when the games are too few to rate every player.
    """
    iterations = spread([*RunFolder.open(run).snapshots()], snapshots)
    game = match_game(run_game(run), detect_device(device).device)
    own = [network_player(run, iteration, game, search) for iteration in iterations]
    if opponents is None:
        opponents = list(arena_game(game.name).players)
    with find_players(opponents, game, search) as fixed:
        pairs = [
            *combinations(fixed.values(), 2),
            *product(own, fixed.values()),
            *((later, earlier) for earlier, later in pairwise(own)),
        ]
        names = [player.name for player in [*own, *fixed.values()]]
        anchor = fixed[anchor].name if anchor in fixed else anchor
        if anchor not in names or len(names) < 2 or len(set(names)) < len(names):
            raise ConfigError(
                f"anchor {anchor!r} among {', '.join(names)}: expected one of them, and two "
                "players or more with different names"
            )
        wanted = [Match(player, opponent, games) for player, opponent in pairs]
        matches = play_matches(game, wanted, seed, watch, seconds, processes=None)
    by_name = {player.name: iteration for player, iteration in zip(own, iterations)}
    ladder = Ladder(_rated(matches, anchor), by_name, tuple(matches), search)
    _save(run, ladder)
    return ladder


def _rated(matches: Sequence[MatchResult], anchor: str) -> Ratings:
    """The ratings that these matches give, without the games that repeat another one move for move:
    they say nothing new. Raises Interrupted when too few of their games have ended.
    """
    if any(match.games == 0 for match in matches):
        played = [str(match) for match in matches if match.games]
        raise Interrupted(
            "\n".join(["interrupted with too few games to rate every player", *played])
        )
    results = [
        (match.player, match.opponent, [game.points for game in match.distinct()])
        for match in matches
    ]
    return rate(results, anchor)


def spread(iterations: Sequence[int], count: int) -> list[int]:
    """`count` of the sorted `iterations`, with the first and the last among them; all of them if
    there are fewer.

    Raises ConfigError for a count below 2, RunError when there are no iterations.
    """
    require("snapshots", count, whole(2))
    if not iterations:
        raise RunError("the run has no snapshot of its weights yet; let it train for an iteration")
    places = np.linspace(0, len(iterations) - 1, min(count, len(iterations))).round().astype(int)
    return [iterations[place] for place in places]


def _save(run: str, ladder: Ladder) -> None:
    path = RunFolder.open(run).path / RATINGS_FILE
    if ladder.interrupted and path.exists():
        return
    try:
        with refused(f"the ratings are shown, and not kept: cannot write {path}"):
            write_atomically(path, encode_object(ladder.to_dict(), indent=2))
    except RunError as error:  # the run is on a disk that is full, or that can only be read
        warnings.warn(str(error), stacklevel=3)
