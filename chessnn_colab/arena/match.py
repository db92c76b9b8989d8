"""Matches between players: many games in lockstep, both colours of every opening, decided by the rules of chess alone.

Checkmate, stalemate, insufficient material, third repetition and fifty moves end a game; one that reaches 300 plies
from its opening without an end is a draw. Nobody adjudicates. A player that cannot move has lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Sequence

import chess
import torch
from torch import Tensor

from ..errors import ConfigError
from ..games.base import finished, select
from ..games.chess.rules import ENDINGS, Chess, ChessState
from .result import FORFEIT, MatchGame, MatchResult
from ..games.chess.notation import move_from_action, state_from_boards
from .chess.openings import BOOK, Opening
from .players import Player

MATCH_PLIES = 300
BOARDS = 128  # games in lockstep
NO_MOVE = -1  # what a player answers where it cannot move


def play_match(
    player: Player, opponent: Player, games: int, seed: int = 0, device: str = "cpu", book: Sequence[Opening] = BOOK
) -> MatchResult:
    """`games` games: 2k and 2k + 1 from opening k of `book`, which starts again when it is through, colours changed.

    Raises ConfigError for an odd number or fewer than two.
    """
    if games < 2 or games % 2:
        raise ConfigError(f"games={games}: expected an even number from 2 up, each opening is played with both colours")
    game = Chess(MATCH_PLIES, device)
    generator = torch.Generator(device).manual_seed(seed)
    seats = (_Seat(player), _Seat(opponent))
    played = []
    for first in range(0, games, BOARDS):
        numbers = range(first, min(first + BOARDS, games))
        boards = [_Board(book[number // 2 % len(book)], number % 2) for number in numbers]
        _play_batch(game, seats, boards, generator)
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
    colour: int  # the first player's, 0 White
    actions: list[int] = field(default_factory=list)
    position: chess.Board | None = None  # kept up where a player wants it
    points: float = 0.5
    ending: str = ENDINGS[0]
    reason: str = ""

    def play(self, action: int) -> None:
        self.actions.append(action)
        if self.position is not None:
            self.position.push(move_from_action(action, self.position))

    def end(self, ending: str, points: float, reason: str = "") -> None:
        self.ending, self.points, self.reason = ending, points, reason

    def result(self) -> MatchGame:
        return MatchGame(self.opening, self.colour == 0, self.points, self.ending, tuple(self.actions), self.reason)


class _Seat:
    """A player and how long it thinks."""

    def __init__(self, player: Player):
        self.player = player
        self.seconds, self.moves = 0.0, 0

    @property
    def milliseconds_a_move(self) -> float:
        return 1000 * self.seconds / max(self.moves, 1)

    def choose(self, state: ChessState, boards: Sequence[_Board], generator: torch.Generator) -> tuple[list[int], list]:
        """An action a row, and the reasons for the rows without one."""
        started = time.perf_counter()
        positions = [board.position for board in boards] if self.player.wants_boards else None
        actions = self.player.choose(state, generator, positions).tolist()
        self.seconds += time.perf_counter() - started
        self.moves += len(actions)
        return actions, list(self.player.reasons) if NO_MOVE in actions else []


def _play_batch(game: Chess, seats: Sequence[_Seat], boards: Sequence[_Board], generator: torch.Generator) -> None:
    """Play `boards` to their ends; all games go on side by side, a row each until they end."""
    positions = [board.opening.board() for board in boards]
    state = state_from_boards(positions, game)
    if any(seat.player.wants_boards for seat in seats):
        for board, position in zip(boards, positions):
            board.position = position
    while boards:
        actions = _choose(seats, state, boards, generator)
        state, boards = _drop(state, boards, torch.tensor([board.ending == FORFEIT for board in boards]))
        if not boards:
            return
        played = torch.tensor([action for action in actions if action != NO_MOVE], device=game.device)
        state = game.step(state, played)
        for board, action in zip(boards, played.tolist()):
            board.play(action)
        over = finished(state).cpu()
        rows = over.nonzero().squeeze(1).tolist()
        rewards, endings = state.rewards[:, 0].tolist(), state.ending.tolist()
        for row in rows:
            white = (rewards[row] + 1) / 2
            boards[row].end(ENDINGS[endings[row]], white if boards[row].colour == 0 else 1 - white)
        state, boards = _drop(state, boards, over)


def _choose(
    seats: Sequence[_Seat], state: ChessState, boards: Sequence[_Board], generator: torch.Generator
) -> list[int]:
    """An action for every row, asked of whose turn it is; where there is none, its board ends as a forfeit."""
    actions = [NO_MOVE] * len(boards)
    movers = state.current_player.tolist()
    for side, seat in enumerate(seats):
        rows = [row for row, board in enumerate(boards) if (movers[row] != board.colour) == bool(side)]
        if not rows:
            continue
        index = torch.tensor(rows, device=state.current_player.device)
        chosen, reasons = seat.choose(select(state, index), [boards[row] for row in rows], generator)
        why = iter(reasons)
        for row, action in zip(rows, chosen):
            actions[row] = action
            if action == NO_MOVE:
                boards[row].end(FORFEIT, float(side), next(why))
    return actions


def _drop(state: ChessState, boards: Sequence[_Board], over: Tensor) -> tuple[ChessState, list[_Board]]:
    """Without the rows where `over` (bool [B], on the host) holds."""
    if not over.any():
        return state, list(boards)
    return select(state, ~over.to(state.ply.device)), [board for board, done in zip(boards, over.tolist()) if not done]
