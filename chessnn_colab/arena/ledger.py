"""What has come of several matches: the games that have ended, and how long each player thought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from .players import Player
from .result import MatchGame, MatchResult
from .standing import Part


@dataclass(frozen=True)
class Match:
    """A match to play: games 2k and 2k + 1 start from opening k, and `player` moves first in game 2k."""

    player: Player
    opponent: Player
    games: int

    def __post_init__(self):
        if self.games < 2 or self.games % 2:
            raise ConfigError(
                f"games={self.games}: expected an even number from 2 up, because every opening is played twice"
            )


class Ledger:
    """The account of `matches`.

    games: how many each match will have, which is fewer than asked for once the time is up. ended: of each match, the
    games that have ended, by their number in it. players: everybody, each once, with `seconds` and `moves` so far.
    """

    def __init__(self, matches: Sequence[Match]):
        self.matches = matches
        self.games = [match.games for match in matches]
        self.ended: list[dict[int, MatchGame]] = [{} for _ in matches]
        everybody = {id(player): player for match in matches for player in (match.player, match.opponent)}
        self.players = list(everybody.values())
        self.seconds, self.moves = [0.0] * len(self.players), [0] * len(self.players)
        self.interrupted = False
        self._places = {key: place for place, key in enumerate(everybody)}

    def place(self, player: Player) -> int:
        """Where a player stands in `players`."""
        return self._places[id(player)]

    def parts(self) -> tuple[Part, ...]:
        """How far each match is."""
        one_player = len({id(match.player) for match in self.matches}) == 1
        parts = []
        for match, games, ended in zip(self.matches, self.games, self.ended):
            points = [game.points for game in ended.values()]
            note = f"+{points.count(1.0)} ={points.count(0.5)} -{points.count(0.0)}"
            against = f"against {match.opponent.name}"
            name = against if one_player else f"{match.player.name} {against}"
            parts.append(Part(name, len(ended), games, note))
        return tuple(parts)

    def complete(self) -> set[int]:
        """The matches that have played all their games."""
        return {number for number, games in enumerate(self.games) if len(self.ended[number]) == games}

    def result(self, number: int) -> MatchResult:
        """What has been played of a match."""
        match, ended = self.matches[number], self.ended[number]
        pace = [
            1000 * self.seconds[place] / max(self.moves[place], 1)
            for place in map(self.place, (match.player, match.opponent))
        ]
        return MatchResult(
            player=match.player.name,
            opponent=match.opponent.name,
            played=tuple(ended[game] for game in sorted(ended)),
            evaluations=match.player.evaluations,
            opponent_evaluations=match.opponent.evaluations,
            milliseconds_a_move=pace[0],
            opponent_milliseconds_a_move=pace[1],
            asked=match.games,
            interrupted=self.interrupted and len(ended) < match.games,
        )
