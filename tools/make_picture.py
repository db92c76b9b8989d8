"""Draw the picture of the README and the first screen: what a run learned.

python tools/make_picture.py RUN [PICTURE] [--games N]: on the left a position of the run's last sample game from the
standard start, in the middle how often each channel of the last layer fires on each square there, on the right the
scores of the run's snapshots in matches. Every part of it is computed from the run. The picture is docs/learned.png
unless another is named.
"""

import argparse
import math
from pathlib import Path

import chess
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from chessnn_colab import spikes
from chessnn_colab.arena.evaluate import evaluate_run, load_network
from chessnn_colab.arena.players import PLAY_SEARCH
from chessnn_colab.games.chess.notation import state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.views.ink import BOARD_DARK, BOARD_LIGHT, HAIRLINE, INK, QUIET
from chessnn_colab.views.played import from_pgn

ROOT = Path(__file__).resolve().parent.parent
PIECE = "#222222"
MOST_BYTES = 300_000
SHOWN_SNAPSHOTS = 4
LOOKS_AHEAD = PLAY_SEARCH  # as in matches
OPPONENTS = {"random": "#0072B2", "greedy": "#D55E00", "minimax": "#009E73"}


def draw(run: str, games: int) -> Figure:
    """The three panels. Raises what loading the run raises."""
    reports = RunFolder.open(run).read_reports()
    whole = [report for report in reports if "[FEN " not in report["sample_game"]]  # from the standard position
    shown = (whole or reports)[-1]
    board = chosen_position(shown["sample_game"])
    network, _ = load_network(run, device="cpu")
    figure = Figure(figsize=(11, 3.9), dpi=100, layout="constrained", facecolor="none")  # for light and dark pages
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.25, 1.25))
    draw_board(left, board)
    left.set_title(f"A game against itself, iteration {shown['iteration']}", size=11, color=INK)
    draw_firing(middle, network, board)
    draw_scores(right, run, reports, games)
    return figure


def chosen_position(pgn: str) -> chess.Board:
    """A position with White to move in the middle of the game: White's planes are not turned round."""
    board = from_pgn(pgn).drawing.board.copy()
    for _ in range(len(board.move_stack) // 2):
        board.pop()
    if board.turn == chess.BLACK:
        board.pop()
    return board


def draw_board(axis: Axes, board: chess.Board) -> None:
    """The pieces as DejaVu Sans, which matplotlib brings, has them."""
    squares = np.add.outer(np.arange(8), np.arange(8)) % 2
    axis.imshow(squares, cmap=ListedColormap([BOARD_LIGHT, BOARD_DARK]), extent=(0, 8, 0, 8))
    for square, piece in board.piece_map().items():
        place = (chess.square_file(square) + 0.5, chess.square_rank(square) + 0.45)
        solid = chess.Piece(piece.piece_type, chess.BLACK).unicode_symbol()
        axis.text(*place, solid, size=21, ha="center", va="center", color="white" if piece.color else PIECE)
        axis.text(*place, piece.unicode_symbol(), size=21, ha="center", va="center", color=PIECE)
    axis.set_axis_off()


def draw_firing(axis: Axes, network, board: chess.Board) -> None:
    """A small board for each channel of the last layer: yellow squares fire most."""
    game = Chess()
    layer = spikes.probe(network, game.observe(state_from_boards([board], game)))["neurons"]
    rates = layer[:, 0].mean(0).numpy()  # [channels, 8, 8], rank 1 first
    columns = math.ceil(math.sqrt(len(rates)))
    rows = math.ceil(len(rates) / columns)
    mosaic = np.full((rows * 9 - 1, columns * 9 - 1), np.nan)
    for channel, rate in enumerate(rates):
        top, left = 9 * (channel // columns), 9 * (channel % columns)
        mosaic[top : top + 8, left : left + 8] = rate[::-1]
    axis.set_facecolor("none")
    axis.imshow(mosaic, cmap="cividis", vmin=0, vmax=rates.max(), interpolation="nearest")
    axis.set_title(f"Its last {len(rates)} channels, firing there", size=11, color=INK)
    axis.set_xlabel(f"{100 * rates.mean():.0f} % of all possible spikes", color=QUIET, size=9)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)


def draw_scores(axis: Axes, run: str, reports: list[dict], games: int) -> None:
    """Matches of some snapshots, the untrained network first, over the positions played so far."""
    saved = [int(path.stem) for path in RunFolder.open(run).snapshots()]
    chosen = [saved[round(i)] for i in np.linspace(0, len(saved) - 1, min(SHOWN_SNAPSHOTS, len(saved)))]
    thousands = {0: 0.0, **{report["iteration"]: report["total_positions"] / 1000 for report in reports}}
    for opponent, colour in OPPONENTS.items():
        results = [evaluate_run(run, opponent, games, LOOKS_AHEAD, iteration, device="cpu") for iteration in chosen]
        for iteration, result in zip(chosen, results, strict=True):
            print(f"{1000 * thousands[iteration]:,.0f} positions: {result}", flush=True)
        scores, bounds = [result.score for result in results], np.array([result.interval for result in results]).T
        played = [thousands[iteration] for iteration in chosen]
        axis.plot(played, scores, color=colour, marker="o", lw=2, label=f"against {opponent}")
        axis.fill_between(played, *bounds, color=colour, alpha=0.15, lw=0)
    axis.patch.set_alpha(0)
    axis.tick_params(colors=INK)
    axis.legend(loc="lower right", frameon=False, labelcolor=INK)
    axis.set_ylim(0, 1.03)
    axis.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axis.set_title(f"Score in {games} games, {LOOKS_AHEAD.evaluations} evaluations a move", size=11, color=INK)
    axis.set_xlabel("thousand positions played (band: 95 %)", color=QUIET, size=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["bottom", "left"]].set_color(QUIET)
    axis.grid(axis="y", color=HAIRLINE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("picture", nargs="?", type=Path, default=ROOT / "docs" / "learned.png")
    parser.add_argument("--games", type=int, default=32, help="games per match")
    arguments = parser.parse_args()
    draw(arguments.run, arguments.games).savefig(arguments.picture)
    print(f"{arguments.picture}: {arguments.picture.stat().st_size:,} bytes (at most {MOST_BYTES:,})")
