"""Who sits on the other side of a board: runs, networks, fixed players; and two of them watched by
a person.
"""

import re

import pytest

from chessnn_colab.arena.opponent import Opinion, Opponent, search_of
from chessnn_colab.arena.players import RandomPlayer, play_search
from chessnn_colab.arena.registry import match_game
from chessnn_colab.branches import Branch
from chessnn_colab.errors import ConfigError, RunError
from chessnn_colab.games.registry import make_game
from chessnn_colab.network import build_network
from chessnn_colab.views.drawings import draw_game
from chessnn_colab.views.opinion_html import candidates_html, graph_html, opinions, value_html
from chessnn_colab.views.play import board as play_board
from chessnn_colab.views.play import find_opponent, play_widget
from chessnn_colab.views.watch import watch_game
from tests.function_player import choosing
from tests.small_run import CONFIG, TICTACTOE, make_run
from tests.test_views_play import click, first_move, moves, said


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """On a busy machine a test would click as quickly as clicks that waited in the kernel."""
    monkeypatch.setattr(play_board, "QUEUED", 0.0)


# Opponents


def test_a_run_plays_and_shows_what_it_thinks(tmp_path):
    view = play_widget(make_run(tmp_path / "run", (1, 2)))
    assert view.opponent.name == "run iteration 2"
    view.set_evaluations(8)
    view.controls.switch.value = True
    told = view.controls.thoughts.value
    assert "White wins" in told and "likeliest moves for White" in told and "cn-graph" not in told
    assert "</text>" in view.controls.squares.picture.value.split("%")[1], "an arrow has its share"
    view.enter("e4")
    view.enter("d4")
    assert (
        "White&#x27;s expected points after each ply" in view.controls.thoughts.value
        and len(view._opinions) == 5
    )
    tried = view.controls.thoughts.value
    assert "its search looked for Black" in tried and tried.count("<tr>") > 6
    visits = [int(count) for count in re.findall(r"<td>(\d+)</td>", tried)]
    assert 0 < sum(visits) <= 7 and visits[0] == max(visits)
    view.take_back()
    assert len(view._opinions) == 3 and "its search" not in view.controls.thoughts.value
    view.controls.switch.value = False
    assert view.controls.thoughts.value == ""


def test_how_far_it_looks_changes_nothing_of_what_it_proves(tmp_path):
    """A mate in one is played at every setting."""
    view = play_widget(make_run(tmp_path / "run", (1,)), human="black", evaluations=8)
    assert view.opponent.actor.config.solve == "all"
    view.load("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")
    assert moves(view)[-1] == "a1a8"


@pytest.mark.parametrize("players", [("White", "Black"), ("Black", "White")])
def test_the_part_of_a_bar_for_black_is_dark(players):
    bar = value_html(players, Opinion((0.6, 0.1, 0.3), [], []))
    parts = re.findall(r'background:(#\w+);color:#\w+" title="(\w+) wins"', bar)
    assert sorted(parts) == [("#2b2f33", "Black"), ("#fbfbf6", "White")]


def test_the_more_the_first_player_may_expect_the_higher_is_the_graph():
    graph = graph_html(("White", "Black"), [0.0, 0.5, 1.0])
    assert 'points="0.0,90.0 150.0,45.0 300.0,0.0"' in graph and 'cx="300" cy="0.0"' in graph
    assert "White&#x27;s expected points after each ply, now 100 %" in graph


def test_the_last_opinion_of_a_finished_game_is_its_result(tmp_path):
    network = find_opponent(make_run(tmp_path / "run", (1,)))
    drawing = draw_game(network.game)
    drawing.load("1. f3 e5 2. g4")
    before = opinions(drawing, network, 0)
    drawing.load("1. f3 e5 2. g4 Qh4#")
    after = opinions(drawing, network, 0)
    assert after == [*before, Opinion((0.0, 0.0, 1.0), [], [])]
    assert opinions(drawing, network, 4) == after[4:] and not opinions(drawing, network, 5)


def test_a_candidate_has_the_points_that_its_player_may_expect():
    drawing = draw_game(match_game("tictactoe"))
    reply = Branch(0, 2, -0.5, None, [])
    table = candidates_html(drawing, [Branch(4, 5, 0.5, None, [reply]), Branch(0, 3, -1, -2, [])])
    rows = re.findall("<tr><td>(.+?)</td></tr>", table)[1:]
    assert [row.split("</td><td>") for row in rows] == [
        ["b2 a3", "5", "75 %", ""],
        ["a3", "3", "0 %", "loses in 2 plies"],
    ]


