"""The games of several matches, side by side: one state with a row for each game that is being played.

Whoever has moves to make in several games, of whatever match, makes them together. A game that ends makes room for the
next.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..games.base import Game, concatenate, finished, map_fields, select
from ..search import ROUNDED
from .ledger import Ledger, Match
from .players import NO_MOVE, GamesChance, Player
from .registry import match_kit
from .result import FORFEIT, MatchGame, Opening
from .schedule import Schedule
from .standing import Standing


@dataclass
class Board:
    """A game being played."""

    match: int
    number: int  # within its match
    opening: Opening
    chance: random.Random  # the game's own
    seats: tuple[Seat, Seat]  # of the first mover and the second
    position: Any = None  # the game's board object, kept up to date only when one of its players wants boards
    actions: list[int] = field(default_factory=list)
    points: float = 0.5
    ending: str = ""
    reason: str = ""

    @property
    def player_is_first(self) -> bool:
        return self.number % 2 == 0

    def end(self, ending: str, first_movers_points: float, reason: str = "") -> None:
        self.ending, self.reason = ending, reason
        self.points = first_movers_points if self.player_is_first else 1 - first_movers_points

    def result(self) -> MatchGame:
        return MatchGame(self.opening, self.player_is_first, self.points, self.ending, tuple(self.actions), self.reason)


class Seat:
    """A player in all its matches, and how long it thinks."""

    def __init__(self, player: Player, ledger: Ledger):
        self.player, self.ledger, self.place = player, ledger, ledger.place(player)
        self.seconds_a_move = self.least_call = 0.0  # of the last call; of the quickest call

    def choose(self, state: Any, index: Tensor, boards: Sequence[Board], chance: GamesChance) -> list[int]:
        """An action, or NO_MOVE, for the rows `index` of `state`, which are the games of `boards`."""
        started = time.perf_counter()
        chance.games = [board.chance for board in boards]
        if self.player.evaluations:  # the same bits whatever shares the batch, and few sizes to prepare
            index = torch.cat([index, index[:1].expand(-len(index) % ROUNDED)])
        positions = [board.position for board in boards] if self.player.wants_boards else None
        actions = self.player.choose(select(state, index), chance, positions)[: len(boards)].tolist()
        took = time.perf_counter() - started
        self.least_call = min(took, self.least_call) if self.ledger.moves[self.place] else took
        self.seconds_a_move = took / len(actions)
        self.ledger.seconds[self.place] += took
        self.ledger.moves[self.place] += len(actions)
        return actions


class Table:
    """All games of a call: those to start, those being played, each with a row of the state, and those that ended.

    share: which openings are played here, as Schedule has it.
    """

    def __init__(
        self,
        game: Game,
        matches: Sequence[Match],
        seed: int,
        book: Sequence[Opening],
        boards: int,
        seconds: float | None,
        share: tuple[int, int] = (0, 1),
    ):
        self.game, self.kit, self.matches, self.seed, self.book = game, match_kit(game.name), matches, seed, book
        self.chance = GamesChance([], game.device)
        self.chance.manual_seed(seed)
        self.ledger = Ledger(matches)
        self.seats = {id(player): Seat(player, self.ledger) for player in self.ledger.players}
        # Networks last: each round gives them the games of every opponent that has just moved.
        self.order = sorted(self.seats.values(), key=lambda seat: seat.player.evaluations)
        self.schedule = Schedule([match.games for match in matches], boards, seconds, share)
        self.ledger.games = self.schedule.games  # one list
        self.state: Any = None
        self.boards: list[Board] = []

    def play(self, on_news: Callable[[], None]) -> None:
        """Play all games; calls `on_news` after every round."""
        while self.round():
            on_news()
        on_news()

    def go_on_from(self, ledger: Ledger) -> None:
        """Play none of the games that have ended there; for a table that has none yet and no limit on time."""
        mine = self.ledger
        mine.ended, mine.seconds, mine.moves = ledger.ended, list(ledger.seconds), list(ledger.moves)
        self.schedule.leave_out(ledger.ended)

    def round(self) -> bool:
        """Start games where there is room, and let every player make its moves. False when there is nothing to do."""
        self._start(self.schedule.next(len(self.boards), self._seconds_for))
        for seat in self.order if self.boards else ():
            self._move(seat)
        return bool(self.boards) or self.schedule.more

    def _start(self, games: Sequence[tuple[int, int]]) -> None:
        """Put new games on the table, given as match and number."""
        if not games:
            return
        fresh = []
        for number, of_match in games:
            match = self.matches[number]
            names = f"{match.player.name} - {match.opponent.name}"
            chance = random.Random(f"{self.seed}: {names}, game {of_match}")
            first, second = self.seats[id(match.player)], self.seats[id(match.opponent)]
            seats = (first, second) if of_match % 2 == 0 else (second, first)
            opening = self.book[of_match // 2 % len(self.book)]
            fresh.append(Board(number, of_match, opening, chance, seats))
        state, positions = self.kit.start(self.game, [board.opening for board in fresh])
        for board, position in zip(fresh, positions):
            if any(seat.player.wants_boards for seat in board.seats):
                board.position = position
        self.state = state if self.state is None or not self.boards else concatenate([self.state, state])
        self.boards = [*self.boards, *fresh]

    def _move(self, seat: Seat) -> None:
        """Every move that this player has to make now."""
        movers = self.state.current_player.tolist() if self.boards else []
        rows = [row for row, (board, mover) in enumerate(zip(self.boards, movers)) if board.seats[mover] is seat]
        if not rows:
            return
        index = torch.tensor(rows, device=self.game.device)
        actions = seat.choose(self.state, index, [self.boards[row] for row in rows], self.chance)
        reasons = iter(seat.player.reasons)
        for row, action in zip(rows, actions):
            if action == NO_MOVE:
                self.boards[row].end(FORFEIT, float(movers[row]), next(reasons))
        made = [(row, action) for row, action in zip(rows, actions) if action != NO_MOVE]
        if made:
            self._play([row for row, _ in made], [action for _, action in made])
        self._clear()

    def _play(self, rows: list[int], actions: list[int]) -> None:
        device = self.game.device
        index = torch.tensor(rows, device=device)
        after = self.game.step(select(self.state, index), torch.tensor(actions, device=device))
        self.state = map_fields(lambda all_rows, new: all_rows.index_copy(0, index, new), self.state, after)
        over, rewards, endings = finished(after).tolist(), after.rewards.tolist(), after.ending.tolist()
        for place, (row, action) in enumerate(zip(rows, actions)):
            board = self.boards[row]
            board.actions.append(action)
            if board.position is not None:
                self.kit.push(board.position, action)
            if over[place]:
                board.end(self.game.endings[endings[place]], (rewards[place][0] + 1) / 2)

    def _clear(self) -> None:
        """Take the games that have ended off the table."""
        playing = [not board.ending for board in self.boards]
        if all(playing):
            return
        for board in self.boards:
            if board.ending:
                self.ledger.ended[board.match][board.number] = board.result()
        self.boards = [board for board in self.boards if not board.ending]
        self.state = select(self.state, torch.tensor(playing, device=self.game.device))

    def _seconds_for(self, games: Sequence[tuple[int, int]]) -> float:
        """How long the games on the table and `games` take together at most, by the pace of the last round."""
        moves, longest = dict.fromkeys(self.seats, 0.0), dict.fromkeys(self.seats, 0.0)
        lengths = [(board.match, self.game.max_plies - len(board.actions)) for board in self.boards]
        for number, plies in [*lengths, *((number, self.game.max_plies) for number, _ in games)]:
            for player in (self.matches[number].player, self.matches[number].opponent):
                moves[id(player)] += plies / 2
                longest[id(player)] = max(longest[id(player)], plies / 2)
        return sum(
            max(moves[key] * seat.seconds_a_move, longest[key] * seat.least_call) for key, seat in self.seats.items()
        )

    def standing(self) -> Standing:
        """How far the matches are."""
        seconds = self.schedule.elapsed
        return Standing(self.ledger.parts(), "game", seconds, self._seconds_left(seconds))

    def _seconds_left(self, seconds: float) -> float | None:
        """By the plies played so far, and the length of games that is to be expected after what was seen."""
        lengths = [len(game.actions) for ended in self.ledger.ended for game in ended.values()]
        running = [len(board.actions) for board in self.boards]
        if not (played := sum(lengths) + sum(running)):
            return None
        # A game that goes on for n plies is taken to go on for half as many again: neither is a short game the rule
        # because short games end first, nor is a match almost over because all its games are young.
        likely = lengths + [min(max(1.5 * plies, 60), self.game.max_plies) for plies in running]
        total = sum(likely) / len(likely) * sum(self.schedule.games)
        left, of_running = (seconds * max(plies - played, sum(running) / 20) / played for plies in (total, sum(likely)))
        limit = self.schedule.seconds
        return left if limit is None else min(left, max(limit - seconds, of_running))
