"""Self-play: whole games, all of them, honest labels, packed small, the same for the same seed."""

import gc
import threading
import weakref

import chess
import numpy as np
import pytest
import torch

from chessnn_colab.actor import Actor
from chessnn_colab.assembler import Assembler
from chessnn_colab.config import TrainConfig
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.base import finished, start_positions
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import move_from_action
from chessnn_colab.games.chess.rules import ENDINGS, Chess
from chessnn_colab.network import actor_copy, build_network, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.records import POLICY_WIDTH, GameRecords
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Lockstep, SelfPlay, play_games, room_for

from .test_chess_endings import expected_ending

TRUNCATED, CHECKMATE = ENDINGS.index("truncated"), ENDINGS.index("checkmate")
FEW_PIECES = {"few-piece": 1.0}
MATING = {"games": 48, "boards": 48, "max_plies": 80, "start_shares": FEW_PIECES}
TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)


def played(
    games: int = 24,
    seed: int = 0,
    search: SearchConfig = SearchConfig(candidates=4, survivors=2),
    stop_after: int | None = None,
    version: int = 0,
    boards: int = 8,
    max_plies: int = 40,
    **decided,
) -> GameRecords:
    """decided: what the game decides otherwise, such as td_lambda."""
    game = Chess(max_plies)
    for name, value in decided.items():
        setattr(game, name, value)
    actor = Actor(game, actor_copy(build_network(TINY, "cpu").eval()), search)
    parts, calls = [], 0

    def collect(_: int, __: int, records: GameRecords) -> bool:
        nonlocal calls
        parts.append(records)
        calls += 1
        return stop_after is None or calls < stop_after

    play_games(actor, boards, games, seed, collect, version)
    return GameRecords.concatenate(parts)


@pytest.fixture(scope="module")
def records() -> GameRecords:
    return played()


def states(records: GameRecords, rows=slice(None)):
    return Chess().unpack(torch.from_numpy(records.positions[rows]))


def signs(records: GameRecords) -> np.ndarray:
    """1 where White is to move, -1 where Black is."""
    return np.where(states(records).current_player.numpy() == 0, 1, -1)


def followed(records: GameRecords, estimate: np.ndarray, td_lambda: float) -> np.ndarray:
    """The value targets as White sees them: in a game each follows from the next and the estimate
    there.
    """
    returns = signs(records) * records.value_targets.astype(float)
    inner = np.setdiff1d(np.arange(records.num_positions - 1), records.offsets[1:] - 1)
    expected = (1 - td_lambda) * estimate[inner + 1] + td_lambda * 0.99 * returns[inner + 1]
    np.testing.assert_allclose(returns[inner], expected, atol=2e-3)
    return returns


def test_every_game_is_played_to_its_end_once(records):
    assert records.num_games == 24
    assert (records.endings > 0).all()
    assert records.game_lengths.max() <= 40
    assert (records.game_lengths[records.endings == TRUNCATED] == 40).all()


@pytest.mark.parametrize("games, boards", [(1, 8), (5, 8), (9, 8), (40, 32)])
def test_any_number_of_games_on_any_number_of_boards(games, boards):
    assert played(games, boards=boards, max_plies=16).num_games == games


def test_same_seed_same_games_other_seed_other_games(records):
    again, other = played(), played(seed=1)
    for name, array in records.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name])
    assert not np.array_equal(other.game_lengths, records.game_lengths) or not np.array_equal(
        other.actions, records.actions
    )


def test_boards_are_freed_when_nobody_holds_them():
    """A cycle would keep their tensors until the garbage collector comes."""
    game = Chess(max_plies=8)
    network = actor_copy(build_network(TINY, "cpu").eval())
    lockstep = Lockstep(Actor(game, network, SearchConfig()), 4, 4, 0)
    lockstep.play_block()
    gone = weakref.ref(lockstep)
    gc.disable()
    del lockstep
    gc.enable()
    assert gone() is None


def test_a_block_is_cut_while_the_next_is_played(monkeypatch):
    next_begun = threading.Event()
    play_block, add = Lockstep.play_block, Assembler.add
    blocks = []

    def noted(lockstep):
        blocks.append(lockstep)
        if len(blocks) == 2:
            next_begun.set()
        return play_block(lockstep)

    def waiting(assembler, block):
        assert next_begun.wait(60)
        return add(assembler, block)

    monkeypatch.setattr(Lockstep, "play_block", noted)
    monkeypatch.setattr(Assembler, "add", waiting)
    assert played().num_games


