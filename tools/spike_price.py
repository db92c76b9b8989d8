"""What a price for spikes costs in strength: train with several prices, measure, draw the curve.

    taskset -c 0 python tools/spike_price.py FOLDER --minutes 5    train for as long, and measure
    python tools/spike_price.py OTHER --seeds 0 1 2                the same from as many positions
    python tools/spike_price.py FOLDER --draw                      write docs/spike_price.json and .png

Each network is trained and measured once, from scratch. With minutes it learns with one worker and
plays minimax as any run does; let nothing else use that core. Otherwise every network learns from
as many positions, on one thread, so a busy machine changes nothing. There the learning rate falls
as in a run of minutes, by the share of iterations that are done, and the network plays two of those
that come with the package, without what the rules prove. Neither has chance, so each of 64
openings is played once with both colours.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from chessnn_colab import training
from chessnn_colab.arena.evaluate import evaluate_run
from chessnn_colab.arena.players import play_search
from chessnn_colab.arena.result import student_95
from chessnn_colab.budget import Budget
from chessnn_colab.config import TrainConfig
from chessnn_colab.report import Report
from chessnn_colab.runs.networks import load_network, shipped_files
from chessnn_colab.spikes import estimate_energy, firing_rates
from chessnn_colab.views.inside.sample import sample_positions
from chessnn_colab.views.style import BLUE, DASHED, INK, ORANGE, figure_png, styled

DOCS = Path(__file__).parent.parent / "docs"
ITERATIONS = 14
POSITIONS = 6400  # of an iteration: 89,600 in all
PRICES = (0.0, 0.03, 0.1, 0.3, 1.0)
RELU = "relu"
# Other neurons, without a price: the twin without spikes, and one spike in each of four steps.
TWINS: dict[str, dict[str, Any]] = {
    RELU: {"activation": "relu"},
    "lif": {"levels": 1, "steps": 4},
    "lif-hard": {"levels": 1, "steps": 4, "reset": "hard"},
}
OPPONENTS = {"early": 128, "middle": 128}  # games; networks that come with the package
EVALUATIONS = 16


class ByIterations(Budget):
    """A budget whose learning rate falls by the share of iterations, as another's by that of time."""

    def learning_rate_factor(self) -> float:
        """1 for the first half of the iterations, then falling to 0.05."""
        share = (self.done + 0.5) / ITERATIONS
        return min(1.0, max(0.05, 1 - 1.9 * (share - 0.5)))


def settings(arm: str, seed: int, run: Path, minutes: float) -> TrainConfig:
    """The run of an arm: a price, or the twin. minutes: 0 is ITERATIONS."""
    base = TrainConfig(run=str(run), seed=seed, workers=1, device="cpu", preset="cpu")
    if minutes:
        base = replace(base, minutes=minutes)
    else:
        base = replace(
            base,
            iterations=ITERATIONS,
            positions_per_iteration=POSITIONS,
            bootstrap_after=40_000,
            pool="inline",
            measure_strength=False,
        )
    if arm in TWINS:
        return replace(base, spike_penalty=0.0, **TWINS[arm])
    return replace(base, spike_penalty=float(arm))


def trained(config: TrainConfig) -> Iterator[Report]:
    """The reports of a whole run. Raises KeyboardInterrupt for one that was ended early."""
    if (yield from training.train(config)):
        raise KeyboardInterrupt


def measured(arm: str, seed: int, folder: Path, minutes: float) -> dict[str, Any]:
    """Train one network and measure it. Raises KeyboardInterrupt where either was ended early."""
    run = folder / f"{arm}-{seed}"
    shutil.rmtree(run, ignore_errors=True)
    reports = list(trained(settings(arm, seed, run, minutes)))
    network, _ = load_network(str(run), None, "cpu")
    positions = sample_positions(500)
    found: dict[str, Any] = {
        "arm": arm,
        "seed": seed,
        "minutes": minutes,
        "positions": reports[-1].total_positions,
        "policy_loss": reports[-1].policy_loss,
        "value_loss": reports[-1].value_loss,
        "scores": {},
    }
    if arm != RELU:
        rates = firing_rates(network, positions)
        found["firing"] = statistics.mean(rates.values())
        designs = estimate_energy(network, positions).designs
        found["microjoules"] = {design.name: design.nanojoules / 1000 for design in designs}
    _, early, middle, _ = map(str, shipped_files())
    opponents = {"minimax": 400} if minutes else OPPONENTS
    search = play_search()
    if not minutes:
        search = play_search(num_simulations=EVALUATIONS - 1, solve="off")
    for name, games in opponents.items():
        opponent = {"early": early, "middle": middle}.get(name, name)
        (result,) = evaluate_run(str(run), [opponent], games, search, device="cpu")
        if result.interrupted:
            raise KeyboardInterrupt
        found["scores"][name] = result.score
    points = sum(found["scores"][name] * games for name, games in opponents.items())
    found["score"] = points / sum(opponents.values())
    return found


