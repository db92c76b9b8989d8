"""A board against a function, whose moves a test knows."""

from collections.abc import Callable
from typing import Any

import chess
import torch

from chessnn_colab.arena.opponent import Opponent
from chessnn_colab.arena.players import Player
from chessnn_colab.arena.registry import match_game
from chessnn_colab.games.chess.notation import action_from_move
from chessnn_colab.views.play import play_widget
from chessnn_colab.views.play.board import PlayBoard


class FunctionPlayer(Player):
    """A function from a python-chess board to a move, as a player."""

    name = "the network"
    wants_boards = True

    def __init__(self, choose_move: Callable[[chess.Board], Any]):
        self._choose_move = choose_move

    def choose(self, state, generator, boards=()) -> torch.Tensor:
        moves = [(self._choose_move(board.copy()), board) for board in boards]
        return torch.tensor([action_from_move(move, board) for move, board in moves])


def choosing(choose_move: Callable[[chess.Board], Any]) -> Opponent:
    return Opponent(match_game("chess"), FunctionPlayer(choose_move))


def play_against(choose_move: Callable[[chess.Board], Any], **options) -> PlayBoard:
    return play_widget(choosing(choose_move), **options)
