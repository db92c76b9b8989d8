"""What every game in games.registry promises to search, self-play, replay and learner (see
games.base).
"""

import dataclasses

import numpy as np
import pytest
import torch

from chessnn_colab.config import TrainConfig
from chessnn_colab.games.base import Game, Moves, concatenate, finished, select
from chessnn_colab.games.registry import GAMES, family, game_text, make_game, text_suffix
from chessnn_colab.replay import ReplayBuffer
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.training import train

from .random_play import random_actions
from .small_run import tiny

CAP = 12  # plies after which the games here are stopped
STARTS = 32  # games of each kind of start


@pytest.fixture(params=sorted([*GAMES, "gomoku:9:exact"]), scope="module")
def game(request) -> Game:
    return make_game(request.param, max_plies=CAP)


@pytest.fixture(scope="module")
def state(game):
    """Positions of random play from every kind of start, finished ones too."""
    generator = torch.Generator().manual_seed(0)
    states = [concatenate([game.starts(STARTS, kind, generator) for kind in game.start_shares])]
    for _ in range(CAP):
        states.append(game.step(states[-1], random_actions(game, states[-1], generator)))
    state = concatenate(states)
    assert 0 < finished(state).sum() < len(state.ending)
    return state


def fields(state) -> dict[str, torch.Tensor]:
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}


def assert_same(one, other) -> None:
    for name, tensor in fields(one).items():
        assert torch.equal(tensor, getattr(other, name)), name


def test_a_game_describes_itself(game):
    assert type(game) is type(make_game(game.name)) and family(game.name) in GAMES
    assert game.num_players == len(game.player_names) and game.num_players in (1, 2)
    assert game.endings[0] == "unfinished" and game.endings[-1] == "truncated"
    assert len(set(game.endings)) == len(game.endings)
    assert min(game.start_shares.values()) >= 0 and sum(
        game.start_shares.values()
    ) == pytest.approx(1)
    assert 0 < game.discount <= 1 and (game.num_players == 1 or game.discount < 1)
    assert game.sampling_plies >= 1 and game.self_play_plies >= 1 and game.max_plies == CAP
    assert game.num_players == 2 or "standard" in game.start_shares
    assert game.device == torch.device("cpu") and len(game.observation_shape) == 3
    config = TrainConfig(game=game.name).network_config(game)
    assert config.actions == game.num_actions and config.jumps == game.jumps
    assert text_suffix(game.name).startswith(".")


def assert_shapes(game, state, count: int) -> None:
    """Whatever a state comes from, it has what games.base.Game says."""
    expected = {"current_player": torch.int64, "plies_played": torch.int64, "ending": torch.int64}
    for name, dtype in {**expected, "terminated": torch.bool, "truncated": torch.bool}.items():
        assert getattr(state, name).dtype == dtype and getattr(state, name).shape == (count,), name
    assert state.rewards.dtype == torch.float32 and state.rewards.shape == (count, game.num_players)
    assert all(
        len(tensor) == count and tensor.device == game.device for tensor in fields(state).values()
    )
    outputs = {
        "observe": (game.observe(state), torch.float32, game.observation_shape),
        "legal_action_mask": (game.legal_action_mask(state), torch.bool, (game.num_actions,)),
        "pack": (game.pack(state), torch.int64, (game.packed_words,)),
    }
    guess = game.guessed_chances(state)
    if guess is not None:
        outputs["guessed_chances"] = (guess, torch.float32, (3,))
    for name, (tensor, dtype, shape) in outputs.items():
        assert (
            tensor.dtype == dtype
            and tensor.shape == (count, *shape)
            and tensor.device == game.device
        ), name


