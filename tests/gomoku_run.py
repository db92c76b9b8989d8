"""A run folder with snapshots of tiny Gomoku networks, and lines that lead to given stones."""

from dataclasses import replace
from pathlib import Path

from chessnn_colab.games.registry import rules

from .small_run import CONFIG, make_run


def make_gomoku_run(
    path: Path, iterations: tuple[int, ...] = (0, 1), game: str = "gomoku:9"
) -> str:
    size = rules(game).size
    return make_run(
        path, iterations, game, replace(CONFIG, planes=5, height=size, width=size, actions=size**2)
    )
