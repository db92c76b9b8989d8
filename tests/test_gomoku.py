"""Gomoku's rules are those of a brute-force reference, on every size and with both rules."""

import random

import pytest
import torch

from chessnn_colab.config import TrainConfig
from chessnn_colab.errors import ConfigError, NotationError
from chessnn_colab.games.base import finished
from chessnn_colab.games.gomoku.lines import LineTables
from chessnn_colab.games.gomoku.notation import cell_name, parse_cell
from chessnn_colab.games.gomoku.rules import DEFAULT_SIZE, LARGEST, SMALLEST, Gomoku
from chessnn_colab.games.registry import make_game, rules

from .counts import full
from .gomoku_reference import fives, winner
from .random_play import random_actions

GAMES_EACH = full(4, 32)
NAMES = ["gomoku:5", "gomoku:6:exact", "gomoku:9", "gomoku:9:exact", "gomoku", "gomoku:20:exact"]


def random_boards(size: int, count: int, share: float, seed: int) -> torch.Tensor:
    """int8 [count, size * size] of 0, 1 and 2: stones of either colour on a share of the cells."""
    generator = torch.Generator().manual_seed(seed)
    stones = torch.randint(1, 3, (count, size**2), generator=generator)
    return torch.where(torch.rand(count, size**2, generator=generator) < share, stones, 0).to(
        torch.int8
    )


