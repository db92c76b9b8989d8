"""Make the four networks that come with the package from one run.

    python -m chessnn_colab train --run runs/shipped --minutes 20 --checkpoint-every 1
    python tools/make_snapshots.py runs/shipped --machine "two cores of an AMD EPYC, idle"

They are the untrained network, an early one, one from the middle, and the last. With --only, RUN's
last network alone becomes one of OTHERS: without_price, which the notebook on spikes compares with
them, or strongest, against which people play. Weights become float16; what batch norm counts stays
float32. Each card says how often the network solves the package's puzzles by its policy alone. The
energy of the last one is printed; docs/spiking.md repeats it, and a test holds the two equal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from chessnn_colab.arena.players import play_search
from chessnn_colab.arena.puzzles import solved_over_run
from chessnn_colab.errors import ChessnnError, RunError
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.files import file_sha256
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import networks, shipped_cards, shipped_files, shipped_networks
from chessnn_colab.runs.shared import card_lines, share
from chessnn_colab.spikes import estimate_energy
from chessnn_colab.views.inside.sample import sample_positions

SHIPPED = Path(__file__).parent.parent / "chessnn_colab" / "runs" / "data"
OTHERS = {name: SHIPPED / f"{name}.safetensors" for name in ("without_price", "strongest")}
MOST_BYTES = 3_600_000  # of all six together; the strongest is one of preset t4
TOLD = (
    "minutes",
    "iterations",
    "checkpoint_every",
    "seed",
    "spike_penalty",
)  # settings that the command of a card repeats
SHARES = (0.0, 0.08, 0.35, 1.0)  # of the run's positions: a network changes most at first


def halved(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices and convolutions in float16, everything else as it is."""
    return {
        name: array.astype(np.float16) if array.ndim > 1 else array
        for name, array in weights.items()
    }


def moments(run: str) -> list[int]:
    """Four iterations of a run that have a snapshot: those nearest to SHARES of its positions.

    Raises RunError for a run with fewer than four snapshots.
    """
    positions = {0: 0} | {
        report["iteration"]: report["total_positions"]
        for report in RunFolder.open(run).read_reports()
    }
    saved = [iteration for iteration in networks(run) if iteration in positions]
    last = positions[max(saved)] if saved else 0
    chosen = sorted(
        {min(saved, key=lambda i: abs(positions[i] - share * last)) for share in SHARES if saved}
    )
    if len(chosen) < len(SHARES):
        raise RunError(
            f"{run} has {len(saved)} snapshots with a report: expected {len(SHARES)} or more"
        )
    return chosen


def command(settings: Mapping[str, Any]) -> str:
    """How such a run is trained from a shell, its folder aside."""
    flags = [
        f"--{name.replace('_', '-')} {settings[name]}"
        for name in TOLD
        if settings.get(name) is not None
    ]
    return " ".join(["python -m chessnn_colab train", *flags])


def make(run: str, folder: Path, machine: str) -> None:
    """Write the four files to `folder`, in place of those that are there."""
    chosen = {iteration: folder / f"{iteration:06d}.safetensors" for iteration in moments(run)}
    folder.mkdir(parents=True, exist_ok=True)
    write(run, chosen, machine)
    for file in set(folder.glob("0*.safetensors")) - set(chosen.values()):
        file.unlink()


def write(run: str, files: Mapping[int, Path], machine: str) -> None:
    """Write the networks of some iterations, each to its file."""
    made = {"command": command(RunFolder.open(run).config), "machine": machine}
    solved = solved_over_run(run, play_search("policy"), list(files), device="cpu")
    for iteration, file in files.items():
        shares = {kind: round(found, 3) for kind, found in solved[iteration].items()}
        file.unlink(missing_ok=True)
        card = share(run, file, iteration)
        shared = load_checkpoint(file)
        told = {**card, **made, "puzzles solved by the policy alone": shares}
        weights = halved(shared.groups["weights"])
        save_checkpoint(file, {"weights": weights}, {**shared.metadata, "card": told})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument(
        "--machine", default="not said", help="where the run was trained, for the cards"
    )
    parser.add_argument("--only", choices=OTHERS, help="write this one of OTHERS, and nothing else")
    options = parser.parse_args()
    try:
        if options.only:
            write(options.run, {max(networks(options.run)): OTHERS[options.only]}, options.machine)
        else:
            make(options.run, SHIPPED, options.machine)
    except ChessnnError as error:
        print(f"make_snapshots: {error}", file=sys.stderr)
        return 2
    size = sum(file.stat().st_size for file in (*shipped_files(), *OTHERS.values()))
    for file, card in zip(shipped_files(), shipped_cards().values(), strict=True):
        print(f"{file.name}  {file.stat().st_size:,} bytes  SHA-256 {file_sha256(file)}")
        print("\n".join(f"    {line}" for line in card_lines(card)))
    print(estimate_energy(list(shipped_networks().values())[-1], sample_positions(500)).verdict)
    print(f"{size:,} bytes with OTHERS, at most {MOST_BYTES:,}")
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
