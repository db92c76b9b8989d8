"""Which front end, if any, shows the output of this process. Finding out imports nothing and draws nothing."""

import importlib.util
import sys


def in_colab() -> bool:
    """True inside a Google Colab kernel."""
    return "google.colab" in sys.modules


def has_widget_front_end() -> bool:
    """True in a notebook kernel that a person looks at, and where ipywidgets can be drawn.

    A terminal has no kernel. A headless run (nbclient, nbconvert, papermill) has one, but it turns `allow_stdin` off,
    because nobody is there to answer; browsers and editors leave it on.
    """
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if kernel is None or importlib.util.find_spec("ipywidgets") is None:
        return False
    return in_colab() or bool(getattr(kernel, "_allow_stdin", True))
