"""Matches: the rules alone decide, both colours are played, intervals mean what they say."""

import math

import pytest
import torch

from chessnn_colab.arena import MatchResult, elo_difference, play_match, wilson_interval
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess import Chess
from chessnn_colab.network import NetworkConfig, build_network
from chessnn_colab.notation import action_from_move, boards_from_state, move_from_action, parse_move, state_from_fens
from chessnn_colab.players import BASELINES, GreedyPlayer, NetworkPlayer, RandomPlayer, baseline
from chessnn_colab.search import SearchConfig


class Scripted:
    """Plays the moves it is given, by ply, in every game."""

    evaluations = 0

    def __init__(self, name: str, moves: dict[int, str]):
        self.name, self.moves, self.seen = name, moves, set()

    def choose(self, state, generator):
        self.seen.update(state.current_player.tolist())
        actions = [action_from_move(parse_move(self.moves[int(ply)], board), board)
                   for ply, board in zip(state.ply, boards_from_state(state))]
        return torch.tensor(actions)


FOOLS_MATE = {0: "f2f3", 1: "e7e5", 2: "g2g4", 3: "d8h4"}


def test_a_mate_is_a_win_for_who_gives_it_and_colours_alternate():
    one, other = Scripted("one", FOOLS_MATE), Scripted("other", FOOLS_MATE)
    result = play_match(one, other, 5)
    # White, who is `one` in games 0, 2 and 4, is mated.
    assert (result.wins, result.draws, result.losses) == (2, 0, 3)
    assert result.endings["checkmate"] == 5 and result.average_plies == 4
    assert one.seen == other.seen == {0, 1}


def test_repetition_ends_a_match_game():
    shuffle = {ply: ("g1f3", "g8f6", "f3g1", "f6g8")[ply % 4] for ply in range(20)}
    result = play_match(Scripted("one", shuffle), Scripted("other", shuffle), 2)
    assert result.draws == 2 and result.endings["threefold_repetition"] == 2 and result.average_plies == 8


def test_three_hundred_plies_are_a_draw_not_a_win_on_material():
    class Wanderer(RandomPlayer):
        """Random, but never moves a pawn or takes while it can help it, so that games go on."""

        def choose(self, state, generator):
            mask = self.game.legal_action_mask(state)
            calm = mask & (self.game.gains(state) == 0)
            noise = torch.rand(mask.shape, generator=generator)
            return torch.where(calm, noise + 1, torch.where(mask, noise, -1.0)).argmax(1)
    game = Chess()
    result = play_match(GreedyPlayer(game), Wanderer(game), 24, seed=1)
    assert result.endings["truncated"] > 0
    decided = result.endings["checkmate"]
    assert result.wins + result.losses == decided and result.draws == 24 - decided


def test_same_seed_same_match():
    game = Chess()
    first, second = (play_match(GreedyPlayer(game), RandomPlayer(game), 10, seed=3) for _ in range(2))
    assert (first.wins, first.draws, first.losses, first.endings) == (second.wins, second.draws, second.losses, second.endings)


def test_greedy_beats_random():
    game = Chess()
    result = play_match(GreedyPlayer(game), RandomPlayer(game), 60)
    assert result.wins > result.losses + 5


@pytest.mark.parametrize("fen, best", [
    ("7k/8/8/3q4/4P3/8/8/K7 w - - 0 1", {"e4d5"}),                      # takes the queen
    ("7k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7a8q"}),                        # queens rather than anything else
    ("1n5k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7b8q"}),                      # takes and queens
    ("7k/8/8/2pP4/8/8/8/K7 w - c6 0 1", {"d5c6"}),                      # en passant is a pawn won
    ("k7/8/8/8/8/7p/8/5bRK b - - 0 1", {"f1g2", "f1e2", "f1d3", "f1c4", "f1b5", "f1a6", "h3h2", "a8a7", "a8b7", "a8b8"}),
    ("k7/8/8/8/8/8/p7/1R5K b - - 0 1", {"a2b1q"}),                      # Black alike
])
def test_greedy_takes_the_most(fen, best):
    game = Chess()
    state = state_from_fens([fen], game)
    for seed in range(5):
        action = GreedyPlayer(game).choose(state, torch.Generator().manual_seed(seed))
        assert move_from_action(int(action), boards_from_state(state)[0]).uci() in best


def test_a_piece_that_steps_on_the_en_passant_square_wins_nothing():
    game = Chess()
    state = state_from_fens(["7k/8/8/N1pP4/8/8/8/K7 w - c6 0 1"], game)
    board = boards_from_state(state)[0]
    gains = game.gains(state)[0]
    assert gains[action_from_move(parse_move("a5c6", board), board)] == 0
    assert gains[action_from_move(parse_move("d5c6", board), board)] == 1


def test_random_is_uniform():
    game = Chess()
    state = state_from_fens(["7k/8/8/8/8/8/8/K7 w - - 0 1"] * 3000, game)
    chosen = RandomPlayer(game).choose(state, torch.Generator().manual_seed(0))
    counts = torch.bincount(chosen, minlength=Chess.num_actions)
    assert (counts > 0).sum() == 3 and counts[counts > 0].min() > 900


def test_a_network_plays_legally_and_counts_its_evaluations():
    game = Chess()
    network = build_network(NetworkConfig(channels=8, blocks=1, value_hidden=8), "cpu").eval()
    player = NetworkPlayer(game, network, SearchConfig(candidates=4, survivors=2))
    result = play_match(player, RandomPlayer(game), 4)
    assert result.games == 4 and result.evaluations == 7 and result.milliseconds_a_move > 0


def test_wilson_interval_against_published_values():
    """Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29."""
    for wins, games, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611),
                                   (1, 29, 0.0061, 0.1718)):
        assert wilson_interval(wins / games, games) == pytest.approx((low, high), abs=1e-4)


def test_elo_differences():
    assert elo_difference(0.5) == 0
    assert elo_difference(10 / 11) == pytest.approx(400)
    assert elo_difference(0.25) == pytest.approx(-190.85, abs=0.01)
    assert elo_difference(1.0) == math.inf and elo_difference(0.0) == -math.inf


def test_a_result_reads_and_serialises():
    result = MatchResult("net", "random", 10, 10, 0, 0, {"checkmate": 10}, 50.0, 37, 0, 1.5)
    assert "10 wins, 0 draws, 0 losses" in str(result) and "score 1.000 (95 %: 0.722 to 1.000)" in str(result)
    assert result.to_dict()["elo"] is None and result.to_dict()["score"] == 1.0


def test_no_games_and_unknown_opponents_are_refused():
    game = Chess()
    with pytest.raises(ConfigError, match="games=0"):
        play_match(RandomPlayer(game), RandomPlayer(game), 0)
    with pytest.raises(ConfigError, match=", ".join(BASELINES)):
        baseline("kasparov", game)
