"""Write NAME.ipynb from NAME.py (jupytext's percent format), without outputs and with the same cell
ids every time.
"""

import base64
import re
import sys
from pathlib import Path

import jupytext
import nbformat

PICTURE = re.compile(
    r"(!\[[^\]]*\]\()([^):]+\.png)\)"
)  # a Markdown picture whose address is a file beside the notebook
METADATA = {
    "accelerator": "GPU",  # Colab offers a GPU runtime
    "colab": {"private_outputs": True},  # Colab saves the text without the outputs
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook_text(source: Path) -> str:
    """The text of the .ipynb file for a script in percent format."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{source.stem}-{number:02d}"
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        else:
            cell.source = with_pictures(cell.source, source.parent)
    notebook.metadata = METADATA
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def with_pictures(text: str, folder: Path) -> str:
    """Markdown whose pictures are inside it, as Colab's own are: Colab shows neither files nor
    attachments there.

    (googlecolab/colabtools issue 3836.)
    """

    def inside(found: re.Match) -> str:
        data = base64.b64encode((folder / found[2]).read_bytes()).decode()
        return f"{found[1]}data:image/png;base64,{data})"

    return PICTURE.sub(inside, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        source = Path(name)
        source.with_suffix(".ipynb").write_text(notebook_text(source), encoding="utf-8")
