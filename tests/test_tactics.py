"""The tactics suite: every stored answer is right, and a player is marked as it deserves."""

import chess
import pytest
import torch

from chessnn_colab.arena.chess.minimax import MinimaxPlayer
from chessnn_colab.arena.chess.tactics import load_suite, make_suite
from chessnn_colab.arena.players import NetworkPlayer, Player, RandomPlayer, play_search
from chessnn_colab.arena.puzzles import solved_share
from chessnn_colab.games.chess.notation import action_from_move, state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import build_network
from chessnn_colab.network_config import NetworkConfig

from .counts import full

SUITE = load_suite()
KINDS = ("mate-in-one", "mate-in-two", "hanging-piece")
STEP = full(10, 1)  # every tenth puzzle, or all of them


def of_kind(kind: str) -> list:
    return [puzzle for puzzle in SUITE if puzzle.kind == kind]


def after(board: chess.Board, move: chess.Move) -> chess.Board:
    board = board.copy(stack=False)
    board.push(move)
    return board


def mating(board: chess.Board, moves: int) -> set[chess.Move]:
    """The moves that mate in at most so many, by looking at everything."""
    found = set()
    for move in board.legal_moves:
        then = after(board, move)
        if then.is_checkmate() or (
            moves > 1
            and any(then.legal_moves)
            and all(mating(after(then, reply), moves - 1) for reply in then.legal_moves)
        ):
            found.add(move)
    return found


def test_a_hundred_of_each_all_different_and_valid():
    assert [len(of_kind(kind)) for kind in KINDS] == [100, 100, 100]
    assert len({puzzle.fen for puzzle in SUITE}) == 300
    for puzzle in SUITE:
        board = chess.Board(puzzle.fen)
        assert (
            board.is_valid()
            and 1 <= len(puzzle.solutions) <= 3
            and puzzle.solutions <= set(board.legal_moves)
        )
    assert len({chess.Board(puzzle.fen).turn for puzzle in SUITE}) == 2


@pytest.mark.parametrize("kind, moves", [("mate-in-one", 1), ("mate-in-two", 2)])
def test_the_mates_are_all_the_mates_there_are(kind, moves):
    for puzzle in of_kind(kind)[::STEP]:
        board = chess.Board(puzzle.fen)
        assert mating(board, moves) == puzzle.solutions
        assert moves == 1 or not mating(board, 1)


def test_what_hangs_is_worth_taking_to_one_who_looks_two_plies():
    """An independent judge, minimax with other values, agrees that nothing else leaves as much."""
    game = Chess()
    for puzzle in of_kind("hanging-piece")[::STEP]:
        board = chess.Board(puzzle.fen)
        (move,) = puzzle.solutions
        assert board.is_capture(move) and board.piece_type_at(move.to_square) not in (
            None,
            chess.PAWN,
        )
        scores = MinimaxPlayer(game).scores(state_from_boards([board], game))[0]
        legal = sorted(
            (float(scores[action_from_move(other, board)]) for other in board.legal_moves),
            reverse=True,
        )
        assert float(scores[action_from_move(move, board)]) > legal[0] - 100


class Oracle(Player):
    name, wants_boards = "oracle", True

    def choose(self, state, generator, boards=None):
        answers = {puzzle.fen: min(puzzle.solutions, key=str) for puzzle in SUITE}
        return torch.tensor([action_from_move(answers[board.fen()], board) for board in boards])


def test_marks_an_oracle_a_guesser_and_one_who_looks_ahead():
    game = Chess()
    assert solved_share(make_suite(game, SUITE), Oracle()) == dict.fromkeys(KINDS, 1.0)
    assert all(
        share < 0.3 for share in solved_share(make_suite(game, SUITE), RandomPlayer(game)).values()
    )
    short = (of_kind("mate-in-one") + of_kind("hanging-piece"))[:: full(5, 1)]
    minimax = solved_share(make_suite(game, short), MinimaxPlayer(game))
    assert minimax["mate-in-one"] == 1.0 and minimax["hanging-piece"] > 0.8


@pytest.mark.parametrize(
    "search", [play_search("tree", num_simulations=2), play_search("two-rung", 2, 1)]
)
def test_a_mate_in_one_is_always_played_even_by_a_network_that_knows_nothing(search):
    network = build_network(NetworkConfig(channels=2, blocks=1, value_hidden=2), "cpu")
    suite = [puzzle for puzzle in SUITE if puzzle.kind == "mate-in-one"]
    assert solved_share(make_suite(Chess(), suite), NetworkPlayer(Chess(), network, search)) == {
        "mate-in-one": 1.0
    }
    alone = solved_share(
        make_suite(Chess(), suite), NetworkPlayer(Chess(), network, play_search("policy"))
    )
    assert alone["mate-in-one"] < 0.3  # the policy by itself shows what was learned
