"""Tic-tac-toe on tensors equals a reference in plain Python in every position that can be
reached.
"""

import re

import torch

from chessnn_colab.games.base import concatenate, select
from chessnn_colab.games.tictactoe import MAX_RANDOM_PLIES, TicTacToe

from .tictactoe_solver import (
    EMPTY,
    keeping,
    legal,
    mover,
    over,
    play,
    reachable,
    state_of,
    true_value,
    unfinished,
    unfinished_states,
    winner,
)

GAME = TicTacToe()


def boards_of(state) -> list[str]:
    return ["".join(re.findall(r"[.XO]", text)) for text in GAME.to_text(state)]


def test_the_solver_knows_the_numbers_that_everybody_knows():
    boards = reachable()
    assert len(boards) == len(set(boards)) == 5478 and len(unfinished()) == 4520
    ends = [winner(board) for board in boards if over(board)]
    assert [ends.count(who) for who in ("X", "O", None)] == [626, 316, 16]
    assert true_value(EMPTY) == 0 and keeping(EMPTY) == set(range(9))
    assert keeping("X........") == {4}, "only the centre holds against a corner"
    assert true_value("XX.OO....") == 1 and keeping("XX.OO....") == {2}


def test_every_reachable_position_is_what_the_reference_says():
    boards = reachable()
    state = state_of(boards, GAME)
    assert boards_of(state) == list(boards)
    for row, board in enumerate(boards):
        won = {"X": 1.0, "O": -1.0, None: 0.0}[winner(board)]
        ending = "three_in_a_row" if won else "board_full" if over(board) else "unfinished"
        assert GAME.player_names[state.current_player[row]] == mover(board)
        assert GAME.endings[state.ending[row]] == ending and bool(state.terminated[row]) == over(
            board
        )
        assert state.rewards[row].tolist() == [won, -won]
    empty = torch.tensor([[mark == "." for mark in board] for board in boards])
    assert torch.equal(GAME.legal_action_mask(state), empty)
    own, opponent, ones = GAME.observe(state).flatten(2).unbind(1)
    for plane, is_own in ((own, True), (opponent, False)):
        assert plane.bool().tolist() == [
            [m != "." and (m == mover(board)) == is_own for m in board] for board in boards
        ]
    assert (ones == 1).all()


def test_every_move_leads_where_the_reference_says():
    """From every position that is not over: 16,167 moves, and nothing else is allowed."""
    state = unfinished_states()
    rows, actions = GAME.legal_actions(state)
    boards = unfinished()
    expected = [(row, square) for row, board in enumerate(boards) for square in legal(board)]
    assert list(zip(rows.tolist(), actions.tolist())) == expected and len(expected) == 16167
    after = GAME.step(select(state, rows), actions)
    assert boards_of(after) == [play(boards[row], square) for row, square in expected]
    there = state_of(tuple(play(boards[row], square) for row, square in expected), GAME)
    for name in ("board", "current_player", "terminated", "truncated", "rewards", "ending"):
        assert torch.equal(getattr(after, name), getattr(there, name)), name
    assert (after.plies_played == 1).all()


def test_eight_images_fold_the_positions_into_765():
    packed = GAME.pack(state_of(reachable(), GAME))
    images = torch.stack(
        [GAME.augment(packed, torch.full((len(packed),), way / 8))[0] for way in range(8)]
    )
    numbers = images[:, :, 0] + (images[:, :, 1] << 9)
    assert len(numbers.amin(0).unique()) == 765
    assert len(GAME.action_images.unique(dim=0)) == 8


def test_random_starts_reach_every_position_of_up_to_six_stones():
    generator = torch.Generator().manual_seed(0)
    seen = set(
        boards_of(concatenate([GAME.starts(20_000, "random-plies", generator) for _ in range(5)]))
    )
    assert seen == {
        board for board in unfinished() if 1 <= 9 - board.count(".") <= MAX_RANDOM_PLIES
    }
