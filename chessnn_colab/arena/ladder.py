"""A ladder: what the snapshots of a run are worth, rated together against fixed players and each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any, Callable, Sequence

import numpy as np

from .match import MATCH_PLIES, play_match
from ..devices import detect_device
from ..files import encode_sealed, reason, write_atomically
from ..errors import ConfigError, RunError
from .evaluate import find_player, load_network
from ..games.chess.rules import Chess
from .result import MatchResult
from .players import PLAY_SEARCH, NetworkPlayer, Player
from .ratings import Pairing, Ratings, rate
from ..runs.folder import RATINGS_FILE, RunFolder
from ..search import SearchConfig

FIXED_PLAYERS = ("random", "greedy", "minimax")


@dataclass(frozen=True, eq=False)
class Ladder:
    """The ratings of a run's snapshots and of the fixed players, and the matches that they come from."""

    ratings: Ratings
    snapshots: dict[str, int]  # player's name -> iteration, the first one rated first
    matches: tuple[MatchResult, ...]
    search: SearchConfig  # of every network

    @property
    def best(self) -> int:
        """The iteration of the snapshot with the highest rating."""
        return self.snapshots[max(self.snapshots, key=self.ratings.rating)]

    @property
    def gain(self) -> tuple[float, float]:
        """How far the last snapshot is above the first, and half of the 95 % interval of that."""
        names = list(self.snapshots)
        return self.ratings.difference(names[-1], names[0])

    def score(self, name: str) -> tuple[float, int]:
        """Points a game over all of a player's games, and how many these are."""
        own = [(match.score, match.games) for match in self.matches if match.player == name]
        own += [(1 - match.score, match.games) for match in self.matches if match.opponent == name]
        games = sum(count for _, count in own)
        return sum(score * count for score, count in own) / games, games

    def rows(self) -> list[dict[str, Any]]:
        """A dict a player, highest rating first: name, snapshot (None: a fixed player), rating, error, score, games."""
        rows = []
        for name in sorted(self.ratings.names, key=self.ratings.rating, reverse=True):
            score, games = self.score(name)
            rows.append(
                {
                    "name": name,
                    "snapshot": self.snapshots.get(name),
                    "rating": self.ratings.rating(name),
                    "error": self.ratings.error(name),
                    "score": score,
                    "games": games,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        gain, error = self.gain
        return {
            "anchor": self.ratings.anchor,
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
            f"{self.search.evaluations} positions a move",
            f"{'player':{width}}  rating     ±  score  games",
        ]
        for row in self.rows():
            lines.append(
                f"{row['name']:{width}} {row['rating']:7.0f} {row['error']:5.0f} {row['score']:6.3f} {row['games']:6}"
            )
        lines.append(f"Best snapshot: iteration {self.best}. From the first to the last: {gain:+.0f} ± {error:.0f}")
        return "\n".join(lines)


def rate_run(
    run: str,
    opponents: Sequence[str] = FIXED_PLAYERS,
    games: int = 40,
    snapshots: int = 5,
    anchor: str = "random",
    search: SearchConfig = PLAY_SEARCH,
    seed: int = 0,
    device: str = "auto",
    on_match: Callable[[MatchResult], None] = lambda result: None,
) -> Ladder:
    """Rate `snapshots` of a run, evenly spread from the untrained one to the last, and keep it in its ratings.json.

    Every snapshot plays `games` against each of `opponents` (see evaluation.find_player) and against its neighbours;
    the opponents play each other. anchor: whose rating is 0, one of `opponents` or "iteration N" of a snapshot rated.
    on_match hears of each match as it ends. Raises ConfigError, RunError or CheckpointError.
    """
    iterations = spread([int(path.stem) for path in RunFolder.open(run).snapshots()], snapshots)
    game = Chess(MATCH_PLIES, detect_device(device).device)
    own = [_snapshot_player(run, iteration, game, search) for iteration in iterations]
    fixed: dict[str, Player] = {}
    try:
        for spec in opponents:
            fixed[spec] = find_player(spec, game, search)
        names = [player.name for player in (*own, *fixed.values())]
        anchor = fixed[anchor].name if anchor in fixed else anchor
        if anchor not in names or len(set(names)) < len(names):
            raise ConfigError(f"anchor {anchor!r} among {', '.join(names)}: expected one of them, and no two alike")
        matches = []
        for player, opponent in _pairs(own, list(fixed.values())):
            matches.append(play_match(player, opponent, games, seed, str(game.device)))
            on_match(matches[-1])
    finally:
        for player in fixed.values():
            player.close()
    ladder = Ladder(
        rate([_pairing(match) for match in matches], anchor),
        {player.name: iteration for player, iteration in zip(own, iterations)},
        tuple(matches),
        search,
    )
    _save(run, ladder)
    return ladder


def spread(iterations: Sequence[int], count: int) -> list[int]:
    """`count` of the sorted `iterations`, the first and the last among them; all where there are fewer."""
    if count < 2:
        raise ConfigError(f"snapshots={count}: expected 2 or more, the untrained network and the last")
    if not iterations:
        raise RunError("the run has no snapshot of its weights yet; let it train for an iteration")
    places = np.linspace(0, len(iterations) - 1, min(count, len(iterations))).round().astype(int)
    return [iterations[place] for place in places]


def _snapshot_player(run: str, iteration: int, game: Chess, search: SearchConfig) -> NetworkPlayer:
    network, _ = load_network(run, iteration, str(game.device))
    return NetworkPlayer(game, network, search, name=f"iteration {iteration}")


def _pairs(snapshots: Sequence[Player], fixed: Sequence[Player]) -> list[tuple[Player, Player]]:
    against = [(player, opponent) for player in snapshots for opponent in fixed]
    return [*combinations(fixed, 2), *against, *((later, earlier) for earlier, later in pairwise(snapshots))]


def _pairing(match: MatchResult) -> Pairing:
    """A match as ratings take it: a game that repeats another move for move says nothing new."""
    points = [game.points for game in match.distinct()]
    return Pairing(match.player, match.opponent, points.count(1.0), points.count(0.5), points.count(0.0))


def _save(run: str, ladder: Ladder) -> None:
    path = RunFolder.open(run).path / RATINGS_FILE
    try:
        write_atomically(path, encode_sealed(ladder.to_dict(), indent=2))
    except OSError as error:
        raise RunError(f"cannot write the ratings {path}: {reason(error)}") from error
