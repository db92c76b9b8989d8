"""Which front end, if any, shows this process's output: nothing is imported and nothing is drawn to find out."""

import importlib.util
import sys


def in_colab() -> bool:
    """True inside a Google Colab kernel."""
    return "google.colab" in sys.modules


def has_widget_front_end() -> bool:
    """True in a notebook kernel with somebody in front of it, where ipywidgets can be drawn.

    A terminal has no kernel. A headless run (nbclient, nbconvert, papermill) has one, but executes every cell
    with `allow_stdin` off, for nobody is there to answer; browsers and editors leave it on.
    """
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if kernel is None or importlib.util.find_spec("ipywidgets") is None:
        return False
    return in_colab() or bool(getattr(kernel, "_allow_stdin", True))
