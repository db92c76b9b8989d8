"""Gomoku's players, openings and match files."""

import pytest
import torch

from chessnn_colab.arena.evaluate import evaluate_run, find_player, network_player
from chessnn_colab.arena.gomoku.alphabeta import TO_MOVE, WIN, WORTH, AlphaBetaPlayer, window_cells
from chessnn_colab.arena.gomoku.heuristic import HeuristicPlayer
from chessnn_colab.arena.gomoku.openings import book
from chessnn_colab.arena.parallel import play_match
from chessnn_colab.arena.players import play_search
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.base import finished
from chessnn_colab.games.registry import make_game
from chessnn_colab.views.played import played_game

from .gomoku_run import make_gomoku_run

SMALL = ["gomoku:6", "gomoku:6:exact"]


def chosen(player, game, line: list[int], times: int = 20) -> set[int]:
    """The actions that a player chooses after `line`, over some draws of chance."""
    state = game.after([line])
    generator = torch.Generator().manual_seed(0)
    return {int(player.choose(state, generator)) for _ in range(times)}


def test_the_heuristic_wins_else_blocks_else_extends():
    game = make_game("gomoku:9")
    player = HeuristicPlayer(game)
    # rows from the border, each with one open end
    own = [0, 1, 2, 3]
    theirs = [36, 37, 38, 39]
    both = [cell for pair in zip(own, theirs) for cell in pair]
    assert chosen(player, game, both) == {4}, "five at once comes first"
    assert chosen(player, game, [*both[:-2], 80, 39]) == {40}, "else the opponent's five is blocked"
    assert chosen(player, game, [40, 0, 41, 8]) == {39, 42}, "else the longest line is made longer"
    closed = [
        30,
        29,
        31,
        33,
        80,
        72,
    ]  # two stones between two of the opponent's: no room for five in that row
    assert not chosen(player, game, [*closed]) & {32}
    assert chosen(player, game, []) <= {
        cell for row in (3, 4, 5) for cell in range(9 * row + 3, 9 * row + 6)
    }


def test_the_heuristic_knows_the_rule():
    line = [9 * 4 + column for column in (0, 1, 2, 4, 5)]
    moves = [cell for pair in zip(line, (72, 74, 76, 78, 80)) for cell in pair]
    free = make_game("gomoku:9")
    exact = make_game("gomoku:9:exact")
    assert chosen(HeuristicPlayer(free), free, moves) == {39}, "six win"
    assert 39 not in chosen(HeuristicPlayer(exact), exact, moves), "six are of no use"


def stones(board: list[int], colour: int) -> set[int]:
    return {cell for cell, stone in enumerate(board) if stone == colour}


def plain_worth(own: set[int], theirs: set[int], size: int, exact: bool, tables) -> float:
    """The pattern evaluation window by window: own stones by tables[0], theirs by tables[1]."""
    total = 0.0
    for inside, beside in zip(*(places.tolist() for places in window_cells(size))):
        for sign, mine, other, table in ((1, own, theirs, tables[0]), (-1, theirs, own, tables[1])):
            if not set(inside) & other and not (exact and set(beside) & mine):
                total += sign * table[len(set(inside) & mine)]
    return total


def alpha_beta(game, state, depth: int, alpha: float = -1e9, beta: float = 1e9) -> float:
    """The worth of a position to its mover, one line after the other."""
    best = -1e9
    for action in game.legal_actions(state)[1].tolist():
        after = game.step(state, torch.tensor([action]))
        if after.ending == 1:
            worth = WIN
        elif finished(after):
            worth = 0.0
        elif depth == 1:
            mover = int(state.current_player)
            own, theirs = (
                stones(after.board[0].tolist(), colour) for colour in (1 + mover, 2 - mover)
            )
            worth = plain_worth(own, theirs, game.size, game.exact, (WORTH, TO_MOVE))
        else:
            worth = -0.999 * alpha_beta(game, after, depth - 1, -beta / 0.999, -alpha / 0.999)
        best = max(best, worth)
        alpha = max(alpha, best)
        if alpha >= beta:
            break
    return best


