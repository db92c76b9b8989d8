"""Write NAME.ipynb from NAME.py (jupytext's percent format), without outputs and with the same cell ids every time."""

import sys
from pathlib import Path

import jupytext
import nbformat


def notebook_text(source: Path) -> str:
    """The text of the .ipynb file for a script in percent format."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{source.stem}-{number:02d}"
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = {
        "accelerator": "GPU",  # Colab offers a GPU runtime
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        source = Path(name)
        source.with_suffix(".ipynb").write_text(notebook_text(source), encoding="utf-8")
