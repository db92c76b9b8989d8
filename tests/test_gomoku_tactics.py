"""The Gomoku puzzles: every stored answer is right, and players get the marks that they deserve."""

import pytest
import torch

from chessnn_colab.arena.gomoku.alphabeta import AlphaBetaPlayer
from chessnn_colab.arena.gomoku.heuristic import HeuristicPlayer
from chessnn_colab.arena.gomoku.tactics import KINDS, Puzzle, load_suite, make_suite
from chessnn_colab.arena.players import Player, RandomPlayer, play_search
from chessnn_colab.arena.puzzles import solved_over_run, solved_share
from chessnn_colab.arena.registry import arena_game
from chessnn_colab.errors import ConfigError, RunError
from chessnn_colab.games.base import finished
from chessnn_colab.games.gomoku.rules import position_after
from chessnn_colab.games.registry import make_game

from .counts import full
from .gomoku_reference import fives
from .gomoku_run import make_gomoku_run

EACH = 60
BOARDS = [(9, False), (9, True), (12, False), (15, False), (15, True), (20, False)]


def sides(puzzle: Puzzle) -> tuple[set[int], set[int]]:
    """The mover's stones and the opponent's."""
    mover = len(puzzle.actions) % 2
    return set(puzzle.actions[mover::2]), set(puzzle.actions[1 - mover :: 2])


def of_kind(kind: str, size: int = 9) -> list[Puzzle]:
    return [puzzle for puzzle in load_suite(size) if puzzle.kind == kind]


def unstoppable(own: set[int], theirs: set[int], size: int, exact: bool) -> set[int]:
    """The moves after which the opponent has no five and each of his replies leaves one."""
    found = set()
    for move in set(range(size**2)) - own - theirs:
        after = fives(own | {move}, theirs, size, exact)
        if len(after) > 1 and not fives(theirs, own | {move}, size, exact):
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


def test_sixty_of_each_all_different_and_valid():
    suite = load_suite()
    assert [len(of_kind(kind)) for kind in KINDS] == [EACH] * len(KINDS) and len(suite) >= 200
    assert len({tuple(frozenset(side) for side in sides(puzzle)) for puzzle in suite}) == len(suite)
    game = make_game("gomoku:9")
    for puzzle in suite:
        state = position_after(game, puzzle.actions)
        assert not finished(state) and 1 <= len(puzzle.solutions) <= 4
        assert all(state.board[0, answer] == 0 for answer in puzzle.solutions)
    assert len({len(puzzle.actions) % 2 for puzzle in suite}) == 2


@pytest.mark.parametrize("size, exact", BOARDS)
def test_fives_and_blocks_are_all_there_are(size, exact):
    step = full(4, 1)
    for puzzle in of_kind("win-in-one", size)[::step]:
        assert fives(*sides(puzzle), size, exact) == puzzle.solutions
    for puzzle in of_kind("block-in-one", size)[::step]:
        own, theirs = sides(puzzle)
        assert (
            not fives(own, theirs, size, exact)
            and fives(theirs, own, size, exact) == puzzle.solutions
        )
        assert len(puzzle.solutions) == 1


@pytest.mark.parametrize("size, exact", BOARDS)
def test_fours_are_all_the_unstoppable_ones(size, exact):
    for puzzle in of_kind("open-three", size)[:: full(30, 1)]:
        assert not fives(*sides(puzzle), size, exact)
        assert unstoppable(*sides(puzzle), size, exact) == puzzle.solutions


@pytest.mark.parametrize("size, exact", full([(9, False)], [(9, False), (9, True)]))
def test_double_threats_win_against_every_reply(size, exact):
    for puzzle in of_kind("double-threat", size)[:: full(60, 6)]:
        own, theirs = sides(puzzle)
        assert not fives(own, theirs, size, exact) and not unstoppable(own, theirs, size, exact)
        assert wins_soon(own, theirs, size, exact) == puzzle.solutions


class Oracle(Player):
    name, wants_boards = "oracle", True

    def __init__(self, size: int):
        self.answers = {puzzle.actions: min(puzzle.solutions) for puzzle in load_suite(size)}

    def choose(self, state, generator, boards=None):
        return torch.tensor([self.answers[tuple(board.actions)] for board in boards])


@pytest.mark.parametrize("size", [9, 15])
def test_marks_an_oracle_a_guesser_and_those_who_look_ahead(size):
    game = make_game(f"gomoku:{size}")
    suite = load_suite(size)
    assert solved_share(make_suite(game, suite), Oracle(size)) == dict.fromkeys(KINDS, 1.0)
    assert all(
        share < 0.3 for share in solved_share(make_suite(game, suite), RandomPlayer(game)).values()
    )
    heuristic = solved_share(make_suite(game, suite), HeuristicPlayer(game))
    assert (
        heuristic["win-in-one"] == heuristic["block-in-one"] == 1.0
        and heuristic["double-threat"] < 0.8
    )
    deep = solved_share(make_suite(game, suite[:: full(6, 1)]), AlphaBetaPlayer(game, 4))
    assert (
        deep["win-in-one"] == deep["block-in-one"] == 1.0
        and deep["open-three"] > 0.9
        and deep["double-threat"] > 0.5
    )


def test_marks_every_snapshot_of_a_run(tmp_path):
    run = make_gomoku_run(tmp_path / "run", (0, 3))
    search = play_search("two-rung", 4, 2)
    assert arena_game("gomoku:9").puzzles is make_suite
    shares = solved_over_run(run, search, device="cpu")
    assert list(shares) == [0, 3] and all(set(share) == set(KINDS) for share in shares.values())
    assert all(share["win-in-one"] == 1.0 for share in shares.values()), (
        "a five is always completed"
    )
    assert solved_over_run(run, search, [3], device="cpu") == {3: shares[3]}
    with pytest.raises(RunError, match="no snapshot 7"):
        solved_over_run(run, search, [7], device="cpu")


def test_a_small_board_has_no_puzzles(tmp_path):
    with pytest.raises(ConfigError, match="no puzzles for a board of 7x7: expected 9x9 or larger"):
        solved_over_run(
            make_gomoku_run(tmp_path / "run", (0,), "gomoku:7"), play_search(), device="cpu"
        )
