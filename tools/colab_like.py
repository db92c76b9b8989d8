"""Make an environment like Colab's: its old ipywidgets, IPython, ipykernel and notebook, beside the
torch that is here.

python tools/colab_like.py FOLDER: FOLDER becomes a virtual environment. What is large (torch and
the rest) is not installed again: links to it stand in FOLDER-shared, last on the path. chess and
spikingjelly are not linked, because Colab has neither: pip installs them from requirements.txt and
must leave the rest alone, which is checked.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLAB = {"ipywidgets": "7.7.1", "ipython": "7.34.0", "ipykernel": "6.17.1", "notebook": "6.5.7"}
NOT_ON_COLAB = ("chess", "spikingjelly")
VERSIONS = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"


def make_environment(folder: Path) -> None:
    """Raises CalledProcessError when pip fails, SystemExit when pip changed what it had to leave
    alone.
    """
    shared = folder.with_name(
        folder.name + "-shared"
    )  # outside the environment: pip uninstalls nothing there
    for old in (folder, shared):
        shutil.rmtree(old, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *(f"{name}=={version}" for name, version in COLAB.items())], check=True)
    link_packages(Path(sysconfig.get_path("purelib")), shared)
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (Path(own) / "zz_shared.pth").write_text(f"{shared}\n")
    before = versions(python)
    subprocess.run([*pip, "--requirement", str(ROOT / "requirements.txt")], check=True)
    if versions(python) != before:
        sys.exit(f"pip changed {before} to {versions(python)}: requirements.txt does not fit Colab")


def link_packages(site_packages: Path, shared: Path) -> None:
    """Link what this environment has, but for what Colab has not and for what makes this
    environment itself.
    """
    shared.mkdir()
    for path in site_packages.iterdir():
        name = path.name.lower()
        if not name.startswith((*NOT_ON_COLAB, "__", "pip")):
            (shared / path.name).symlink_to(path)


def versions(python: Path) -> str:
    """The versions that an install may not change."""
    command = [str(python), "-c", VERSIONS, "torch", "numpy", *COLAB]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    try:
        make_environment(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # half an environment is not taken for a whole one
        print(f"{folder} could not be made: {error}")
    else:
        print(f"{folder}: {versions(folder / 'bin' / 'python')}")
