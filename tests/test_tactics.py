"""The puzzles of chess and Gomoku: every stored answer is right, and a player gets the marks that it
deserves.
"""

from dataclasses import replace

import chess
import pytest

from chessnn_colab.arena.chess.minimax import MinimaxPlayer
from chessnn_colab.arena.game import Puzzle
from chessnn_colab.arena.gomoku.alphabeta import AlphaBetaPlayer
from chessnn_colab.arena.gomoku.heuristic import HeuristicPlayer
from chessnn_colab.arena.players import NetworkPlayer, RandomPlayer, play_search
from chessnn_colab.arena.puzzles import solved_over_run, solved_share
from chessnn_colab.arena.registry import arena_game
from chessnn_colab.errors import ConfigError, RunError
from chessnn_colab.games.base import finished
from chessnn_colab.games.chess.notation import move_from_action, state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.registry import make_game, rules
from chessnn_colab.network import build_network
from chessnn_colab.network_config import NetworkConfig

from .chess_games import mating
from .counts import full
from .gomoku_reference import fives
from .gomoku_run import make_gomoku_run

GOMOKU_KINDS = ("win-in-one", "block-in-one", "open-three", "double-threat")
CHESS_KINDS = ("mate-in-one", "mate-in-two", "hanging-piece")
BOARDS = ["gomoku:9", "gomoku:9:exact", "gomoku:12", "gomoku", "gomoku:15:exact", "gomoku:20"]


def load(name: str) -> list[Puzzle]:
    return arena_game(name).require("puzzles")(make_game(name))


def of_kind(kind: str, name: str = "chess") -> list[Puzzle]:
    return [puzzle for puzzle in load(name) if puzzle.kind == kind]


def moves_of(puzzle: Puzzle) -> set[chess.Move]:
    return {move_from_action(action, puzzle.board) for action in puzzle.solutions}


def test_a_hundred_of_each_all_different_and_valid():
    suite = load("chess")
    assert [len(of_kind(kind)) for kind in CHESS_KINDS] == [100, 100, 100]
    assert len({puzzle.board.fen() for puzzle in suite}) == len(suite) == 300
    assert all(puzzle.board.is_valid() for puzzle in suite)
    assert all(1 <= len(moves_of(puzzle)) <= 3 for puzzle in suite)  # which are legal moves
    assert len({puzzle.board.turn for puzzle in suite}) == 2


@pytest.mark.parametrize("kind, moves", [("mate-in-one", 1), ("mate-in-two", 2)])
def test_the_mates_are_all_the_mates_there_are(kind, moves):
    for puzzle in of_kind(kind)[:: full(10, 1)]:
        assert mating(puzzle.board, moves) == moves_of(puzzle)
        assert moves == 1 or not mating(puzzle.board, 1)


def test_what_hangs_is_worth_taking_to_one_who_looks_two_plies():
    """An independent judge, minimax with other values, agrees that nothing else leaves as much."""
    game = Chess()
    for puzzle in of_kind("hanging-piece")[:: full(10, 1)]:
        (move,) = moves_of(puzzle)
        assert puzzle.board.is_capture(move)
        assert puzzle.board.piece_type_at(move.to_square) not in (None, chess.PAWN)
        state = state_from_boards([puzzle.board], game)
        scores = MinimaxPlayer(game).scores(state)[0]
        best = scores[game.legal_action_mask(state)[0]].max()
        assert scores[min(puzzle.solutions)] > best - 100


def sides(puzzle: Puzzle, name: str) -> tuple[set[int], set[int], int, bool]:
    """The mover's stones, the opponent's, the size of the board and its rule."""
    actions = puzzle.board
    mover = len(actions) % 2
    game = rules(name)
    return set(actions[mover::2]), set(actions[1 - mover :: 2]), game.size, game.exact


def fives_of_the_opponent(puzzle: Puzzle, name: str) -> set[int]:
    own, theirs, size, exact = sides(puzzle, name)
    return fives(theirs, own, size, exact)


def unstoppable(own: set[int], theirs: set[int], size: int, exact: bool) -> set[int]:
    """The moves after which the opponent has no five and each of his replies leaves one."""
    found = set()
    for move in set(range(size**2)) - own - theirs:
        mine = own | {move}
        if len(fives(mine, theirs, size, exact)) > 1 and not fives(theirs, mine, size, exact):
            found.add(move)
    return found


def wins_soon(own: set[int], theirs: set[int], size: int, exact: bool) -> set[int]:
    """The moves after which the opponent has no five and each of his replies leaves a five or an
    unstoppable four.
    """

    def follows(move: int) -> bool:
        mine = own | {move}
        return not fives(theirs, mine, size, exact) and all(
            fives(mine, theirs | {reply}, size, exact)
            or unstoppable(mine, theirs | {reply}, size, exact)
            for reply in set(range(size**2)) - mine - theirs
        )

    return {move for move in set(range(size**2)) - own - theirs if follows(move)}


