"""Self-play: whole games, all of them, honest labels, packed small, the same for the same seed."""

import gc
import math
import threading
import weakref

import chess
import numpy as np
import pytest
import torch

from chessnn_colab import selfplay
from chessnn_colab.actor import Actor
from chessnn_colab.assembler import Assembler
from chessnn_colab.config import TrainConfig
from chessnn_colab.device_probe import probe_network
from chessnn_colab.errors import ConfigError
from chessnn_colab.games.base import finished, start_positions
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import move_from_action
from chessnn_colab.games.chess.rules import ENDINGS, Chess
from chessnn_colab.games.tictactoe import TicTacToe
from chessnn_colab.in_flight import ROWS, Share, count, plies_in
from chessnn_colab.lockstep import Lockstep
from chessnn_colab.network import actor_copy, build_network, to_arrays
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.records import POLICY_WIDTH, GameRecords
from chessnn_colab.search import SearchConfig
from chessnn_colab.selfplay import Play, SelfPlay

from .test_chess_endings import expected_ending

TRUNCATED, CHECKMATE = ENDINGS.index("truncated"), ENDINGS.index("checkmate")
FEW_PIECES = {"few-piece": 1.0}
MATING = {"positions": 4000, "boards": 48, "max_plies": 60, "start_shares": FEW_PIECES}
TINY = NetworkConfig(channels=8, blocks=1, value_hidden=8)


