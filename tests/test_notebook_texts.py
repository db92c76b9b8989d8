"""What every notebook keeps, found without running it. A new notebook needs no
line here.
"""

import ast
import base64
import importlib.util
import json
import re
import sys
from pathlib import Path

import nbformat
import pytest

import chessnn_colab
from chessnn_colab.games.registry import GAMES

ROOT = Path(__file__).parent.parent
NOTEBOOKS = [text.with_suffix(".ipynb") for text in sorted((ROOT / "notebooks").glob("*.py"))]
sys.path.insert(0, str(ROOT / "tools"))
from make_notebook import notebook_text  # noqa: E402

FORM = re.compile(r"^(\w+) = (.+?)  # @param (.+)$", re.MULTILINE)
FIELD_TYPES = {"string", "boolean", "slider"}  # a number is a slider
MOST_PICTURE_BYTES = 300_000

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def code(path: Path) -> str:
    """All code of a notebook, as Python without IPython's magics."""
    return "\n".join(
        re.sub(r"^[%!].*$", "", cell.source, flags=re.MULTILINE) for cell in cells(path, "code")
    )


@every_notebook
def test_it_is_valid_stripped_and_in_step_with_its_text(path):
    text = path.read_text(encoding="utf-8")
    assert text == notebook_text(path.with_suffix(".py")), "run `make notebooks`"
    notebook = json.loads(text)
    nbformat.validate(notebook)
    assert "".join(notebook["cells"][0]["source"]).startswith("# ")
    assert "widgets" not in notebook["metadata"] and notebook["metadata"]["colab"] == {
        "private_outputs": True
    }
    assert all(
        not cell.get("outputs") and cell.get("execution_count") is None
        for cell in notebook["cells"]
    )
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@every_notebook
def test_it_imports_from_the_packages_front_door_alone(path):
    """Of this package only public names of `chessnn_colab`; the rest is installed."""
    for node in ast.walk(ast.parse(code(path))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [str(node.module)]
        for module in modules:
            top = module.split(".")[0]
            if top == "chessnn_colab":
                assert isinstance(node, ast.ImportFrom) and module == top
                assert {alias.name for alias in node.names} <= {*dir(chessnn_colab)}
            elif top != "ray":  # an extra
                assert importlib.util.find_spec(top), module


@every_notebook
def test_form_fields_parse_and_hold_their_defaults(path):
    text = code(path)
    assert text.count("# @param") == len(FORM.findall(text)), "a field that Colab would not show"
    for name, default, field in FORM.findall(text):
        value = ast.literal_eval(default)
        if field.startswith("["):
            assert value in json.loads(field), name
            continue
        shape = json.loads(re.sub(r"(\w+)(?=:)", r'"\1"', field))
        assert shape["type"] in FIELD_TYPES, name
        if shape["type"] == "slider":
            assert shape["min"] <= value <= shape["max"] and shape["step"] > 0, name
        else:
            assert isinstance(value, {"string": str, "boolean": bool}[shape["type"]]), name


@pytest.mark.parametrize(
    "name, field", [("train", "game"), ("by_hand", "game_name"), ("evaluate", "game")]
)
def test_the_form_offers_every_game(name, field):
    forms = {
        name: form for name, _, form in FORM.findall(code(ROOT / "notebooks" / f"{name}.ipynb"))
    }
    offered = dict.fromkeys(name.partition(":")[0] for name in json.loads(forms[field]))
    assert list(offered) == list(GAMES)


@every_notebook
def test_pictures_are_inside_and_small(path):
    """Colab shows neither attachments nor files beside the notebook (googlecolab/colabtools issue
    3836).
    """
    for cell in cells(path, "markdown"):
        assert "attachments" not in cell
        for words, address in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", cell.source):
            assert len(words) > 8, "words for who cannot see the picture"
            if "colab-badge" in address:
                continue
            assert address.startswith("data:image/png;base64,"), address[:60]
            assert len(base64.b64decode(address.partition(",")[2])) < MOST_PICTURE_BYTES


@every_notebook
def test_the_code_that_fetches_and_installs_is_folded_and_the_same_everywhere(path):
    first, second = cells(path, "code")[:2]
    assert first.source == cells(ROOT / "notebooks" / "train.ipynb", "code")[0].source
    assert "fetch" in first.metadata.tags and first.source.count("REPOSITORY = ") == 1
    for cell in (first, second):
        assert cell.metadata.cellView == "form" and cell.metadata.jupyter.source_hidden
        assert cell.source.startswith("# @title ")
    for cell in cells(path, "code"):  # Lab shows the title of a folded cell as it stands
        assert "display-mode" not in cell.source
    assert (
        len([line for line in second.source.splitlines() if line and not line.startswith("#")]) <= 3
    )
