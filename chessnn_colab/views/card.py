"""A card of a run's result, as one picture to keep: its strength, its spikes, their energy, its
best game.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import RunError
from ..games.base import random_plies
from ..games.registry import make_game
from ..report import Report, strength_points
from ..runs.files import AnyPath, refused, write_atomically
from ..runs.folder import RunFolder
from ..runs.networks import load_network, run_game
from ..spikes import estimate_energy
from ..text import duration
from .columns import strength_sentences
from .curves import draw_firing, draw_strength
from .played import played_game
from .plots import ARITHMETIC, draw_designs
from .reference import reference_for
from .story import headline
from .style import figure_png, styled
from .svg_image import draw_board

PAPER = "#FFFFFF"  # of the file; in a notebook the page shines through
TITLE_WIDTH = 44  # letters above the board
ENERGY_POSITIONS = 64  # over which the energy of an evaluation is averaged


@styled
def result_card(run: AnyPath, png: AnyPath | None = None) -> Figure:
    """The card of the run in this folder, for light and dark pages; also written to the file `png`,
    if given, on white, 1,600 pixels wide.

    Raises RunError when there is no run or no finished iteration, and when the file cannot be
    written.
    """
    folder = RunFolder.open(run)
    reports = folder.reports()
    if not reports:
        raise RunError(
            f"{folder.path} has no result yet: expected one finished iteration, train for a while "
            "first"
        )
    figure = Figure(figsize=(8.0, 4.5))
    title = headline(folder.config, reports)
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, fontweight="bold")
    points = strength_points(reports)
    newest = "\n".join(strength_sentences(points)[-2:])
    figure.supxlabel(newest, x=0.02, ha="left", fontsize=8)
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2), height_ratios=(3, 2))
    strength = figure.add_subplot(grid[0, 0])
    draw_strength(strength, reports, points, reference_for(folder.config), line=0.1)
    below = grid[1, 0].subgridspec(1, 2)
    draw_firing(figure.add_subplot(below[0]), reports)
    _draw_energy(figure.add_subplot(below[1]), str(folder.path))
    _draw_game(figure.add_subplot(grid[:, 1]), reports)
    if png is not None:
        with refused(f"cannot write the card {png}"):
            write_atomically(Path(png), figure_png(figure, facecolor=PAPER))
    return figure


def _draw_energy(axis: Axes, run: str) -> None:
    """The arithmetic of one evaluation, by spikes and by its dense twins, a few random moves into a
    game.
    """
    network, _ = load_network(run, device="cpu")
    game = make_game(run_game(run))
    energy = estimate_energy(network, game.observe(energy_positions(game)))
    joules = draw_designs(axis, energy.designs[0 if energy.spiking else 2 : 4], ARITHMETIC)
    axis.set_title("Energy, arithmetic alone", fontsize=8)
    axis.set_xticks([])
    axis.set_xlim(0, 1.6 * max(joules))


def energy_positions(game: Any) -> Any:
    """ENERGY_POSITIONS states of `game`, each after a few random moves, to average the energy of an
    evaluation over.
    """
    return random_plies(game, ENERGY_POSITIONS, 6, torch.Generator().manual_seed(0))


def _draw_game(axis: Axes, reports: list[Report]) -> None:
    """The end of the best sample game; nothing where no game has ended yet."""
    axis.set_axis_off()
    what, best = best_moment(reports)
    if not best.sample_game:
        return
    played = played_game(best.sample_game)
    draw_board(axis, played.drawing)
    plies = len(played.drawing.actions)
    words = f"{what}: after {duration(best.seconds)} of training, {plies} plies. {played.end}"
    axis.set_title(fill(words, TITLE_WIDTH), loc="left", fontsize=8)


def best_moment(reports: Sequence[Report]) -> tuple[str, Report]:
    """The first report whose sample game has a winner, and what that was: "Its first checkmate";
    where none has one, the newest with a game.
    """
    with_game = [report for report in reports if report.sample_game]
    for report in with_game:
        played = played_game(report.sample_game)
        if " won" in played.end:
            return f"Its first {played.end.split(':')[0].lower()}", report
    return "A game", (with_game or reports)[-1]
