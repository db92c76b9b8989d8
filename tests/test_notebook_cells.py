"""Cells of the evaluate notebook that do something only when a person fills in their form."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from chessnn_colab import runs, watching
from chessnn_colab.errors import RunError

from .small_run import make_run

ROOT = Path(__file__).parent.parent


def cell_that_has(text: str) -> str:
    """The code of the cell that has this text."""
    notebook = nbformat.read(ROOT / "notebooks" / "evaluate.ipynb", as_version=4)
    (source,) = (
        cell.source for cell in notebook.cells if cell.cell_type == "code" and text in cell.source
    )
    return source


def cell_with(field: str, value: str) -> str:
    """The code of the cell with this form field, which is `value`."""
    source = cell_that_has(f"\n{field} = ")
    return re.sub(rf"^{field} = \S+", lambda _: f"{field} = {value}", source, flags=re.MULTILINE)


def test_a_cell_lists_the_runs_and_deletes_the_one_that_is_named(tmp_path, capsys):
    run = Path(make_run(tmp_path / "first", (0,)))
    make_run(tmp_path / "second", (0,))
    exec(cell_with("delete_this_run", '""'), {"run": run, "runs": runs})
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[:-1]} == {
        "first",
        "second",
    }
    exec(cell_with("delete_this_run", '"second"'), {"run": run, "runs": runs})
    told, *listed, _ = capsys.readouterr().out.splitlines()
    assert told.startswith("second is deleted: ") and [line.split()[0] for line in listed] == [
        "first"
    ]
    for chosen in ("first", f"../{tmp_path.name}/first"):
        exec(cell_with("delete_this_run", repr(chosen)), {"run": run, "runs": runs})
        told, *listed, _ = capsys.readouterr().out.splitlines()
        assert told.startswith("first stays: ")
        assert [line.split()[0] for line in listed] == ["first"]
    for wrong in ("second", "../first/checkpoints", "first\0"):
        with pytest.raises(RunError):
            exec(cell_with("delete_this_run", repr(wrong)), {"run": run, "runs": runs})
    assert (run / "config.json").is_file()


def test_a_run_that_is_not_there_is_an_error_and_not_another_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    form = {"root": tmp_path, "run_folder": "runs/ches", "game": "chess", "copy_on_drive": False}
    with pytest.raises(RunError, match="there is no run at .*ches: no such folder"):
        exec(cell_that_has("minutes=train_minutes_if_none"), {**form, "train_minutes_if_none": 0.5})
    assert not (tmp_path / "runs").exists()


def test_a_ticked_box_opens_this_pythons_own_tensorboard(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(import_module("tensorboard.notebook"), "start", asked.append)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("TENSORBOARD_BINARY", "to be put back")
    monkeypatch.delenv("TENSORBOARD_BINARY")
    for ticked in ("False", "True"):
        exec(cell_with("open_tensorboard", ticked), {"run": tmp_path / "my runs" / "first"})
    assert asked == [f"--logdir '{tmp_path / 'my runs'}'"]
    assert Path(os.environ["TENSORBOARD_BINARY"]).parent == Path(sys.executable).parent


def test_a_ticked_box_measures_this_machine(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "chessnn_colab.bench.device.bench_device", lambda *given: asked.append(given)
    )
    for ticked in ("False", "True"):
        exec(cell_with("measure_this_machine", ticked), {"root": tmp_path})
    assert asked == [("", 9, tmp_path / "runs" / "device")]


def test_puzzles_that_are_stopped_at_once_say_so_and_need_no_ladder(capsys):
    stopped = SimpleNamespace(solved_over_run=lambda *arguments, watch: {})
    names = {"arena": stopped, "ladder": None, "run": "", "looks_ahead": None, "watching": watching}
    exec(cell_that_has("solved_over_run"), names)
    assert capsys.readouterr().out == "Stopped before the puzzles of one snapshot were done.\n"
