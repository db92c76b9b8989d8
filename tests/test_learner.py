"""Learning: targets, losses, masks, what one batch teaches; and the replay it comes from."""

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from chessnn_colab import learner as learner_module
from chessnn_colab.budget import Budget
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.tictactoe import TicTacToe
from chessnn_colab.layers import Counted
from chessnn_colab.learner import Learner, LearnerConfig, log_policy, losses_of, masked_log_policy
from chessnn_colab.learning import Batches, learn
from chessnn_colab.network import build_network, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.records import POLICY_WIDTH, GameRecords
from chessnn_colab.replay import ReplayBuffer
from chessnn_colab.report import Progress
from chessnn_colab.spikes import firing_rates

TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)


def batch_of(count: int = 32) -> dict[str, np.ndarray]:
    """Positions of random play whose best move is the first legal one and whose value is a win for
    White.
    """
    game = Chess()
    state = game.starts(count, "random-plies", torch.Generator().manual_seed(0))
    best = game.legal_action_mask(state).int().argmax(1).numpy()
    policy_actions = np.zeros((count, POLICY_WIDTH), np.uint16)
    policy_weights = np.zeros((count, POLICY_WIDTH), np.float16)
    policy_actions[:, 0], policy_weights[:, 0] = best, 1
    return {
        "positions": game.pack(state).numpy(),
        "policy_actions": policy_actions,
        "policy_weights": policy_weights,
        "value_targets": np.eye(3, dtype=np.float16)[2 * state.current_player.numpy()],
    }


