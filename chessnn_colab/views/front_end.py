"""Which front end, if any, shows the output of this process. Finding out imports nothing and draws
nothing.
"""

import importlib.util
import sys
import time


def in_colab() -> bool:
    """True inside a Google Colab kernel."""
    return "google.colab" in sys.modules


def has_widget_front_end() -> bool:
    """True in a notebook kernel that a person looks at, and where ipywidgets can be drawn.

    A terminal has no kernel. A headless run (nbclient, nbconvert, papermill) has one, but it turns
    `allow_stdin` off, because no person is there to answer; browsers and editors leave it on.
    """
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if kernel is None or importlib.util.find_spec("ipywidgets") is None:
        return False
    return in_colab() or bool(getattr(kernel, "_allow_stdin", True))


# JupyterLab's and the classic notebook's Run All go to the last cell, JupyterLab again some seconds
# later, when it has drawn more cells. It draws only those in sight, so the page is scrolled up
# until the running one is there. A reader's first key, click or turn of the wheel ends this, and so
# does another cell that asks for it. The time keeps a saved copy from scrolling when it is opened.
_COME_BACK = """(() => {
  const begun = %d, top = %s, here = typeof element === 'undefined' ? null : element[0] || element;
  const mine = {};
  let touched = false;
  if (!here || Date.now() - begun > 20000) return;
  window.chessnnInSight = mine;
  for (const kind of ['wheel', 'keydown', 'pointerdown'])
    window.addEventListener(
      kind, event => { touched = touched || event.isTrusted; }, {capture: true, passive: true});
  const stay = setInterval(() => {
    if (touched || window.chessnnInSight !== mine || Date.now() - begun > 60000)
      return clearInterval(stay);
    const pages = [...document.querySelectorAll('.jp-WindowedPanel-outer, #site')];
    const page = pages.find(each => each.offsetParent);
    if (!page) return;
    const cell = here.isConnected && here.closest('.jp-OutputArea-child, .output_area');
    const below = each => each.getBoundingClientRect().top;
    const off = cell ? below(cell) - below(page) : -page.clientHeight / 2;
    if (top) page.scrollTop = 0;
    else if (Math.abs(off) > 8) page.scrollTop += off;
  }, 200);
})();"""


def scroll_to_cell(top: bool = False) -> None:
    """Bring what the running cell shows next into sight after Run All and keep it there, or the top
    of the notebook; on Colab, and where no person looks, do nothing.
    """
    if has_widget_front_end() and not in_colab():
        from IPython.display import Javascript, display

        display(Javascript(_COME_BACK % (time.time() * 1000, str(top).lower())))
