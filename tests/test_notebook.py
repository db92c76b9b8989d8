"""The notebooks run from top to bottom: as `make run` runs them, in an environment like Colab's, as
one packed file.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from shlex import split
from typing import NamedTuple

import nbformat
import pytest

from chessnn_colab.runs.networks import shipped_files

from .browser import COLAB, needs_colab
from .counts import only_in_full
from .short_notebook import INLINE, MATCHES, ONE_WORKER, SELF_PLAY, shortened, with_cell

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from colab_like import NOT_ON_COLAB  # noqa: E402
from make_colab import run_all_notebook  # noqa: E402


def run_notebook(
    notebook: Path,
    out: Path,
    *parameters: str,
    python: Path | str = sys.executable,
    **environment: str,
):
    """Run it headless as `make run` does; its printed text is in `stdout`."""
    command = [
        str(python),
        str(ROOT / "tools/run_notebook.py"),
        str(notebook),
        str(out),
        *parameters,
    ]
    own = {**os.environ, "CHESSNN_UI": "text", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=own, timeout=600)


def outputs(executed: Path) -> list:
    cells = nbformat.read(executed, as_version=4).cells
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def pictures(executed: Path) -> int:
    """How many figures there are. Each is an image that says in words what it shows."""
    shown = [output.get("data", {}) for output in outputs(executed)]
    assert not any("image/png" in data for data in shown), "a figure without words"
    figures = [
        page
        for data in shown
        if (page := data.get("text/html", "")).startswith('<img src="data:image/png')
    ]
    assert all(re.search(r' alt="[^"]{20,}"', page) for page in figures)
    return len(figures)


def like_colab() -> Path:
    """The Python of an environment like Colab's; this one where there is none."""
    return COLAB if COLAB.is_file() else Path(sys.executable)


def says(text: str, lines: Iterable[str]) -> None:
    for line in lines:
        assert line in text, f"{line!r} is not in\n{text[-3000:]}"


TRAINED = (
    "chessnn_colab 0.",
    "device     ",
    "Primary training device",
    "Generating ",
    "Iteration 1 |",
)
SECONDS = ("minutes=0.02", "match_games=2")


