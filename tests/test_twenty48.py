"""2048's rules: beside OpenSpiel, by hand, and what chance does."""

import pytest
import torch

from chessnn_colab.games.base import finished, select
from chessnn_colab.games.twenty48 import LEFT, Twenty48, _mixed, _spawn

from .random_play import random_actions

GAMES = 12


@pytest.fixture(scope="module")
def game() -> Twenty48:
    return Twenty48()


def board(game, *rows: str):
    """A state from four rows of tiles, such as "2 . 4 8"."""
    tiles = [
        0 if tile == "." else int(tile).bit_length() - 1 for row in rows for tile in row.split()
    ]
    return game._state(
        torch.tensor([tiles]), torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.int64)
    )


def test_lines_slide(game):
    """Each tile merges once, those nearest the side first; the largest do not merge."""
    before = board(game, "2 2 2 2", ". 2 2 2", "4 2 2 .", "65536 65536 131072 131072")
    after = game.afterstate(before, torch.tensor([LEFT]))
    expected = board(game, "4 4 . .", "4 2 . .", "4 4 . .", "131072 131072 131072 .")
    assert torch.equal(after.tiles, expected.tiles)
    assert after.score.tolist() == [8 + 4 + 4 + 2**17]


def test_it_plays_as_openspiel_does():
    """Legal moves, boards after the slide, scores and ends of random games. OpenSpiel 1.6 leaves
    one move out of its
    list: one that only merges with a tile that the move before merged. Played all the same, it does
    what ours does."""
    pyspiel = pytest.importorskip(
        "pyspiel", reason="OpenSpiel is not installed (pip install open_spiel)"
    )
    game = Twenty48()
    generator = torch.Generator().manual_seed(0)
    state = game.starts(GAMES, "standard", generator)
    theirs = [
        pyspiel.load_game("2048", {"max_tile": 2**17}).new_initial_state() for _ in range(GAMES)
    ]

    def place(spiel, before, after):
        """Give OpenSpiel the tile that our chance chose."""
        for cell, tile in enumerate(after):
            if tile != before[cell]:
                spiel.apply_action(2 * cell + tile - 1)

    def shown(spiel):
        return [int(tile).bit_length() - 1 if int(tile) else 0 for tile in str(spiel).split()]

    for spiel, tiles in zip(theirs, state.tiles.tolist()):
        place(spiel, [0] * 16, tiles)
    while not finished(state).all():
        action = random_actions(game, state, generator)
        slid = game.afterstate(state, action)
        after = game.step(state, action)
        every = [
            game.afterstate(state, torch.full_like(action, way)).tiles.tolist() for way in range(4)
        ]
        for row in (~finished(state)).nonzero().flatten().tolist():
            spiel = theirs[row]
            ours = set(state.legal[row].nonzero().flatten().tolist())
            assert set(spiel.legal_actions()) <= ours
            for way in ours - set(spiel.legal_actions()):
                other = spiel.clone()
                other.apply_action(way)
                assert shown(other) == every[way][row] != shown(spiel)
            spiel.apply_action(int(action[row]))
            assert shown(spiel) == slid.tiles[row].tolist()
            place(spiel, slid.tiles[row].tolist(), after.tiles[row].tolist())
            assert spiel.is_terminal() == bool(after.terminated[row])
            assert spiel.returns() == [int(after.score[row])]
        state = after
    assert state.score.float().mean() > 500


def test_tiles_appear_evenly_two_in_nine_of_ten():
    count = 40_000
    tiles = torch.zeros(count, 16, dtype=torch.int64)
    tiles[:, 5] = 3
    after, keys = _spawn(tiles, _mixed(torch.arange(count)))
    new = after - tiles
    places = (new > 0).float().mean(0)
    assert ((new > 0).sum(1) == 1).all() and places[5] == 0
    assert ((places - 1 / 15).abs()[torch.arange(16) != 5] < 5 * (1 / 15 / count) ** 0.5).all()
    assert abs(float((new == 2).sum() / count) - 0.1) < 5 * (0.09 / count) ** 0.5
    assert len(keys.unique()) == count and keys.min() >= 0 and keys.max() < 2**32
    full, _ = _spawn(torch.full((1, 16), 3), torch.tensor([7]))
    assert (full == 3).all()


def test_keys_do_not_repeat_a_game_and_its_search_sees_another_future(game):
    state = game.starts(200, "standard", torch.Generator().manual_seed(0))
    assert len(state.key.unique()) == 200
    same = select(state, torch.zeros(200, dtype=torch.int64))
    assert len(same.tiles.unique(dim=0)) == 1
    action = torch.full((200,), int(same.legal[0].nonzero()[0]))
    assert len(game.step(same, action).tiles.unique(dim=0)) == 1
    others = game.reseed(same, torch.arange(200))
    assert (
        torch.equal(others.tiles, same.tiles)
        and len(game.step(others, action).tiles.unique(dim=0)) > 15
    )


def test_rewards_sum_to_the_score(game):
    generator = torch.Generator().manual_seed(0)
    state = game.starts(64, "standard", generator)
    paid = torch.zeros(64)
    while not finished(state).all():
        before = state
        state = game.step(state, random_actions(game, state, generator))
        paid += torch.where(finished(before), 0, state.rewards[:, 0])
    assert torch.equal(paid, state.score.float()) and 0 < paid.max() < game.score_limit


def test_the_largest_position_packs(game):
    largest = game._state(
        torch.full((1, 16), 17), torch.tensor([3_932_156]), torch.tensor([2**32 - 1])
    )
    again = game.unpack(game.pack(largest))
    for name in ("tiles", "score", "key"):
        assert torch.equal(getattr(again, name), getattr(largest, name))
    assert "131072" in game.to_text(largest)[0] and "score 3932156" in game.to_text(largest)[0]