def measure_all(seeds: list[int], arms: list[str], folder: Path, minutes: float) -> None:
    """Every arm of one seed, then the next seed. What was measured before is kept."""
    if not minutes:
        torch.set_num_threads(1)
        training.Budget = ByIterations  # pyright: ignore[reportPrivateImportUsage]
    for seed in seeds:
        for arm in arms:
            file = folder / f"{arm}-{seed}.json"
            if not file.exists():
                file.write_text(json.dumps(measured(arm, seed, folder, minutes)), encoding="utf-8")
                print(file.read_text(encoding="utf-8"), flush=True)


def collected(folder: Path) -> list[dict[str, Any]]:
    """What was measured, by arm and seed."""
    files = sorted(folder.glob("*-*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return sorted(found, key=lambda row: (row["arm"] in TWINS, row["arm"], row["seed"]))


def half_interval(rows: list[dict[str, Any]]) -> float:
    """Half of the 95 % interval of an arm's mean. How far seeds differ is taken from all arms."""
    arms = [[row["score"] for row in rows if row["arm"] == arm] for arm in names(rows)]
    freedom = sum(len(scores) - 1 for scores in arms)
    if not freedom:
        sys.exit("one seed of each arm, or no file ARM-SEED.json: expected two seeds or more")
    squares = sum(len(scores) * statistics.pvariance(scores) for scores in arms)
    deviation = (squares / freedom) ** 0.5
    return student_95(freedom) * deviation / min(map(len, arms)) ** 0.5


def names(rows: list[dict[str, Any]]) -> list[str]:
    """The arms, each once."""
    return list(dict.fromkeys(row["arm"] for row in rows))


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each arm, in Markdown."""
    lines = [
        "| price | firing | µJ, spikes | µJ, 4-bit twin that skips zeros | score by seed | mean |",
        "|---|---|---|---|---|---|",
    ]
    for arm in names(rows):
        own = [row for row in rows if row["arm"] == arm]
        scores = [row["score"] for row in own]
        figures = ["-", "-", "-"]
        if "firing" in own[0]:
            firing = statistics.mean(row["firing"] for row in own)
            designs = ("spikes, int8", "4-bit twin, zeros skipped")
            joules = [statistics.mean(row["microjoules"][name] for row in own) for name in designs]
            figures = [f"{firing:.1%}", *(f"{value:.1f}" for value in joules)]
        seeds = ", ".join(f"{score:.3f}" for score in scores)
        lines.append(f"| {arm} | {' | '.join(figures)} | {seeds} | {statistics.mean(scores):.3f} |")
    lines.append(f"\nEach mean is good to ± {half_interval(rows):.3f} (95 %).")
    return "\n".join(lines)


@styled
def curve(rows: list[dict[str, Any]]) -> Figure:
    """Strength over energy, a point for each price, with the twins as lines."""
    figure = Figure(figsize=(7.0, 3.6))
    axis = figure.subplots()
    spiking = [row for row in rows if row["arm"] not in TWINS]
    half = half_interval(rows)
    for arm in names(spiking):
        own = [row for row in spiking if row["arm"] == arm]
        x = np.array([row["microjoules"]["spikes, int8"] for row in own])
        y = [row["score"] for row in own]
        axis.plot(x, y, ".", color=BLUE, alpha=0.4)
        axis.errorbar(x.mean(), statistics.mean(y), half, fmt="o", color=BLUE, capsize=3)
        axis.annotate(
            f"{float(arm):g}", (x.mean(), statistics.mean(y)), (6, 6), textcoords="offset points"
        )
    twin = spiking[0]["microjoules"]["dense twin, 4-bit"]
    axis.axvline(twin, color=ORANGE, ls=DASHED, label="energy of the dense 4-bit twin")
    relu = [row["score"] for row in rows if row["arm"] == RELU]
    if relu:
        axis.axhline(statistics.mean(relu), color=INK, ls=DASHED, label="score of the ReLU twin")
    axis.set_xlim(0, 25)
    axis.set_ylim(0, 0.5)
    axis.set_xlabel("µJ an evaluation, in int8 with memory traffic")
    axis.set_ylabel("score")
    axis.set_title("What a price for spikes saves and costs (at each point: the price)")
    axis.legend(loc="lower center")
    return figure


def draw(folder: Path) -> None:
    """Write the figures and the picture that docs/spiking.md shows, and print the table."""
    rows = collected(folder)
    shown, picture = table(rows), figure_png(curve(rows))
    text = json.dumps(rows, indent=1) + "\n"
    (DOCS / "spike_price.json").write_text(text, encoding="utf-8")
    (DOCS / "spike_price.png").write_bytes(picture)
    print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", default=[*map(str, PRICES), RELU])
    parser.add_argument("--minutes", type=float, default=0, help="of training; 0: 89,600 positions")
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    if options.draw:
        draw(options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    measure_all(options.seeds, options.arms, options.folder, options.minutes)


if __name__ == "__main__":
    main()
