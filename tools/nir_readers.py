"""Do other simulators play a run's NIR file as the package plays the network?

python tools/nir_readers.py RUN --positions 1000

For each simulator that is installed (pip install nirtorch snntorch norse; SpikingJelly is): the
share of chess positions, from random games, half of them from starts of a few pieces, in which the
likeliest legal move is the package's, and by how much logits differ in the mean. Norse's reader runs a
node before all that it reads has run, so it takes files of one level alone. The exit code is 1
where a simulator has less than 99 % of the moves.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from chessnn_colab.errors import ChessnnError, RunError
from chessnn_colab.export import export_network
from chessnn_colab.games.base import concatenate, finished, random_actions
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.network import SpikingNetwork, actor_copy
from chessnn_colab.runs.networks import load_network, run_game

PLIES = 60  # of each random game
BATCH = 250  # positions at a time
LEAST = 0.99  # of the moves that are to be the same


def open_in_spikingjelly(path: Path) -> nn.Module:
    from spikingjelly.activation_based.nir_exchange import import_from_nir

    return import_from_nir(path)


def open_in_snntorch(path: Path) -> nn.Module:
    import nir
    from snntorch.import_nir import import_from_nir

    return import_from_nir(nir.read(path))


def open_in_norse(path: Path) -> nn.Module:
    import nir
    import norse.torch

    return norse.torch.from_nir(nir.read(path), dt=1e-4)


READERS: dict[str, Callable[[Path], nn.Module]] = {
    "spikingjelly": open_in_spikingjelly,
    "snntorch": open_in_snntorch,
    "norse": open_in_norse,
}


def open_with(simulator: str, path: Path) -> nn.Module:
    """The simulator's own module for the file; what it prints and warns of on the way is dropped."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return READERS[simulator](path)


def answers(simulator: nn.Module, observation: Tensor, steps: int) -> Tensor:
    """float32 [B, outputs]: the mean over the steps of what a simulator's module gives on."""
    for module in simulator.modules():
        reset = getattr(module, "reset_mem", None)
        if reset is not None:  # snnTorch keeps membranes in its modules
            reset()
    state, total = None, torch.zeros(())
    with torch.no_grad():
        for _ in range(steps):
            output, state = simulator(observation, state)
            total = total + output.flatten(1)
    return total / steps


def compare(
    network: SpikingNetwork, simulator: nn.Module, observation: Tensor, legal: Tensor
) -> tuple[float, float]:
    """The share of positions with the same likeliest legal move, and the mean difference of the
    logits.
    """
    actor, same, apart = actor_copy(network), 0, 0.0
    for planes, mask in zip(observation.split(BATCH), legal.split(BATCH)):
        ours = actor(planes).prior_logits
        theirs = answers(simulator, planes, network.config.steps)
        moves = [each.masked_fill(~mask, -torch.inf).argmax(1) for each in (ours, theirs)]
        same += int((moves[0] == moves[1]).sum())
        apart += float((ours - theirs).abs().mean(1).sum())
    return same / len(observation), apart / len(observation)


def sample(count: int) -> tuple[Tensor, Tensor]:
    """float32 [count, 27, 8, 8] and bool [count, actions]: positions of random games of chess, and
    their legal moves.
    """
    game, generator = Chess(), torch.Generator().manual_seed(0)
    positions, legal = [], []
    while sum(map(len, positions)) < count:
        starts = [game.starts(16, kind, generator) for kind in ("standard", "few-piece")]
        state = concatenate(starts)
        for _ in range(PLIES):
            going, mask = ~finished(state), game.legal_action_mask(state)
            positions.append(game.observe(state)[going])
            legal.append(mask[going])
            state = game.step(state, random_actions(mask, generator))
    order = torch.randperm(sum(map(len, positions)), generator=generator)[:count]
    return torch.cat(positions)[order], torch.cat(legal)[order]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run folder, or one file of a network")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--positions", type=int, default=1_000)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            if (name := run_game(options.run)) != "chess":
                raise RunError(f"{options.run} plays {name}: expected a network of chess")
            network, _ = load_network(options.run, options.snapshot, "cpu")
            path = export_network(options.run, f"{folder}/network.nir", options.snapshot)
        except ChessnnError as error:
            print(f"nir_readers: {error}", file=sys.stderr)
            return 2
        positions = sample(options.positions)
        for name in READERS:
            if find_spec(name) is None:
                print(f"{name}: not installed")
                continue
            try:
                share, apart = compare(network, open_with(name, path), *positions)
            except Exception as error:  # whatever another project's reader raises
                print(f"{name}: does not run it ({type(error).__name__}: {error})")
                continue
            failed |= share < LEAST
            print(f"{name}: the same move in {share:.1%} of {options.positions:,} positions")
            print(f"{name}: logits differ by {apart:.2g} in the mean")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
