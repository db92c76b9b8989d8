"""A ladder: the snapshots of a run, rated together with fixed players from matches between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ..devices import detect_device
from ..errors import ConfigError, Interrupted, RunError
from ..files import encode_sealed, reason, write_atomically
from ..runs.folder import RATINGS_FILE, RunFolder
from ..search import SearchConfig
from .evaluate import find_player, network_player, run_game
from .match import Match, play_matches
from .players import PLAY_SEARCH, Player
from .ratings import Pairing, Ratings, rate
from .registry import match_game, match_kit
from .result import MatchResult
from .standing import Watch, unwatched


@dataclass(frozen=True, eq=False)
class Ladder:
    """The ratings of a run's snapshots and of the fixed players, with the matches that they come from."""

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
        """The iteration of the snapshot with the highest rating."""
        return self.snapshots[max(self.snapshots, key=self.ratings.rating)]

    @property
    def gain(self) -> tuple[float, float]:
        """How many rating points the last snapshot is above the first, and half of the 95 % interval of that."""
        names = list(self.snapshots)
        return self.ratings.difference(names[-1], names[0])

    def score(self, name: str) -> tuple[float, int]:
        """A player's points per game over all its games, and how many games these are."""
        own = [(match.score, match.games) for match in self.matches if match.player == name and match.games]
        own += [(1 - match.score, match.games) for match in self.matches if match.opponent == name and match.games]
        games = sum(count for _, count in own)
        return sum(score * count for score, count in own) / games, games

    def rows(self) -> list[dict[str, Any]]:
        """A dict per player, best first: name, snapshot (None for a fixed player), rating, error, score, games."""
        rows = []
        for name in sorted(self.ratings.names, key=self.ratings.rating, reverse=True):
            score, games = self.score(name)
            rating, error = self.ratings.rating(name), self.ratings.error(name)
            row = dict(
                name=name, snapshot=self.snapshots.get(name), rating=rating, error=error, score=score, games=games
            )
            rows.append(row)
        return rows

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
            f"Ratings with {self.ratings.anchor} at 0; ± is half of the 95 % interval; networks look at "
            f"{self.search.evaluations} positions per move",
            f"{'player':{width}}  rating     ±  score  games",
        ]
        lines += [
            f"{row['name']:{width}} {row['rating']:7.0f} {row['error']:5.0f} {row['score']:6.3f} {row['games']:6}"
            for row in self.rows()
        ]
        lines.append(f"Best snapshot: iteration {self.best}. From the first to the last: {gain:+.0f} ± {error:.0f}")
        if self.interrupted:
            played = sum(match.games for match in self.matches)
            asked = sum(match.asked or match.games for match in self.matches)
            lines.append(f"Interrupted: {played} of {asked} games had ended; ratings.json stays as it was")
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
    on_match: Callable[[MatchResult], None] = lambda result: None,
    watch: Watch = unwatched,
    seconds: float | None = None,
) -> Ladder:
    """Rate `snapshots` of a run, evenly spread from the untrained one to the last, and save that in its ratings.json.

    Every snapshot plays `games` games against each of `opponents` (see evaluate.find_player; None is every fixed player
    of the game) and against the snapshots before and after it. The opponents play each other. All matches are
    played side by side. anchor: who is rated 0, one of `opponents` or "iteration N" of a rated snapshot. watch is told
    how far the matches are, and on_match each result as a match ends. seconds: start no game that would end later.
    After KeyboardInterrupt the ladder has the games that ended before it, and ratings.json stays as it was. Raises
    ConfigError, RunError or CheckpointError, and Interrupted when the games are too few to rate every player.
    """
    iterations = spread([int(path.stem) for path in RunFolder.open(run).snapshots()], snapshots)
    game = match_game(run_game(run), detect_device(device).device)
    own = [network_player(run, iteration, game, search) for iteration in iterations]
    fixed: dict[str, Player] = {}
    try:
        for spec in dict.fromkeys(match_kit(game.name).players if opponents is None else opponents):
            fixed[spec] = find_player(spec, game, search)
        anchor = _anchored(anchor, [*own, *fixed.values()], fixed)
        pairs = [Match(player, opponent, games) for player, opponent in _pairs(own, list(fixed.values()))]
        matches = play_matches(game, pairs, seed, None, watch, seconds, on_match, processes=None)
    finally:
        for player in fixed.values():
            player.close()
    by_name = {player.name: iteration for player, iteration in zip(own, iterations)}
    ladder = Ladder(_rated(matches, anchor), by_name, tuple(matches), search)
    if not ladder.interrupted:
        _save(run, ladder)
    return ladder


def _anchored(anchor: str, players: Sequence[Player], fixed: Mapping[str, Player]) -> str:
    """The name of the player that `anchor` means. Raises ConfigError when there is none, or when two are alike."""
    names = [player.name for player in players]
    anchor = fixed[anchor].name if anchor in fixed else anchor
    if anchor not in names or len(set(names)) < len(names):
        raise ConfigError(f"anchor {anchor!r} among {', '.join(names)}: expected one of them, and no two alike")
    return anchor


def _rated(matches: Sequence[MatchResult], anchor: str) -> Ratings:
    """The ratings that these matches give. Raises Interrupted when too few of their games have ended."""
    interrupted, games = any(match.interrupted for match in matches), sum(match.games for match in matches)
    try:
        ratings = rate([_pairing(match) for match in matches if match.games or not interrupted], anchor)
    except ConfigError:
        if not interrupted:
            raise
        ratings = None
    if ratings is None or {name for match in matches for name in (match.player, match.opponent)} - {*ratings.names}:
        raise Interrupted(f"interrupted after {games} games, too few to rate every player: nothing is kept")
    return ratings


def spread(iterations: Sequence[int], count: int) -> list[int]:
    """`count` of the sorted `iterations`, with the first and the last among them; all of them if there are fewer.

    Raises ConfigError for a count below 2, RunError when there are no iterations.
    """
    if count < 2:
        raise ConfigError(f"snapshots={count}: expected 2 or more, the untrained network and the last")
    if not iterations:
        raise RunError("the run has no snapshot of its weights yet; let it train for an iteration")
    places = np.linspace(0, len(iterations) - 1, min(count, len(iterations))).round().astype(int)
    return [iterations[place] for place in places]


def _pairs(snapshots: Sequence[Player], fixed: Sequence[Player]) -> list[tuple[Player, Player]]:
    against = [(player, opponent) for player in snapshots for opponent in fixed]
    return [*combinations(fixed, 2), *against, *((later, earlier) for earlier, later in pairwise(snapshots))]


def _pairing(match: MatchResult) -> Pairing:
    """A match as ratings need it, without the games that repeat another one move for move: they say nothing new."""
    points = [game.points for game in match.distinct()]
    return Pairing(match.player, match.opponent, points.count(1.0), points.count(0.5), points.count(0.0))


def _save(run: str, ladder: Ladder) -> None:
    path = RunFolder.open(run).path / RATINGS_FILE
    try:
        write_atomically(path, encode_sealed(ladder.to_dict(), indent=2))
    except OSError as error:
        raise RunError(f"cannot write the ratings {path}: {reason(error)}") from error