def learner_of(**settings) -> Learner:
    config = LearnerConfig(**{"precision": "float32", **settings})
    return Learner(build_network(TINY, "cpu"), Chess(), config)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_batch_is_learned_by_heart(precision):
    learner, batch = learner_of(learning_rate=1e-2, precision=precision), batch_of()
    first = learner.update(batch)
    for _ in range(60):
        last = learner.update(batch)
    assert last.policy_loss < first.policy_loss - 1
    assert last.value_loss < 0.3 * first.value_loss
    assert all(parameter.dtype == torch.float32 for parameter in learner.network.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_price_of_spikes_is_not_rounded_away(dtype):
    """Spread over all neurons it would be far less than half a step of bfloat16 in each."""
    spikes = torch.zeros(1, 512, 8, 8, 8, dtype=dtype, requires_grad=True)
    generator = torch.Generator().manual_seed(0)
    learned = (1e-4 * torch.randn(spikes.shape, generator=generator)).to(dtype)
    torch.autograd.backward(Counted.apply(spikes), (learned, torch.tensor(0.01)))
    assert spikes.grad is not None
    assert float((spikes.grad.double() - learned.double()).sum()) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("levels, steps", [(8, 1), (1, 2)])
def test_spikes_have_their_price_and_grow_rare(levels, steps):
    batch, fired, generator = batch_of(), [], np.random.default_rng(0)
    for price in (0.0, 30.0):
        network = build_network(replace(TINY, levels=levels, steps=steps), "cpu").eval()
        learner = Learner(network, Chess(), LearnerConfig(1e-2, "float32", price))
        tensors = learner.to_tensors(batch)
        observation = learner.game.observe(learner.game.unpack(tensors["positions"]))
        with torch.no_grad():
            losses = learner.losses(tensors)
        extra = losses.loss - losses.policy_loss - losses.value_loss
        rates = firing_rates(network, observation).values()
        assert float(extra) == pytest.approx(
            price * levels * steps * np.mean(list(rates)), abs=1e-6
        )
        for _ in range(20):  # in another order each time: not all positions pay
            order = generator.permutation(32)
            learner.update({name: array[order] for name, array in batch.items()})
        learner.reestimate_norms([batch])
        fired.append(np.mean(list(firing_rates(network, observation).values())))
    assert fired[1] < fired[0] / 2


def test_a_price_that_has_risen_is_paid():
    learner, extra = learner_of(spike_penalty=0.1), []
    for price in (0.1, 10.0):
        learner.config = replace(learner.config, spike_penalty=price)
        losses = learner.update(batch_of(), learning_rate=0.0)
        extra.append(float(losses.loss - losses.policy_loss - losses.value_loss))
    assert extra[1] == pytest.approx(100 * extra[0], rel=1e-3)


def test_the_image_of_a_position_is_taught_the_image_of_its_move():
    game, move = TicTacToe(), torch.full((8, 1), 5)
    state = game.step(game.init(8), torch.full((8,), 1))
    batch = {"positions": game.pack(state), "policy_actions": move}
    chance = (torch.arange(8) + 0.5) / 8
    learner = Learner(build_network(TINY, "cpu"), game, LearnerConfig())
    image = learner.augmented({**batch, "chance": chance})
    moved = game.step(game.unpack(image["positions"]), image["policy_actions"][:, 0])
    expected, _ = game.augment(game.pack(game.step(state, move[:, 0])), chance)
    assert torch.equal(game.pack(moved), expected) and len(expected.unique(dim=0)) == 8


def test_losses_by_hand():
    rows, legal = torch.tensor([0, 0, 0]), torch.tensor([0, 1, 3])
    logits, value_logits = torch.tensor([[0.0, 1.0, 9.0, 2.0]]), torch.tensor([[0.5, 0.2, -0.1]])
    batch = {
        "value_targets": torch.tensor([[0.6, 0.3, 0.1]]),
        "policy_actions": torch.tensor([[3, 1]]),
        "policy_weights": torch.tensor([[0.7, 0.3]]),
    }
    listed = log_policy(logits[rows, legal], rows, legal, batch["policy_actions"], 4)
    masked = masked_log_policy(
        logits, torch.tensor([[True, True, False, True]]), batch["policy_actions"]
    )
    torch.testing.assert_close(listed, masked)
    losses = losses_of(*listed, value_logits, batch)
    log_there = torch.tensor([0.0, 1.0, 2.0]).log_softmax(0)
    policy = -(0.7 * log_there[2] + 0.3 * log_there[1])
    value = -(torch.tensor([0.6, 0.3, 0.1]) * torch.tensor([0.5, 0.2, -0.1]).log_softmax(0)).sum()
    torch.testing.assert_close(losses.policy_loss, policy)
    torch.testing.assert_close(losses.value_loss, value)
    torch.testing.assert_close(losses.loss, policy + value)
    torch.testing.assert_close(losses.entropy, -(log_there.exp() * log_there).sum())


def with_scaler(learner: Learner) -> Learner:
    """As float16 learns on CUDA: with a loss that is scaled."""
    learner.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    return learner


def test_the_loss_scale_is_saved_and_comes_back():
    learner = with_scaler(learner_of())
    for _ in range(4):
        learner.update(batch_of())
    saved = json.loads(json.dumps(learner.progress()))
    assert (
        saved["updates"] == 4
        and saved["scaler"]["scale"] == 2048.0
        and saved["scaler"]["_growth_tracker"] == 1
    )
    other = with_scaler(learner_of())
    other.restore_progress(saved)
    assert other.progress() == learner.progress()
    for each in (learner, other):
        each.update(batch_of())
    assert other.progress() == learner.progress()  # and the count goes on from there
    fresh = with_scaler(learner_of())
    fresh.restore_progress({"updates": 7})  # of a version that did not save it
    assert fresh.updates == 7 and fresh.scaler.get_scale() == 1024.0
    plain = learner_of()
    plain.restore_progress(saved)  # a run that went on in another precision
    assert plain.progress() == {"updates": 4, "correction": [1.0, 0.0]}


def test_an_update_that_float16_cannot_make_is_told_and_not_counted():
    learner = learner_of()
    learner.scaler = torch.amp.GradScaler("cpu", init_scale=3e38)
    replay = ReplayBuffer(100)
    replay.add(records_of(20))
    replay.sample = lambda size, generator: batch_of()
    said = []
    progress = Progress()
    progress.message = said.append
    found = learn(learner, replay, 4, 32, Budget(None, 1), progress, np.random.default_rng(0))
    assert 0 < found["updates"] == learner.updates < 4
    assert np.isfinite(found["loss"])
    assert said[0].startswith(f"{4 - found['updates']} of 4 updates were left out: in float16")


def test_the_learning_rate_rises_while_it_warms_up_and_falls_with_the_budget(monkeypatch):
    replay, budget = ReplayBuffer(100), Budget(None, 1)
    replay.add(records_of(20))
    monkeypatch.setattr(budget, "learning_rate_factor", lambda: 0.5)
    generator = np.random.default_rng(0)
    batches = Batches(replay, 4, 10, budget, 0.5, generator, warm_up=50, learned=20)
    rates = [rate for _, rate in batches if rate is not None]
    assert rates == pytest.approx([0.15, 0.2, 0.25, 0.25])
    learner = learner_of(learning_rate=0.5, warm_up=80)
    made = [learn(learner, replay, 1, 10, budget, Progress(), generator) for _ in range(2)]
    assert [each["learning_rate"] for each in made] == pytest.approx([0.03125, 0.0625])


@pytest.mark.parametrize(
    "name, value",
    [("scale", float("nan")), ("scale", 0.0), ("scale", "1"), ("_growth_tracker", -1)],
)
def test_a_scale_that_is_none_is_refused(name, value):
    learner = with_scaler(learner_of())
    saved = learner.progress()
    with pytest.raises(ConfigError, match="is not the state of a loss scaler"):
        learner.restore_progress({**saved, "scaler": {**saved["scaler"], name: value}})
    assert learner.scaler.get_scale() == 1024.0


def test_norms_are_those_of_the_batches_shown_and_an_interrupt_leaves_them():
    learner, batch = learner_of(), batch_of(64)
    learner.reestimate_norms([batch])
    state = learner.game.unpack(torch.from_numpy(batch["positions"]))
    with torch.no_grad():
        out = learner.network.stem.conv(learner.game.observe(state))
    norm = learner.network.stem.norm
    torch.testing.assert_close(norm.running_mean, out.mean((0, 2, 3)))
    torch.testing.assert_close(norm.running_var, out.var((0, 2, 3)))
    assert norm.momentum == 0.1 and not learner.network.training
    before = to_arrays(learner.network)

    def interrupted():
        yield batch_of(32)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.reestimate_norms(interrupted())
    for name, array in to_arrays(learner.network).items():
        np.testing.assert_array_equal(array, before[name])
    assert norm.momentum == 0.1


def test_gradients_are_clipped(monkeypatch):
    monkeypatch.setattr(learner_module, "CLIP_NORM", 1e-6)
    learner = learner_of()
    learner.update(batch_of())
    total = torch.stack(
        [parameter.grad.norm() for parameter in learner.network.parameters()]
    ).norm()
    assert total <= 1.01e-6


def records_of(count: int, first: int = 0) -> GameRecords:
    """One game whose best actions count upward, so that positions can be told apart."""
    batch = {name: array[:count] for name, array in batch_of(max(count, 1)).items()}
    batch["policy_actions"][:, 0] = np.arange(first, first + count)
    return GameRecords(
        **batch,
        actions=batch["policy_actions"][:, 0],
        root_values=batch["value_targets"],
        game_lengths=np.array([count], np.int32),
        endings=np.ones(1, np.uint8),
        results=np.ones(1, np.int8),
    )


def held(replay: ReplayBuffer) -> dict[str, np.ndarray]:
    return {name: np.concatenate(parts) for name, parts in replay.to_arrays().items()}


def numbers(arrays: dict[str, np.ndarray]) -> list[int]:
    """Those of records_of."""
    return arrays["policy_actions"][:, 0].tolist()


@pytest.mark.parametrize("capacity", [4, 10, 30])
def test_a_replay_keeps_the_latest_in_order_and_comes_back_so(capacity):
    replay = ReplayBuffer(10)
    replay.add(records_of(6)), replay.add(records_of(8, 6))
    again = ReplayBuffer.from_arrays(capacity, held(replay), Chess.num_actions, Chess.packed_words)
    kept = list(range(4, 14))[-capacity:]
    assert numbers(held(again)) == kept
    again.add(records_of(2, 50))
    assert numbers(held(again)) == ([*kept, 50, 51])[-capacity:]
    again.add(records_of(32, 100))
    assert numbers(held(again)) == list(range(100, 132))[-capacity:]


def test_a_replay_of_an_older_version_comes_back():
    """Before 0.13.2 it kept two fields more."""
    replay = ReplayBuffer(10)
    replay.add(records_of(6))
    older = held(replay) | {
        "actions": np.arange(6, dtype=np.uint16),
        "root_values": np.zeros((6, 3), np.float16),
    }
    again = ReplayBuffer.from_arrays(10, older, Chess.num_actions, Chess.packed_words)
    assert held(again).keys() == held(replay).keys() and numbers(held(again)) == list(range(6))


def numbered(count: int, first: int = 0) -> GameRecords:
    """As records_of, with the same number in three fields."""
    records = records_of(count, first)
    records.policy_weights[:, 0] = records.value_targets[:, 0] = records.actions / 64
    return records


def interrupted(function: Callable[[], None], line: int) -> bool:
    """Call it, with an interrupt before that line of replay.py that runs; whether one came."""
    lines = itertools.count(1)

    def trace(frame, event, _):
        if frame.f_code.co_filename.endswith("replay.py"):
            if event == "line" and next(lines) == line:
                raise KeyboardInterrupt
            return trace

    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("capacity, before", [(30, 6), (10, 6), (10, 14)])
def test_an_interrupt_leaves_whole_positions_in_a_replay(capacity, before):
    for line in range(1, 100):
        replay = ReplayBuffer(30)
        replay.resize(capacity)
        replay.add(numbered(before))
        came = interrupted(lambda replay=replay: replay.add(numbered(8, before)), line)
        arrays = held(replay)
        kept = numbers(arrays)
        assert kept == list(range(kept[0], kept[-1] + 1)) and kept[-1] in (before - 1, before + 7)
        for name in ("policy_weights", "value_targets"):
            assert (64 * arrays[name][:, 0]).tolist() == kept
        ReplayBuffer.from_arrays(30, arrays, Chess.num_actions, Chess.packed_words)
        if not came:
            break
    assert 10 < line < 99 and len(kept) == min(capacity, before + 8)


def test_replay_samples_what_it_holds_the_same_for_the_same_seed():
    replay = ReplayBuffer(100)
    replay.add(records_of(20))
    first, second = (numbers(replay.sample(500, np.random.default_rng(3))) for _ in range(2))
    assert first == second and set(first) == set(range(20))
    replay.resize(20)
    replay.add(records_of(8, 20))
    sampled = numbers(replay.sample(500, np.random.default_rng(3)))
    assert set(sampled) == set(range(8, 28)), "and nothing that it has dropped"


def test_an_empty_replay_says_so():
    with pytest.raises(ConfigError, match="empty"):
        ReplayBuffer(10).sample(1, np.random.default_rng(0))
