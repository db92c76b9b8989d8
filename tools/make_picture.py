"""Draw the picture of the README and the first screen: what a run learned.

python tools/make_picture.py RUN [PICTURE] [--games N]: on the left a position of the run's last
sample game from the standard start, in the middle how often each channel of the last layer fires on
each square there, on the right the scores of the run's snapshots in matches. Every part of it is
computed from the run. The picture is docs/learned.png unless another is named.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chessnn_colab import spikes
from chessnn_colab.arena.evaluate import evaluate_run, load_network
from chessnn_colab.arena.ladder import spread
from chessnn_colab.arena.players import PLAY_SEARCH
from chessnn_colab.errors import RunError
from chessnn_colab.network import SpikingNetwork
from chessnn_colab.report import Report
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.views.chess_drawing import read_pgn
from chessnn_colab.views.drawing import Drawing
from chessnn_colab.views.style import BLUE, GREEN, INK, PERCENT, RED, draw_line, styled
from chessnn_colab.views.svg_image import draw_board

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 300_000
SHOWN_SNAPSHOTS = 4


@styled
def draw(run: str, games: int) -> Figure:
    """The three panels. Raises what loading the run raises."""
    reports = RunFolder.open(run).reports()
    if not reports:
        raise RunError(f"{run} has no iteration yet: train it first")
    whole = [report for report in reports if "[FEN " not in report.sample_game]
    shown = (whole or reports)[-1]  # from the standard position, where there is such a game
    drawing = chosen_position(shown.sample_game)
    network, _ = load_network(run, device="cpu")
    figure = Figure(figsize=(11, 3.9))
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.25, 1.25))
    draw_board(left, drawing)
    left.set_title(f"A game against itself, iteration {shown.iteration}", size=11, color=INK)
    draw_firing(middle, network, drawing)
    draw_scores(right, run, reports, games)
    return figure


def chosen_position(text: str) -> Drawing:
    """A position with White to move in the middle of the game: White's planes are not turned
    round.
    """
    drawing, _ = read_pgn(text)
    for _ in range(len(drawing.actions) // 2):
        drawing.pop()
    if drawing.turn:
        drawing.pop()
    return drawing


def draw_firing(axis: Axes, network: SpikingNetwork, drawing: Drawing) -> None:
    """A small board for each channel of the last layer: yellow squares fire most."""
    observation = drawing.game.observe(drawing.state())
    counts = spikes.spike_counts(network, observation)["neurons"][:, 0]
    rates = counts.mean(0).numpy() / network.config.levels  # [channels, 8, 8], rank 1 first
    columns = math.ceil(math.sqrt(len(rates)))
    rows = math.ceil(len(rates) / columns)
    mosaic = np.full((rows * 9 - 1, columns * 9 - 1), np.nan)
    for channel, rate in enumerate(rates):
        top, left = 9 * (channel // columns), 9 * (channel % columns)
        mosaic[top : top + 8, left : left + 8] = rate[::-1]
    axis.set_facecolor("none")
    axis.imshow(mosaic, cmap="cividis", vmin=0, vmax=rates.max(), interpolation="nearest")
    axis.set_title(f"Its last {len(rates)} channels, firing there", size=11, color=INK)
    axis.set_xlabel(f"{100 * rates.mean():.0f} % of all possible spikes", color=INK, size=9)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)


def draw_scores(axis: Axes, run: str, reports: list[Report], games: int) -> None:
    """Matches of some snapshots, the untrained network first, over the positions played so far."""
    title = f"Score in {games} games, {PLAY_SEARCH.evaluations} evaluations a move"
    axis.set(title=title, xlabel="thousand positions played (band: 95 %)")
    saved = list(RunFolder.open(run).snapshots())
    chosen = spread(saved, SHOWN_SNAPSHOTS)
    played = {report.iteration: report.total_positions / 1000 for report in reports}
    thousands = [played.get(iteration, 0.0) for iteration in chosen]
    for opponent, colour in zip(("random", "greedy", "minimax"), (BLUE, RED, GREEN)):
        results = evaluate_run(run, [opponent], games, PLAY_SEARCH, chosen, device="cpu")
        if any(result.interrupted for result in results):
            raise KeyboardInterrupt
        for count, result in zip(thousands, results):
            print(f"{1000 * count:,.0f} positions: {result}", flush=True)
        scores = np.array([result.score for result in results])
        draw_line(axis, np.array(thousands), scores, colour, f"against {opponent}", lw=2)
        low, high = zip(*(result.interval for result in results))
        axis.fill_between(thousands, low, high, color=colour, alpha=0.15, lw=0)
    axis.set_ylim(0, 1.03)
    axis.yaxis.set_major_formatter(PERCENT)
    axis.legend(loc="lower right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("picture", nargs="?", type=Path, default=ROOT / "docs" / "learned.png")
    parser.add_argument("--games", type=int, default=32, help="games per match")
    arguments = parser.parse_args()
    draw(arguments.run, arguments.games).savefig(arguments.picture)
    print(
        f"{arguments.picture}: {arguments.picture.stat().st_size:,} bytes (at most {MOST_BYTES:,})"
    )
