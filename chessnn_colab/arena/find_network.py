"""A network to play against when nobody has trained one yet, or nobody says which."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..errors import ChessnnError
from ..games.registry import rules
from ..runs.shared import game_of, networks
from .shipped import shipped_files


class Found(NamedTuple):
    """A run's folder or shared file, as `evaluate` and play_widget open it, and a sentence about the choice."""

    run: str
    sentence: str


def find_network(wanted: str = "", folder: str | Path = "runs") -> Found:
    """`wanted` if it has a network, else the newest run in `folder`, else the network that comes with the package.

    wanted: RUN, RUN@ITERATION or a shared file; "" is whatever there is. Where that is not there the sentence says why
    it was another one. Raises CheckpointError only in a copy of the package without networks.
    """
    problem = ""
    if wanted:
        run, at, iteration = wanted.rpartition("@")
        asked = (run, int(iteration)) if at and iteration.isdecimal() and not Path(wanted).exists() else (wanted, None)
        try:
            saved = networks(asked[0])
            if saved and (asked[1] is None or asked[1] in saved):
                return Found(wanted, f"The network of {wanted}.")
            there = ", ".join(map(str, saved)) or "none yet"
            problem = f"{asked[0]} has no such network (its iterations: {there}). "
        except ChessnnError as error:
            told = str(error).rstrip(".")
            problem = f"{told[:1].upper()}{told[1:]}. "
    if newest := _newest_run(Path(folder)):
        return Found(
            str(newest),
            f"{problem}Taken instead: the newest run, {newest}." if wanted else f"The newest run, {newest}.",
        )
    return Found(
        str(shipped_files()[-1]), f"{problem}This is the network that comes with the package: a run of twenty minutes."
    )


def _newest_run(folder: Path) -> Path | None:
    """The run below `folder`, of a game for two, whose newest network is the youngest."""
    saved: list[tuple[float, Path]] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if rules(game_of(path)).num_players != 2:
                continue
            saved += [(file.stat().st_mtime, path) for file in networks(path).values()]
        except (ChessnnError, OSError):
            continue  # not a run, or a damaged one
    return max(saved)[1] if saved else None