def test_python_chess_agrees_with_every_game_move_by_move(records):
    starts = boards_from_state(states(records, records.offsets[:-1]))
    for number, board in enumerate(starts):
        for action in records.actions[records.offsets[number] : records.offsets[number + 1]]:
            assert expected_ending(board) == "unfinished"
            board.push(move_from_action(int(action), board))
        ending = (
            "unfinished"
            if records.endings[number] == TRUNCATED
            else ENDINGS[records.endings[number]]
        )
        assert expected_ending(board) == ending
        assert records.results[number] == (
            (-1 if board.turn else 1) if ending == "checkmate" else 0
        )


def test_with_lambda_one_value_targets_are_the_movers_outcome_faded_by_the_distance_of_a_mate():
    records = played(td_lambda=1.0, **MATING)
    mates = np.flatnonzero(records.endings == CHECKMATE)
    assert len(mates), "no mate in the sample: the test looks at nothing"
    for index in mates:
        span = np.arange(records.offsets[index], records.offsets[index + 1])
        outcome = signs(records)[span] * records.results[index]
        left = span[-1] - span
        np.testing.assert_allclose(records.value_targets[span], outcome * 0.99**left, atol=1e-3)
        assert records.value_targets[span[-1]] == 1.0  # who mates is who moves last


def test_a_game_at_the_cap_is_labelled_by_material_never_as_a_mate(records):
    capped = np.flatnonzero(records.endings == TRUNCATED)
    assert len(capped)
    last = records.offsets[capped + 1] - 1
    labels = np.abs(records.value_targets[last].astype(np.float32))
    assert (labels < 0.5).all() and (labels > 0).any() and (records.results[capped] == 0).all()
    # The label is the material after the last move; most last moves capture nothing.
    expected = Chess().truncation_value(states(records, last)).abs().numpy()
    assert np.isclose(labels, expected, atol=2e-3).mean() > 0.5


def test_below_lambda_one_each_target_follows_from_the_next_and_the_material_there():
    records = played(**MATING)
    material = signs(records) * Chess().truncation_value(states(records)).numpy()
    returns, mates = followed(records, material, 0.85), records.endings == CHECKMATE
    ends = returns[records.offsets[1:] - 1]
    assert mates.any() and (ends[mates] == records.results[mates]).all()


@pytest.mark.parametrize("stop_after", [None, 1])
def test_bootstrapped_targets_follow_from_the_next_and_what_the_search_said_there(stop_after):
    """Games at the cap and those that the clock stops are worth what their last search said; a mate
    is a mate.
    """
    records = played(stop_after=stop_after, version=200_000, **MATING)
    searched = signs(records) * records.root_values.astype(float)
    last = records.offsets[1:] - 1
    ends = followed(records, searched, 0.95)[last]
    mates, labelled = (records.endings == CHECKMATE), np.isin(records.endings, (0, TRUNCATED))
    assert (ends[mates] == records.results[mates]).all() and (mates.any() or stop_after)
    assert labelled.any() and (ends[labelled] == searched[last[labelled]]).all()


@pytest.mark.parametrize("bootstrap_after", [0, 150])
def test_a_run_bootstraps_after_so_many_positions(bootstrap_after):
    config = TrainConfig(
        candidates=2, survivors=1, boards=4, max_plies=12, bootstrap_after=bootstrap_after
    )
    job = SelfPlay("cpu", **config.job_settings(TINY))
    arrays, targets = to_arrays(job.network), []
    for positions in (0, 149, 150, 300):
        job.set_weights(positions, arrays)
        job.play(4, 0, lambda games, plies, new: targets.append(new) or True)
        records = GameRecords.concatenate([GameRecords.from_arrays(new) for new in targets if new])
        last = np.cumsum(records.game_lengths) - 1
        capped = last[records.endings == TRUNCATED]
        assert len(capped) and (
            records.value_targets[capped] == records.root_values[capped]
        ).all() == (positions >= bootstrap_after)
        targets.clear()


