"""A network as an opponent on a python-chess board, for a person to play against."""

from __future__ import annotations

from collections.abc import Callable

import chess
import torch

from ...games.chess.notation import move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...search import SearchConfig
from ..players import PLAY_SEARCH, NetworkPlayer


def choose_move(network: SpikingNetwork, search: SearchConfig = PLAY_SEARCH) -> Callable[[chess.Board], chess.Move]:
    """A function from a board to the move that the network plays there, as views.play.play_widget needs it."""
    game = Chess(device=str(next(network.parameters()).device))
    player = NetworkPlayer(game, network, search)
    generator = torch.Generator(game.device).manual_seed(0)

    def choose(board: chess.Board) -> chess.Move:
        action = player.choose(state_from_boards([board], game), generator)
        return move_from_action(int(action), board)

    return choose
