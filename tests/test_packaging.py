"""What installs, and what the README promises about it."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import reliability  # noqa: E402
from make_notebook import notebook_text  # noqa: E402


def requirements(name: str | Path) -> list[Requirement]:
    lines = (
        line.split("#")[0].strip()
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    )
    return [Requirement(line) for line in lines if line]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_requirements_are_read_from_one_file_and_stay_loose():
    dependencies = project()["tool"]["setuptools"]["dynamic"]["dependencies"]
    assert dependencies == {"file": ["requirements.txt"]}
    names = {
        requirement.name: str(requirement.specifier)
        for requirement in requirements("requirements.txt")
    }
    assert names["torch"] == ">=2.6" and set(names["chess"].split(",")) == {">=1.11", "<2"}
    assert not any("==" in specifier for specifier in names.values())


def test_constraints_pin_what_is_required_and_what_is_installed():
    pins = {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in requirements("constraints.txt")
        if pin.marker is None or pin.marker.evaluate()
    }
    extras = project()["project"]["optional-dependencies"]
    wanted = requirements("requirements.txt") + [
        Requirement(text) for texts in extras.values() for text in texts
    ]
    for requirement in wanted:
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue  # Ray is not there for the newest Python
        assert requirement.specifier.contains(pins[requirement.name]), requirement.name
        assert version(requirement.name).split("+")[0] == pins[requirement.name], requirement.name


def test_the_pins_of_a_place_go_in_place_of_those_that_are_there(tmp_path):
    """As the workflow does for Colab's and Kaggle's torch."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "pin", tmp_path / ".ci")
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    pins = ("torch==2.10.0", "setuptools==81.0.0")
    subprocess.run([tmp_path / ".ci" / "pin", *pins], check=True)
    before = {str(pin) for pin in requirements("constraints.txt")}
    after = {str(pin) for pin in requirements(tmp_path / "constraints.txt")}
    assert after - before == {*pins}
    assert {Requirement(pin).name for pin in before - after} == {"torch", "setuptools"}


def test_the_tests_for_a_gpu_need_nothing_but_the_requirements_and_pytest():
    """Else they are skipped, and `make gpu` has looked at nothing."""
    extras = project()["project"]["optional-dependencies"]
    more = {Requirement(text).name for text in extras["test"]} - {"pytest"} | {"yaml", "hypothesis"}
    code = f"import sys; sys.modules |= dict.fromkeys({more}); import tests.test_gpu"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=300)


def test_every_package_folder_is_shipped():
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "chessnn_colab").rglob("*.py")
    }
    assert set(project()["tool"]["setuptools"]["packages"]) == folders


def test_licence_and_python():
    metadata = project()["project"]
    assert metadata["license"] == "GPL-3.0-or-later" and metadata["requires-python"] == ">=3.11"
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_ci_runs_what_the_readme_says():
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "make check" in commands and "make test" in commands
    assert "run: .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_make_help_lists_every_target_and_make_quick_names_files_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE)) - {"help"}
    assert set(re.findall(r"^# make ([a-z]+)", makefile, re.MULTILINE)) == targets
    quick = (
        re.search(r"^QUICK := (.*?[^\\])$", makefile, re.MULTILINE | re.DOTALL)[1]
        .replace("\\", " ")
        .split()
    )
    assert [name for name in quick if not (ROOT / "tests" / f"test_{name}.py").is_file()] == []


def test_troubleshooting_quotes_messages_that_the_code_has():
    """Those that begin with one of this package's errors; "..." stands for what changes."""
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "chessnn_colab").rglob("*.py")
    )
    pieces = re.sub(r'"\s*\n\s*f?"', "", code)  # a message may be written in several pieces
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"`(\w+Error): ([^`]+)`", text)
    assert len(quoted) >= 6
    for error, message in quoted:
        assert f"class {error}(ChessnnError)" in code, error
        for part in re.split(r"\.\.\.|'[^']*'", message):
            if len(words := part.strip(" ,=")) > 3:
                assert words in pieces, f"{error}: {words!r}"


def test_texts_name_only_commands_that_exist():
    text = "".join(
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
    )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    from chessnn_colab.__main__ import build_parser

    help_text = build_parser().format_help()
    for command in set(re.findall(r"python -m chessnn_colab ([a-z-]+)", text)):
        assert command in help_text, command


@pytest.mark.parametrize("tool", sorted(path.stem for path in (ROOT / "tools").glob("*.py")))
def test_every_tool_starts(tool):
    """What it imports is there. jax and mctx, which one tool needs, are not among our
    requirements.
    """
    if tool == "mctx_golden":
        pytest.importorskip("mctx")
    spec = importlib.util.spec_from_file_location(f"tool_{tool}", ROOT / "tools" / f"{tool}.py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.fixture
def copy(tmp_path):
    notebooks = [
        f"notebooks/{path.name}" for path in (ROOT / "notebooks").iterdir() if path.is_file()
    ]
    (tmp_path / "docs").mkdir()
    pictures = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.png")]
    for name in ("README.md", *notebooks, *pictures, "tools/set_repository.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def set_repository(copy: Path, url: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(copy / "tools/set_repository.py"), url], capture_output=True, text=True
    )


def test_make_repository_sets_badges_and_addresses_and_sets_them_again(copy):
    files = [copy / "README.md", *(copy / "notebooks").glob("*.py")]
    files += (copy / "notebooks").glob("*.ipynb")
    for file in files:
        assert "colab-badge" not in file.read_text(), "there is no address yet"
    for owner in ("me/my-fork", "you/chess.net"):
        assert set_repository(copy, f"https://github.com/{owner}").returncode == 0
        for file in files:
            text = file.read_text()
            notebook = "train" if file.name == "README.md" else file.stem
            badge = f"research.google.com/github/{owner}/blob/main/notebooks/{notebook}.ipynb)"
            assert text.count("colab-badge") == text.count(badge) == 1, file
            if file.name != "README.md":
                assert f"https://github.com/{owner}" in text, file
            if file.suffix == ".ipynb":
                assert text == notebook_text(file.with_suffix(".py")), file
    same = set_repository(copy, "https://github.com/you/chess.net.git")
    assert "nothing to change" in same.stdout


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://example.org/a/b",
        "github.com/a/b",
        "https://github.com/only",
        "https://github.com/a/b; rm x",
    ],
)
def test_make_repository_refuses_other_addresses(copy, url):
    before = (copy / "README.md").read_text()
    done = set_repository(copy, url)
    assert done.returncode == 2 and "expected https://github.com/OWNER/NAME" in done.stderr
    assert (copy / "README.md").read_text() == before


def test_every_promise_has_tests_and_every_full_count_runs():
    source = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/*.py"))
    for row in reliability.ROWS:
        for tests in row.tests:
            files, _, word = tests.partition(" -k ")
            assert all((ROOT / "tests" / name).is_file() for name in files.split()), row.promise
            assert re.search(rf"def test_\w*{word}", source), row.promise
    run = " ".join(tests for row in reliability.ROWS for tests in row.tests)
    for path in ROOT.glob("tests/test_*.py"):
        if re.search(r"^from \.counts import", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert path.name in run, f"the full count of {path.name} runs nowhere"