@pytest.mark.timeout(600)
def test_run_all_in_seconds(tmp_path):
    run, executed = tmp_path / "run", tmp_path / "executed.ipynb"
    done = run_notebook(
        ROOT / "notebooks/train.ipynb", executed, *SECONDS, f"run_folder={str(run)!r}"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    players = ("against random", "against greedy", "against minimax")
    says(done.stdout, (*TRAINED, *players, "play.html: "))
    assert (run / "config.json").is_file() and list((run / "checkpoints").iterdir())
    assert not [output for output in outputs(executed) if output.output_type == "error"]
    assert pictures(executed) == 2, "match, card"
    pages = [output.get("data", {}).get("text/html", "") for output in outputs(executed)]
    boards = [page for page in pages if page.startswith('<img src="data:image/svg+xml')]
    assert len(boards) == 1, "the one to play from"


class Case(NamedTuple):
    """A notebook, its parameters in a short mode, lines that it prints, and how many figures it
    shows.
    """

    notebook: str
    parameters: str
    lines: tuple[str, ...]
    figures: int
    short_mode: str = MATCHES + SELF_PLAY + ONE_WORKER


EVALUATE = "train_minutes_if_none=0.02 games=2 search='policy' minutes_a_cell=0.05 ladder_snapshots=2 ladder_games=2"
BY_HAND = "iterations=1 positions_per_iteration=800 match_games=2"
CASES = {
    "evaluate": Case(
        "evaluate",
        EVALUATE,
        (" games | ", "against minimax: ", "Ratings with random at 0", "mate-in-one"),
        6,  # matches, ladder, puzzles, raster, firing rates, energy
        MATCHES + INLINE,
    ),
    "by hand": Case(
        "by_hand",
        f"game_name='tictactoe' {BY_HAND}",
        (
            " games, ",
            "policy_weights  float16",
            "iteration 1: ",
            "same weights: True",
            "against random",
            "visits, worth",
        ),
        5,  # prior, lengths, losses, match, tree
    ),
    "inside": Case("inside_the_spikes", "probe_positions=300", ("Most depends on",), 7, ""),
}
# A section that is for games of two players says so, and the notebook continues.
OTHER_GAMES = {
    "train tictactoe": Case(
        "train", "minutes=0.02 match_games=2 game='tictactoe'", (*TRAINED, "against random"), 2
    ),
    "train 2048": Case(
        "train", "minutes=0.02 match_games=2 game='2048'", (*TRAINED, "snake: mean score"), 1
    ),
    "evaluate 2048": Case(
        "evaluate",
        f"game='2048' {EVALUATE}",
        ("snake: mean score", "there is no ladder", "no puzzles"),
        3,
        MATCHES + INLINE,
    ),
    "by hand chess": Case("by_hand", BY_HAND, (" games, ", "against random"), 5),
}


def run_case(case: Case, folder: Path, python: Path = Path(sys.executable)) -> list:
    """Run a notebook in its short mode; returns its outputs."""
    notebook = shortened(f"{case.notebook}.ipynb", folder, case.short_mode)
    parameters = split(case.parameters, posix=False)
    # Where a run is not there, evaluate trains one for "auto" alone.
    if "run_folder" in notebook.read_text(encoding="utf-8") and case.notebook != "evaluate":
        parameters.append(f"run_folder={str(folder / 'run')!r}")
    executed = folder / "executed.ipynb"
    done = run_notebook(notebook, executed, *parameters, python=python, PYTHONPATH="")
    assert done.returncode == 0, done.stderr[-3000:]
    says(done.stdout, case.lines)
    assert not [output for output in outputs(executed) if output.output_type == "error"]
    assert pictures(executed) == case.figures
    return outputs(executed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_notebook_runs_from_top_to_bottom(tmp_path, case):
    shown = run_case(CASES[case], tmp_path)
    pages = [output.get("data", {}).get("text/html", "") for output in shown]
    if case == "evaluate":
        assert any("<img" in page and "application/json" in page for page in pages), "its games"
        assert sum("It taught itself chess in" in page for page in pages) == 1, "the story"
    if case == "inside":
        boards = sum(page.count("Board: ") for page in pages)
        assert boards == 18, "networks and steps show their moves without a kernel"


@only_in_full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES | OTHER_GAMES)
def test_it_runs_with_any_game_and_where_packages_are_colabs(tmp_path, case):
    run_case((CASES | OTHER_GAMES)[case], tmp_path, like_colab())


@pytest.mark.timeout(600)
def test_scale_out_runs_and_loses_a_machine(tmp_path):
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    where = f"run_folder={str(tmp_path / 'run')!r}"
    short = ("minutes=0.05", "positions_with_a_loss=6000", where)
    sooner = "from chessnn_colab.workers import ray as cluster\ncluster.SILENCE_SECONDS = 5.0"
    notebook = shortened("scale_out.ipynb", tmp_path, sooner + SELF_PLAY)
    lean = {"RAY_prestart_worker_first_driver": "0"}  # workers that nobody asks for
    done = run_notebook(notebook, tmp_path / "executed.ipynb", *short, **lean)
    assert done.returncode == 0, done.stderr[-3000:]
    for line in (
        "Iteration 1 |",
        "A new worker takes its place, and its [1-9][0-9,]* positions are played again",
        "6,[0-9]* positions in iteration 2",
    ):
        assert re.search(line.replace("|", r"\|"), done.stdout), done.stdout[-3000:]


@pytest.mark.timeout(900)
@needs_colab
def test_one_file_in_an_empty_folder(tmp_path):
    """What `make colab` writes, beside Colab's own packages alone: pip brings the rest and leaves
    torch as it is.
    """
    environment, folder = tmp_path / "colab", tmp_path / "empty"
    folder.mkdir()
    python = environment / "bin" / "python"
    shutil.copytree(COLAB.parents[1], environment, symlinks=True)
    subprocess.run(
        [python, "-m", "pip", "uninstall", "--quiet", "--yes", *NOT_ON_COLAB], check=True
    )
    carried = folder / "run_all.ipynb"
    carried.write_text(run_all_notebook(), encoding="utf-8")
    assert carried.stat().st_size < 550_000
    notebook = with_cell(nbformat.read(carried, as_version=4), MATCHES + SELF_PLAY + ONE_WORKER)
    for session in range(2):
        if session:  # up to its training: the rest is no other in a second session
            training = next(
                i for i, cell in enumerate(notebook.cells) if "in train(config" in cell.source
            )
            del notebook.cells[training + 1 :]
        nbformat.write(notebook, carried)
        done = run_notebook(
            carried, tmp_path / "executed.ipynb", *SECONDS, python=python, PYTHONPATH=""
        )
        assert done.returncode == 0, done.stderr[-3000:]
        says(done.stdout, ("chessnn_colab 0.", "Iteration "))
        assert (
            ("Installing chess" in done.stdout)
            == ("against random" in done.stdout)
            == (session == 0)
        )
        assert ("Resuming" in done.stdout) == (session == 1)
        assert not [
            output
            for output in outputs(tmp_path / "executed.ipynb")
            if output.output_type == "error"
        ]
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == {
        "run_all.ipynb",
        "chessnn_colab",
        "runs",
    }


def test_what_is_packed_is_what_runs(tmp_path):
    """All code and data of the package but its four networks, and the same bytes every time."""
    text = run_all_notebook()
    assert text == run_all_notebook()
    titles = [cell["source"][0] for cell in json.loads(text)["cells"]]
    assert titles.count("# @title Measure this machine\n") == 1
    cell = next(
        cell for cell in json.loads(text)["cells"] if "fetch" in cell["metadata"].get("tags", [])
    )
    done = subprocess.run(
        [sys.executable, "-"], input=cell["source"], text=True, cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    (unpacked,) = tmp_path.iterdir()

    def files(root: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in (root / "chessnn_colab").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    given, whole = files(unpacked), files(ROOT)
    data = shipped_files()[0].parent
    assert whole.keys() - given.keys() == {
        f"chessnn_colab/runs/data/{file.name}" for file in data.glob("*.safetensors")
    }
    assert given == {name: whole[name] for name in given}
    asks = "from chessnn_colab import runs; runs.find_network()"
    done = subprocess.run(
        [sys.executable, "-c", asks], text=True, cwd=unpacked, capture_output=True
    )
    assert "CheckpointError: this copy of the package has no networks in it" in done.stderr, (
        done.stderr
    )
    assert any(name.endswith("tactics.txt") for name in files(unpacked))
    assert (unpacked / "requirements.txt").is_file() and (unpacked / "LICENSE").is_file()


def alone(folder: Path, repository: str = "") -> Path:
    """The train notebook in a folder without a checkout, with another repository if one is
    named.
    """
    text = (ROOT / "notebooks" / "train.ipynb").read_text(encoding="utf-8")
    if repository:
        text = text.replace('REPOSITORY = \\"\\"', f'REPOSITORY = \\"{repository}\\"')
    path = folder / "train.ipynb"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_checkout_or_repository_one_sentence_says_what_to_do(tmp_path):
    """As on Colab before `make repository`."""
    executed = tmp_path / "out.ipynb"
    done = run_notebook(alone(tmp_path), executed, python=bare_python(tmp_path), PYTHONPATH="")
    assert done.returncode == 1 and "make colab" in done.stderr
    (error,) = (output for output in outputs(executed) if output.output_type == "error")
    assert len(error.traceback) == 1 and "dist/run_all.ipynb" in error.traceback[0]


def test_from_an_address_it_fetches_itself(tmp_path):
    """A repository's address is set: the notebook clones it, and runs go there."""
    source, folder = tmp_path / "source", tmp_path / "content"
    folder.mkdir()
    shutil.copytree(
        ROOT / "chessnn_colab",
        source / "chessnn_colab",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, source / name)
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    first_cells = nbformat.read(alone(folder, f"file://{source}"), as_version=4)
    del first_cells.cells[4:]  # up to the install cell
    first_cells.cells.append(
        nbformat.v4.new_code_cell("import os; print(os.path.relpath(root))", id="where")
    )
    first_cells.cells[-1].metadata.tags = ["parameters"]
    nbformat.write(first_cells, folder / "train.ipynb")
    done = run_notebook(
        folder / "train.ipynb", tmp_path / "out.ipynb", python=bare_python(tmp_path), PYTHONPATH=""
    )
    assert done.returncode == 0, done.stderr[-3000:]
    says(done.stdout, ("from chessnn-colab/", "\nchessnn-colab\n"))


def bare_python(folder: Path) -> Path:
    """A Python with everything of this environment but this project's own package, which pip linked
    in.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True
    )
    shared = folder / "shared"
    shared.mkdir()
    for path in Path(pytest.__file__).parent.parent.iterdir():
        if "chessnn_colab" not in path.name and not path.name.startswith("__"):
            (shared / path.name).symlink_to(path)
    (site,) = (folder / "bare").glob("lib/python*/site-packages")
    (site / "shared.pth").write_text(f"{shared}\n")
    return folder / "bare" / "bin" / "python"


@pytest.mark.timeout(300)
def test_ctrl_c_keeps_the_run_and_skips_the_rest(tmp_path):
    """A terminal's Ctrl-C: the training cell ends and has saved. Nothing is left running; nothing
    is a traceback.
    """
    run, executed = tmp_path / "run", tmp_path / "executed.ipynb"
    command = [
        sys.executable,
        "-u",
        str(ROOT / "tools/run_notebook.py"),
        str(ROOT / "notebooks/train.ipynb"),
    ]
    process = subprocess.Popen(
        [*command, str(executed), "minutes=10", f"run_folder={str(run)!r}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith("Positions per worker"):
                os.killpg(process.pid, signal.SIGINT)
        text = "".join(seen)
        assert process.wait() == 130, text
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    assert (
        "Interrupted: everything up to iteration 0 is kept" in text
        and "Traceback" not in text
        and "Error" not in text
    )
    assert "ms per move" not in text, "cells after the interrupted one"
    assert executed.is_file() and list((run / "checkpoints").iterdir())


def test_a_value_that_is_none_is_refused_before_anything_runs(tmp_path):
    """As from `make run MINUTES=abc`."""
    done = run_notebook(ROOT / "notebooks/train.ipynb", tmp_path / "out.ipynb", "minutes=abc")
    assert done.returncode == 2 and "'minutes=abc': expected a number" in done.stderr
    assert not (tmp_path / "out.ipynb").exists()