def test_games_cut_short_are_labelled_as_they_stand():
    """The clock at the end of a time budget stops most games: their material is what is known of
    them.
    """
    records = played(stop_after=1)
    unfinished = records.endings == 0
    assert unfinished.any() and (records.results[unfinished] == 0).all()
    last = records.offsets[1:][unfinished] - 1
    estimate = Chess().truncation_value(states(records, last)).numpy()
    np.testing.assert_allclose(records.value_targets[last].astype(np.float32), estimate, atol=1e-3)
    assert not np.isnan(records.value_targets).any() and np.abs(estimate).max() > 0


def test_games_cut_short_have_no_value_target_where_outcomes_alone_count():
    records = played(stop_after=1, td_lambda=1.0)
    known = np.repeat(records.endings > 0, records.game_lengths)
    assert (
        np.isnan(records.value_targets[~known]).all()
        and not np.isnan(records.value_targets[known]).any()
    )
    assert not known.all()


def test_a_position_and_its_policy_take_at_most_128_bytes(records):
    assert records.nbytes / records.num_positions <= 128
    sums = records.policy_weights.astype(np.float32).sum(1)
    np.testing.assert_allclose(sums, 1, atol=5e-3)
    assert (np.diff(records.policy_weights.astype(np.float32), axis=1) <= 0).all()  # best first


def test_policy_targets_are_legal_moves(records):
    mask = Chess().legal_action_mask(states(records)).numpy()
    rows = np.arange(records.num_positions)
    assert mask[rows, records.actions].all()
    weighty = records.policy_weights > 0
    assert mask[rows[:, None], records.policy_actions][weighty].all()


def test_short_games_are_not_preferred():
    """Half the games start a move from their end. All games asked for are played, so they remain
    half.
    """
    shares = {"few-piece": 0.5, "standard": 0.5}
    records = played(games=32, boards=4, start_shares=shares, max_plies=24)
    first = boards_from_state(states(records, records.offsets[:-1]))
    assert sum(len(board.piece_map()) < 32 for board in first) == 16


def test_boards_whose_games_are_over_are_left_behind():
    game = Chess(80)
    game.start_shares = FEW_PIECES
    actor = Actor(
        game, actor_copy(build_network(TINY, "cpu").eval()), SearchConfig(search="policy")
    )
    lockstep = Lockstep(actor, 64, 64, 0)
    sizes = set()
    while lockstep.active:
        lockstep.play_block()
        assert (
            lockstep.active == 0
            or len(lockstep.boards.number) == len(lockstep.boards.state.ply) < lockstep.active + 16
        )
        assert (lockstep.boards.number >= 0).sum() == lockstep.active
        sizes.add(len(lockstep.boards.number))
    assert sizes == {64, 48, 16}
    assert [room_for(active, on_cpu=True) for active in (0, 1, 16, 17, 100)] == [
        16,
        16,
        16,
        32,
        112,
    ]
    assert [room_for(active, on_cpu=False) for active in (0, 1, 16, 17, 100, 512)] == [
        16,
        16,
        16,
        32,
        128,
        512,
    ]


@pytest.mark.parametrize("kind", ["few-piece", "random-plies", "standard"])
def test_starts_are_legal_unfinished_and_varied(kind):
    states = Chess().starts(200, kind, torch.Generator().manual_seed(0))
    boards = boards_from_state(states)
    assert all(board.is_valid() and not board.is_game_over() for board in boards)
    assert not finished(states).any()
    different = len({board.board_fen() for board in boards})
    assert different == 1 if kind == "standard" else different > 150
    if kind != "standard":
        assert {board.turn for board in boards} == {chess.WHITE, chess.BLACK}


def test_mix_of_starts_is_as_configured():
    shares = {"few-piece": 0.25, "random-plies": 0.5, "standard": 0.25}
    boards = boards_from_state(
        start_positions(Chess(), shares, 40, torch.Generator().manual_seed(0))
    )
    assert sum(board.fen() == chess.STARTING_FEN for board in boards) == 10
    assert sum(len(board.piece_map()) <= 9 for board in boards) == 10


def test_sampling_is_early_and_the_searchs_choice_late():
    """With sampling almost off every game from the start follows the search: fewer different
    games.
    """
    sampled, chosen = (
        played(
            games=12,
            sampling_plies=plies,
            start_shares={"standard": 1.0},
            max_plies=12,
            search=SearchConfig(candidates=32, survivors=32, value_scale=10),
        )
        for plies in (12, 1)
    )
    best_share = [
        (records.actions == records.policy_actions[:, 0]).mean() for records in (sampled, chosen)
    ]
    assert best_share[1] > best_share[0]