@pytest.mark.parametrize("name", NAMES)
def test_random_games_end_where_the_reference_says(name):
    game = make_game(name)
    generator = torch.Generator().manual_seed(0)
    state = game.init(GAMES_EACH)
    for ply in range(game.num_actions):
        assert torch.equal(game.legal_action_mask(state), state.board == 0)
        before = state
        state = game.step(state, random_actions(game, state, generator))
        for row in (~finished(before)).nonzero().squeeze(1).tolist():
            won = winner(state.board[row].tolist(), game.size, game.exact)
            assert state.rewards[row].tolist() == {0: [0, 0], 1: [1, -1], 2: [-1, 1]}[won]
            ended = (
                "five_in_a_row"
                if won
                else "board_full"
                if ply + 1 == game.num_actions
                else "unfinished"
            )
            assert game.endings[state.ending[row]] == ended
            assert state.current_player[row] == (ply + 1) % 2 and state.plies_played[row] == ply + 1
    assert finished(state).all()
    packed = game.pack(state)
    assert game.packed_words == 2 * -(-(game.size**2) // 63) and (packed >= 0).all()
    again = game.unpack(packed)
    for field in ("board", "current_player", "ending", "terminated", "rewards"):
        assert torch.equal(getattr(again, field), getattr(state, field)), field


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_lines_on_crowded_boards(name, share):
    """Wherever a five stands, the checks of its own cells find it, in both ways of asking."""
    game = make_game(name)
    boards = random_boards(game.size, full(12, 200), share, seed=game.size)
    tables = LineTables(game.size, game.exact, "cpu")
    for colour in (1, 2):
        stones = boards == colour
        completes = tables.completes(stones)
        assert torch.equal(completes, tables.completes_by_codes(stones))
        found = (completes & stones).any(1).tolist()
        for row, board in enumerate(boards.tolist()):
            own = [stone if stone == colour else 0 for stone in board]
            assert found[row] == (winner(own, game.size, game.exact) == colour)


@pytest.mark.parametrize("name", ["gomoku:6", "gomoku:6:exact"])
def test_the_network_sees_both_sides_where_five_can_be_completed_and_the_border(name):
    game = make_game(name)
    rng = random.Random(5)
    state = game.after([rng.sample(range(36), rng.randint(20, 30)) for _ in range(20)])
    planes = game.observe(state)
    assert planes.shape == (20, 5, 6, 6) and planes[:, 4].all()
    assert state.current_player.unique().tolist() == [0, 1]
    for row, board in enumerate(state.board.tolist()):
        own = 1 + int(state.current_player[row])
        mine, theirs = (
            {cell for cell, stone in enumerate(board) if stone == who} for who in (own, 3 - own)
        )
        mine_next, theirs_next = (
            fives(*sides, 6, game.exact) for sides in ((mine, theirs), (theirs, mine))
        )
        for plane, cells in zip(planes[row], (mine, theirs, mine_next, theirs_next)):
            assert set(plane.flatten().nonzero().squeeze(1).tolist()) == cells
    assert planes[:, 2].any() and planes[:, 3].any()


def test_starts_are_near_the_centre_and_nobody_is_ahead():
    game = make_game("gomoku")
    state = game.starts(400, "random-plies", torch.Generator().manual_seed(1))
    stones = (state.board > 0).sum(1)
    assert stones.min() == 1 and stones.max() == 8 and torch.equal(stones % 2, state.current_player)
    black, white = ((state.board == colour).sum(1) for colour in (1, 2))
    assert ((black - white) == state.current_player).all()
    rows = (state.board.view(-1, 15, 15) > 0).float().mean((0, 2))
    assert rows[5:10].sum() > 0.7 * rows.sum() and rows[0] < 0.01
    assert len({tuple(row) for row in state.board.tolist()}) > 350


@pytest.mark.parametrize(
    "name, words",
    [
        ("gomoku:4", "gomoku on 4x4: expected a size from 5 to 20"),
        ("gomoku:21", "gomoku on 21x21: .*expected a size from 5 to 20"),
        ("gomoku:999999999999", "unknown game 'gomoku:999999999999': expected gomoku, gomoku:SIZE"),
        ("gomoku:", "expected gomoku, gomoku:SIZE or gomoku:SIZE:exact"),
        ("gomoku:9:inexact", "expected gomoku, gomoku:SIZE"),
        ("gomoku:exact:9", "expected gomoku, gomoku:SIZE"),
        ("gomoku:-9", "expected gomoku, gomoku:SIZE"),
        (
            "chess:9",
            "unknown game 'chess:9': expected one of chess, .*gomoku\\[:SIZE\\]\\[:exact\\]",
        ),
        ("tictactoe:", "unknown game 'tictactoe:'"),
        ("", "unknown game ''"),
    ],
)
def test_names_that_mean_nothing_are_refused_in_a_sentence(name, words):
    with pytest.raises(ConfigError, match=words):
        make_game(name)
    with pytest.raises(ConfigError, match=words):
        TrainConfig(game=name)


def test_one_game_has_one_name():
    assert rules("gomoku:15") is rules("gomoku") is Gomoku and rules("gomoku:exact") is rules(
        "gomoku:15:exact"
    )
    assert (
        TrainConfig(game="gomoku:15").game == "gomoku"
        and TrainConfig(game="gomoku:exact").game == "gomoku:15:exact"
    )
    sizes = [rules(f"gomoku:{size}") for size in range(SMALLEST, LARGEST + 1)]
    assert len({game.name for game in sizes}) == len(sizes) and DEFAULT_SIZE == Gomoku.size == 15


@pytest.mark.parametrize("text", ["", "a", "a0", "a10", "j1", "a\u0661", "aa1", "1a", "a-1", "a1 "])
def test_cells_off_the_board_are_refused(text):
    with pytest.raises(NotationError, match="expected a1 to i9"):
        parse_cell(text, 9)


def test_cells_have_names():
    assert [cell_name(cell, 15) for cell in (0, 14, 112, 224)] == ["a15", "o15", "h8", "o1"]
    assert all(parse_cell(cell_name(cell, 20).upper(), 20) == cell for cell in range(400))


def test_boards_are_drawn():
    text = make_game("gomoku:5").to_text(make_game("gomoku:5").after([[12, 0]]))[0]
    assert text.splitlines() == [
        " 5 O . . . .",
        " 4 . . . . .",
        " 3 . . X . .",
        " 2 . . . . .",
        " 1 . . . . .",
        "   a b c d e",
    ]
