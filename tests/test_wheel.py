"""The wheel that a user installs: complete, typed, and working without the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What the build reads. Building in the checkout would leave a folder that a later build takes old
# modules from.
SOURCES = ("chessnn_colab", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]

IMPORT_EVERYTHING = """
import importlib, importlib.util, pkgutil, sys
from importlib import resources
import chessnn_colab
modules = sorted(module.name for module in pkgutil.walk_packages(chessnn_colab.__path__, "chessnn_colab."))
for name in modules:
    if name != "chessnn_colab.workers.ray" or importlib.util.find_spec("ray"):
        importlib.import_module(name)
from chessnn_colab.arena.registry import arena_game, match_game
assert len(arena_game("chess").puzzles(match_game("chess"))) > 100
gomoku = arena_game("gomoku")
assert len(gomoku.puzzles(match_game("gomoku"))) > 200 and len(gomoku.book) == 50
from chessnn_colab.runs.networks import shipped_networks
assert len(shipped_networks()) == 4
from chessnn_colab.views.squares import data_text
assert all(map(data_text, ("board.css", "keys.js", "live.js", "replay.js", "sliders.js")))
from chessnn_colab.views.drawings import make_drawing
from chessnn_colab.views.page import page_html
assert page_html(make_drawing(chessnn_colab.make_game("chess")), shipped_networks()[0], {})
assert resources.files("chessnn_colab").joinpath("py.typed").is_file()
print(chessnn_colab.__file__, *modules)
"""


def run(command: list[str], **options) -> str:
    """The command's standard output; fails with what it said when it failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with nothing but the installed wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    run(
        [
            *PIP,
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(folder),
            str(source),
        ]
    )
    (wheel,) = folder.glob("*.whl")
    run(
        [*PIP, "install", "--no-deps", "--no-compile", "--target", str(folder / "site"), str(wheel)]
    )
    return folder / "site"


def installed(site: Path, folder: Path, *arguments: str) -> str:
    """What Python says in an empty folder, with the wheel before everything else on its path."""
    return run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(site)}
    )


def test_every_module_is_in_the_wheel_and_imports(site, tmp_path):
    place, *modules = installed(site, tmp_path, "-c", IMPORT_EVERYTHING).split()
    assert Path(place).is_relative_to(site)
    paths = (
        path.relative_to(ROOT).with_suffix("") for path in (ROOT / "chessnn_colab").rglob("*.py")
    )
    names = {".".join(path.parts).removesuffix(".__init__") for path in paths}
    assert set(modules) == names - {"chessnn_colab"}


def test_the_command_line_works_from_the_wheel(site, tmp_path):
    assert "gomoku:SIZE" in installed(site, tmp_path, "-m", "chessnn_colab", "train", "--help")
