"""Execute a notebook headless, printing what its cells print as they print it, and keep the executed copy.

python tools/run_notebook.py NOTEBOOK EXECUTED [name=value ...]: values replace those of the cell tagged "parameters".
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


class TalkingClient(NotebookClient):
    """Repeats every line of text output on this process's standard output."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "stream":
            print(msg["content"]["text"], end="", flush=True)
        elif msg["msg_type"] == "execute_result":
            print(msg["content"]["data"].get("text/plain", ""), flush=True)
        return super().process_message(msg, cell, cell_index)


def run(source: Path, target: Path, parameters: list[str]) -> int:
    """Returns an exit code; the executed notebook is written even when a cell failed."""
    notebook = nbformat.read(source, as_version=4)
    position = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    override = nbformat.v4.new_code_cell("# Set for this run\n" + "\n".join(parameters), id="parameters-of-this-run")
    notebook.cells.insert(position + 1, override)
    os.environ.setdefault("CHESSNN_UI", "text")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    client = TalkingClient(notebook, timeout=None, kernel_name="python3",
                           resources={"metadata": {"path": str(source.resolve().parent)}})
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, target)
        print(f"The executed notebook is {target}")
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
