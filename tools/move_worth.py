"""How well networks tell the moves of a position apart, beside Stockfish.

    python tools/move_worth.py RUN RUN@SNAPSHOT ... --stockfish stockfish [--positions 500]

The positions are of the play of the network that comes with the package. Stockfish says what each
legal move is worth, from 0 to 1, by NODES nodes after it. A search asks the network the same: it
compares the positions after the moves of one position. So the correlation is taken within
positions. `loses` is what the best move by the value, by the policy, or by both, is worth less than
the best by Stockfish, in the mean. `noise` is how far bfloat16 moves the values, beside how far
they differ within a position.

A network that does better here is not always stronger in matches (LOG.md, 2026-11-25).
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import chess
import chess.engine
import torch
from torch import Tensor

from chessnn_colab.chances import quantities
from chessnn_colab.games.base import finished, select
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import move_from_action
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.runs.networks import load_network, shipped_networks, split_run
from targets import own_positions

NODES = 3000
ROWS = 1024  # positions that a network sees together
VALUE_WEIGHT = 8  # nats between the worst and the best value of a position, as in a search


def worth_of(board: chess.Board, engine: chess.engine.SimpleEngine) -> float:
    """What Stockfish thinks the position is worth to the player who has just moved."""
    outcome = board.outcome()
    if outcome:
        return 0.5 if outcome.winner is None else 1.0
    found = engine.analyse(board, chess.engine.Limit(nodes=NODES))
    centipawns = found["score"].pov(not board.turn).score(mate_score=3000)  # pyright: ignore[reportTypedDictNotRequiredAccess]
    return 1 / (1 + 10 ** (-max(-3000, min(3000, centipawns)) / 400))


class Moves:
    """All legal moves of some positions, and what they are worth."""

    def __init__(self, game: Chess, state: Any, worth: Callable[[chess.Board], float]):
        """worth: of a position, to the player who has just moved, from 0 to 1."""
        self.game, self.state = game, state
        self.rows, self.actions = game.legal_actions(state)
        self.count = int(self.rows[-1]) + 1
        self.after = game.step(select(state, self.rows), self.actions)
        self.worth = torch.tensor([worth(board) for board in self._boards()])

    def _boards(self) -> Iterator[chess.Board]:
        boards = boards_from_state(self.state)
        for row, action in zip(self.rows.tolist(), self.actions.tolist()):
            board = boards[row].copy()
            board.push(move_from_action(action, board))
            yield board

    def extreme(self, x: Tensor, which: str) -> Tensor:
        """The largest ("amax") or smallest ("amin") x [moves] of each position."""
        start = -math.inf if which == "amax" else math.inf
        return torch.full((self.count,), start).scatter_reduce(0, self.rows, x, which)

    def within(self, x: Tensor) -> Tensor:
        """x [moves] less its mean in each position."""
        sums = torch.zeros(self.count).index_add(0, self.rows, x)
        return x - (sums / self.rows.bincount())[self.rows]

    def correlation(self, x: Tensor) -> float:
        """Of x [moves] and the worth, within positions."""
        one, other = self.within(x), self.within(self.worth)
        return float((one * other).sum() / (one.square().sum() * other.square().sum()).sqrt())

    def loses(self, score: Tensor) -> float:
        """What the move with the best score is worth less than the best."""
        best = score >= self.extreme(score, "amax")[self.rows]
        chosen = torch.where(best, self.worth, -math.inf)
        return float((self.extreme(self.worth, "amax") - self.extreme(chosen, "amax")).mean())

    def values(self, network: SpikingNetwork) -> Tensor:
        """float32 [moves]: what a network expects after each move, for the player who moved. A move
        that ends the game is worth what the rules say, as in a search.
        """
        parts = torch.arange(len(self.rows)).split(ROWS)
        planes = (self.game.observe(select(self.after, part)) for part in parts)
        found = torch.cat([quantities(network.features_and_value(each)[1])[0] for each in planes])
        mover = self.state.current_player[self.rows].unsqueeze(1)
        result = self.after.rewards.gather(1, mover).squeeze(1)
        return torch.where(finished(self.after), result, -found)

    @torch.inference_mode()
    def judged(self, network: SpikingNetwork) -> dict[str, float]:
        """The figures of the module's docstring."""
        actor = actor_copy(network)
        values, rough = self.values(actor), self.values(actor_copy(network, torch.bfloat16))
        rates, _ = actor.features_and_value(self.game.observe(self.state))
        logits = actor.prior_logits_at(rates, self.rows, self.actions)
        low, high = (self.extreme(values, which)[self.rows] for which in ("amin", "amax"))
        rescaled = (values - low) / (high - low).clamp(min=1e-8)
        return {
            "correlation": self.correlation(values),
            "value loses": self.loses(values),
            "policy loses": self.loses(logits),
            "both lose": self.loses(logits + VALUE_WEIGHT * rescaled),
            "spread": float(self.within(values).std()),
            "noise": float(self.within(values - rough).std()),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--stockfish", required=True)
    parser.add_argument("--positions", type=int, default=500)
    options = parser.parse_args()
    if not shutil.which(options.stockfish):
        parser.error(f"--stockfish {options.stockfish}: expected a UCI engine that can be run")
    judged = {run: load_network(*split_run(run), device="cpu")[0] for run in options.runs}
    game = Chess()
    state = own_positions(game, list(shipped_networks().values())[-1], options.positions)
    with closing(chess.engine.SimpleEngine.popen_uci(options.stockfish)) as engine:
        moves = Moves(game, state, lambda board: worth_of(board, engine))
    for run, network in judged.items():
        print(run, {name: round(figure, 4) for name, figure in moves.judged(network).items()})


if __name__ == "__main__":
    main()
