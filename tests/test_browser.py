"""The train notebook in a real browser, in JupyterLab 4 and in the classic notebook with Colab's
versions.

`make test` runs the first test in JupyterLab, `make browser` all of them, with screenshots.
"""

import re
import sys
from pathlib import Path

import nbformat
import pytest

from .browser import (
    COLAB,
    EVERYTHING,
    NARROW,
    WIDE,
    Page,
    browse,
    long,
    needs_browser,
    needs_colab,
    serve,
)
from .short_notebook import MATCHES, ONE_WORKER, SELF_PLAY, with_cell

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_notebook import with_parameters  # noqa: E402

pytestmark = [needs_browser, pytest.mark.timeout(1200)]
LAB, CLASSIC = (Path(sys.executable), False), (COLAB, True)
classic = pytest.param(CLASSIC, marks=[needs_colab, long], id="classic")
PATIENCE = 600  # seconds for what takes one on an idle machine and minutes on a busy one


def short_notebook(folder: Path, minutes: float, game: str = "chess") -> str:
    """A copy of the train notebook that plays little, in `folder`; its name."""
    values = [f"minutes={minutes}", "match_games=2", f"game={game!r}"]
    values.append(f"run_folder={str(folder / 'run')!r}")
    notebook = with_parameters(
        nbformat.read(ROOT / "notebooks" / "train.ipynb", as_version=4), values
    )
    nbformat.write(
        notebook if EVERYTHING else with_cell(notebook, MATCHES + SELF_PLAY + ONE_WORKER),
        folder / "train.ipynb",
    )
    return "train.ipynb"


def in_sight(page: Page) -> bool:
    """Whether a bar is on the screen, without scrolling."""
    return page.tab.evaluate(
        """() => [...document.querySelectorAll('[role="progressbar"]')].some(bar => {
        const box = bar.getBoundingClientRect();
        return box.width > 0 && box.top >= 0 && box.bottom <= window.innerHeight; })"""
    )


@pytest.mark.parametrize("front_end", [pytest.param(LAB, id="lab"), classic])
def test_run_all_shows_bars_that_move_and_no_error(tmp_path, front_end):
    with serve(tmp_path, *front_end) as server, browse() as browser:
        page = server.open(browser, short_notebook(tmp_path, minutes=0.5 if EVERYTHING else 0.1))
        page.picture("first-screen", whole=False)
        page.run_all()
        page.wait_until(page.bars, PATIENCE)
        seen = set()  # what the bars have shown so far
        page.wait_until(
            lambda: seen.add(tuple(page.bars())) or len(seen) >= 2 or page.idle(), PATIENCE
        )
        assert len(seen) >= 2, seen
        page.wait_until(lambda: in_sight(page), 30)
        page.picture("training", whole=False)
        page.wait_idle(PATIENCE)
        assert page.errors() == []
        assert "Iteration 1" in page.text() and "against random" in page.text()
        assert re.search(r"\d+ games in ", page.text()), (
            "the bars of the matches become their table"
        )
        for pixels in (WIDE, NARROW) if EVERYTHING else (WIDE,):
            page.width(pixels)
            assert page.cut() == [], f"at {pixels} pixels"
        page.pictures("classic" if server.classic else "lab")


@long
@pytest.mark.parametrize("front_end", [pytest.param(LAB, id="lab"), classic])
def test_interrupt_then_run_all_again_resumes(tmp_path, front_end):
    with serve(tmp_path, *front_end) as server, browse() as browser:
        page = server.open(browser, short_notebook(tmp_path, minutes=30, game="tictactoe"))
        page.run_all()
        page.wait_until(lambda: any(bar > 0 for bar in page.bars()), PATIENCE)
        page.interrupt()
        page.wait_until(lambda: "Interrupted: everything up to iteration" in page.text(), PATIENCE)
        page.wait_idle(PATIENCE)
        page.run_all()
        page.wait_until(lambda: "Resuming" in page.text(), PATIENCE)
        page.wait_until(lambda: any(bar > 0 for bar in page.bars()), PATIENCE)
        page.interrupt()
        page.wait_until(lambda: "Interrupted: everything up to iteration" in page.text(), PATIENCE)
        assert page.errors() == []


@long
@pytest.mark.parametrize("front_end", [pytest.param(LAB, id="lab"), classic])
def test_reopened_without_a_kernel_it_shows_no_error_text(tmp_path, front_end):
    with serve(tmp_path, *front_end) as server, browse() as browser:
        page = server.open(browser, short_notebook(tmp_path, minutes=0.05, game="tictactoe"))
        page.run_all()
        page.wait_until(lambda: "against random" in page.text(), PATIENCE)
        page.wait_idle(PATIENCE)
        page.save()
        page.shut_down()
        page.tab.close()
        page = server.open(browser, "train.ipynb")
        page.tab.wait_for_timeout(3000)
        page.picture("reopened")
        assert page.errors() == []
        assert "model not found" not in page.text() and "Loading widget" not in page.text()
        assert re.search(r"Iteration \d", page.text()) and "against random" in page.text()
