"""Matches: the rules alone decide, both colours are played, intervals mean what they say."""

import datetime
import io
import math
import re
import tempfile
from dataclasses import replace

import chess.pgn
import numpy as np
import pytest
import torch

from chessnn_colab.arena import registry
from chessnn_colab.arena.chess.greedy import GreedyPlayer
from chessnn_colab.arena.chess.openings import BOOK
from chessnn_colab.arena.games_folder import GamesFolder
from chessnn_colab.arena.parallel import play_match
from chessnn_colab.arena.players import NO_MOVE, Player, RandomPlayer, one_of_the_best
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.arena.result import (
    MatchGame,
    MatchResult,
    Opening,
    elo_difference,
    score_interval,
    wilson_interval,
)
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.base import select
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import action_from_move, move_from_action, parse_move
from chessnn_colab.games.chess.pgn import game_from_pgn
from chessnn_colab.games.chess.rules import Chess

from .chess_games import state_from_fens


@pytest.fixture
def from_the_start(monkeypatch):
    """All games of chess begin at the start position."""
    use_book(monkeypatch)


def use_book(monkeypatch, *moves: str) -> None:
    book = [Opening("of the test", moves)]
    monkeypatch.setattr(registry, "CHESS", replace(registry.CHESS, book=book))


class Scripted(Player):
    """Plays the moves it is given, by ply, in every game; without one for a ply it makes none."""

    def __init__(self, name: str, moves: dict[int, str]):
        self.name = name
        self.moves = moves
        self.seen = set()

    def choose(self, state, generator, boards=()):
        assert not boards
        self.seen.update(state.current_player.tolist())
        texts = [self.moves.get(int(ply)) for ply in state.ply]
        self.reasons = [f"{self.name} has gone home" for text in texts if text is None]
        return torch.tensor(
            [
                NO_MOVE if text is None else action_from_move(parse_move(text, board), board)
                for text, board in zip(texts, boards_from_state(state))
            ]
        )


FOOLS_MATE = {0: "f2f3", 1: "e7e5", 2: "g2g4", 3: "d8h4"}
SHUFFLE = {ply: ("g1f3", "g8f6", "f3g1", "f6g8")[ply % 4] for ply in range(20)}


def read_back(result: MatchResult) -> list[chess.pgn.Game]:
    """What is written of a match, read strictly, as the project reads PGN."""
    return [game_from_pgn(text) for text in re.split(r"\n\n(?=\[)", match_text(result))]


def match_text(result: MatchResult) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return GamesFolder(arena_game("chess"), folder).text(result)


def test_a_mate_is_a_win_for_who_gives_it_and_colours_alternate(from_the_start):
    one, other = Scripted("one", FOOLS_MATE), Scripted("other", FOOLS_MATE)
    result = play_match(Chess(), one, other, 6)
    # White, who is `one` in games 0, 2 and 4, is mated.
    assert [game.points for game in result.played] == [0, 1, 0, 1, 0, 1]
    assert (result.wins, result.draws, result.losses) == (3, 0, 3)
    assert result.endings == {"checkmate": 6} and result.average_plies == 4
    assert result.results_by_ending == {"checkmate": {"wins": 3, "draws": 0, "losses": 3}}
    assert one.seen == other.seen == {0, 1}


def test_the_opening_counts_for_repetition_but_not_for_the_cap(monkeypatch):
    """The knights' way out is the opening's: back home, the start stands there for the second time
    at ply 4.
    """
    use_book(monkeypatch, "Nf3", "Nf6")
    result = play_match(Chess(), Scripted("one", SHUFFLE), Scripted("other", SHUFFLE), 2)
    assert result.endings == {"threefold_repetition": 2} and result.average_plies == 6


def test_who_cannot_move_has_lost_and_the_reason_is_kept(from_the_start):
    one, other = Scripted("one", FOOLS_MATE), Scripted("other", {1: "e7e5", 0: "d2d4"})
    result = play_match(Chess(), one, other, 4)
    # `other` gives up at its second move as Black; as White `one` answers 1. d4 with 1... e5, and
    # `other` gives up too.
    assert (result.wins, result.losses) == (4, 0) and result.results_by_ending["forfeit"][
        "wins"
    ] == 4
    assert result.forfeits == ["other has gone home"] and "forfeit: other has gone home" in str(
        result
    )
    assert [len(game.actions) for game in result.played] == [3, 2, 3, 2]
    games = read_back(result)
    assert [game.headers["Result"] for game in games] == ["1-0", "0-1"] * 2
    assert {game.headers["Termination"] for game in games} == {"abandoned"}
    assert all(game.headers["Forfeit"] == "other has gone home" for game in games)
    lost = play_match(Chess(), Scripted("one", {}), Scripted("other", FOOLS_MATE), 2)
    assert lost.losses == 2


