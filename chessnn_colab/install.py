"""Install what the package needs, and find a folder for runs: a notebook's first cell calls it."""

import importlib.metadata
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from . import __version__, public_names
from .errors import InstallError

# The folder that holds the package: a checkout, or an unpacked bundle.
HERE = Path(__file__).resolve().parent.parent


def install_requirements(also: Sequence[str] = ()) -> Path:
    """Install what is missing, quietly, and return the folder below which runs go.

    Installed packages stay as they are, torch above all, which is loaded here. Runs go to a
    checkout, or else to the working folder. Prints a line. also: more requirements, as pip writes
    them. Raises InstallError for a package of another version than the requirements allow, and with
    pip's own reason when it fails.
    """
    if str(HERE) not in sys.path:
        # Workers start in another folder, where a relative path would lead to nothing.
        sys.path.insert(0, str(HERE))
    lines = list(also)
    requirements = HERE / "requirements.txt"
    if requirements.is_file():  # a wheel has none
        lines = [*requirements.read_text(encoding="utf-8").splitlines(), *also]
    wanted = [text for line in lines if (text := line.split("#")[0].strip())]
    versions = {line: installed_version(Requirement(line).name) for line in wanted}
    missing = [line for line, version in versions.items() if version is None]
    _refuse_other_versions(versions)
    if missing:
        print(f"Installing {', '.join(missing)} ...", flush=True)
        _pip_install(missing)
    _load_torch()
    print(f"chessnn_colab {__version__} from {HERE.name}/")
    return HERE if (HERE / "pyproject.toml").is_file() else Path.cwd()


def _refuse_other_versions(wanted: dict[str, str | None]) -> None:
    """Raise InstallError for packages that do not meet their requirement.

    A version before a release counts as the release (NVIDIA's containers have torch 2.6.0a0). A
    version that cannot be read counts as met.
    """
    wrong = {}
    for line, version in wanted.items():
        with suppress(InvalidVersion):
            requirement = Requirement(line)
            if version and not requirement.specifier.contains(Version(version).base_version):
                wrong[line] = f"{requirement.name} {version} is installed: expected {line}"
    if wrong:
        raise InstallError(
            f"{'; '.join(wrong.values())}. Run: pip install {' '.join(map(repr, wrong))}, and "
            "restart the kernel"
        )


def _pip_install(missing: list[str]) -> None:
    """Run pip with torch pinned to the version that is here."""
    torch = installed_version("torch")
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
            f"pip could not install {', '.join(missing)}: {reason}. Look at the network "
            "connection (on Kaggle: Settings, Internet on), and run this again"
        )


def _load_torch() -> None:
    """Load torch. An interrupt waits until that is done: a process in which it was interrupted
    cannot load it again, and often crashes.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # an interrupt reaches the main thread alone
    interrupts = []
    usual = signal.signal(signal.SIGINT, lambda *which: interrupts.append(which))
    try:
        public_names()[0]("detect_device")
    finally:
        signal.signal(signal.SIGINT, usual)
    if interrupts:
        raise KeyboardInterrupt


def installed_version(package: str) -> str | None:
    """The version of a package that is installed; None if it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