def block_of(number: list, **arrays: list) -> dict[str, np.ndarray]:
    """What a block of plies hands over, [plies, boards]; zeros, but for the arrays that are given."""
    zeros = np.zeros_like(number, float)
    names = "player action value ended ending outcome estimate".split()
    wide = np.zeros((*zeros.shape, POLICY_WIDTH))
    return {
        **dict.fromkeys(names, zeros),
        "number": np.array(number),
        "position": wide[..., :5].astype(np.int64),
        "policy_actions": wide,
        "policy_weights": wide,
        **{name: np.array(array) for name, array in arrays.items()},
    }


def test_assembler_keeps_a_game_whole_across_blocks():
    assembler = Assembler(TRUNCATED, 0.99, 1.0)
    rest = {"action": [[0, 1], [2, 3]], "ending": [[CHECKMATE] * 2] * 2, "outcome": [[1, 1]] * 2}
    first, second = (
        assembler.add(block_of(number, ended=ended, **rest))
        for number, ended in (
            ([[0, 1], [0, 1]], [[False, False], [False, True]]),
            ([[0, 2], [0, -1]], [[False, True], [True, False]]),
        )
    )
    assert first.game_lengths.tolist() == [2] and first.actions.tolist() == [1, 3]
    assert second.game_lengths.tolist() == [4, 1] and second.actions.tolist() == [0, 2, 0, 2, 1]
    assert assembler.games == 3 and assembler.plies == 7


def test_a_worker_on_the_cpu_starts_no_gpu_driver(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: pytest.fail("asked for GPUs"))
    job = SelfPlay("cpu", TINY.to_dict(), {"candidates": 2, "survivors": 1}, boards=4)
    assert job.describe() == "CPU"


# --- memory that runs out


def job_that_runs_out(monkeypatch, above: int, after: int = 3, **settings) -> SelfPlay:
    """Runs out of memory with more than `above` boards in lockstep, once `after` blocks have been
    played.
    """
    original, blocks = Lockstep.play_block, []

    def play_block(lockstep):
        blocks.append(len(lockstep.boards.number))
        if len(lockstep.boards.number) > above and len(blocks) > after:
            raise RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
            )
        return original(lockstep)

    monkeypatch.setattr(Lockstep, "play_block", play_block)
    self_play = {"boards": 8, "max_plies": 24, **settings}
    job = SelfPlay("cpu", TINY.to_dict(), {"search": "policy"}, **self_play)
    job.game.start_shares = FEW_PIECES
    return job


def test_out_of_memory_halves_the_boards_once_and_goes_on(monkeypatch):
    job, parts, counts = job_that_runs_out(monkeypatch, above=4), [], []

    def collect(games, plies, arrays):
        counts.append(games)
        parts.extend([GameRecords.from_arrays(arrays)] if arrays is not None else [])
        return True

    for call in (1, 2):
        job.play(20, 0, collect)
        records = GameRecords.concatenate(parts)
        assert records.num_games == 20 * call and (records.endings > 0).all(), (
            "none lost, none doubled"
        )
        assert counts[-1] == 20
    assert job.boards == 4
    (message,) = job.messages
    assert "boards=8: goes on with 4" in message and "Next time set boards=4" in message


def test_out_of_memory_again_is_an_error_that_says_what_to_set(monkeypatch):
    with pytest.raises(
        ConfigError,
        match="out of memory on cpu with boards=4, having halved them once: set boards lower",
    ):
        job_that_runs_out(monkeypatch, above=2).play(20, 0, lambda *_: True)


def test_out_of_memory_halves_the_boards_that_were_in_use(monkeypatch):
    job, counts = job_that_runs_out(monkeypatch, above=4, after=0, boards=64), []
    job.play(8, 0, lambda games, *_: counts.append(games) or True)
    assert counts[-1] == 8 and job.boards == 4 and "boards=8: goes on with 4" in job.messages[0]


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    job = job_that_runs_out(monkeypatch, above=100)
    monkeypatch.setattr(Lockstep, "play_block", lambda lockstep: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        job.play(2, 0, lambda *_: True)
