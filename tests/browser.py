"""A notebook in a real browser: Debian's Chromium, driven by Playwright, before a Jupyter server of
the test's own.

    with serve(folder) as server, browse() as browser:
        page = server.open(browser, "train.ipynb")
        page.run_all()
        page.wait_until(lambda: page.bars(), seconds=60)
        page.picture("training")

Tests that use it are marked `needs_browser` and skipped with a sentence where there is no browser
or no Playwright. Pictures go to the folder in CHESSNN_PICTURES (`make browser` sets it), or else
nowhere.
"""

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .jupyter_server import jupyter_server

WIDE, NARROW, HEIGHT = 1400, 820, 900
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
MISSING = (
    "Playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("playwright") is None
    else "no browser is installed (apt-get install chromium)"
    if CHROMIUM is None
    else ""
)
needs_browser = pytest.mark.skipif(
    bool(MISSING), reason=f"no notebook can be shown in a browser: {MISSING}"
)

# Where `make test` puts the environment of tools/colab_like.py; CHESSNN_COLAB names another.
COLAB = Path(os.environ.get("CHESSNN_COLAB", Path(sys.prefix) / "colab")) / "bin" / "python"
needs_colab = pytest.mark.skipif(
    not COLAB.is_file(),
    reason=f"no environment like Colab's in {COLAB.parent.parent}: run tools/colab_like.py there",
)
EVERYTHING = os.environ.get("CHESSNN_BROWSER") == "all"
long = pytest.mark.skipif(not EVERYTHING, reason="`make browser` runs it")

# What reaches further right than the box that shows it: the cell's output, or a box on the way
# there that hides what is outside it. Text and tables may scroll sideways, pictures and controls
# may not. Jupyter's own parts are not looked at.
CUT = """(area) => [...document.querySelectorAll(area)].flatMap(box => {
  const right = element => element.getBoundingClientRect().right;
  const limit = element => {
    let most = Math.min(right(box), window.innerWidth);
    for (let e = element.parentElement; e && e !== box.parentElement; e = e.parentElement) {
      const overflow = getComputedStyle(e).overflowX;
      if (element.tagName === 'TABLE' && ['auto', 'scroll'].includes(overflow)) return Infinity;
      if (overflow !== 'visible') most = Math.min(most, right(e));
    }
    return most + 1;
  };
  return [...box.querySelectorAll('img, svg, canvas, button, input, select, table, .progress')]
    .filter(e => !e.closest('svg svg, button svg') && e.getBoundingClientRect().width > 0 && right(e) > limit(e))
    .map(e => `${e.tagName} ${e.className.baseVal ?? e.className}: ${Math.round(right(e) - limit(e))} px too far`);
})"""


class Page:
    """An open notebook; JupyterLab and the classic notebook have a subclass each. `page.tab` is
    Playwright's Page.
    """

    outputs = prompts = scroller = ""  # CSS selectors

    def __init__(self, tab):
        self.tab = tab

    def run_all(self) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        """Restart the kernel; outputs stay."""
        raise NotImplementedError

    def save(self) -> None:
        raise NotImplementedError

    def shut_down(self) -> None:
        """End the kernel for good, as a page that is opened again without one has it."""
        raise NotImplementedError

    def dark(self, on: bool = True) -> None:
        """A dark theme, or the light one again."""
        raise NotImplementedError

    def idle(self) -> bool:
        """No cell is running or waiting."""
        return not any("*" in text for text in self.texts(self.prompts))

    def texts(self, selector: str) -> list[str]:
        return self.tab.eval_on_selector_all(selector, "all => all.map(one => one.innerText)")

    def text(self) -> str:
        """Everything that the outputs say."""
        return "\n".join(self.texts(self.outputs))

    def errors(self) -> list[str]:
        """The text of each error output, and of each widget that could not be drawn."""
        return self._error_texts() + [
            line for line in self.text().splitlines() if "rror displaying" in line
        ]

    def _error_texts(self) -> list[str]:
        raise NotImplementedError

    def bars(self) -> list[float]:
        """How full each bar is on the page, 0 to 100, from the top."""
        return self.tab.eval_on_selector_all(
            ".progress-bar",
            "all => all.map(one => parseFloat(one.style.width || one.style.height || 0))",
        )

    def wait_until(self, condition: Callable[[], object], seconds: float) -> object:
        """Return the condition's first true value. Raises AssertionError, with the page's errors
        and last words.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := condition():
                return found
            self.tab.wait_for_timeout(200)
        raise AssertionError(
            f"not within {seconds} s: errors {self.errors()}, text ends {self.text()[-1500:]!r}"
        )

    def wait_idle(self, seconds: float) -> None:
        """Wait until every cell has ended."""
        self.tab.wait_for_timeout(500)
        self.wait_until(self.idle, seconds)

    def width(self, pixels: int) -> None:
        self.tab.set_viewport_size({"width": pixels, "height": HEIGHT})
        self.tab.wait_for_timeout(500)

    def cut(self) -> list[str]:
        """What does not fit into its cell's output at the present width."""
        return self.tab.evaluate(CUT, self.outputs)

    def picture(self, name: str, whole: bool = True) -> Path | None:
        """A screenshot for a person to look at: of the whole notebook, or of what fits on the
        screen.
        """
        folder = os.environ.get("CHESSNN_PICTURES")
        if not folder:
            return None
        path = Path(folder) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = self.tab.viewport_size
        if whole:  # Jupyter scrolls inside the page, so the page is made as high as the notebook
            height = self.tab.evaluate(
                f"() => document.querySelector('{self.scroller}').scrollHeight"
            )
            self.tab.set_viewport_size(
                {"width": size["width"], "height": min(int(height) + 200, 16000)}
            )
            self.tab.evaluate(
                f"() => {{ document.querySelector('{self.scroller}').scrollTop = 0; }}"
            )
            self.tab.wait_for_timeout(500)
        self.tab.screenshot(path=str(path))
        self.tab.set_viewport_size(size)
        return path

    def pictures(self, name: str) -> None:
        """Four screenshots: light and dark, wide and narrow; none, and no waiting for any, where
        nobody keeps them.
        """
        if not os.environ.get("CHESSNN_PICTURES"):
            return
        for pixels in (NARROW, WIDE):
            self.width(pixels)
            for dark in (True, False):
                self.dark(dark)
                self.picture(f"{name}-{'dark' if dark else 'light'}-{pixels}")