class Wanderer(RandomPlayer):
    """Takes and promotes as little as it can, else plays at random, so that games go on."""

    def choose(self, state, generator, boards=()):
        rows, actions = self.game.legal_actions(state)
        scores = torch.full((len(state.ply), self.game.num_actions), -torch.inf)
        scores[rows, actions] = self.game.material.balance(
            self.game.step(select(state, rows), actions).pieces
        )
        return one_of_the_best(scores, generator)


@pytest.fixture(scope="module")
def wandering() -> MatchResult:
    """Long games, some of them to the cap."""
    game = match_game("chess")
    return play_match(game, GreedyPlayer(game), Wanderer(game), 24, seed=8)


def test_three_hundred_plies_are_a_draw_not_a_win_on_material(wandering):
    capped = [game for game in wandering.played if game.ending == "truncated"]
    assert capped and all(
        len(game.actions) == arena_game("chess").max_plies == 300 and game.points == 0.5
        for game in capped
    )
    decided = wandering.endings.get("checkmate", 0)
    assert wandering.wins + wandering.losses == decided and wandering.draws == 24 - decided


def test_every_game_is_valid_pgn_that_says_how_it_ended(wandering):
    day = f"{datetime.date.today():%Y.%m.%d}"
    for number, (game, parsed) in enumerate(
        zip(wandering.played, read_back(wandering), strict=True), 1
    ):
        headers, board = parsed.headers, parsed.end().board()
        assert list(headers)[:7] == ["Event", "Site", "Date", "Round", "White", "Black", "Result"]
        names = ("greedy", "random") if game.player_is_first else ("random", "greedy")
        assert (headers["White"], headers["Black"], headers["Round"]) == (*names, str(number))
        assert headers["Date"] >= day and headers["Opening"] == game.opening.name
        assert (
            board.ply() == int(headers["PlyCount"]) == len(game.opening.moves) + len(game.actions)
        )
        assert "FEN" not in headers and "?" not in (headers["Event"], headers["Site"])
        outcome = board.outcome(claim_draw=False)
        if game.ending == "truncated":
            assert (
                outcome is None
                and headers["Termination"] == "adjudication"
                and headers["Result"] == "1/2-1/2"
            )
        elif game.ending == "threefold_repetition":
            assert board.is_repetition(3) and headers["Result"] == "1/2-1/2"
        elif game.ending == "fifty_moves":
            assert board.halfmove_clock == 100 and headers["Result"] == "1/2-1/2"
        else:
            assert (
                outcome.termination.name.lower() == game.ending
                and outcome.result() == headers["Result"]
            )
        assert headers["Termination"] == "normal" or game.ending == "truncated"


def test_names_cannot_break_a_header():
    game = MatchGame(BOOK[0], True, 0.0, "forfeit", (), "it said } and\n{ went")
    result = result_of(game, player='a "quoted\\"] name\n[Event', opponent="")
    parsed = chess.pgn.read_game(io.StringIO(match_text(result)))
    assert not parsed.errors
    assert (parsed.headers["White"], parsed.headers["Black"]) == ("a 'quoted/'] name [Event", "?")
    assert parsed.headers["Forfeit"] == "it said } and { went"
    assert len(list(parsed.mainline())) == len(BOOK[0].moves)


@pytest.mark.parametrize(
    "fen, best",
    [
        ("7k/8/8/3q4/4P3/8/8/K7 w - - 0 1", {"e4d5"}),  # takes the queen
        ("7k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7a8q"}),  # queens rather than anything else
        ("1n5k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7b8q"}),  # takes and queens
        # En passant is a pawn won; the knight on that square wins nothing.
        ("7k/8/8/N1pP4/8/8/8/K7 w - c6 0 1", {"d5c6"}),
        (
            "k7/8/8/8/8/7p/8/5bRK b - - 0 1",  # nothing to take
            {"f1g2", "f1e2", "f1d3", "f1c4", "f1b5", "f1a6", "h3h2", "a8a7", "a8b7", "a8b8"},
        ),
        ("k7/8/8/8/8/8/p7/1R5K b - - 0 1", {"a2b1q"}),  # Black alike
    ],
)
def test_greedy_takes_the_most(fen, best):
    game = Chess()
    state = state_from_fens([fen], game)
    for seed in range(5):
        action = GreedyPlayer(game).choose(state, torch.Generator().manual_seed(seed))
        assert move_from_action(int(action), boards_from_state(state)[0]).uci() in best


def test_wilson_interval_against_published_values():
    """Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29."""
    for wins, games, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson_interval(wins / games, games) == pytest.approx((low, high), abs=1e-4)


