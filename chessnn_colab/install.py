"""What the first cell of a notebook does once the package is there: install what it needs and find a place for runs."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from . import __version__
from .errors import InstallError

HERE = Path(__file__).resolve().parent.parent  # the folder that holds the package: a checkout, or an unpacked bundle


def install(requirements: Path = HERE / "requirements.txt", also: Sequence[str] = ()) -> Path:
    """Install what is missing, quietly, and return the folder below which runs go.

    Nothing that is here is replaced, torch least of all. Runs go to a checkout, or else to the working folder. Prints a
    line. also: more requirements, as pip writes them. Raises InstallError for a package of another version than the
    requirements ask for, with pip's own reason when it fails, and when torch is another one afterwards.
    """
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))  # workers start elsewhere, where a relative path would lead to nothing
    lines = requirements.read_text(encoding="utf-8").splitlines() if requirements.is_file() else []  # a wheel has none
    asked = [*lines, *also]
    missing = missing_of(asked)
    if wrong := unfit([line for line in asked if line.split("#")[0].strip() not in missing]):
        said = "; ".join(f"{name} {version} is installed: expected {line}" for line, (name, version) in wrong.items())
        asked_for = " ".join(map(repr, wrong))
        raise InstallError(f"{said}. Run: pip install {asked_for}, and restart the kernel")
    if missing:
        print(f"Installing {', '.join(missing)} ...", flush=True)
        torch = _version("torch")
        _pip_install(missing, torch)
        if torch not in (None, after := _version("torch")):
            raise InstallError(f"pip replaced torch {torch} by {after}: expected it to stay. Restart the runtime")
    print(f"chessnn_colab {__version__} from {HERE.name}/" + (f", installed {', '.join(missing)}" if missing else ""))
    return HERE if (HERE / "pyproject.toml").is_file() else Path.cwd()


def missing_of(requirements: Sequence[str]) -> list[str]:
    """The lines whose package cannot be imported, without comments."""
    lines = (line.split("#")[0].strip() for line in requirements)
    names = {line: re.split(r"[^\w-]", line)[0].replace("-", "_") for line in lines if line}
    return [line for line, name in names.items() if importlib.util.find_spec(name) is None]


def unfit(requirements: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Line -> name and version of a package that is here in a version which that line does not allow.

    A version before a release counts as the release (NVIDIA's containers have torch 2.6.0a0). What cannot be read fits.
    """
    found = {}
    for line in filter(None, (line.split("#")[0].strip() for line in requirements)):
        with suppress(InvalidRequirement, InvalidVersion):
            asked = Requirement(line)
            version = _version(asked.name)
            if version is not None and not asked.specifier.contains(Version(version).base_version):
                found[line] = asked.name, version
    return found


def _pip_install(missing: list[str], torch: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "constraints.txt")
        pins.write_text(f"torch=={torch}\n" if torch else "", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--constraint", str(pins), *missing]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    importlib.invalidate_caches()
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        reason = next((line for line in lines if line.lower().startswith("error")), lines[-1])
        raise InstallError(
            f"pip could not install {', '.join(missing)}: {reason}. Look at the network connection, and run this again"
        )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
