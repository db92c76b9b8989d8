"""The train notebook in a real browser, in JupyterLab 4 and in the classic notebook with Colab's
versions.

`make test` runs the first test in JupyterLab, `make browser` all of them, with screenshots.
"""

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
from .test_browser_play import notebook

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_notebook import with_parameters  # noqa: E402

pytestmark = [needs_browser, pytest.mark.timeout(1200)]
LAB, CLASSIC = (Path(sys.executable), False), (COLAB, True)
classic = pytest.param(CLASSIC, marks=[needs_colab, long], id="classic")
WIDGET_BARS, HTML_BARS = ".widget-hprogress", "[class$=-still] .progress-bar"
WORKER_DONE = f"{WIDGET_BARS} .progress-bar-success"
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
    """Whether the panel of a training is on the screen; in JupyterLab all of it, to its table."""
    return page.tab.evaluate(
        """() => ['.progress-bar', ...(window.jupyterapp ? ['.jp-OutputArea-output table'] : [])].every(each =>
        [...document.querySelectorAll(each)].some(part => {
          const box = part.getBoundingClientRect();
          return box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight - 30; }))"""
    )


@pytest.mark.parametrize("front_end", [pytest.param(LAB, id="lab"), classic])
def test_run_all_shows_bars_that_move_and_no_error(tmp_path, front_end):
    with serve(tmp_path, *front_end) as server, browse() as browser:
        page = server.open(browser, short_notebook(tmp_path, minutes=0.5 if EVERYTHING else 0.1))
        page.picture("first-screen", whole=False)
        page.run_all()
        page.wait_until(page.bars, PATIENCE)
        page.wait_until(lambda: in_sight(page), 3)
        seen = set()  # what the bars have shown so far
        page.wait_until(
            lambda: seen.add(tuple(page.bars())) or len(seen) >= 2 or page.idle(), PATIENCE
        )
        assert len(seen) >= 2, seen
        page.wait_until(lambda: page.tab.query_selector(WORKER_DONE), PATIENCE)
        assert not page.tab.locator(HTML_BARS).first.is_visible(), "widgets are in their place"
        assert in_sight(page), "it stays"
        page.picture("training", whole=False)
        page.wait_idle(PATIENCE)
        assert page.errors() == []
        page.wait_until(lambda: not page.tab.query_selector(WIDGET_BARS), 10)
        page.wait_until(lambda: page.tab.query_selector(HTML_BARS), 10)
        assert "after iteration 1:" in page.text() and "against random" in page.text()
        page.wait_until(lambda: " games in " in page.text(), 30)  # the matches' table
        for pixels in (WIDE, NARROW) if EVERYTHING else (WIDE,):
            page.width(pixels)
            assert page.cut() == [], f"at {pixels} pixels"
        page.pictures("classic" if server.classic else "lab")
        if EVERYTHING:
            page.save()
            page.shut_down()
            page.tab.close()
            page = server.open(browser, "train.ipynb")  # without a kernel
            page.tab.set_viewport_size({"width": WIDE, "height": 9000})  # all cells drawn
            page.wait_until(lambda: "against random" in page.text(), 30)
            page.picture("reopened")
            assert page.errors() == [] and "Run ended after iteration" in page.text()
            assert "model not found" not in page.text() and "Loading widget" not in page.text()


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


BARS = """
import time
from chessnn_colab.arena.progress import Bar, MatchProgress
from chessnn_colab.views.progress import make_progress
progress = make_progress()
for half in range(1000):
    bars = (Bar("GPU 0", 4, 4, "in 1s"), Bar("GPU 1", half, 1000), Bar("GPU 2", 1, 4, "lost", lost=True))
    progress(MatchProgress(bars, "game", half / 2))
    time.sleep(0.5)
"""


@long
def test_a_page_without_widgets_or_reloaded_shows_bars_of_html(tmp_path):
    notebook(tmp_path / "bars.ipynb", BARS)
    with browse() as browser:
        with serve(tmp_path, widgets=False) as server:
            page = server.open(browser, "bars.ipynb")
            page.run_all()
            page.wait_until(lambda: "shows no ipywidgets" in page.text(), 60)
            before = page.bars()
            page.wait_until(lambda: page.bars() != before, 20)
            page.picture("bars-without-widgets")
        with serve(tmp_path) as server:
            page = server.open(browser, "bars.ipynb")
            page.run_all()
            page.wait_until(page.tab.locator(WORKER_DONE).is_visible, 60)
            assert not page.tab.locator(HTML_BARS).first.is_visible()
            page.tab.wait_for_timeout(6000)
            assert "ipywidgets" not in page.text() and len(page.bars()) == 6
            page.pictures("bars")
            page.save()
            page.tab.reload()  # its kernel is busy, so the widgets cannot come back
            page.wait_until(page.tab.locator(HTML_BARS).first.is_visible, 60)
            page.tab.wait_for_timeout(1000)
            assert "displaying widget" not in page.text() and "Loading widget" not in page.text()
            page.wait_until(lambda: "opened again" in page.text(), 30)
            page.picture("bars-reloaded")
