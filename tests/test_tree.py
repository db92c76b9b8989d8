"""The Gumbel tree search: mctx's own trees, mates, repetitions, rows that do not mind each
other.
"""

import math
from pathlib import Path

import chess
import numpy as np
import pytest
import torch

import chessnn_colab.tree as tree_module
from chessnn_colab.actor import Actor
from chessnn_colab.arena.opponent import search_of
from chessnn_colab.branches import branches
from chessnn_colab.games.chess.notation import action_from_move, move_from_action, state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.search import ILLEGAL, Root, SearchConfig, Step, considered_visits_table
from chessnn_colab.tree import UNVISITED, Expansion, tree_search

from .chess_games import after, mating, state_from_fens
from .test_search import Ignorant, considering

GOLDEN = Path(__file__).parent / "golden" / "mctx.npz"  # made by tools/mctx_golden.py
CASES = range(len(np.load(GOLDEN)["cases"]))


class Table:
    """A game that is a table, as tools/mctx_golden.py describes it; remembers every row's states by
    node.
    """

    def __init__(self, arrays: dict[str, np.ndarray], nodes: int):
        self.table = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self.states = torch.zeros(nodes, len(arrays["root_state"]), dtype=torch.int64)
        self.states[0] = self.table["root_state"]

    def root(self) -> Root:
        states, invalid = self.states[0], self.table["invalid"]
        logits = torch.where(invalid, ILLEGAL, self.table["logits"][states])
        return Root(
            torch.arange(invalid.shape[1]).expand(len(states), -1),
            logits,
            self.table["value"][states].unsqueeze(0),
            None,
        )

    def expand(self, parent: torch.Tensor, action: torch.Tensor, node: int) -> Expansion:
        before = self.states.flatten()[parent]
        after = self.table["next_state"][before, action]
        self.states[node] = after
        step = Step(
            self.table["reward"][before, action].unsqueeze(0),
            self.table["discount"][before, action].unsqueeze(0),
            self.table["value"][after].unsqueeze(0),
        )
        actions = torch.arange(self.table["logits"].shape[1]).expand(len(after), -1)
        return Expansion(step, actions, self.table["logits"][after])


def golden_case(number: int) -> tuple[dict[str, np.ndarray], SearchConfig, int, int]:
    """The arrays of a golden case, its config, the actions considered and the depth limit."""
    with np.load(GOLDEN) as file:
        simulations, considered, value_scale, _, max_depth = file["cases"][number]
        names = [name for name in file.files if name.startswith(f"{number}.")]
        golden = {name.split(".")[1]: file[name] for name in names}
    config = SearchConfig(
        search="tree", num_simulations=int(simulations), value_scale=float(value_scale)
    )
    return golden, config, int(considered), int(max_depth)


def by_row(array: torch.Tensor, tree) -> np.ndarray:
    """[B, N, ...]: one of the tree's arrays as mctx lays it out."""
    return array[: tree.nowhere].unflatten(0, (-1, tree.batch)).transpose(0, 1).numpy()


def schedules_of(root: Root, considered: int, simulations: int) -> torch.Tensor:
    most = min(int(considered), root.actions.shape[1])
    return considered_visits_table(most, int(simulations), torch.device("cpu"))