def test_intervals_hold_the_true_score():
    """Pairs of games from one opening: independent, leaning against each other, or all but always
    drawn.
    """
    rng = np.random.default_rng(0)
    for win, draw, openings in (
        (0.5, 0.0, 40),
        (0.3, 0.4, 40),
        (0.3, 0.4, 4),
        (0.01, 0.985, 60),
        (0.98, 0.01, 60),
    ):
        held = []
        for _ in range(400):
            pairs = rng.choice([1.0, 0.5, 0.0], p=[win, draw, 1 - win - draw], size=(openings, 2))
            low, high = score_interval(pairs.tolist(), pairs.size)
            held.append(low <= win + draw / 2 <= high)
        assert np.mean(held) >= 0.925, (win, draw, openings)


def test_colours_that_decide_make_the_interval_narrow_and_repeats_do_not():
    white_wins = [[1.0, 0.0]] * 49 + [[1.0, 0.5]]
    low, high = score_interval(white_wins, 100)
    assert high - low < 0.05 < 0.19 < np.diff(wilson_interval(0.5025, 100))[0]
    pairs = [[1.0, 1.0], [0.0, 0.5], [0.5, 1.0], [0.0, 0.0], [1.0, 0.5], [0.5, 0.5]]
    once, often = score_interval(pairs, 12), score_interval([pair * 10 for pair in pairs], 12)
    assert often == pytest.approx(once)
    assert score_interval([[1.0, 1.0]] * 20, 40) == pytest.approx(wilson_interval(1.0, 40))
    assert score_interval([[0.5, 0.0]], 2) == pytest.approx(wilson_interval(0.25, 2))
    assert score_interval([[1.0, 0.0] * 10] * 2, 40) == pytest.approx(wilson_interval(0.5, 40))
    # A variance of 4/3 * (1 + 1) / 64, by Student's t of three degrees of freedom, 3.182.
    uneven = score_interval([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.5, 0.5]], 8)
    alike = 0.25 / (4 / 3 * 2 / 64 * (3.182 / 1.96) ** 2)
    assert uneven == pytest.approx(wilson_interval(0.5, alike), abs=1e-3)


def test_games_without_chance_repeat_when_the_book_is_through_and_the_result_says_so(
    from_the_start,
):
    result = play_match(Chess(), Scripted("one", FOOLS_MATE), Scripted("other", FOOLS_MATE), 8)
    assert len(result.distinct()) == 2 and result.to_dict()["repeated_games"] == 6
    assert "6 games repeat another move for move" in str(result)
    assert result.interval == wilson_interval(0.5, 2)


def test_elo_differences():
    assert elo_difference(0.5) == 0
    assert elo_difference(10 / 11) == pytest.approx(400)
    assert elo_difference(0.25) == pytest.approx(-190.85, abs=0.01)
    assert elo_difference(1.0) == math.inf and elo_difference(0.0) == -math.inf


def made_result(points: list[float]) -> MatchResult:
    """A match with these results, a pair per opening."""
    endings = {1.0: "checkmate", 0.5: "stalemate", 0.0: "checkmate"}
    games = [
        MatchGame(BOOK[number // 2], number % 2 == 0, point, endings[point], (number,))
        for number, point in enumerate(points)
    ]
    return result_of(*games)


def result_of(*games: MatchGame, player: str = "net", opponent: str = "random") -> MatchResult:
    return MatchResult(
        player=player,
        opponent=opponent,
        played=games,
        evaluations=37,
        opponent_evaluations=0,
        milliseconds_a_move=1.5,
        opponent_milliseconds_a_move=0.1,
        asked=len(games),
    )


def test_a_result_reads_and_serialises():
    result = made_result([1.0] * 10)
    assert "Elo above +166" in str(result) and "Elo below -166" in str(made_result([0.0] * 10))
    assert "10 wins, 0 draws, 0 losses" in str(
        result
    ) and "score 1.000 (95 %: 0.722 to 1.000)" in str(result)
    assert result.to_dict()["elo"] is None and result.to_dict()["score"] == 1.0
    result = made_result([1.0, 0.5, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0])
    values = result.to_dict()
    assert values["results_by_ending"] == {
        "checkmate": {"wins": 5, "draws": 0, "losses": 1},
        "stalemate": {"wins": 0, "draws": 2, "losses": 0},
    }
    assert values["elo"] == pytest.approx(elo_difference(0.75)) and values["interval"] == list(
        result.interval
    )
    assert "Elo +191 (" in str(result) and "6 checkmate (5 won, 1 lost), 2 stalemate" in str(result)


@pytest.mark.parametrize("games", [0, -2, 1, 7])
def test_a_number_of_games_that_cannot_be_paired_is_refused(games):
    with pytest.raises(ConfigError, match=f"games={games}: expected an even number"):
        play_match(Chess(), RandomPlayer(Chess()), RandomPlayer(Chess()), games)
