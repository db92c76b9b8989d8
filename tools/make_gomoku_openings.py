"""Make chessnn_colab/arena/gomoku/data/openings.txt: balanced openings for Gomoku on boards of
every size.

    python tools/make_gomoku_openings.py --count 50 --seed 0

Random stones around the centre, three to six of them, are judged on 9x9 and on 15x15, with five or
more and with exactly five. Alpha-beta of depth 4 must see no clear advantage for whoever is to
move, and of games that alpha-beta of depth 2 plays against itself, with chance, either side must
win about as many.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from chessnn_colab.arena.gomoku.alphabeta import TAKEN, AlphaBetaPlayer
from chessnn_colab.arena.gomoku.openings import centred
from chessnn_colab.games.base import finished, select
from chessnn_colab.games.gomoku.rules import Gomoku
from chessnn_colab.games.registry import make_game

GAMES = ("gomoku:9", "gomoku", "gomoku:9:exact", "gomoku:15:exact")
REACH = 2  # cells from the centre: the openings fit on a board of 5x5
CLEAR = 200.0  # points of alpha-beta's evaluation: about three open threes in the making
PLAYOUTS = 16  # per game and opening
LEAST_SHARE = 0.35  # of the points that either side must get
CHANCE = 40.0  # points by which a move may look better than it is in a playout


def random_line(rng: random.Random) -> str:
    cells = [
        (right, down) for right in range(-REACH, REACH + 1) for down in range(-REACH, REACH + 1)
    ]
    return " ".join(f"{right},{down}" for right, down in rng.sample(cells, rng.randint(3, 6)))


def canonical(line: str) -> frozenset[tuple[int, int, int]]:
    """The same for a line, its images in a mirror or turned, and its stones in another order."""
    stones = [
        (*map(int, stone.split(",")), number % 2) for number, stone in enumerate(line.split())
    ]
    images = []
    for flip in (1, -1):
        for turns in range(4):
            image = [(flip * right, down, colour) for right, down, colour in stones]
            for _ in range(turns):
                image = [(-down, right, colour) for right, down, colour in image]
            images.append(sorted(image))
    return frozenset(min(images))


def quiet(game: Gomoku, line: str) -> bool:
    """Whether alpha-beta of depth 4 sees no clear advantage."""
    state = game.after([centred(line, game.size)])
    return abs(float(AlphaBetaPlayer(game, 4).scores(state).max())) < CLEAR


def share_of_black(game: Gomoku, lines: Sequence[str], generator: torch.Generator) -> list[float]:
    """The points per game that Black gets from each line when alpha-beta of depth 2 plays both
    sides with chance.
    """
    player = AlphaBetaPlayer(game, 2)
    state = game.after([centred(line, game.size) for line in lines for _ in range(PLAYOUTS)])
    points = torch.full((len(state.ending),), 0.5)
    rows = torch.arange(len(points))
    while len(rows):
        scores = player.scores(state)
        gumbel = -torch.empty_like(scores).exponential_(generator=generator).log()
        state = game.step(
            state, torch.where(scores > TAKEN / 2, scores + CHANCE * gumbel, TAKEN).argmax(1)
        )
        over = finished(state)
        points[rows[over]] = (1 + state.rewards[over, 0]) / 2
        state = select(state, ~over)
        rows = rows[~over]
    return points.view(-1, PLAYOUTS).mean(1).tolist()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    games = [make_game(name) for name in GAMES]
    path = (
        Path(__file__).parent.parent
        / "chessnn_colab"
        / "arena"
        / "gomoku"
        / "data"
        / "openings.txt"
    )
    seen = set()
    found = []
    tried = 0
    while len(found) < options.count:
        lines = []
        while len(lines) < 16:
            line = random_line(rng)
            tried += 1
            if canonical(line) not in seen:
                seen.add(canonical(line))
                lines.append(line)
        for game in games:
            lines = [line for line in lines if quiet(game, line)]
        for game in games:
            shares = share_of_black(game, lines, generator) if lines else []
            lines = [
                line
                for line, share in zip(lines, shares)
                if LEAST_SHARE <= share <= 1 - LEAST_SHARE
            ]
        found += lines
        path.write_text("".join(f"{line}\n" for line in found[: options.count]), encoding="utf-8")
        print(f"{len(found)} of {tried}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
