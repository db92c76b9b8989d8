"""Share one network of a run as a single file with a card. It opens wherever a run folder does.

A shared file is a snapshot whose metadata also has a `card`: the settings that made the network,
and its figures. It may come from a stranger, so it is checked like a checkpoint, and its card is
only text.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import CheckpointError
from ..text import percent
from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from .files import AnyPath, absolute, decode_object, read_whole, refused, write_atomically
from .folder import RATINGS_FILE, RunFolder
from .networks import card_of, find_snapshot, is_file, load_network, networks, run_game

# A run's settings that name places on the machine that trained it: nobody else needs them.
PRIVATE = frozenset({"run", "copy_to", "from_checkpoint", "address"})
FIGURES = (
    "seconds",
    "total_games",
    "total_positions",
    "policy_loss",
    "value_loss",
    "firing_rates",
)  # of the report
_LONGEST = 160  # characters of a card's line that are shown
PAGE = """---
library_name: chessnn_colab
pipeline_tag: reinforcement-learning
tags:
- {kind}-neural-network
- self-play
- {game}
---
# {name}

A {kind} neural network that learned {game} by playing against itself, trained with
`chessnn_colab` {version}. It was given the rules and no games of people.

## Figures

Losses are in nats, times in seconds. Strength is the share of the points that it won, or of the
puzzles that it solved, in so many games or puzzles.

{lines}

## Load it

`model.safetensors` has the weights; its header and `config.json` have the settings that made it.
With `chessnn_colab` installed, these and other commands open the file:

```
python -m chessnn_colab evaluate model.safetensors --opponent random
```

```python
from chessnn_colab import runs

network, iteration = runs.load_network("model.safetensors")
```
"""


def card_lines(card: Mapping[str, Any]) -> list[str]:
    """A card as lines of text, one for each entry, each short and printable whatever the file
    says.
    """
    lines = []
    for name, value in card.items():
        text = f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
        lines.append("".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST]))
    return lines


def share(run: AnyPath, file: AnyPath, snapshot: int | None = None) -> dict[str, Any]:
    """Write one network of a run to `file` with its card, and return the card.

    snapshot: its iteration; None is the best, as far as that is known. Raises RunError for a run
    or snapshot that is not there, CheckpointError when `file` exists or cannot be written.
    """
    target = new_file(file)
    card = card_of_run(run, snapshot)
    saved = load_checkpoint(find_snapshot(run, card["iteration"])[1])
    metadata = {**saved.metadata, "config": _public(saved), "card": card}
    save_checkpoint(target, {"weights": saved.groups["weights"]}, metadata)
    return card


def share_folder(run: AnyPath, folder: AnyPath, snapshot: int | None = None) -> None:
    """Write one network of a run to a new folder, as the page of a model on a hub wants it:
    model.safetensors (see share), config.json (its settings), README.md.

    Raises what `share` raises, and CheckpointError when the folder exists or cannot be written.
    """
    target = new_file(folder)
    card = card_of_run(run, snapshot)
    figures = card.get("figures", {})
    about = {"iteration": card["iteration"], **figures, **figures.get("strength", {})}
    lines = "\n".join(f"- {line}" for line in card_lines(about) if "{" not in line)
    lines = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", lines)
    network, _ = load_network(run, card["iteration"], "cpu")
    kind = network.config.activation.replace("spikes", "spiking")
    with refused(f"cannot write {target}", kind=CheckpointError):
        target.mkdir(parents=True)
        share(run, target / "model.safetensors", card["iteration"])
        settings = json.dumps(card.get("settings", {}), indent=1)
        write_atomically(target / "config.json", settings.encode())
        facts = {"game": card["game"], "name": target.name, "version": __version__, "kind": kind}
        text = PAGE.format(**facts, lines=lines)
        write_atomically(target / "README.md", text.encode())


def new_file(file: AnyPath) -> Path:
    """The full path of `file`. Raises CheckpointError when it exists."""
    target = absolute(file)
    if target.exists():
        raise CheckpointError(
            f"{target} exists: nothing was written. Choose another name, or delete it first"
        )
    return target


def card_of_run(run: AnyPath, snapshot: int | None = None) -> dict[str, Any]:
    """The card of one network of a run; of a shared file, its own one.

    snapshot: its iteration; None is the best, as far as that is known. Raises RunError for a run
    or snapshot that is not there, CheckpointError for a file that cannot be used.
    """
    if is_file(run):
        iteration, path = find_snapshot(run, snapshot)
        return {**card_of(path), "game": run_game(run), "iteration": iteration}
    folder = RunFolder.open(run)
    if snapshot is None:
        snapshot = best_snapshot(folder, networks(run))
    iteration, path = find_snapshot(run, snapshot)
    saved = load_checkpoint(path)
    reports = folder.read_reports()
    report = next((report for report in reports if report["iteration"] == iteration), {})
    # A loss is NaN where nothing was learned, and JSON on a page for friends cannot say so.
    figures = {name: report[name] for name in FIGURES if str(report.get(name, "nan")) != "nan"}
    return {
        "game": saved.metadata.get("game"),
        "iteration": iteration,
        "version": __version__,
        "figures": figures | _strength(reports, iteration),
        "settings": {name: value for name, value in _public(saved).items() if value is not None},
    }


def _public(saved: Checkpoint) -> dict[str, Any]:
    """The settings without the places on the machine that trained it."""
    return {name: value for name, value in saved.part("config").items() if name not in PRIVATE}


def best_snapshot(folder: RunFolder, iterations: Collection[int]) -> int | None:
    """The snapshot that a whole ladder rated highest, if it rated the last of `iterations` too;
    else the last.
    """
    last = max(iterations, default=None)
    try:
        ratings = decode_object(read_whole(folder.path / RATINGS_FILE))
        rated = [player["snapshot"] for player in ratings["players"]]
        whole = not ratings["interrupted"] and last in rated
        return ratings["best"] if whole and ratings["best"] in iterations else last
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or damaged
        return last


def _strength(reports: Sequence[Mapping[str, Any]], iteration: int) -> dict[str, Any]:
    """The latest of each measure of strength up to `iteration`, in words; nothing where none was
    measured.
    """
    told = {}
    for report in reports:
        for point in report.get("strength", ()):
            if point["iteration"] <= iteration:
                told[point["measure"]] = f"{percent(point['share'])} of {point['trials']}"
    return {"strength": told} if told else {}
