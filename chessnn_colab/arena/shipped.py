"""Four networks of one run of twenty minutes, from untrained to last, which come with the package.

They are shared files (see runs.shared) with weights in float16. tools/make_snapshots.py makes them.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..network import SpikingNetwork
from ..runs.shared import card_of
from .evaluate import load_network


def shipped_files() -> list[Path]:
    """The four files, the untrained network first. Each opens wherever a run does: the last one is the strongest.

    Raises CheckpointError in a copy without them, such as the one that tools/make_colab.py packs into a notebook.
    """
    folder = Path(str(resources.files(__package__ or ""))) / "data"
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CheckpointError(
            "this copy of the package has no networks in it (a notebook that carries the package leaves them out): "
            "train one first, or take the whole repository"
        )
    return files


def shipped_networks(device: str = "cpu") -> dict[int, SpikingNetwork]:
    """Iteration -> network, the untrained one first, with weights in float32 on `device`."""
    loaded = (load_network(file, None, device) for file in shipped_files())
    return {iteration: network for network, iteration in loaded}


def shipped_cards() -> dict[int, dict[str, Any]]:
    """Iteration -> card: the settings of the run, and what each network knew at that moment."""
    cards = map(card_of, shipped_files())
    return {card["iteration"]: card for card in cards}
