"""A network as an opponent on a python-chess board, for a person to play against."""

from __future__ import annotations

import chess

from ...devices import playing_device
from ...games.chess.notation import move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...search import SearchConfig
from ..opponent import NetworkOpponent
from ..players import PLAY_SEARCH, NetworkPlayer


class ChooseMove:
    """A function from a board to the move that a network plays there; made by `choose_move`.

    `opponent` is the same network for views.play, which also shows what it thinks.
    """

    def __init__(self, game: Chess, opponent: NetworkOpponent):
        self._game = game
        self.opponent = opponent

    def __call__(self, board: chess.Board) -> chess.Move:
        return move_from_action(self.opponent.choose(state_from_boards([board], self._game)), board)


def choose_move(network: SpikingNetwork, search: SearchConfig = PLAY_SEARCH) -> ChooseMove:
    """A function from a board to the move that the network plays there, as views.play.play_widget
    accepts it.
    """
    game = Chess(device=playing_device(next(network.parameters()).device))
    return ChooseMove(game, NetworkOpponent(game, NetworkPlayer(game, network, search)))