def test_shapes_and_types_hold_from_the_start_on(game, state):
    first = game.init(3)
    assert_shapes(game, first, 3)
    assert_shapes(game, game.step(first, game.legal_action_mask(first).int().argmax(1)), 3)
    assert_shapes(game, game.unpack(game.pack(first)), 3)
    assert_shapes(game, state, len(state.ending))
    assert (
        (first.plies_played == 0).all()
        and (first.current_player == 0).all()
        and not finished(first).any()
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.ending = None


def test_values_are_in_range(game, state):
    observation = game.observe(state)
    guess = game.guessed_chances(state)
    assert ((observation == 0) | (observation == 1)).all()
    if guess is not None:
        assert (guess > 0).all() and torch.allclose(guess.sum(1), torch.ones(len(guess)))
    assert state.current_player.unique().tolist() == list(range(game.num_players))
    assert not (state.terminated & state.truncated).any()
    assert torch.equal(finished(state), state.ending > 0)
    assert torch.equal(state.truncated, state.ending == game.endings.index("truncated"))
    assert (game.score_limit > 0) == (game.num_players == 1)
    if game.num_players == 2:
        assert (state.rewards.sum(1) == 0).all() and (state.rewards[state.truncated] == 0).all()
        assert set(state.rewards.unique().tolist()) <= {-1.0, 0.0, 1.0}
        open_games = select(state, ~finished(state))
        after = game.step(open_games, random_actions(game, open_games, torch.Generator()))
        turns = open_games.current_player + after.current_player
        assert (turns[~finished(after)] == 1).all(), "players move in turn"


def test_a_game_ends_at_its_cap_if_not_before(game):
    game = make_game(game.name, max_plies=3)
    generator = torch.Generator().manual_seed(0)
    state = concatenate([game.starts(STARTS, kind, generator) for kind in game.start_shares])
    for ply in range(1, 5):
        state = game.step(state, random_actions(game, state, generator))
        assert (
            torch.equal(state.truncated, ~state.terminated & (state.plies_played == 3))
            and state.plies_played.max() <= 3
        )
        assert state.truncated.any() == (ply >= 3)


def test_a_finished_game_stays_finished(game, state):
    over = select(state, finished(state))
    for action in (0, game.num_actions - 1):
        assert_same(game.step(over, torch.full_like(over.ending, action)), over)


def test_a_row_does_not_depend_on_its_neighbours(game, state):
    action = random_actions(game, state, torch.Generator().manual_seed(1))
    order = torch.randperm(len(action), generator=torch.Generator().manual_seed(2))
    assert_same(
        game.step(select(state, order), action[order]), select(game.step(state, action), order)
    )


def test_legal_actions_are_the_masks_in_its_order(game, state):
    mask = game.legal_action_mask(state)
    rows, actions = game.legal_actions(state)
    assert torch.equal(torch.stack((rows, actions), 1), mask.nonzero())
    assert mask[~finished(state)].any(1).all(), "whoever is to move can move"


def test_pack_keeps_what_learning_needs(game, state):
    packed = game.pack(state)
    again = game.unpack(packed)
    assert torch.equal(game.pack(again), packed)
    assert torch.equal(game.observe(again), game.observe(state))
    assert torch.equal(game.legal_action_mask(again), game.legal_action_mask(state))
    assert torch.equal(again.current_player, state.current_player)


def test_symmetries_commute_with_playing(game, state):
    """The image of a position allows the images of its actions, and they lead to the image of what
    they lead to.
    """
    symmetries = len(game.action_images)
    packed = game.pack(select(state, ~finished(state)))
    before = game.unpack(packed)
    compared = torch.zeros(symmetries, dtype=torch.int64)
    action = random_actions(game, before, torch.Generator().manual_seed(1))
    play = (
        game.afterstate if game.chance else game.step
    )  # chance chooses among cells, which a symmetry renumbers
    after = play(before, action)
    rows = torch.arange(len(action))
    for part in range(symmetries):
        chance = torch.full((len(packed),), (part + 0.5) / symmetries)
        there, image = game.augment(packed, chance)
        images = game.action_images[image]
        mirrored = game.unpack(there)
        assert torch.equal(
            game.legal_action_mask(mirrored).gather(1, images), game.legal_action_mask(before)
        )
        played = play(mirrored, images[rows, action])
        for name in ("current_player", "ending", "rewards"):
            assert torch.equal(getattr(played, name), getattr(after, name)), name
        # A ply may allow a symmetry that the position before it forbade.
        expected, image_after = game.augment(game.pack(after), chance)
        same = image == image_after
        assert torch.equal(game.pack(played)[same], expected[same])
        compared += torch.bincount(image[same], minlength=symmetries)
    assert (compared > 0).all(), "every symmetry is picked by some chance"


def test_action_images_are_a_group_of_permutations(game):
    rows = {tuple(row) for row in game.action_images.tolist()}
    assert tuple(range(game.num_actions)) in rows and len(rows) == len(game.action_images)
    assert all(sorted(row) == list(range(game.num_actions)) for row in rows)
    assert {tuple(one[action] for action in other) for one in rows for other in rows} == rows


def test_starts_are_unfinished_and_follow_their_generator(game):
    for kind in game.start_shares:
        first, again, other = (
            game.starts(50, kind, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
        )
        assert_shapes(game, first, 50)
        assert not finished(first).any() and (first.plies_played == 0).all()
        assert_same(first, again)
        assert kind == "standard" or not torch.equal(game.pack(first), game.pack(other))
        assert_shapes(game, game.starts(1, kind, torch.Generator().manual_seed(0)), 1)


def test_a_finished_game_can_be_written_down(game):
    generator = torch.Generator().manual_seed(3)
    start = game.init(1)
    actions = []
    state = start
    while not finished(state):
        actions.append(int(random_actions(game, state, generator)))
        state = game.step(state, torch.tensor(actions[-1:]))
    result = int(state.rewards[0, 0].sign())
    moves = Moves(start, actions, int(state.ending), result)
    text = game_text(game, moves, Event="Self-play", Round="17")
    assert all(
        word in text for word in ("Event", "Self-play", "Round", "17", game.endings[state.ending])
    )
    assert text == game_text(game, moves._replace(last=state), Event="Self-play", Round="17")


def test_drawings_show_each_row(game, state):
    drawings = game.to_text(select(state, slice(0, 40)))
    assert len(drawings) == 40 and all(
        isinstance(drawing, str) and "\n" in drawing for drawing in drawings
    )
    assert len(set(drawings)) > 1


def test_a_tiny_training_run_and_what_it_keeps(game, tmp_path, monkeypatch):
    """Self-play, records, replay, learner, report and checkpoint of every game; then the run goes
    on.
    """
    taken, add = [], ReplayBuffer.add
    monkeypatch.setattr(
        ReplayBuffer, "add", lambda replay, records: (taken.append(records), add(replay, records))
    )
    config = tiny(tmp_path / "run", game=game.name, iterations=1, max_plies=CAP)
    (report,) = train(config)
    assert report.games > 3 and report.plies > 8 and report.loss == pytest.approx(report.loss)
    assert (
        bool(report.scores) == bool(report.reached) == (game.num_players == 1) != bool(report.wins)
    )
    if game.name == "chess":
        assert "[Result" in report.sample_game
    else:
        said = dict(line.split(": ", 1) for line in report.sample_game.splitlines() if ": " in line)
        state = game.unpack(torch.tensor([[int(word) for word in said["Start"].split()]]))
        for action in said["Actions"].split():
            state = game.step(state, torch.tensor([int(action)]))
        assert report.sample_game.endswith("\n".join(["", *game.to_text(state)]))
    (again,) = train(config)
    assert again.iteration == 2 and again.total_positions == report.total_positions + again.plies
    replay = RunFolder.open(config.run).latest_checkpoint().checkpoint.groups["replay"]
    positions = game.unpack(torch.from_numpy(replay["positions"]))
    assert np.array_equal(game.pack(positions).numpy(), replay["positions"])
    legal = game.legal_action_mask(positions).numpy()
    kept = replay["policy_weights"] > 0
    assert np.take_along_axis(legal, replay["policy_actions"].astype(int), 1)[kept].all()
    played = np.concatenate([records.actions for records in taken])
    assert len(played) == len(legal), "the replay holds every position"
    assert np.take_along_axis(legal, played[:, None].astype(int), 1).all()