@pytest.mark.parametrize("number", CASES)
def test_the_trees_are_mctxs(number, monkeypatch):
    golden, config, considered, max_depth = golden_case(number)
    game = Table(golden, config.num_simulations + 1)
    gumbel = torch.from_numpy(golden["gumbel"])
    monkeypatch.setattr(tree_module, "MAX_DEPTH", max_depth)
    schedules = schedules_of(game.root(), considered, config.num_simulations)
    output = tree_search(game.root(), game.expand, config, gumbel, schedules)
    tree = output.tree
    visits, children, node_values = (
        by_row(array, tree) for array in (tree.visits, tree.children, tree.node_values[0])
    )
    assert output.action.tolist() == golden["action"].tolist()
    np.testing.assert_array_equal(visits, golden["visits"])
    np.testing.assert_array_equal(
        np.where(children < 0, UNVISITED, children // tree.batch), golden["children"]
    )
    there = np.array(
        [[node == 0 or node in row for node in range(len(row))] for row in golden["children"]]
    )
    np.testing.assert_allclose(node_values[there], golden["node_values"][there], atol=1e-5)
    np.testing.assert_allclose(output.action_weights, golden["action_weights"], atol=1e-5)
    np.testing.assert_allclose(output.value[0], golden["node_values"][:, 0], atol=1e-5)


def moves_found(fens: list[str], network, **settings) -> list[chess.Move]:
    game = Chess()
    actor = considering(64, Actor(game, network, SearchConfig(search="tree", **settings)))
    policy = actor.act(
        state_from_fens(fens, game), torch.Generator().manual_seed(0), gumbel_scale=0.0
    )
    return [
        move_from_action(int(action), chess.Board(fen)) for action, fen in zip(policy.action, fens)
    ]


def test_finds_a_mate_in_two_without_knowing_anything():
    fens = ["8/8/8/8/8/k1K5/8/7R w - - 0 1", "k7/8/2K5/8/8/8/8/6R1 w - - 0 1"]
    for fen, move in zip(fens, moves_found(fens, Ignorant(), num_simulations=600)):
        board = chess.Board(fen)
        assert mating(board, 2), f"no mate in two in {fen}: the test looks at nothing"
        board.push(move)
        assert all(mating(after(board, reply)) for reply in board.legal_moves), (fen, move)


class Winning(Ignorant):
    """Sees a won game for whoever has the queen: plane 4 is the mover's own queens."""

    def features_and_value(self, observation):
        queens = observation[:, 4].flatten(1).sum(1, keepdim=True)
        sure = torch.where(queens > 0, 4.0, -4.0)
        return queens, torch.cat((sure, torch.zeros_like(sure), -sure), 1)


def test_a_proven_draw_is_taken_where_all_else_loses():
    fen = "8/8/8/2k5/8/1q6/8/K1N5 w - - 0 1"  # the knight takes the queen
    (move,) = moves_found([fen], Winning(), num_simulations=64, solve="all")
    assert move == chess.Move.from_uci("c1b3")


def test_knows_when_a_line_repeats():
    """Up a queen, the move that makes the position stand for the third time is a draw, and is not
    chosen.
    """
    board = chess.Board("8/8/8/7k/8/8/1Q6/K7 b - - 0 1")
    for uci in "h5h6 b2b1 h6h5 b1b2 h5h6 b2b1 h6h5".split():
        board.push_uci(uci)
    drawing = chess.Move.from_uci("b1b2")
    assert after(board, drawing).is_repetition(3)
    with_past, without = (weights_of(board.copy(stack=stack)) for stack in (True, False))
    others = [weight for move, weight in with_past.items() if move != drawing]
    assert with_past[drawing] < 0.01 * min(others)
    assert without[drawing] > min(without.values())


def weights_of(board: chess.Board) -> dict[chess.Move, float]:
    """What a search by one who trusts a queen thinks of each move."""
    game = Chess()
    config = SearchConfig(search="tree", num_simulations=64)
    actor = considering(32, Actor(game, Winning(), config))
    policy = actor.act(state_from_boards([board], game), torch.Generator(), 0.0)
    legal = set(board.legal_moves)
    return {
        move_from_action(int(action), board): float(weight)
        for action, weight in zip(policy.actions[0][: len(legal)], policy.action_weights[0])
    }


@pytest.mark.parametrize(
    "fen, proof",
    [
        ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", 1),
        ("k7/8/2K5/8/8/8/8/6R1 w - - 0 1", 3),
        ("6k1/5ppp/8/8/8/8/5PP1/R5K1 b - - 0 1", None),
    ],
)
def test_branches_are_what_the_search_saw(fen, proof):
    """Legal lines of play, as many visits as evaluations, and proofs that python-chess confirms;
    the mate that the rules prove comes first.
    """
    game = Chess()
    board = chess.Board(fen)
    actor = Actor(game, Winning(), search_of(200))
    state = state_from_fens([fen], game)
    output = actor.act(state, torch.Generator(), gumbel_scale=0.0)
    found = branches(output, game.discount)
    assert found[0].action == int(output.action) and found[0].proof == proof
    assert sum(branch.visits for branch in found) == 199
    proofs = set()
    for branch in found:
        line = board.copy()
        for action in branch.line:
            move = move_from_action(action, line)
            assert move in line.legal_moves
            line.push(move)
        then = after(board, move_from_action(branch.action, board))
        assert then.is_checkmate() == (branch.proof == 1)
        assert bool(mating(then)) == (branch.proof == -2)
        proofs.add(branch.proof)
        if branch.proof:  # however far away
            assert branch.value == pytest.approx(math.copysign(1, branch.proof))
    assert proof or proofs == {None, -2}


def test_a_line_of_play_ends_with_its_game():
    """Two kings are a draw, although chess lists their moves."""
    game = Chess()
    actor = Actor(game, Winning(), search_of(100))
    board = chess.Board("8/8/8/2k5/8/8/p7/K7 w - - 0 1")
    output = actor.act(state_from_boards([board], game), torch.Generator(), 0.0)
    lines = {branch.action: branch.line for branch in branches(output, game.discount)}
    takes = action_from_move(chess.Move.from_uci("a1a2"), board)
    assert lines[takes] == [takes] and len(lines) == 2
