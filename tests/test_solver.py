"""What the rules prove: wins that are played, losses that are not, values that are exact."""

from dataclasses import replace

import chess
import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.arena.chess.tactics import load_puzzles
from chessnn_colab.assembler import chances
from chessnn_colab.games.base import (
    Game,
    finished,
    forced_wins,
    select,
    start_positions,
    winning_actions,
)
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import (
    action_from_move,
    board_from_fen,
    move_from_action,
    state_from_boards,
)
from chessnn_colab.games.chess.rules import FEW_REPLIES, Chess
from chessnn_colab.games.registry import make_game
from chessnn_colab.search import PolicyOutput, Root, SearchConfig, Step, play_wins
from chessnn_colab.tree import Expansion, tree_search

from .chess_games import after, mating, state_from_fens
from .random_play import random_actions
from .test_search import Ignorant, considering
from .test_tree import CASES, Table, golden_case, schedules_of

BACK_RANK = "6k1/5ppp/8/8/8/1N6/r4PPP/6K1 w - - 0 1"  # most moves of the knight allow mate
MATED_AT_ONCE = "8/8/8/8/8/5k2/4q3/6K1 w - - 0 1"  # the one legal move allows mate
SEARCHES = {
    "tree": SearchConfig(search="tree", num_simulations=64, solve="all"),
    "two-rung": SearchConfig(candidates=64, survivors=64, solve="all"),
}


def every_win(game, state) -> torch.Tensor:
    """bool [B, A]: the actions that win at once, by stepping all of them."""
    rows, actions = game.legal_actions(state)
    after = game.step(select(state, rows), actions)
    wins = after.terminated & (
        after.rewards.gather(1, state.current_player[rows].unsqueeze(1)).squeeze(1) > 0
    )
    found = torch.zeros(len(state.current_player), game.num_actions, dtype=torch.bool)
    found[rows[wins], actions[wins]] = True
    return found


class Listing:
    """A game that does not say which moves may win."""

    winning_candidates = Game.winning_candidates

    def __init__(self, game: Game):
        self.legal_actions, self.step = game.legal_actions, game.step


def is_one_of(actions: torch.Tensor, wins: torch.Tensor) -> bool:
    """Whether `winning_actions` answered with a win in each row that has one, and with -1 in each
    other.
    """
    winning = wins.any(1)
    chosen = wins[winning].gather(1, actions[winning].unsqueeze(1))
    return bool((actions[~winning] == -1).all() and chosen.all())


@pytest.mark.parametrize(
    "name, shares, plies",
    [
        ("chess", {"few-piece": 0.8, "random-plies": 0.2}, 24),
        ("gomoku:7", {"random-plies": 1.0}, 30),
        ("gomoku:7:exact", {"random-plies": 1.0}, 30),
        ("tictactoe", {"random-plies": 1.0}, 9),
    ],
)
def test_a_win_is_found_wherever_stepping_every_move_finds_one(name, shares, plies):
    """In chess from few and from many pieces: checks by every kind of piece, uncovered ones too."""
    game = make_game(name)
    generator = torch.Generator().manual_seed(0)
    game.start_shares = shares
    state = start_positions(game, 256 if name == "chess" else 64, generator)
    found = 0
    for _ in range(plies):
        wins = every_win(game, state)
        found += int(wins.any(1).sum())
        assert is_one_of(winning_actions(game, state), wins)
        playing = ~finished(state)
        static = winning_actions(game, state, static=True)
        assert is_one_of(static[playing], wins[playing])
        assert is_one_of(winning_actions(Listing(game), state), wins)
        state = game.step(state, random_actions(game, state, generator))
    assert found > 20


@pytest.mark.parametrize(
    "fen, mate",
    [
        ("6rk/6pp/8/4N3/8/8/8/6K1 w - - 0 1", "e5f7"),  # smothered
        ("7k/5P2/6K1/8/8/8/8/8 w - - 0 1", "f7f8q"),  # by a promotion
        ("8/4P1R1/1p3k2/1Q6/4p3/rQ6/8/6K1 w - - 0 1", "e7e8n"),  # to a knight
        ("7B/8/7k/4R1pP/5Q2/4p1R1/7r/6K1 w - g6 0 1", "h5g6"),  # en passant
        ("8/PQ6/3Q2R1/p4k2/8/8/8/4K2R w K - 0 1", "e1g1"),  # by castling
        ("8/4r3/R7/NR5R/8/k7/8/6K1 w - - 0 1", "a5b7"),  # uncovered
        (MATED_AT_ONCE, None),
    ],
)
def test_winning_actions_agree_with_python_chess(fen, mate):
    game = Chess()
    board = board_from_fen(fen)
    mates = mating(board)
    action = int(winning_actions(game, state_from_fens([fen], game)))
    assert (move_from_action(action, board) in mates) if mates else action == -1
    assert mate is None or chess.Move.from_uci(mate) in mates


def forces_mate(board: chess.Board, move: chess.Move) -> bool:
    """Whether every one of at most FEW_REPLIES replies to `move` allows mate, by python-chess."""
    board = after(board, move)
    replies = [] if board.is_game_over() else list(board.legal_moves)
    if not 0 < len(replies) <= FEW_REPLIES:
        return False
    return all(mating(after(board, reply)) for reply in replies)