class LabPage(Page):
    """JupyterLab 4."""

    outputs, prompts = (
        ".jp-Notebook .jp-OutputArea-child .jp-OutputArea-output",
        ".jp-CodeCell .jp-InputPrompt",
    )
    scroller = ".jp-WindowedPanel-outer"
    READY = """async () => { const app = window.jupyterapp; await app.restored; const w = app.shell.currentWidget;
        await w.context.ready; await w.sessionContext.ready; await w.sessionContext.session.kernel.info; }"""

    @classmethod
    def open(cls, tab, address: str, path: str) -> "LabPage":
        tab.goto(f"{address}/lab/workspaces/test/tree/{path}?reset", wait_until="domcontentloaded")
        tab.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        tab.wait_for_function("() => window.jupyterapp", timeout=60_000)
        tab.evaluate("""async () => { const app = window.jupyterapp; await app.restored;
            if (!app.shell.leftCollapsed) app.shell.collapseLeft(); }""")
        tab.evaluate(cls.READY)
        tab.wait_for_timeout(500)  # for the last cells to be drawn
        return cls(tab)

    def _error_texts(self) -> list[str]:
        """From the notebook itself: on the page an error looks like what a cell writes to
        stderr.
        """
        return self.tab.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
            .flatMap(cell => cell.type === 'code' ? cell.outputs.toJSON() : [])
            .filter(output => output.output_type === 'error')
            .map(output => output.traceback.join('\\n') || output.evalue)"""
        )

    def _command(self, name: str, arguments: str = "{}") -> None:
        self.tab.evaluate(
            f"async () => {{ await window.jupyterapp.commands.execute('{name}', {arguments}); }}"
        )

    def _begin(self, name: str) -> None:
        """Start a command without waiting for its end."""
        self.tab.evaluate(f"() => {{ window.jupyterapp.commands.execute('{name}'); }}")

    def run_all(self) -> None:
        self.tab.evaluate(self.READY)
        self._begin("notebook:run-all-cells")

    def interrupt(self) -> None:
        self._command("notebook:interrupt-kernel")

    def restart(self) -> None:
        self.tab.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
        )

    def save(self) -> None:
        self._command("docmanager:save")

    def shut_down(self) -> None:
        self.tab.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }"
        )

    def dark(self, on: bool = True) -> None:
        self._command(
            "apputils:change-theme", f"{{theme: 'JupyterLab {'Dark' if on else 'Light'}'}}"
        )
        self.tab.wait_for_timeout(700)


class ClassicPage(Page):
    """The classic notebook, 6.5."""

    outputs, prompts = ".output_subarea", ".code_cell .input_prompt"
    scroller = "#site"

    @classmethod
    def open(cls, tab, address: str, path: str) -> "ClassicPage":
        tab.goto(f"{address}/notebooks/{path}", wait_until="domcontentloaded")
        tab.wait_for_function(
            """() => window.Jupyter && Jupyter.notebook && Jupyter.notebook._fully_loaded
            && Jupyter.notebook.kernel && Jupyter.notebook.kernel.is_connected()
            && Jupyter.notebook.kernel.info_reply.status === 'ok'""",
            timeout=60_000,
        )
        tab.wait_for_timeout(
            3000
        )  # ipywidgets asks a new kernel for its widgets and hides the others
        return cls(tab)

    def _error_texts(self) -> list[str]:
        return self.texts(".output_error")

    def run_all(self) -> None:
        self.tab.evaluate("() => { Jupyter.notebook.execute_all_cells(); }")

    def interrupt(self) -> None:
        self.tab.evaluate("() => { Jupyter.notebook.kernel.interrupt(); }")

    def restart(self) -> None:
        self.tab.evaluate("() => new Promise(done => Jupyter.notebook.kernel.restart(done, done))")

    def save(self) -> None:
        self.tab.evaluate("async () => { await Jupyter.notebook.save_notebook(); }")

    def shut_down(self) -> None:
        self.tab.evaluate("() => new Promise(done => Jupyter.notebook.session.delete(done, done))")

    def dark(self, on: bool = True) -> None:
        """The classic notebook has one theme."""


class Server:
    """A Jupyter server in a folder. It has JupyterLab, or the classic notebook where `classic` is
    true.
    """

    def __init__(self, address: str, classic: bool):
        self.address, self.classic = address, classic

    def open(self, browser, path: str, width: int = WIDE) -> Page:
        """The notebook at `path` below the server's folder, with a kernel that has begun."""
        tab = browser.new_page(viewport={"width": width, "height": HEIGHT})
        return (ClassicPage if self.classic else LabPage).open(tab, self.address, path)


@contextmanager
def serve(
    folder: Path, python: str | Path = sys.executable, classic: bool = False, widgets: bool = True
) -> Iterator[Server]:
    """A server of jupyter_server.py in `folder`."""
    with jupyter_server(folder, python, classic, widgets) as address:
        yield Server(address, classic)


@contextmanager
def browse() -> Iterator:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            headless=True,
        )
        try:
            yield browser
        finally:
            browser.close()
