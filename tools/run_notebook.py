"""Execute a notebook headless, print what its cells print while they print it, and keep the
executed copy.

python tools/run_notebook.py NOTEBOOK EXECUTED [name=value ...]: values replace those of the cell
tagged "parameters". Ctrl-C interrupts the running cell, which may still save what it has, and skips
the cells after it. A second Ctrl-C ends everything at once.
"""

import ast
import asyncio
import os
import signal
import sys
from pathlib import Path

import nbformat
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

INTERRUPTED = 130  # the exit code that a shell reports for a command that Ctrl-C ended


class TalkingClient(NotebookClient):
    """Repeats every line of text output on this process's standard output."""

    interrupted = False

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "stream":
            print(msg["content"]["text"], end="", flush=True)
        elif msg["msg_type"] == "execute_result":
            print(msg["content"]["data"].get("text/plain", ""), flush=True)
        return super().process_message(msg, cell, cell_index)

    async def async_execute_cell(self, cell, *args, **kwargs):
        return cell if self.interrupted else await super().async_execute_cell(cell, *args, **kwargs)

    def take_over_interrupts(self, **_) -> None:
        """Replace nbclient's own handler, which kills the kernel after seconds, perhaps in the
        middle of a save.
        """
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            self.interrupted = True
            loop.remove_signal_handler(signal.SIGINT)
            self._interrupting = asyncio.ensure_future(ensure_async(self.km.interrupt_kernel()))

        loop.add_signal_handler(signal.SIGINT, interrupt)


def with_parameters(
    notebook: nbformat.NotebookNode, parameters: list[str]
) -> nbformat.NotebookNode:
    """The notebook with a cell of `name=value` lines after its parameters.

    Raises ValueError for a value that is not a Python literal.
    """
    for text in parameters:
        name, _, value = text.partition("=")
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise ValueError(
                f"{text!r}: expected a number, True, False or a quoted text for {name}"
            ) from None
    position = next(
        i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])
    )
    override = nbformat.v4.new_code_cell(
        "# Set for this run\n" + "\n".join(parameters), id="parameters-of-this-run"
    )
    notebook.cells.insert(position + 1, override)
    return notebook


def run(source: Path, target: Path, parameters: list[str]) -> int:
    """Run `source`, write it to `target` even when a cell failed or was interrupted, and return an
    exit code.
    """
    notebook = with_parameters(nbformat.read(source, as_version=4), parameters)
    os.environ.setdefault("CHESSNN_UI", "text")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    client = TalkingClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(source.resolve().parent)}},
    )
    client.on_notebook_start = client.take_over_interrupts
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError) as error:
        if not client.interrupted:
            print(error, file=sys.stderr)
            return 1
    finally:
        nbformat.write(notebook, target)
        print(f"The executed notebook is {target}")
    return INTERRUPTED if client.interrupted else 0


if __name__ == "__main__":
    try:
        sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
    except ValueError as error:
        print(f"run_notebook: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