def test_forced_mates_in_two_are_those_that_python_chess_finds():
    """In puzzles and random endgames: every row that has such a move gets one, and no other row."""
    game = Chess()
    generator = torch.Generator().manual_seed(3)
    state = game.starts(64, "few-piece", generator)
    for _ in range(8):
        state = game.step(state, random_actions(game, state, generator))
    boards = boards_from_state(state)
    puzzles = load_puzzles(game)
    boards += [puzzle.board for puzzle in puzzles if puzzle.kind != "mate-in-one"][:140]
    found = 0
    for board, action, plies in zip(
        boards, *(part.tolist() for part in forced_wins(game, state_from_boards(boards, game)))
    ):
        if board.is_game_over() or mating(board):
            assert board.is_game_over() or plies == 1
            continue
        forcing = [move for move in board.legal_moves if forces_mate(board, move)]
        assert (
            (move_from_action(action, board) in forcing and plies == 3) if forcing else action == -1
        )
        found += bool(forcing)
    assert 96 <= found < len(boards)


@pytest.mark.parametrize("search", SEARCHES)
def test_mates_in_two_are_played_by_a_network_that_knows_nothing(search):
    game = Chess()
    puzzles = [puzzle for puzzle in load_puzzles(game) if puzzle.kind == "mate-in-two"]
    few = SearchConfig(search=search, num_simulations=2, solve="all")
    state = state_from_boards([puzzle.board for puzzle in puzzles], game)
    actor = considering(2, Actor(game, Ignorant(), few))
    output = actor.act(state, torch.Generator(), 0.0)
    answers = zip(output.action.tolist(), puzzles)
    solved = torch.tensor([action in puzzle.solutions for action, puzzle in answers])
    assert int(solved.sum()) >= 95
    assert int(torch.isclose(output.value[0, solved], torch.tensor(game.discount**2)).sum()) >= 95
    assert int((chances(output.value.numpy().T)[solved, 0] == 1).sum()) >= 95


def test_a_win_is_played_and_taught_alone():
    output = PolicyOutput(
        torch.tensor([5, 6, 7]),
        torch.tensor([[5, 1], [6, 2], [7, 3]]),
        torch.full((3, 2), 0.5),
        torch.zeros(1, 3),
    )
    won = play_wins(output, torch.tensor([1, -1, 9]), torch.ones_like(output.value))
    assert won.action.tolist() == [1, 6, 9]
    assert won.value.tolist() == [[1, 0, 1]]
    taught = [dict(zip(*row)) for row in zip(won.actions.tolist(), won.action_weights.tolist())]
    assert taught[0][1] == 1 and taught[2][9] == 1 and taught[1] == {6: 0.5, 2: 0.5}
    assert won.action_weights.sum(1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_move_that_loses_by_force_is_not_played(search):
    game = Chess()
    board = chess.Board(BACK_RANK)
    likes = action_from_move(
        chess.Move.from_uci("b3d4"), board
    )  # the network's favourite allows mate
    state = state_from_fens([BACK_RANK], game)
    actor = considering(64, Actor(game, Ignorant(likes), SEARCHES[search]))
    action = actor.act(state, torch.Generator(), 0.0).action
    assert int(winning_actions(game, game.step(state, action))) == -1
    unproven = SearchConfig(**{**vars(SEARCHES[search]), "solve": "off", "value_scale": 1e-3})
    actor = considering(64, Actor(game, Ignorant(likes), unproven))
    action = actor.act(state, torch.Generator(), 0.0).action
    assert int(winning_actions(game, game.step(state, action))) >= 0


@pytest.mark.parametrize("search", SEARCHES)
def test_a_lost_position_still_has_a_move(search):
    game = Chess()
    board = chess.Board(MATED_AT_ONCE)
    actor = considering(64, Actor(game, Ignorant(), SEARCHES[search]))
    state = state_from_fens([MATED_AT_ONCE], game)
    action = actor.act(state, torch.Generator(), 0.0).action
    assert move_from_action(int(action), board) in board.legal_moves


@pytest.mark.parametrize("number", CASES)
def test_without_proofs_the_tree_is_the_same(number):
    table, config, considered, _ = golden_case(number)
    table["discount"] = np.where(
        table["discount"] == 0, table["discount"].dtype.type(0.5), table["discount"]
    )
    gumbel = torch.from_numpy(table["gumbel"])
    outputs = []
    for solve in ("off", "all"):
        game = Table(table, config.num_simulations + 1)
        own = replace(config, solve=solve)
        schedules = schedules_of(game.root(), considered, own.num_simulations)
        outputs.append(tree_search(game.root(), game.expand, own, gumbel, schedules))
    off, everything = outputs
    assert torch.equal(off.action, everything.action)
    torch.testing.assert_close(off.action_weights, everything.action_weights, atol=1e-4, rtol=0)
    torch.testing.assert_close(off.value, everything.value, atol=1e-4, rtol=0)


def searched(loses: list[bool], simulations: int) -> PolicyOutput:
    """A tree of two moves. Each loses at once, or leads to what is worth a half."""
    root = Root(torch.tensor([[0, 1]]), torch.zeros(1, 2), torch.zeros(1, 1), None)

    def expand(parent, action, node):
        lost = torch.tensor(loses)[action].unsqueeze(0).float()
        step = Step(-lost, lost - 1, torch.full((1, 1), -0.5))
        return Expansion(step, root.actions, root.prior_logits)

    config = SearchConfig(search="tree", num_simulations=simulations, solve="all")
    return tree_search(root, expand, config, torch.zeros(1, 2), schedules_of(root, 2, simulations))


def test_what_is_proven_to_lose_is_not_in_the_mean():
    assert float(searched([True, False], 2).value[0, 0]) == pytest.approx(0.25)


def test_a_node_whose_columns_are_all_in_use_is_not_proven_lost():
    tree = searched([True, True], 4).tree
    assert tree is not None and tree.proven[0].all() and not tree.solved[0]
