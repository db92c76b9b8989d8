"""tools/move_worth.py: how well a network tells moves apart."""

import sys
from pathlib import Path

import chess
import pytest
import torch

from chessnn_colab.games.chess.notation import state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import build_network

from .test_selfplay import TINY

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from move_worth import Moves

QUEEN_HANGS = "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"
BLACK_MATES = "4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1"


def moves(worth, *fens: str) -> Moves:
    game = Chess()
    boards = [chess.Board(fen) for fen in fens or (chess.STARTING_FEN, QUEEN_HANGS)]
    return Moves(game, state_from_boards(boards, game), worth)


def test_moves_are_compared_within_their_position():
    """Whoever takes the queen has the best move of the second position; the first has none."""
    taken = moves(lambda board: float(not board.pieces(chess.QUEEN, chess.BLACK)))
    per_position = torch.tensor([5.0, -3.0])[taken.rows]
    assert taken.worth.sum() == 1
    assert taken.correlation(2 * taken.worth + per_position) == pytest.approx(1)
    assert taken.correlation(per_position - taken.worth) == pytest.approx(-1)
    assert taken.loses(taken.worth + per_position) == 0
    assert taken.loses(per_position - taken.worth) == 0.5


def test_a_network_is_judged_by_its_value_and_by_its_policy():
    """By itself as the judge its value is perfect, up to the noise of rounding, and its policy, which
    knows nothing of the value, is not.
    """
    network = build_network(TINY, "cpu").eval()
    torch.nn.init.normal_(network.value[2].weight, std=0.5)
    found = moves(lambda board: 0.0)
    with torch.no_grad():
        found.worth = found.values(network)
    figures = found.judged(network)
    assert figures["correlation"] > 0.99 and figures["value loses"] == 0
    assert figures["policy loses"] > 0 and figures["spread"] > figures["noise"] > 0


def test_a_move_that_ends_the_game_is_worth_what_the_rules_say():
    found = moves(lambda board: float(board.is_checkmate()), BLACK_MATES)
    with torch.no_grad():
        values = found.values(build_network(TINY, "cpu").eval())
    assert found.worth.sum() == 1 and values[found.worth == 1].tolist() == [1]
    assert (values[found.worth == 0].abs() < 1).all()
