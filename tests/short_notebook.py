"""Notebooks in a short mode: a cell behind their parameters that makes games short, and nothing
else different.
"""

from pathlib import Path

import nbformat

ROOT = Path(__file__).parent.parent

# Games of chess and 2048 that are drawn, or stop, after a few plies: in matches, where `measure`
# plays at least a few games to their end, and in training.
MATCHES = """from dataclasses import replace
from chessnn_colab.arena import registry
registry.CHESS = replace(registry.CHESS, max_plies=20)
registry.TWENTY48 = replace(registry.TWENTY48, max_plies=20)"""
SELF_PLAY = """
from dataclasses import dataclass
from chessnn_colab import config
@dataclass(frozen=True, kw_only=True)
class ShortGames(config.TrainConfig):
    max_plies: int | None = 40
config.TrainConfig = ShortGames"""
INLINE = SELF_PLAY.replace(
    "= 40", '= 40\n    pool: str = "inline"'
)  # for what does not depend on workers
ONE_WORKER = """
from chessnn_colab import devices
devices.usable_cores = lambda: 1"""


def with_cell(
    notebook: nbformat.NotebookNode, source: str, after: str = "parameters"
) -> nbformat.NotebookNode:
    """`notebook` with a cell behind the one with that tag."""
    at = next(i for i, cell in enumerate(notebook.cells) if after in cell.metadata.get("tags", []))
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(source, id="short-mode"))
    return notebook


def shortened(name: str, folder: Path, source: str = MATCHES + SELF_PLAY + ONE_WORKER) -> Path:
    """The notebook of that name with such a cell, in a checkout made of links."""
    notebooks = folder / "checkout" / "notebooks"
    notebooks.mkdir(parents=True)
    for each in ("chessnn_colab", "requirements.txt", "pyproject.toml"):
        (notebooks.parent / each).symlink_to(ROOT / each)
    nbformat.write(
        with_cell(nbformat.read(ROOT / "notebooks" / name, as_version=4), source), notebooks / name
    )
    return notebooks / name
