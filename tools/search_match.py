"""Which search makes more of its evaluations: a network against itself, tree against two rungs,
equally many per move.

python tools/search_match.py RUN --games 256 --evaluations 12,36,72
"""

from __future__ import annotations

import argparse
import sys

from chessnn_colab.arena.parallel import play_match
from chessnn_colab.arena.players import NetworkPlayer
from chessnn_colab.arena.registry import match_game
from chessnn_colab.runs.networks import load_network, run_game
from chessnn_colab.search import SearchConfig


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--evaluations", default="12,36,72", help="per move, without the root's")
    parser.add_argument("--tree-scale", type=float, default=0.15)
    parser.add_argument("--two-rung-scale", type=float, default=0.3)
    options = parser.parse_args()
    network, _ = load_network(options.run, options.snapshot)
    game = match_game(run_game(options.run), next(network.parameters()).device)
    for evaluations in map(int, options.evaluations.split(",")):
        tree = SearchConfig(
            search="tree", num_simulations=evaluations, value_scale=options.tree_scale
        )
        survivors = evaluations // 3
        rungs = SearchConfig(
            candidates=evaluations - survivors,
            survivors=survivors,
            value_scale=options.two_rung_scale,
        )
        players = (
            NetworkPlayer(game, network, tree, name=f"tree {evaluations}"),
            NetworkPlayer(
                game, network, rungs, name=f"two-rung {evaluations - survivors}+{survivors}"
            ),
        )
        print(play_match(game, *players, options.games), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
