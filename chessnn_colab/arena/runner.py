"""Plays the games of several matches side by side, as one batch."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from ..games.base import Game, PointsGame, concatenate, finished, map_fields, select
from ..search import ROW_MULTIPLE
from .match import Key, Match, MatchResults, Openings, PlayerTime, all_games
from .players import NO_MOVE, GamesChance
from .progress import MatchProgress
from .registry import arena_game
from .result import FORFEIT, MatchGame, Opening

BOARDS = 512  # games side by side: the more, the less each evaluation costs
CAUTION = 1.4  # games for one player are taken to be this much longer than those so far
MIN_PLIES = 60  # expected of a game that has just begun


@dataclass
class Board:
    """A game being played."""

    key: Key
    opening: Opening
    chance: random.Random  # the game's own
    players: tuple[PlayerTime, ...]  # the one that moves first, and the second
    position: Any = None  # the game's board object, if one of the players wants boards
    actions: list[int] = field(default_factory=list)
    result: MatchGame | None = None

    def end(
        self, ending: str, points: float, reason: str = "", reached: tuple[bool, ...] = ()
    ) -> None:
        """points: of the first mover, from 0 to 1; in a game for one player its score."""
        player_is_first = len(self.players) == 1 or self.key[1] % 2 == 0
        self.result = MatchGame(
            self.opening,
            player_is_first,
            points if player_is_first else 1 - points,
            ending,
            tuple(self.actions),
            reason,
            reached,
        )


class MatchRunner:
    """Plays games side by side: one state with a row per game that is being played.

    A player with moves to make in several games, of any match, makes them together. A game that
    ends makes room for the next. games: which to play; None: all.
    """

    def __init__(
        self,
        game: Game,
        matches: Sequence[Match],
        seed: int,
        book: Sequence[Opening],
        boards: int = BOARDS,
        seconds: float | None = None,
        games: Sequence[Key] | None = None,
    ):
        self.game = game
        self.arena = arena_game(game.name)
        self.matches = matches
        self.seed = seed
        self.book = book
        self.chance = GamesChance([], game.device)
        self.chance.manual_seed(seed)
        keys = all_games(matches) if games is None else games
        self.openings = Openings(matches, keys, boards, seconds)
        self.starts: Any = None  # of a game for one player: a state with a row per game
        milestones: tuple[int, ...] = ()
        if game.num_players == 1:
            rules = cast(PointsGame, game)
            generator = torch.Generator().manual_seed(seed)
            most = max((match.games for match in matches), default=0)
            self.starts = rules.starts(most, "standard", generator)
            milestones = rules.milestones
        self.results = MatchResults(matches, keys, milestones)
        # Networks last: then they get the games of every opponent that has just moved.
        times = self.results.times.values()
        self.order = sorted(times, key=lambda player: player.player.evaluations)
        self.state: Any = None
        self.boards: list[Board] = []

    def play(self, on_news: Callable[[], None]) -> None:
        """Play all games; calls `on_news` after every step."""
        while self.step():
            on_news()
        on_news()

    def step(self) -> bool:
        """Start games where there is room, and let every player move. False when all is done."""
        self._start(self.openings.next(len(self.boards), self._seconds_at_most))
        if self.boards:
            for player in self.order:
                self._move(player)
        if self.boards or self.openings.waiting:
            return True
        self.results.end()
        return False

    # --- time

    def _seconds_at_most(self, games: Sequence[Key]) -> float:
        """How long the games being played and `games` take together; infinite while the length of
        games is unknown.
        """
        most = self.game.max_plies
        if self.game.num_players == 2:
            return self._seconds_for(games, most, most)
        # From openings of which every game has ended: the games that end first are short.
        lengths: list[int] = []
        ended = self.results.ended
        for opening in self.openings.started:
            if all(number in ended[match] for match, number in opening):
                lengths += [len(ended[match][number].actions) for match, number in opening]
        if not lengths:
            return math.inf
        return self._seconds_for(games, CAUTION * statistics.fmean(lengths), CAUTION * max(lengths))

    def _seconds_for(self, games: Sequence[Key], expected: float, longest: float) -> float:
        """How long the games being played and `games` take, by the latest pace. expected and
        longest: plies of a game, on average and at most.
        """
        played = [(board.key[0], len(board.actions)) for board in self.boards]
        played += [(match, 0) for match, _ in games]
        seconds = 0.0
        for player in self.order:
            mine = [
                plies for match, plies in played if player.player in self.matches[match].players
            ]
            moves = sum(max(expected - plies, 1) for plies in mine)
            calls = max(longest - min(mine), 1) if mine else 0
            longer = max(moves * player.seconds_a_move, calls * player.quickest_call)
            seconds += longer / self.game.num_players
        return seconds

    def progress(self) -> MatchProgress:
        """The progress of all matches, with an estimate of the time left by the plies so far."""
        lengths = [len(game.actions) for ended in self.results.ended for game in ended.values()]
        running = [len(board.actions) for board in self.boards]
        played = sum(lengths) + sum(running)
        seconds = self.openings.elapsed
        if not played:
            return MatchProgress(self.results.bars(), "game", seconds)
        # A game of n plies is expected to last half as long again: games that end first are short,
        # and games that have just begun are not almost over.
        longest = self.game.max_plies
        lengths += [min(max(MIN_PLIES, int(1.5 * plies)), longest) for plies in running]
        games = len(lengths) + sum(len(opening) for opening in self.openings.waiting)
        plies_left = max(statistics.fmean(lengths) * games - played, sum(running) / 20)
        left = seconds * plies_left / played
        if self.openings.seconds is not None:
            left = min(left, max(self.openings.seconds - seconds, 0.0))
        return MatchProgress(self.results.bars(), "game", seconds, left)

    # --- playing them

    def _start(self, keys: Sequence[Key]) -> None:
        """Begin new games."""
        if not keys:
            return
        fresh = [self._board(key) for key in keys]
        if self.starts is not None:
            state = select(self.starts, torch.tensor([number for _, number in keys]))
        else:
            state, positions = self.arena.start(self.game, [board.opening for board in fresh])
            for board, position in zip(fresh, positions):
                if any(player.player.wants_boards for player in board.players):
                    board.position = position
        self.state = concatenate([self.state, state]) if self.boards else state
        self.boards = [*self.boards, *fresh]

    def opening(self, number: int) -> Opening:
        """The opening of the game with this number."""
        return self.book[number // 2 % len(self.book)]

    def _board(self, key: Key) -> Board:
        match, number = self.matches[key[0]], key[1]
        names = " - ".join(player.name for player in match.players)
        players = tuple(self.results.times[id(player)] for player in match.players)
        if number % 2:
            players = players[::-1]
        chance = random.Random(f"{self.seed}: {names}, game {number}")
        return Board(key, self.opening(number), chance, players)

    def _move(self, player: PlayerTime) -> None:
        """Make every move that this player has to make now."""
        movers = self.state.current_player.tolist() if self.boards else []
        rows = [
            row
            for row, (board, mover) in enumerate(zip(self.boards, movers))
            if board.players[mover] is player
        ]
        if not rows:
            return
        actions = self._choose(player, rows)
        reasons = iter(player.player.reasons)
        made = []
        for row, action in zip(rows, actions):
            if action == NO_MOVE:
                self.boards[row].end(FORFEIT, float(movers[row]), next(reasons))
            else:
                made.append((row, action))
        if made:
            self._make([row for row, _ in made], [action for _, action in made])
        self._clear()

    def _choose(self, player: PlayerTime, rows: list[int]) -> list[int]:
        """An action, or NO_MOVE, for the games in `rows`. Measures the time."""
        started = time.perf_counter()
        boards = [self.boards[row] for row in rows]
        self.chance.games = [board.chance for board in boards]
        index = torch.tensor(rows, device=self.game.device)
        if player.player.evaluations:  # in few sizes: the same bits whatever shares the batch
            index = torch.cat([index, index[:1].expand(-len(rows) % ROW_MULTIPLE)])
        positions = None
        if player.player.wants_boards:
            positions = [board.position for board in boards]
        chosen = player.player.choose(select(self.state, index), self.chance, positions)
        actions = chosen[: len(rows)].tolist()
        took = time.perf_counter() - started
        player.quickest_call = min(took, player.quickest_call) if player.moves else took
        player.seconds_a_move = took / len(rows)
        player.seconds += took
        player.moves += len(rows)
        return actions

    def _make(self, rows: list[int], actions: list[int]) -> None:
        """Make one move in each of the games in `rows`."""
        index = torch.tensor(rows, device=self.game.device)
        chosen = torch.tensor(actions, device=self.game.device)
        after = self.game.step(select(self.state, index), chosen)
        self.state = map_fields(
            lambda all_rows, new: all_rows.index_copy(0, index, new), self.state, after
        )
        solo = self.game.num_players == 1
        reached = cast(PointsGame, self.game).reached(after).tolist() if solo else []
        points = after.score.tolist() if solo else ((after.rewards[:, 0] + 1) / 2).tolist()
        over = finished(after).tolist()
        endings = after.ending.tolist()
        for place, (row, action) in enumerate(zip(rows, actions)):
            board = self.boards[row]
            board.actions.append(action)
            if board.position is not None:
                self.arena.push(board.position, action)
            if over[place]:
                milestones = tuple(reached[place]) if solo else ()
                ending = self.game.endings[endings[place]]
                board.end(ending, points[place], reached=milestones)

    def _clear(self) -> None:
        """Take in the games that have ended."""
        playing = [board.result is None for board in self.boards]
        if all(playing):
            return
        for board in self.boards:
            if board.result is not None:
                match, number = board.key
                self.results.ended[match][number] = board.result
        self.boards = [board for board in self.boards if board.result is None]
        self.state = select(self.state, torch.tensor(playing, device=self.game.device))
