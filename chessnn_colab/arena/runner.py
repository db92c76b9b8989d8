"""Plays the games of several matches side by side, as one batch."""

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from ..games.base import Game, PointsGame, concatenate, finished, select
from ..graphs import map_tensors
from ..search import ROW_MULTIPLE
from .match import Key, Match, MatchResults, Openings, all_games
from .players import NO_MOVE, GamesChance, Player
from .progress import MatchProgress, Watch
from .registry import arena_game
from .result import FORFEIT, MatchGame, Opening

BOARDS = 512  # games side by side: the more, the less each evaluation costs
MIN_PLIES = 60  # expected of a game that has just begun


@dataclass
class Board:
    """A game being played."""

    key: Key
    chance: random.Random  # the game's own
    players: Sequence[Player]  # the one that moves first, and the second
    position: Any = None  # the game's board object, if one of the players wants boards
    actions: list[int] = field(default_factory=list)
    over: bool = False


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
        seconds: float = math.inf,
        games: Sequence[Key] | None = None,
    ):
        self.game = game
        self.arena = arena_game(game.name)
        self.matches = matches
        self.seed = seed
        self.chance = GamesChance(game.device)
        self.chance.manual_seed(seed)
        keys = all_games(matches) if games is None else games
        self.openings = Openings(matches, keys, BOARDS, seconds)
        self.starts: Any = None  # of a game for one player: a state with a row per game
        if game.num_players == 1:
            generator = torch.Generator().manual_seed(seed)
            most = max((match.games for match in matches), default=0)
            self.starts = game.starts(most, "standard", generator)
        self.results = MatchResults(matches, keys)
        # Networks last: then they get the games of every opponent that has just moved.
        self.order = sorted(self.results.times, key=lambda player: player.evaluations)
        self.state: Any = None
        self.boards = []
        self.seconds_a_move = 0.0  # in the last step
        self.quickest_step = math.inf  # in seconds

    def play(self, watch: Watch) -> None:
        """Play all games; calls `watch` after every step."""
        watch(self.progress())
        while self.step():
            watch(self.progress())
        watch(self.progress())

    def step(self) -> bool:
        """Start games where there is room, and let every player move. False when all is done."""
        self._start(self.openings.next(len(self.boards), self._seconds_for))
        if self.boards:
            started = time.perf_counter()
            moves = sum(self._move(player) for player in self.order)
            took = time.perf_counter() - started
            self.seconds_a_move = took / moves
            self.quickest_step = min(took, self.quickest_step)
        if self.boards or self.openings.waiting:
            return True
        self.results.end()
        return False

    # --- time

    def _plies(self) -> list[int]:
        """The plies of each game so far, of those that have ended too."""
        ended = [len(game.actions) for games in self.results.ended for game in games.values()]
        return ended + [len(board.actions) for board in self.boards]

    def _seconds_for(self, games: Sequence[Key]) -> float:
        """How long the games being played and `games` take together if each is as long as a game
        can be, or in a game for one player as long as the longest so far. Infinite as long as the
        first of those are being played.
        """
        most = self.game.max_plies
        if self.game.num_players == 1:
            if self.boards and len(self.openings.started) == 1:
                return math.inf
            most = max(self._plies())
        played = [len(board.actions) for board in self.boards] + [0] * len(games)
        moves = sum(most - plies for plies in played)
        steps = (most - min(played)) / self.game.num_players
        return max(moves * self.seconds_a_move, steps * self.quickest_step)

    def running(self) -> list[Key]:
        """The match and the plies of each game that is being played."""
        return [(board.key[0], len(board.actions)) for board in self.boards]

    def progress(self, elsewhere: Sequence[Key] = ()) -> MatchProgress:
        """The progress of all matches, with an estimate of the time left by the plies so far.

        elsewhere: `running` of other processes.
        """
        running = self.running()
        plies = self._plies()
        under_way = [0.0] * len(self.matches)
        for match, count in (*running, *elsewhere):
            under_way[match] += count / (count + MIN_PLIES)  # it grows with every ply
        seconds = self.openings.elapsed
        left = None
        if played := sum(plies):
            # A game of n plies is expected to last half as long again: games that end first are
            # short, and games that have just begun are not almost over.
            more = sum(min(max(MIN_PLIES - n, n // 2), self.game.max_plies - n) for _, n in running)
            waiting = sum(len(opening) for opening in self.openings.waiting)
            plies_left = more + waiting * (played + more) / len(plies)
            pace = seconds / played
            # The limit ends no game that is being played.
            left = min(pace * plies_left, max(self.openings.seconds - seconds, pace * more))
        return MatchProgress(self.results.bars(under_way), "game", seconds, left)

    # --- playing them

    def _start(self, keys: Sequence[Key]) -> None:
        if not keys:
            return
        fresh = [self._board(key) for key in keys]
        if self.starts is not None:
            numbers = torch.tensor([number for _, number in keys], device=self.game.device)
            state = select(self.starts, numbers)
        else:
            state, positions = self.arena.start(
                self.game, [self.opening(number) for _, number in keys]
            )
            for board, position in zip(fresh, positions):
                if any(player.wants_boards for player in board.players):
                    board.position = position
        self.state = concatenate([self.state, state]) if self.boards else state
        self.boards = [*self.boards, *fresh]

    def opening(self, number: int) -> Opening:
        """The opening of the game with this number."""
        return self.arena.book[number // 2 % len(self.arena.book)]

    def _board(self, key: Key) -> Board:
        match, number = key
        players = self.matches[match].players
        names = " - ".join(player.name for player in players)
        chance = random.Random(f"{self.seed}: {names}, game {number}")
        return Board(key, chance, players[::-1] if number % 2 else players)

    def _move(self, player: Player) -> int:
        """Make every move that this player has to make now. Returns how many they are."""
        movers = self.state.current_player.tolist() if self.boards else []
        rows = [
            row
            for row, (board, mover) in enumerate(zip(self.boards, movers))
            if board.players[mover] is player
        ]
        if not rows:
            return 0
        actions = self._choose(player, rows)
        reasons = iter(player.reasons)
        moves = {}
        for row, action in zip(rows, actions):
            if action == NO_MOVE:
                self._end(self.boards[row], FORFEIT, float(movers[row]), reason=next(reasons))
            else:
                moves[row] = action
        if moves:
            self._make(moves)
        self._clear()
        return len(rows)

    def _choose(self, player: Player, rows: list[int]) -> list[int]:
        """An action, or NO_MOVE, for the games in `rows`. Measures the time."""
        started = time.perf_counter()
        boards = [self.boards[row] for row in rows]
        self.chance.games = [board.chance for board in boards]
        index = torch.tensor(rows, device=self.game.device)
        if player.evaluations:  # in few sizes: the same bits whatever shares the batch
            multiple = ROW_MULTIPLE
            while multiple < len(rows) and self.game.device.type != "cpu":
                multiple *= 2  # each size is recorded once as a CUDA graph
            index = torch.cat([index, index[:1].expand(-len(rows) % multiple)])
        positions = [board.position for board in boards] if player.wants_boards else ()
        chosen = player.choose(select(self.state, index), self.chance, positions)
        actions = chosen[: len(rows)].tolist()
        time_of = self.results.times[player]
        time_of.seconds += time.perf_counter() - started
        time_of.moves += len(rows)
        return actions

    def _make(self, moves: dict[int, int]) -> None:
        """Make one move in each of some games. moves: row -> action."""
        index = torch.tensor(list(moves), device=self.game.device)
        chosen = torch.tensor(list(moves.values()), device=self.game.device)
        after = self.game.step(select(self.state, index), chosen)
        self.state = map_tensors(
            lambda all_rows, new: all_rows.index_copy(0, index, new), self.state, after
        )
        over = finished(after).tolist()
        for place, (row, action) in enumerate(moves.items()):
            board = self.boards[row]
            board.actions.append(action)
            if board.position is not None:
                self.arena.push(board.position, action)
            if over[place]:
                self._end_by_rules(board, select(after, slice(place, place + 1)))

    def _end_by_rules(self, board: Board, last: Any) -> None:
        """End a game in the state `last`, which has one row."""
        ending = self.game.endings[int(last.ending)]
        if self.game.num_players == 2:
            self._end(board, ending, (float(last.rewards[0, 0]) + 1) / 2)
        else:
            rules = cast(PointsGame, self.game)
            reached = zip(map(str, rules.milestones), rules.reached(last)[0].tolist())
            self._end(board, ending, int(last.score), reached=dict(reached))

    def _end(self, board: Board, ending: str, points: float, **others: Any) -> None:
        """points: of the first mover, from 0 to 1; in a game for one player its score. others: the
        other fields of MatchGame.
        """
        board.over = True
        match, number = board.key
        player_is_first = len(board.players) == 1 or number % 2 == 0
        own = points if player_is_first else 1 - points
        self.results.ended[match][number] = MatchGame(
            self.opening(number), player_is_first, own, ending, tuple(board.actions), **others
        )

    def _clear(self) -> None:
        rows = [row for row, board in enumerate(self.boards) if not board.over]
        if len(rows) < len(self.boards):
            self.boards = [self.boards[row] for row in rows]
            index = torch.tensor(rows, dtype=torch.int64, device=self.game.device)
            self.state = select(self.state, index)
