"""What the tests of ranks share: a small learner, its batches, and a worker that leaves what it
learned in a file. Other processes can import it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from chessnn_colab.budget import Budget
from chessnn_colab.config import TrainConfig
from chessnn_colab.games.registry import make_game
from chessnn_colab.iteration import concatenate_worker_games
from chessnn_colab.learner import Learner
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


class RankJob(SelfPlay):
    """folder: gets rank-N.npz, the weights of rank N after it has learned."""

    def __init__(self, device: str, folder: str, **settings):
        super().__init__(device, **settings)
        self.folder = Path(folder)

    def learn(self, state, group, slices, on_update):
        result = super().learn(state, group, slices, on_update)
        np.savez(self.folder / f"rank-{group[0]}.npz", **to_arrays(self.network))
        return result