def test_opinions_of_another_line_are_forgotten(tmp_path):
    run = make_run(tmp_path / "run", (1,))
    view, other = (play_widget(run, evaluations=2) for _ in range(2))
    view.load("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    view.controls.switch.value = True
    view.new_game()
    assert len(view._opinions) == 1 and view.enter("e4") and len(view._opinions) == 3
    view.controls.switch.value = False
    view.take_back()
    view.enter("d4")
    view.controls.switch.value = True
    other.controls.switch.value = True
    other.enter("d4")
    assert view._opinions == other._opinions


def test_opinions_are_probabilities_of_legal_moves_seen_by_the_first_player(tmp_path):
    opponent = find_opponent(make_run(tmp_path / "run", (3,)))
    view = play_widget(opponent, human="black")
    view.enter("e5")
    states = [view.drawing.state()]
    view.drawing.push(view.drawing.clicks()[0][1])
    states.append(view.drawing.state())
    for state, opinion in zip(states, opponent.opinions(states)):
        assert sum(opinion.wdl) == pytest.approx(1, abs=1e-5)
        assert sum(opinion.probabilities) == pytest.approx(1, abs=1e-5)
        assert list(opinion.probabilities) == sorted(opinion.probabilities, reverse=True)
        legal = opponent.game.legal_action_mask(state)[0].nonzero().squeeze(1).tolist()
        assert sorted(opinion.actions) == legal
        win, _, loss = opinion.wdl
        sign = -1 if state.current_player else 1
        assert float(opponent.actor.root(state).value[0]) == pytest.approx(
            sign * (win - loss), abs=1e-4
        )


def test_evaluations_choose_the_search():
    assert search_of(1) == play_search("policy") and search_of(48).num_simulations == 47
    for wrong in (0, -1, 100_000):
        with pytest.raises(
            ConfigError, match=f"evaluations={wrong}: expected a whole number from 1"
        ):
            search_of(wrong)


def test_every_kind_of_opponent_plays(tmp_path):
    network = build_network(CONFIG, "cpu")
    for opponent in (network, "greedy", f"{make_run(tmp_path / 'r', (1, 2))}@1"):
        view = play_widget(opponent)
        assert view.enter("e4") and len(moves(view)) == 2, opponent
    with pytest.raises(ConfigError, match="unknown opponent 'nobody'"):
        play_widget("nobody")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError):
        play_widget(str(tmp_path / "empty"))


def test_a_player_is_closed_when_its_game_cannot_begin(monkeypatch):
    closed = []
    monkeypatch.setattr(RandomPlayer, "close", lambda player: closed.append(player.name))
    with pytest.raises(ConfigError, match="human='green': expected one of white, black"):
        play_widget("random", human="green")
    with pytest.raises(ConfigError, match="unknown opponent 'nobody'"):
        watch_game("random", "nobody")
    assert closed == ["random"] * 2


def test_a_run_below_the_home_folder_knows_its_game(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    make_run(tmp_path / "mine", (1,), "tictactoe", TICTACTOE)
    assert play_widget("~/mine").drawing.game.name == "tictactoe"


def test_a_network_of_another_game_brings_its_own_board(tmp_path):
    view = play_widget(make_run(tmp_path / "run", (1,), "tictactoe", TICTACTOE), human="o")
    assert view.drawing.columns == 3 and len(view.drawing.actions) == 1
    while not view.over:
        click(view, view.drawing.names[view.drawing.clicks()[0][0][0]])
    assert "drawn" in said(view) or "won" in said(view)
    with pytest.raises(ConfigError, match="expected one of x, o"):
        play_widget(view.opponent, human="white")


def test_a_player_without_a_move_says_why():
    class Silent(RandomPlayer):
        reasons = ("it crashed",)

        def choose(self, state, generator, boards=()):
            return state.current_player * 0 - 1

    game = make_game("chess")
    with pytest.raises(RunError, match="random gave no move: it crashed"):
        Opponent(game, Silent(game)).choose(game.init(1))


# Watching


def test_an_opponent_that_somebody_made_stays_open(tmp_path, monkeypatch):
    closed = []

    def close(player):
        closed.append(player)

    monkeypatch.setattr(RandomPlayer, "close", close)
    game = match_game("tictactoe")
    own = Opponent(game, RandomPlayer(game))
    watch_game(own, "random", game="tictactoe")
    assert len(closed) == 1 and own.player not in closed


def test_two_players_are_watched_to_the_end_of_their_game(tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path / "run", (1,), "tictactoe", TICTACTOE)
    replay = watch_game(run, "random", evaluations=4)
    assert "run iteration 1 - random" in capsys.readouterr().out
    assert "three in a row" in replay.html.lower() or "drawn" in replay.html
    shown = []

    class Handle:
        def display(self, content):
            shown.append(content.data)

        update = display

    monkeypatch.setattr("chessnn_colab.views.watch.has_widget_front_end", lambda: True)
    monkeypatch.setattr("IPython.display.DisplayHandle", Handle)
    watch_game("greedy", choosing(first_move), plies=4)
    assert len(shown) == 5 and "greedy is thinking" in shown[0] and shown[-1] == ""
    assert ": Stopped. 4 plies." in capsys.readouterr().out
    assert "black king g8" in repr(
        watch_game("greedy", choosing(first_move), position="6k1/8/8/8/8/8/8/K7 w - - 0 1", plies=1)
    )


@pytest.mark.parametrize(
    "error, words",
    [(KeyboardInterrupt(), "Interrupted."), (RunError("the engine died"), "the engine died.")],
)
def test_an_interrupt_or_a_player_that_fails_keeps_the_game_that_was_watched(error, words, capsys):
    def fails(position):
        if position.ply() > 2:
            raise error
        return first_move(position)

    assert "white king" in repr(watch_game("random", choosing(fails)))
    assert f"{words} 3 plies." in capsys.readouterr().out


def test_players_of_two_games_are_not_put_at_one_board(tmp_path):
    run = make_run(tmp_path / "run", (1,), "tictactoe", TICTACTOE)
    with pytest.raises(ConfigError, match="different games: chess and tictactoe"):
        watch_game(run, find_opponent("random"))
