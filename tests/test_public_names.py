"""What `import chessnn_colab` offers, and that it costs nothing until used."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chessnn_colab

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
HEAD = """# Public names

`from chessnn_colab import NAME`. Python loads a name's module when you first use the name. `help(NAME)`
has the whole text: shapes, units and errors. A test keeps this page equal to the code;
`python -m tests.test_public_names` writes it.
"""


def signature(name: str, value: Any) -> str:
    """How to call it, without types; "..." stands for a default that is an object, or for many
    settings.
    """
    if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
        return name
    parameters = []
    for parameter in inspect.signature(value).parameters.values():
        default = parameter.default
        if not isinstance(default, (bool, int, float, str, tuple, type(None), type)):
            default = ...
        parameters.append(parameter.replace(default=default, annotation=inspect.Parameter.empty))
    text = f"{name}{inspect.Signature(parameters)}".replace("Ellipsis", "...")
    return text if len(text) <= 100 else f"{name}(...)"


def api_page() -> str:
    """docs/api.md: a line per name, in the order and the groups of the table in __init__."""
    source = Path(chessnn_colab.__file__).read_text(encoding="utf-8")
    table = source.partition("_HOMES = {")[2].partition("\n}")[0]
    lines, group, prefix = [HEAD], chessnn_colab, ""
    for heading, name, opens in re.findall(r"# (.+)|\"(\w+)\": ({?)", table):
        value = getattr(chessnn_colab if opens else group, name, None)
        if heading:
            lines.append(f"\n## {heading}\n\n")
        elif opens:
            group, prefix = value, f"{name}."
            lines.append(f"\n## `from chessnn_colab import {name}`\n\n")
        else:
            first = inspect.getdoc(value).split("\n\n")[0]
            summary = re.split(r"(?<=\.)\s", " ".join(first.split()))[0]
            lines.append(f"- `{prefix}{signature(name, value)}`: {summary}\n")
    return "".join(lines)


def test_every_public_name_stands_in_the_page_of_names():
    pytest.importorskip("ray", reason="two names need the extra [cluster]")
    assert PAGE.read_text(encoding="utf-8") == api_page()


@pytest.mark.parametrize("group, known", [("", "TrainConfig"), ("inside", "growth")])
def test_an_unknown_name_lists_the_known(group, known):
    with pytest.raises(AttributeError, match=known):
        _ = (getattr(chessnn_colab, group) if group else chessnn_colab).Trainer


@pytest.mark.parametrize(
    "module, absent",
    [
        ("chessnn_colab", ["torch", "numpy", "IPython"]),
        ("chessnn_colab.views.inside", ["torch", "numpy", "IPython", "ipywidgets"]),
        ("chessnn_colab.views.progress", ["torch", "ipywidgets", "matplotlib", "rich", "IPython"]),
        ("chessnn_colab.views.progress.notebook", ["matplotlib.pyplot"]),
        ("chessnn_colab.records", ["torch"]),
        ("chessnn_colab.training", ["ipywidgets", "matplotlib", "torchaudio", "torchvision"]),
    ],
)
def test_imports_bring_no_more_than_they_need(module, absent):
    code = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
