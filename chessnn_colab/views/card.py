"""A card of a run's result, as one picture to keep: its strength, its spikes, their energy, its best game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chess
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ..arena.evaluate import load_network
from ..errors import RunError
from ..files import reason, write_atomically
from ..games.chess.pgn import games_from_pgn
from ..games.registry import make_game
from ..report import Report, strength_points
from ..runs.folder import RunFolder
from ..spikes import estimate_energy
from .chess_drawing import ending
from .curves import draw_firing, draw_strength
from .ink import BLUE, BOARD_DARK, BOARD_LAST, BOARD_LIGHT, INK, ORANGE, dress, figure_png, new_figure, percent
from .story import headline, reference_for, strength_sentences

PAPER, PIECE = "#FFFFFF", "#1B1F24"
SYMBOLS = dict(zip("kqrbnp", "♚♛♜♝♞♟"))
ENERGY_POSITIONS = 64  # over which the energy of an evaluation is averaged


def result_card(run: str | Path, png: str | Path | None = None) -> Figure:
    """The card of the run in this folder; also written to the file `png`, if given, 1,600 pixels wide.

    Raises RunError when there is no run or no finished iteration, and when the file cannot be written.
    """
    folder = RunFolder.open(run)
    reports = [Report.from_dict(values) for values in folder.read_reports()]
    if not reports:
        raise RunError(f"{folder.path} has no result yet: expected one finished iteration, train for a while first")
    figure = new_figure(8.0, 4.5)
    figure.set_facecolor(PAPER)
    figure.suptitle(headline(folder.config, reports), x=0.02, ha="left", fontsize=12, fontweight="bold", color=PIECE)
    points = strength_points(reports)
    last = next(iter(strength_sentences(points)), "")
    figure.supxlabel(last, x=0.02, ha="left", fontsize=8, color=INK)
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    draw_strength(figure.add_subplot(grid[0, 0]), reports, points, reference_for(folder.config))
    below = grid[1, 0].subgridspec(1, 2)
    draw_firing(figure.add_subplot(below[0]), reports)
    _draw_energy(figure.add_subplot(below[1]), str(folder.path))
    _draw_game(figure.add_subplot(grid[:, 1]), reports)
    if png is not None:
        try:
            write_atomically(Path(png), figure_png(figure))
        except OSError as error:
            raise RunError(f"cannot write the card {png}: {reason(error)}") from error
    return figure


def _draw_energy(axis: Axes, run: str) -> None:
    """The arithmetic of one evaluation, by spikes and by the same network with ReLU, a few random moves into a game."""
    network, _ = load_network(run, device="cpu")
    game = make_game(str(RunFolder.open(run).config.get("game", "chess")))
    energy = estimate_energy(network, game.observe(_random_positions(game)))
    values = [energy.spiking_nanojoules / 1000, energy.dense_nanojoules / 1000]
    dress(axis, None, None, grid=False)
    axis.barh([1, 0], values, color=[BLUE, ORANGE], height=0.55)
    for row, value in zip((1, 0), values):
        axis.text(value, row, f" {value:.3g} µJ", va="center", fontsize=7.5, color=INK)
    axis.set_yticks([1, 0], ["spikes", "ReLU"], fontsize=7.5)
    axis.set_xticks([])
    axis.set_xlim(0, 1.5 * max(values))
    title = f"Energy: {percent(values[0] / values[1])} (arithmetic alone)"
    axis.set_title(title, loc="left", fontsize=7.5, color=INK, fontweight="bold", pad=3)


def _random_positions(game: Any) -> Any:
    """ENERGY_POSITIONS states, each after a few random moves."""
    generator, state = torch.Generator().manual_seed(0), game.init(ENERGY_POSITIONS)
    for _ in range(6):
        mask = game.legal_action_mask(state)
        noise = torch.rand(mask.shape, generator=generator)
        state = game.step(state, torch.where(mask, noise, -1.0).argmax(1))
    return state


def _draw_game(axis: Axes, reports: list[Report]) -> None:
    """The end of the latest sample game: a board for chess, else its text."""
    axis.set_axis_off()
    newest = next((report for report in reversed(reports) if report.sample_game), reports[-1])
    if not newest.sample_game.startswith("["):
        axis.text(0, 1, newest.sample_game[:900], va="top", fontsize=7, family="monospace", color=PIECE)
        return
    last = games_from_pgn(newest.sample_game, len(newest.sample_game))[0].end()
    axis.set_aspect("equal")
    axis.set_xlim(0, 8)
    axis.set_ylim(0, 8)
    board, marked = last.board(), (last.move.from_square, last.move.to_square) if last.move else ()
    for square in chess.SQUARES:
        file, rank = chess.square_file(square), chess.square_rank(square)
        colour = BOARD_LAST if square in marked else BOARD_LIGHT if (file + rank) % 2 else BOARD_DARK
        axis.fill((file, file + 1, file + 1, file), (rank, rank, rank + 1, rank + 1), color=colour, lw=0)
        piece = board.piece_at(square)
        if piece is not None:
            symbol, white = SYMBOLS[piece.symbol().lower()], piece.color == chess.WHITE
            text = axis.text(
                file + 0.5, rank + 0.46, symbol, ha="center", va="center", fontsize=17, family="DejaVu Sans"
            )
            text.set_color(PAPER if white else PIECE)
            text.set_path_effects([withStroke(linewidth=1.4, foreground=PIECE)] if white else [])
    title = f"Iteration {newest.iteration}: {ending(board) or 'not finished'} {last.ply()} plies"
    axis.set_title(title, loc="left", fontsize=8, color=INK)