def test_sixty_of_each_of_gomoku_all_different_and_valid():
    suite = load("gomoku:9")
    assert [len(of_kind(kind, "gomoku:9")) for kind in GOMOKU_KINDS] == [60] * len(GOMOKU_KINDS)
    stones = {tuple(frozenset(part) for part in sides(puzzle, "gomoku:9")[:2]) for puzzle in suite}
    assert len(stones) == len(suite)
    game = make_game("gomoku:9")
    for puzzle in suite:
        state = game.after([puzzle.board])
        assert not finished(state) and 1 <= len(puzzle.solutions) <= 4
        assert not state.board[0, list(puzzle.solutions)].any()
    assert len({len(puzzle.board) % 2 for puzzle in suite}) == 2


@pytest.mark.parametrize("name", BOARDS)
def test_fives_blocks_and_fours_are_all_there_are(name):
    for puzzle in of_kind("win-in-one", name)[:: full(4, 1)]:
        assert fives(*sides(puzzle, name)) == puzzle.solutions
    for puzzle in of_kind("block-in-one", name)[:: full(4, 1)]:
        assert not fives(*sides(puzzle, name)) and len(puzzle.solutions) == 1
        assert fives_of_the_opponent(puzzle, name) == puzzle.solutions
    for puzzle in of_kind("open-three", name)[:: full(30, 1)]:
        assert not fives(*sides(puzzle, name))
        assert unstoppable(*sides(puzzle, name)) == puzzle.solutions


@pytest.mark.parametrize("name", full(BOARDS[:1], BOARDS[:2]))
def test_double_threats_win_against_every_reply(name):
    for puzzle in of_kind("double-threat", name)[:: full(60, 6)]:
        assert not fives(*sides(puzzle, name)) and not unstoppable(*sides(puzzle, name))
        assert wins_soon(*sides(puzzle, name)) == puzzle.solutions


@pytest.mark.parametrize(
    "name, kinds", [("chess", CHESS_KINDS), ("gomoku:9", GOMOKU_KINDS), ("gomoku:15", GOMOKU_KINDS)]
)
def test_a_guesser_solves_few_of_each_kind(name, kinds):
    game, puzzles = make_game(name), load(name)
    shares = solved_share(game, puzzles, RandomPlayer(game))
    assert set(shares) == set(kinds) and max(shares.values()) < 0.3


def test_who_looks_ahead_solves_more():
    game = Chess()
    short = (of_kind("mate-in-one") + of_kind("hanging-piece"))[:: full(5, 1)]
    minimax = solved_share(game, short, MinimaxPlayer(game))
    assert minimax["mate-in-one"] == 1.0 and minimax["hanging-piece"] > 0.8
    game, suite = make_game("gomoku:9"), load("gomoku:9")
    heuristic = solved_share(game, suite, HeuristicPlayer(game))
    deep = solved_share(game, suite[:: full(6, 1)], AlphaBetaPlayer(game, 4))
    for marks in (heuristic, deep):
        assert marks["win-in-one"] == marks["block-in-one"] == 1.0
    assert heuristic["double-threat"] < 0.8
    assert deep["open-three"] > 0.9 and deep["double-threat"] > 0.5


@pytest.mark.parametrize(
    "search", [play_search("tree", num_simulations=2), play_search("two-rung", 2, 1)]
)
def test_a_mate_in_one_is_always_played_where_proofs_count(search):
    game, suite = Chess(), of_kind("mate-in-one")
    network = build_network(NetworkConfig(channels=2, blocks=1, value_hidden=2), "cpu")
    looking = solved_share(game, suite, NetworkPlayer(game, network, search))
    assert looking["mate-in-one"] == 1.0
    for learned in (play_search("policy"), replace(search, solve="off")):
        alone = solved_share(game, suite, NetworkPlayer(game, network, learned))
        assert alone["mate-in-one"] < 0.3, "it shows what was learned, and nothing was"


def test_marks_every_snapshot_of_a_run(tmp_path):
    run = make_gomoku_run(tmp_path / "run", (0, 3))
    search = play_search("two-rung", 4, 2)
    shares = solved_over_run(run, search, device="cpu")
    assert list(shares) == [0, 3]
    assert all(set(share) == set(GOMOKU_KINDS) for share in shares.values())
    assert all(share["win-in-one"] == 1.0 for share in shares.values())
    assert solved_over_run(run, search, [3], device="cpu") == {3: shares[3]}
    with pytest.raises(RunError, match="no snapshot 7"):
        solved_over_run(run, search, [7], device="cpu")


def test_a_small_board_has_no_puzzles(tmp_path):
    run = make_gomoku_run(tmp_path / "run", (0,), "gomoku:7")
    with pytest.raises(ConfigError, match="'gomoku:7' has no puzzles: .* on 9x9 or larger"):
        solved_over_run(run, play_search(), device="cpu")
