"""A Jupyter server for the tests: JupyterLab, or the classic notebook of an environment like
Colab's.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}  # JupyterLab's only setting that differs


@contextmanager
def jupyter_server(
    folder: Path, python: str | Path = sys.executable, classic: bool = False, widgets: bool = True
) -> Iterator[str]:
    """Run the JupyterLab (or classic notebook) of `python` in `folder`; yield its address.

    Kernels import the package of this checkout. widgets: whether JupyterLab can draw any.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = folder / ".jupyter"
    places = {
        f"JUPYTER_{kind}_DIR": str(own / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")
    }
    environment = {
        **os.environ,
        **places,
        "IPYTHONDIR": str(own / "ipython"),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("CHESSNN_UI", None)  # the tests' own choice of text
    common = [
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--notebook-dir={folder}",
    ]
    if classic:
        module, more = "notebook", ["--NotebookApp.token=", "--NotebookApp.disable_check_xsrf=True"]
    else:
        module = "jupyterlab"
        more = ["--port-retries=0", "--IdentityProvider.token="]
        more += ["--ServerApp.disable_check_xsrf=True", "--expose-app-in-browser"]
        settings = own / "lab" / "@jupyterlab" / "apputils-extension"
        _write(settings / "notification.jupyterlab-settings", NO_NEWS)
        environment["JUPYTERLAB_SETTINGS_DIR"] = str(own / "lab")
        page = {
            "disabledExtensions": {} if widgets else {"@jupyter-widgets/jupyterlab-manager": True}
        }
        _write(own / "config" / "labconfig" / "page_config.json", page)
    own.mkdir(parents=True, exist_ok=True)
    with (own / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-m", module, *common, *more], stdout=log, stderr=log, env=environment
        )
    try:
        _wait_for(port, process, own / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()  # Jupyter ends its kernels
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _write(path: Path, values: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def _wait_for(port: int, process: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"no Jupyter server: {log.read_text(errors='replace')[-3000:]}")
