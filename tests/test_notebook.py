"""The notebook: generated from its text, clean, and run from top to bottom as `make run` runs it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
sys.path.insert(0, str(ROOT / "tools"))
from make_notebook import notebook_text  # noqa: E402


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_its_text_and_clean(path):
    text = path.read_text(encoding="utf-8")
    assert text == notebook_text(path.with_suffix(".py")), "run `make notebooks`"
    notebook = json.loads(text)
    assert "widgets" not in notebook["metadata"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook["cells"])


def test_the_repository_stands_in_one_place_of_the_code():
    notebook = nbformat.read(ROOT / "notebooks" / "train.ipynb", as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(source.count("github.com/") for source in code) == 1


@pytest.mark.timeout(600)
def test_run_all_in_seconds(tmp_path):
    run, executed = tmp_path / "run", tmp_path / "executed.ipynb"
    command = [
        sys.executable,
        str(ROOT / "tools/run_notebook.py"),
        str(ROOT / "notebooks/train.ipynb"),
        str(executed),
        "minutes=0.05",
        "match_games=2",
        "match_evaluations=5",
        f"run_folder={str(run)!r}",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "CHESSNN_UI": "text"}, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for line in (
        "chessnn_colab from",
        "device     ",
        "Primary training device",
        "Generating ",
        "Iteration 1 |",
        "against random",
        "against greedy",
        "against minimax",
    ):
        assert line in done.stdout, line
    assert (run / "config.json").is_file() and list((run / "checkpoints").iterdir())
    cells = nbformat.read(executed, as_version=4).cells
    shown = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(pictures) == 5, "curves, raster, firing rates, energy, match"
    assert any("<img" in output.get("data", {}).get("text/html", "") for output in shown), "the sample game's board"


@pytest.mark.timeout(600)
def test_the_look_inside_needs_no_training(tmp_path):
    executed = tmp_path / "executed.ipynb"
    notebook = str(ROOT / "notebooks/inside_the_spikes.ipynb")
    command = [sys.executable, str(ROOT / "tools/run_notebook.py"), notebook, str(executed), "probe_positions=300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = nbformat.read(executed, as_version=4).cells
    shown = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    pictures = [output.data["text/html"] for output in shown if "<img" in output.get("data", {}).get("text/html", "")]
    assert len(pictures) == 10, "two neurons, planes, spikes, maps, growth, probes, silence, channels, energy"
    assert sum(text.count("Board: ") for text in pictures) == 7, (
        "each of the four networks shows its moves without a kernel"
    )
    assert "with memory traffic" in pictures[-1]


@pytest.mark.timeout(600)
def test_scale_out_runs_and_loses_a_machine(tmp_path):
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    command = [
        sys.executable,
        str(ROOT / "tools/run_notebook.py"),
        str(ROOT / "notebooks/scale_out.ipynb"),
        str(tmp_path / "executed.ipynb"),
        "minutes=0.05",
        "games_with_a_loss=128",
        f"run_folder={str(tmp_path / 'run')!r}",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "CHESSNN_UI": "text"}, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for line in (
        "Iteration 1 |",
        "A new worker takes its place, and its [1-9][0-9]* games are played again",
        "128 games in iteration 2",
    ):
        assert re.search(line.replace("|", r"\|"), done.stdout), done.stdout[-3000:]


def test_without_checkout_or_repository_the_notebook_says_what_to_do(tmp_path):
    """As on Colab with the placeholder still in place."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/run_notebook.py"), str(_alone(tmp_path)), str(tmp_path / "out.ipynb")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "make repository" in done.stderr


@pytest.mark.timeout(300)
def test_ctrl_c_keeps_the_run_and_skips_the_rest(tmp_path):
    """A terminal's Ctrl-C: the training cell ends and has saved. Nothing is left running; nothing is a traceback."""
    run, executed = tmp_path / "run", tmp_path / "executed.ipynb"
    command = [
        sys.executable,
        "-u",
        str(ROOT / "tools/run_notebook.py"),
        str(ROOT / "notebooks/train.ipynb"),
        str(executed),
        "minutes=10",
        f"run_folder={str(run)!r}",
    ]
    process = subprocess.Popen(
        command,
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
            if line.startswith("Games per worker"):
                os.killpg(process.pid, signal.SIGINT)
        text = "".join(seen)
        assert process.wait() == 130, text
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    assert (
        "Interrupted: everything up to iteration 0 is kept" in text and "Traceback" not in text and "Error" not in text
    )
    assert "against random" not in text, "cells after the interrupted one"
    assert executed.is_file() and list((run / "checkpoints").iterdir())


def test_a_value_that_is_none_is_refused_before_anything_runs(tmp_path):
    """As from `make run MINUTES=abc`."""
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tools/run_notebook.py"),
            str(ROOT / "notebooks/train.ipynb"),
            str(tmp_path / "out.ipynb"),
            "minutes=abc",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "'minutes=abc': expected a number" in done.stderr
    assert not (tmp_path / "out.ipynb").exists()


def _alone(folder: Path) -> Path:
    path = folder / "train.ipynb"
    path.write_text((ROOT / "notebooks" / "train.ipynb").read_text(encoding="utf-8"), encoding="utf-8")
    return path
