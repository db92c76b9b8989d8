"""What the tests of ranks share: a small learner, its batches, and a worker that leaves what it
learned in a file. Other processes can import it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from chessnn_colab.budget import Budget
from chessnn_colab.config import TrainConfig
from chessnn_colab.data_parallel import Group, RankLearner, process_group, slice_of
from chessnn_colab.device_probe import batch_of
from chessnn_colab.games.base import start_positions
from chessnn_colab.games.registry import make_game
from chessnn_colab.graphs import Recording, Replays, map_tensors
from chessnn_colab.iteration import concatenate_worker_games
from chessnn_colab.learner import Learner, graphs_of_updates
from chessnn_colab.learner_state import learner_state
from chessnn_colab.learning import Batches
from chessnn_colab.network import build_network, to_arrays
from chessnn_colab.replay import ReplayBuffer
from chessnn_colab.selfplay import SelfPlay
from chessnn_colab.workers.shares import GIVE_UP_SECONDS

CONFIG = TrainConfig(
    game="tictactoe",
    channels=8,
    blocks=1,
    boards=16,
    positions_per_iteration=192,
    batch_size=32,
    device="cpu",
    precision="float32",
    workers=2,
    iterations=1,
)


def new_learner(**changes) -> Learner:
    game = make_game(CONFIG.game)
    network = build_network(CONFIG.network_config(game), "cpu")
    return Learner(network, game, replace(CONFIG, **changes))


def replay_of(games: list[list[dict]]) -> ReplayBuffer:
    """The games that workers played."""
    found = ReplayBuffer(1000)
    found.add(concatenate_worker_games(games, make_game(CONFIG.game)))
    return found


def batches_of(replay: ReplayBuffer, updates: int, size: int = 32) -> Batches:
    return Batches(replay, updates, size, Budget(None, 1), 2e-3, np.random.default_rng(0))


def told(messages: list[str]) -> list[str]:
    """Messages of a learning that lost worker 1, without those of ranks that gloo left waiting.

    Where a connection breaks while gloo writes to it, whoever waits for that write may not be told
    (Pair::signalException in its transport/tcp/pair.cc leaves out such a buffer; LOG.md,
    2026-11-27). The pool replaces that worker, because it does not stop in time.
    """
    left_waiting = f"did not stop within {GIVE_UP_SECONDS:.0f} s"
    return [text for text in messages if text.startswith("worker 1 ") or left_waiting not in text]


def recorded(function, inputs) -> Recording:
    """As a CUDA graph: nothing is computed, and nothing sent, before it is replayed."""
    kept = map_tensors(torch.clone, inputs)
    recording = Recording(kept, None, lambda: None)

    def replay() -> None:
        recording.outputs = function(*kept)

    recording.replay = replay
    return recording


def refused(function, inputs) -> Recording:
    raise RuntimeError("operation not permitted when stream is capturing")


def full(function, inputs) -> Recording:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


RECORDS = {"recorded": recorded, "refused": refused, "full": full}


def learned_by_rank(rank: int, port: int, second: str) -> tuple[bool, np.ndarray]:
    """Whether one of two ranks replays its updates after five of them, and its weights. second: how
    the second one records them.
    """
    alone = new_learner()
    game = alone.game
    with process_group(Group(rank, 2, "127.0.0.1", port, 60.0), torch.device("cpu")):
        learner = RankLearner(alone.network, game, learner_state(alone))
        graphs = graphs_of_updates(learner.device)
        graphs.on, graphs.record = True, RECORDS[second] if rank == 1 else recorded
        learner.replays = Replays(graphs)
        for seed in range(5):
            positions = start_positions(game, 32, torch.Generator().manual_seed(seed))
            learner.update(slice_of(batch_of(game, positions), rank, 2))
        weights = [parameter.detach().flatten().numpy() for parameter in learner.parameters]
        return learner.replays.graphs.on, np.concatenate(weights)


class RankJob(SelfPlay):
    """folder: gets rank-N.npz, the weights of rank N after it has learned."""

    def __init__(self, device: str, folder: str, **settings):
        super().__init__(device, **settings)
        self.folder = Path(folder)

    def learn(self, state, group, slices, on_update):
        result = super().learn(state, group, slices, on_update)
        np.savez(self.folder / f"rank-{group[0]}.npz", **to_arrays(self.network))
        return result
