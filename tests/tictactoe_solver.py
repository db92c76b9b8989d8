"""Tic-tac-toe solved by trying everything, in plain Python; it shares no code with the rules on
tensors.

A position is a string of nine of ".XO", row after row. X moves first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from chessnn_colab.games.gomoku.state import GomokuState
from chessnn_colab.games.tictactoe import TicTacToe

EMPTY = "........."
ROWS = [(3 * row, 3 * row + 1, 3 * row + 2) for row in range(3)]
LINES = ROWS + list(zip(*ROWS)) + [(0, 4, 8), (2, 4, 6)]


def mover(board: str) -> str:
    """Whose turn it is."""
    return "O" if board.count("X") > board.count("O") else "X"


def winner(board: str) -> str | None:
    """Who has three in a row, if anybody has."""
    return next(
        (board[a] for a, b, c in LINES if board[a] != "." and board[a] == board[b] == board[c]),
        None,
    )


def over(board: str) -> bool:
    return winner(board) is not None or "." not in board


def legal(board: str) -> list[int]:
    """The squares that may be played, none once the game is over."""
    return [] if over(board) else [square for square, mark in enumerate(board) if mark == "."]


def play(board: str, square: int) -> str:
    return board[:square] + mover(board) + board[square + 1 :]


@cache
def reachable() -> tuple[str, ...]:
    """All 5,478 positions that legal play can lead to, the 958 final ones too, those with fewer
    stones first.
    """
    found = [EMPTY]
    last = {EMPTY}
    while last:
        last = {play(board, square) for board in last for square in legal(board)}
        found += sorted(last)
    return tuple(found)


@cache
def true_value(board: str) -> int:
    """What best play brings the mover: +1 a win, 0 a draw, -1 a loss."""
    if over(board):
        return 0 if winner(board) is None else -1
    return max(-true_value(play(board, square)) for square in legal(board))


@cache
def keeping(board: str) -> frozenset[int]:
    """The moves after which best play still brings what it brought before; all legal moves where
    every one loses.
    """
    return frozenset(
        square for square in legal(board) if -true_value(play(board, square)) == true_value(board)
    )


@cache
def unfinished() -> tuple[str, ...]:
    """The 4,520 reachable positions that are not over."""
    return tuple(board for board in reachable() if not over(board))


def state_of(boards: tuple[str, ...], game: TicTacToe) -> GomokuState:
    """The positions as a batch; row i is boards[i]."""
    return game.unpack(torch.tensor(list(map(_words, boards)), device=game.device))


def unfinished_states(game: TicTacToe | None = None) -> GomokuState:
    """All of `unfinished` as a batch of 4,520 rows, on the device of `game`; without one on the
    CPU.
    """
    return state_of(unfinished(), game or TicTacToe())


def kept_share(choose: Callable[[GomokuState], Tensor], game: TicTacToe | None = None) -> float:
    """The share of all reachable positions that are not over in which a player's move keeps the
    true value.

    choose: from the states of `unfinished_states(game)` to int64 [B], an action per row. An illegal
    one keeps nothing.
    """
    chosen = choose(unfinished_states(game)).tolist()
    kept = [action in keeping(board) for board, action in zip(unfinished(), chosen, strict=True)]
    return sum(kept) / len(kept)


def _words(board: str) -> list[int]:
    """As TicTacToe.pack has it."""
    return [
        sum(1 << square for square, mark in enumerate(board) if mark == player) for player in "XO"
    ]
