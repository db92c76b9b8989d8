"""A notebook's first cells install missing packages and mount Drive. Both fail with one sentence."""

import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from chessnn_colab import install as module
from chessnn_colab.errors import ConfigError, InstallError
from chessnn_colab.install import install_requirements
from chessnn_colab.runs import drive as drive_module
from chessnn_colab.runs.drive import bring_back, drive_copy
from chessnn_colab.runs.networks import load_network
from chessnn_colab.training import train

from .small_run import tiny
from .test_training import Listener


def test_a_package_of_another_version_is_named_and_nothing_is_installed(monkeypatch):
    versions = {
        "spikingjelly": "0.0.0.0.14",
        "torch": "2.6.0a0+ecf3bae40a.nv25.1",
        "numpy": "odd",
        "ipywidgets": "9.0.0",
    }
    monkeypatch.setattr(module, "installed_version", versions.get)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was started"))
    with pytest.raises(InstallError) as error:
        install_requirements()
    assert str(error.value) == (
        "spikingjelly 0.0.0.0.14 is installed: expected spikingjelly>=2.0; ipywidgets 9.0.0 is "
        "installed: expected ipywidgets>=7.7,<9. Run: pip install 'spikingjelly>=2.0' "
        "'ipywidgets>=7.7,<9', and restart the kernel"
    )


def test_nothing_missing_installs_nothing_and_says_where_the_code_is(capsys, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was started"))
    assert install_requirements() == module.HERE
    assert (
        capsys.readouterr().out == f"chessnn_colab {module.__version__} from {module.HERE.name}/\n"
    )


STOPPED_WHILE_TORCH_IS_LOADED = """
import os, signal, sys
from chessnn_colab import install_requirements

class Stop:
    def find_spec(name, *_):
        if name == "torch.nn.functional":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop)
try:
    install_requirements()
except KeyboardInterrupt:
    from chessnn_colab import check_device
    print("stopped, and torch works:", sys.modules["torch"].ones(2).sum().item())
"""


def test_an_interrupt_while_torch_is_loaded_leaves_a_torch_that_works():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_TORCH_IS_LOADED],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "stopped, and torch works: 2.0\n"


def test_pips_reason_reaches_the_reader(monkeypatch, tmp_path):
    said = "WARNING: retrying\nERROR: No matching distribution found for no_such\nnotice: update"

    def pip(command, **_):
        pins = Path(command[command.index("--constraint") + 1]).read_text()
        assert command[-1] == "no-such[extra]>=1" and pins.startswith("torch==")
        return subprocess.CompletedProcess(command, 1, "", said)

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(
        InstallError,
        match=r"could not install no-such\[extra\]>=1: ERROR: No matching distribution",
    ) as error:
        install_requirements(also=["no-such[extra]>=1"])
    assert "InstallError" in error.value._render_traceback_()[0], "a box, and no traceback"


@pytest.fixture
def colab(monkeypatch, tmp_path):
    """A pretended google.colab; its `drive.mount` may be replaced."""
    drive = types.SimpleNamespace(mount=lambda place: Path(place).mkdir(exist_ok=True))
    package = types.ModuleType("google.colab")
    package.drive = drive
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setattr(drive_module, "MOUNT", str(tmp_path / "drive"))
    return drive


def test_elsewhere_than_on_colab_drive_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match="only on Colab: untick the copy to Drive"):
        drive_copy(tmp_path / "run")


def test_a_refused_permission_is_a_sentence(colab, tmp_path):
    def refuse(_):
        raise ValueError("mount failed")

    colab.mount = refuse
    with pytest.raises(
        ConfigError, match="could not be mounted: mount failed. Run this again and allow it"
    ):
        drive_copy(tmp_path / "run")


def test_a_lost_runtime_goes_on_from_drive(colab, tmp_path, capsys):
    """The machine is lost, with its disk; the same cells run again, or those that show the run."""
    run = tmp_path / "content" / "runs" / "tictactoe"
    for iteration, words in ((1, "Finishing the copy "), (2, "Restored ")):
        copy_to, told = drive_copy(run), Listener()
        assert copy_to == str(tmp_path / "drive" / "MyDrive" / "chessnn_colab" / "tictactoe")
        config = tiny(run, game="tictactoe", iterations=1, copy_to=copy_to)
        assert [report.iteration for report in train(config, told)] == [iteration]
        assert f"\n{words}" in f"\n{told.messages()}"
        shutil.rmtree(tmp_path / "content")
    capsys.readouterr()
    bring_back(run, False)
    assert not run.exists() and not capsys.readouterr().out
    bring_back(run, True)
    begun, restored = capsys.readouterr().out.splitlines()
    assert (
        begun.startswith("Bringing ")
        and begun.endswith(" ...")
        and restored.endswith("at iteration 2")
    )
    assert load_network(run, device="cpu")[1] == 2
    bring_back(run, True)
    assert not capsys.readouterr().out, "it is here"