def played(
    positions: int = 1200,
    seed: int = 0,
    search: SearchConfig = SearchConfig(candidates=4, survivors=2),
    calls: int = 1,
    unfinished: bool = False,
    version: int = 0,
    boards: int = 8,
    max_plies: int = 40,
    **decided,
) -> GameRecords:
    """The games that ended in so many calls, each of which goes on with those that the one before
    left in flight; and, if asked for, those that are unfinished at the end. decided: what the game decides
    otherwise, such as td_lambda.
    """
    game = Chess(max_plies)
    for name, value in decided.items():
        setattr(game, name, value)
    actor = Actor(game, actor_copy(build_network(TINY, "cpu").eval()), search)
    parts: list[GameRecords] = []
    games: dict[str, np.ndarray] = {}
    for call in range(calls):
        play = Play(actor, boards, seed + call, version, None, games)
        play.run(positions // calls, lambda ended, plies, new: parts.append(new) is None)
        games = play.in_flight()
    if unfinished:
        parts.append(Assembler(game, version, games).unfinished())
    return GameRecords.concatenate(parts)


@pytest.fixture(scope="module")
def records() -> GameRecords:
    return played(calls=5)


def states(records: GameRecords, rows=slice(None)):
    return Chess().unpack(torch.from_numpy(records.positions[rows]))


def whites(records: GameRecords, chances: np.ndarray) -> np.ndarray:
    """The mover's chances [N, 3] of all positions, as White's."""
    black = states(records).current_player.numpy() == 1
    return np.where(black[:, None], chances[:, ::-1], chances).astype(float)


def outcomes(records: GameRecords) -> np.ndarray:
    """[G, 3]: White's chances at the end of a game that the rules ended."""
    return np.eye(3)[1 - records.results]


def followed(records: GameRecords, estimate: np.ndarray, td_lambda: float) -> np.ndarray:
    """White's chances in the value targets: in a game each follows from the next and the estimate
    there, nothing fades, and where the rules did not end it the last estimate counts. Returns those
    of each game's end.
    """
    returns = whites(records, records.value_targets)
    last = records.offsets[1:] - 1
    inner = np.setdiff1d(np.arange(records.num_positions), last)
    expected = (1 - td_lambda) * estimate[inner + 1] + td_lambda * returns[inner + 1]
    np.testing.assert_allclose(returns[inner], expected, atol=2e-3)
    np.testing.assert_allclose(returns.sum(1), 1, atol=2e-3)
    stopped = np.isin(records.endings, (0, TRUNCATED))
    np.testing.assert_allclose(returns[last[stopped]], estimate[last[stopped]], atol=1e-3)
    mates = records.endings == CHECKMATE
    assert (returns[last[~stopped]] == outcomes(records)[~stopped]).all()
    assert stopped.any() and mates.any(), "nothing of this kind: the test looks at nothing"
    return returns


def test_every_game_is_played_to_its_end_and_no_position_is_lost_or_doubled(records):
    assert (records.endings > 0).all()
    assert records.game_lengths.max() <= 40
    assert (records.game_lengths[records.endings == TRUNCATED] == 40).all()
    assert records.num_positions < played(calls=5, unfinished=True).num_positions == 1200


def test_boards_are_freed_when_nobody_holds_them():
    """A cycle would keep their tensors until the garbage collector comes."""
    game = Chess(max_plies=8)
    network = actor_copy(build_network(TINY, "cpu").eval())
    lockstep = Lockstep(Actor(game, network, SearchConfig()), 4, 0)
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

    def noted(lockstep, plies):
        blocks.append(lockstep)
        if len(blocks) == 2:
            next_begun.set()
        return play_block(lockstep, plies)

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


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize("td_lambda", [0.85, 1.0])
def test_value_targets_follow_from_outcomes_and_at_first_from_the_material(td_lambda, unfinished):
    """Games at the cap and those that the clock stops are worth what their last position is."""
    records = played(unfinished=unfinished, td_lambda=td_lambda, **MATING)
    followed(records, whites(records, Chess().guessed_chances(states(records)).numpy()), td_lambda)


@pytest.mark.parametrize("unfinished", [False, True])
def test_bootstrapped_targets_follow_from_the_next_and_what_the_search_said_there(unfinished):
    records = played(unfinished=unfinished, version=200_000, **MATING)
    followed(records, whites(records, records.root_values), 0.95)


@pytest.mark.parametrize("bootstrap_after", [0, 150])
def test_a_run_bootstraps_after_so_many_positions(bootstrap_after):
    config = TrainConfig(
        candidates=2, survivors=1, boards=4, max_plies=12, bootstrap_after=bootstrap_after
    )
    job = SelfPlay("cpu", **config.job_settings(TINY))
    arrays, targets = to_arrays(job.network), []
    for positions in (0, 149, 150, 300):
        job.set_weights(positions, arrays)
        job.play(Share(48, {}), 0, lambda games, plies, new: targets.append(new) or True)
        records = GameRecords.concatenate([GameRecords.from_arrays(new) for new in targets if new])
        last = np.cumsum(records.game_lengths) - 1
        capped = last[records.endings == TRUNCATED]
        assert len(capped) and (
            records.value_targets[capped] == records.root_values[capped]
        ).all() == (positions >= bootstrap_after)
        targets.clear()


def test_a_position_and_its_policy_take_at_most_128_bytes(records):
    size = sum(array.nbytes for array in records.to_arrays().values())
    assert size / records.num_positions <= 128
    sums = records.policy_weights.astype(np.float32).sum(1)
    np.testing.assert_allclose(sums, 1, atol=5e-3)
    assert (np.diff(records.policy_weights.astype(np.float32), axis=1) <= 0).all()  # best first


def rows_of_run(play: Play, positions: int) -> int:
    """Boards times plies of a run of `play`, whether the boards have a game or not."""
    rows = []
    play_block = play.lockstep.play_block

    def counted(plies: int) -> dict[str, np.ndarray]:
        block = play_block(plies)
        rows.append(block["number"].size)
        return block

    play.lockstep.play_block = counted
    play.run(positions, lambda *_: True)
    return sum(rows)


def test_short_games_are_not_preferred():
    """Games that go on from call to call are as long as those of a fixed set, of which each is
    played to its end: two samples differ by chance (Kolmogorov and Smirnov, at 1 %).
    """
    game = TicTacToe()
    actor = Actor(game, actor_copy(probe_network(game)), SearchConfig(search="policy"))
    many = 1000
    numbers = Lockstep(actor, many, 0).play_block(9)["number"]
    fixed = np.bincount(numbers[numbers >= 0])[:many]
    whole_blocks = Play(actor, 100, 0)
    rows = rows_of_run(whole_blocks, 3200)
    assert whole_blocks.assembler.plies >= 0.97 * rows, "boards that play"
    lengths: list[int] = []
    games: dict[str, np.ndarray] = {}
    for call in range(40):
        play = Play(actor, 100, call, games=games)
        play.run(200, lambda _, __, new: lengths.extend(new.game_lengths) is None)
        games = play.in_flight()
        if call == 8:  # until then short games were the first to end
            lengths.clear()
    share = [
        np.searchsorted(np.sort(them), np.arange(10), "right") / len(them)
        for them in (fixed, lengths)
    ]
    assert np.abs(share[0] - share[1]).max() < 1.63 * math.sqrt(1 / many + 1 / len(lengths))


def test_a_costly_search_is_heard_of_each_ply(monkeypatch):
    """A pool takes a worker that says nothing for minutes for hung. The games are the same."""
    game = TicTacToe()
    network = actor_copy(probe_network(game))

    def play(num_simulations: int) -> Play:
        search = SearchConfig(search="tree", num_simulations=num_simulations)
        return Play(Actor(game, network, search), 16, 0)

    assert [play(n).plies_a_block for n in (12, 32, 100, 800)] == [8, 8, 2, 1]

    def heard_and_played() -> tuple[list[int], np.ndarray]:
        heard, positions = [], []
        playing = play(4)

        def hear(_: int, plies: int, new: GameRecords) -> bool:
            heard.append(plies)
            positions.append(new.positions)
            return True

        playing.run(160, hear)
        positions.append(playing.in_flight()[ROWS + "position"])
        return heard, np.sort(np.concatenate(positions), 0)

    heard, in_blocks = heard_and_played()
    assert heard == [128, 160]
    monkeypatch.setattr(selfplay, "EVALUATIONS_A_BLOCK", 5)
    heard, positions = heard_and_played()
    assert heard == list(range(16, 176, 16)) and np.array_equal(in_blocks, positions)


def test_games_that_go_on_bring_no_new_sizes():
    """MPS compiles for each size that it meets, and keeps that for good."""
    actor = Actor(
        TicTacToe(), actor_copy(probe_network(TicTacToe())), SearchConfig(search="policy")
    )
    games: dict[str, np.ndarray] = {}
    sizes, counts = [], []
    for call in range(6):
        play = Play(actor, 16, call, games=games)
        play.run(40, lambda *_: True)
        games = play.in_flight()
        sizes.append(play.lockstep.queue.size)
        counts.append(count(games))
    assert len(set(sizes)) == 1 and len(set(counts)) > 1


def test_games_wait_where_there_are_fewer_boards():
    """As many are played as before, and none is lost."""
    game = Chess(40)
    game.start_shares = {"standard": 1.0}
    network = actor_copy(build_network(TINY, "cpu").eval())
    actor = Actor(game, network, SearchConfig(search="policy"))
    play = Play(actor, 20, 0)
    play.run(100, lambda *_: True)
    again = Play(actor, 4, 1, games=play.in_flight())
    assert rows_of_run(again, 40) == 40
    assert plies_in([again.in_flight()]) == 140
    assert count(again.in_flight()) >= 20


def test_each_position_keeps_whether_its_searchs_value_may_be_used():
    """A game goes on after its run has learned enough to trust the search."""
    game = Chess()
    game.discount, game.td_lambda, game.bootstrap_lambda, game.bootstrap_after = 0.99, 0.5, 0.25, 1
    assembler = Assembler(game, 0)
    said, guess = [[[0.0, 0.6, 1.0]]], [[[0.2, 0.0, 0.8]]]  # 0.8 to win, as the search carries it
    block = {"value": said, "guess": guess, "outcome": [[1.0]], "ending": [[CHECKMATE]]}
    for ended, bootstrap in ((False, True), (False, False), (True, True)):
        rows = assembler.rows_of(np.array([0]))
        games = {f"{ROWS}{name}": array for name, array in rows.items()}
        assembler = Assembler(game, int(bootstrap), games)
        records = assembler.add(block_of([[0]], ended=[[ended]], **block))
    later = 0.75 * 0.8 + 0.25
    wins = [0.5 * 0.2 + 0.5 * later, later, 1]
    assert records.value_targets[:, 0].tolist() == pytest.approx(wins, abs=1e-3)


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
    game = Chess()
    game.start_shares = {"few-piece": 0.25, "random-plies": 0.5, "standard": 0.25}
    boards = boards_from_state(start_positions(game, 40, torch.Generator().manual_seed(0)))
    assert sum(board.fen() == chess.STARTING_FEN for board in boards) == 10
    assert sum(len(board.piece_map()) <= 9 for board in boards) == 10


def test_sampling_is_early_and_the_searchs_choice_late():
    """With sampling almost off every game from the start follows the search: fewer different
    games.
    """
    sampled, chosen = (
        played(
            positions=600,
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
    names = "player action ended ending outcome".split()
    wide = np.zeros((*zeros.shape, POLICY_WIDTH))
    return {
        **dict.fromkeys(names, zeros),
        "number": np.array(number),
        "position": wide[..., :5].astype(np.int64),
        "policy_actions": wide,
        "policy_weights": wide,
        "value": wide[..., :3],
        **{name: np.array(array) for name, array in arrays.items()},
    }


def test_a_worker_on_the_cpu_starts_no_gpu_driver(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: pytest.fail("asked for GPUs"))
    job = SelfPlay("cpu", TINY.to_dict(), {"candidates": 2, "survivors": 1}, boards=4)
    assert job.describe() == "CPU"


# --- memory that runs out


def job_that_runs_out(monkeypatch, above: int, after: int = 3, **settings) -> SelfPlay:
    """Runs out of memory with more than `above` boards in lockstep, once `after` blocks have been
    played.
    """
    original, blocks = Lockstep.play_ply, []

    def play_ply(lockstep):
        blocks.append(len(lockstep.boards.number))
        if len(lockstep.boards.number) > above and len(blocks) > 8 * after + 4:
            raise RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
            )
        return original(lockstep)

    monkeypatch.setattr(Lockstep, "play_ply", play_ply)
    self_play = {"boards": 8, "max_plies": 24, **settings}
    job = SelfPlay("cpu", TINY.to_dict(), {"search": "policy"}, **self_play)
    job.game.start_shares = FEW_PIECES
    return job


@pytest.mark.parametrize("after", [0, 3])
def test_out_of_memory_halves_the_boards_once_and_goes_on_with_every_game(monkeypatch, after):
    job, parts, counts = job_that_runs_out(monkeypatch, above=4, after=after), [], []

    def collect(games, plies, arrays):
        counts.append((games, plies))
        parts.extend([GameRecords.from_arrays(arrays)] if arrays is not None else [])
        return True

    games: dict[str, np.ndarray] = {}
    for call in (1, 2):
        games = job.play(Share(400, games), 0, collect)
        records = GameRecords.concatenate(parts)
        assert records.num_positions + plies_in([games]) == 400 * call, "none lost, none doubled"
        assert (records.endings > 0).all() and counts[-1][1] == 400
    assert job.boards == 4
    inner = np.setdiff1d(np.arange(records.num_positions), records.offsets[1:] - 1)
    played = torch.from_numpy(records.actions[inner].astype(np.int64))
    after = Chess().pack(Chess().step(states(records, inner), played)).numpy()
    assert np.array_equal(after[:, :4], records.positions[inner + 1, :4]), "no ply is missing"
    (message,) = job.messages
    assert "boards=8: goes on with 4" in message and "Next time set boards=4" in message


def test_out_of_memory_again_is_an_error_that_says_what_to_set(monkeypatch):
    with pytest.raises(
        ConfigError,
        match="out of memory on cpu with boards=4, having halved them once: set boards lower",
    ):
        job_that_runs_out(monkeypatch, above=2).play(Share(400, {}), 0, lambda *_: True)


def test_out_of_memory_while_games_are_cut_ends_the_share(monkeypatch):
    """Rows are lost, so what goes on from there would be wrong."""

    def full(assembler, block):
        raise MemoryError

    job = job_that_runs_out(monkeypatch, above=100)
    monkeypatch.setattr(Assembler, "add", full)
    with pytest.raises(ConfigError, match="memory is full: set boards, workers, replay_cap"):
        job.play(Share(400, {}), 0, lambda *_: True)


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    job = job_that_runs_out(monkeypatch, above=100)
    monkeypatch.setattr(Lockstep, "play_block", lambda lockstep, plies: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        job.play(Share(2, {}), 0, lambda *_: True)
