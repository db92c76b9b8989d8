"""Matches: many games in lockstep, every opening once with each player first. The rules alone decide who wins.

A game that reaches the match's limit on plies is a draw (300 plies from the opening in chess). Nobody adjudicates.
A player that cannot move loses the game.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..cpu import one_thread
from ..errors import ConfigError
from ..games.base import Game, finished, select
from .players import NO_MOVE, Player
from .registry import MatchKit, match_kit
from .result import FORFEIT, MatchGame, MatchResult, Opening

BOARDS = 128  # games in lockstep


@one_thread()
def play_match(
    game: Game, player: Player, opponent: Player, games: int, seed: int = 0, book: Sequence[Opening] | None = None
) -> MatchResult:
    """Play `games` games of `game` (see registry.match_game) and return what `player` made of them.

    Games 2k and 2k + 1 start from opening k of `book`, and `player` moves first in game 2k. After its last opening the
    book starts again. book: None is the game's own. Raises ConfigError for an odd number of games, for fewer than two,
    and for a game that is not for two players.
    """
    if games < 2 or games % 2:
        raise ConfigError(f"games={games}: expected an even number from 2 up, because every opening is played twice")
    if game.num_players != 2:
        raise ConfigError(
            f"the game {game.name!r} has no matches, because it is for one player: `evaluate` compares mean scores"
        )
    kit = match_kit(game.name)
    book = kit.book if book is None else book
    generator = torch.Generator(game.device).manual_seed(seed)
    seats = (_Seat(player), _Seat(opponent))
    played = []
    for first in range(0, games, BOARDS):
        numbers = range(first, min(first + BOARDS, games))
        boards = [_Board(book[number // 2 % len(book)], number % 2 == 0) for number in numbers]
        _play_batch(game, kit, seats, boards, generator)
        played += [board.result() for board in boards]
    return MatchResult(
        player=player.name,
        opponent=opponent.name,
        played=tuple(played),
        evaluations=player.evaluations,
        opponent_evaluations=opponent.evaluations,
        milliseconds_a_move=seats[0].milliseconds_a_move,
        opponent_milliseconds_a_move=seats[1].milliseconds_a_move,
    )


@dataclass
class _Board:
    """A game being played."""

    opening: Opening
    player_is_first: bool
    position: Any = None  # the game's board object, kept up to date only when a player wants boards
    actions: list[int] = field(default_factory=list)
    points: float = 0.5
    ending: str = ""
    reason: str = ""

    def seat(self, mover: int) -> int:
        """Who has the move: 0 the match's player, 1 its opponent. mover: a State's current_player."""
        return mover if self.player_is_first else 1 - mover

    def end(self, ending: str, points: float, reason: str = "") -> None:
        self.ending, self.points, self.reason = ending, points, reason

    def result(self) -> MatchGame:
        return MatchGame(self.opening, self.player_is_first, self.points, self.ending, tuple(self.actions), self.reason)


class _Seat:
    """A player and how long it thinks."""

    def __init__(self, player: Player):
        self.player = player
        self.seconds, self.moves = 0.0, 0

    @property
    def milliseconds_a_move(self) -> float:
        return 1000 * self.seconds / max(self.moves, 1)

    def choose(self, state: Any, boards: Sequence[_Board], generator: torch.Generator) -> list[int]:
        """An action, or NO_MOVE, for each row of `state`."""
        started = time.perf_counter()
        positions = [board.position for board in boards] if self.player.wants_boards else None
        actions = self.player.choose(state, generator, positions).tolist()
        self.seconds += time.perf_counter() - started
        self.moves += len(actions)
        return actions


def _play_batch(
    game: Game, kit: MatchKit, seats: Sequence[_Seat], boards: Sequence[_Board], generator: torch.Generator
) -> None:
    """Play `boards` to their ends, side by side. Each has a row of the state until it ends."""
    state, positions = kit.start(game, [board.opening for board in boards])
    wants_boards = any(seat.player.wants_boards for seat in seats)
    for board, position in zip(boards, positions if wants_boards else ()):
        board.position = position
    while boards:
        actions = _choose(seats, state, boards, generator)
        state, boards = _drop(state, boards, torch.tensor([board.ending == FORFEIT for board in boards]))
        if not boards:
            return
        played = [action for action in actions if action != NO_MOVE]
        state = game.step(state, torch.tensor(played, device=game.device))
        for board, action in zip(boards, played):
            board.actions.append(action)
            if wants_boards:
                kit.push(board.position, action)
        over = finished(state).cpu()
        rewards, endings = state.rewards.tolist(), state.ending.tolist()
        for row in over.nonzero().squeeze(1).tolist():
            reward = rewards[row][0 if boards[row].player_is_first else 1]
            boards[row].end(game.endings[endings[row]], (reward + 1) / 2)
        state, boards = _drop(state, boards, over)


def _choose(seats: Sequence[_Seat], state: Any, boards: Sequence[_Board], generator: torch.Generator) -> list[int]:
    """An action for every row, from the player whose turn it is. A board without an action ends as a forfeit."""
    actions = [NO_MOVE] * len(boards)
    movers = state.current_player.tolist()
    for number, seat in enumerate(seats):
        rows = [row for row, board in enumerate(boards) if board.seat(movers[row]) == number]
        if not rows:
            continue
        index = torch.tensor(rows, device=state.current_player.device)
        chosen = seat.choose(select(state, index), [boards[row] for row in rows], generator)
        reasons = iter(seat.player.reasons)
        for row, action in zip(rows, chosen):
            actions[row] = action
            if action == NO_MOVE:
                boards[row].end(FORFEIT, float(number), next(reasons))
    return actions


def _drop(state: Any, boards: Sequence[_Board], over: Tensor) -> tuple[Any, list[_Board]]:
    """Leave out the rows where `over` (bool [B], on the host) holds."""
    if not over.any():
        return state, list(boards)
    kept = select(state, ~over.to(state.current_player.device))
    return kept, [board for board, done in zip(boards, over.tolist()) if not done]