@pytest.mark.parametrize("depth, empty", [(2, 12), (4, 5)])
@pytest.mark.parametrize("name", SMALL)
def test_many_lines_together_are_worth_what_alpha_beta_says(name, depth, empty):
    """On boards with so few empty cells that every move is followed."""
    game = make_game(name)
    generator = torch.Generator().manual_seed(depth)
    tried = 0
    while tried < 2:
        cells = torch.randperm(game.num_actions, generator=generator)[
            : game.num_actions - empty
        ].tolist()
        state = game.init(1)
        for cell in cells:
            state = game.step(state, torch.tensor([cell]))
        if finished(state):
            continue
        tried += 1
        found = float(AlphaBetaPlayer(game, depth).scores(state).max())
        assert found == pytest.approx(alpha_beta(game, state, depth), rel=1e-4, abs=1.0)


@pytest.mark.parametrize("name", ["gomoku:9", "gomoku:7:exact"])
def test_the_players_stand_in_their_order(name):
    game = match_game(name)
    players = {spec: make(game) for spec, make in arena_game(name).players.items()}
    assert list(players) == ["random", "heuristic", "alphabeta2", "alphabeta4"]
    names = [player.name for player in players.values()]
    assert names == ["random", "heuristic", "alpha-beta (2 plies)", "alpha-beta (4 plies)"]
    assert play_match(game, players["heuristic"], players["random"], 10).score >= 0.9
    assert play_match(game, players["alphabeta2"], players["random"], 10).score >= 0.9
    if name == "gomoku:9":
        assert play_match(game, players["alphabeta2"], players["heuristic"], 10).score >= 0.7


@pytest.mark.parametrize("size", [5, 6, 9, 15, 20])
def test_the_book_stands_in_the_middle_of_every_board(size):
    game = make_game(f"gomoku:{size}")
    openings = arena_game(game.name).book
    assert openings == book(size) and len(openings) == 50
    state, boards = arena_game(game.name).start(game, openings)
    assert not finished(state).any() and (state.plies_played == 0).all() and len(boards) == 50
    assert [len(actions) for actions in boards] == (state.board > 0).sum(1).tolist()
    rows = (state.board.view(-1, size, size) > 0).any(2).nonzero()[:, 1]
    assert (rows - size // 2).abs().max() <= 2
    assert len(
        {tuple(row) for row in state.board.tolist()}
    ) == 50 and state.current_player.unique().tolist() == [0, 1]


def test_match_games_are_saved_and_shown(tmp_path):
    run = make_gomoku_run(tmp_path / "run")
    search = play_search("two-rung", 4, 2)
    folder = tmp_path / "games"
    for _ in range(2):
        (result,) = evaluate_run(run, ["heuristic"], 4, search, device="cpu", save=str(folder))
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == [
        "iteration_1-heuristic-2.txt",
        "iteration_1-heuristic.txt",
    ]
    texts = files[0].read_text(encoding="utf-8").strip().split("\n\n")
    for text, game in zip(texts, result.played, strict=True):
        names = ["iteration 1", "heuristic"]
        if not game.player_is_first:
            names.reverse()
        shown = played_game(text)
        assert shown.players == " - ".join(names)
        assert shown.end.startswith("Five in a row: ")
        assert f"Opening: {game.opening.name}\n" in text
        assert tuple(shown.drawing.actions[-len(game.actions) :]) == tuple(game.actions)


def test_runs_of_other_sizes_and_rules_are_refused_by_name(tmp_path):
    run = make_gomoku_run(tmp_path / "nine")
    for other in ("gomoku", "gomoku:9:exact"):
        words = f"a run of the game 'gomoku:9': expected a run of '{other}'"
        with pytest.raises(ConfigError, match=words):
            find_player(run, make_game(other))
    assert network_player(run, None, make_game("gomoku:9")).name == "iteration 1"
