"""What `import chessnn_colab` offers, and that it costs nothing until used."""

import subprocess
import sys

import pytest

import chessnn_colab


@pytest.mark.parametrize("name", chessnn_colab.__all__)
def test_public_names_are_there(name):
    assert getattr(chessnn_colab, name) is not None


def test_an_unknown_name_lists_the_known():
    with pytest.raises(AttributeError, match="TrainConfig"):
        _ = chessnn_colab.Trainer


@pytest.mark.parametrize(
    "module, absent",
    [
        ("chessnn_colab", ["torch", "numpy", "IPython"]),
        ("chessnn_colab.views.progress", ["torch", "ipywidgets", "matplotlib"]),
        ("chessnn_colab.records", ["torch"]),
        ("chessnn_colab.training", ["ipywidgets", "matplotlib", "torchaudio", "torchvision"]),
    ],
)
def test_imports_bring_no_more_than_they_need(module, absent):
    code = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
