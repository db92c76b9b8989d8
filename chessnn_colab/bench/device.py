"""The command `bench device`: check and measure a device in a few minutes.

Each part is a bench in a process of its own. Its figures are written when it ends. A part that
fails is written with its error, and the next one begins.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..config import TrainConfig
from ..devices import detect_device
from ..errors import ConfigError, error_line
from ..install import HERE
from ..runs.files import refused, write_atomically
from ..settings import ABOVE_ZERO, one_of, require
from ..text import duration
from .setting import Figures

# In the order of their worth: the bench, for how many seconds it measures, and how many it takes in
# all, which is an estimate for a T4 in Colab.
PARTS = {
    "check": (1, 45),
    "train": (120, 190),
    "ply": (3, 60),
    "precision": (1, 45),
    "workers": (8, 60),
    "learner": (12, 60),
}
START = 30  # seconds of a part in which nothing is measured
PATIENCE = 3  # a part is ended after so many times its estimate
PRINTED_LINES = 200  # of a part that failed, the last are kept in the JSON file
HEAD = ["| part | figure | value |", "|---|---|---|"]
QUERY = ("utilization.gpu", "clocks.sm", "memory.used")
NVIDIA_SMI = ["nvidia-smi", "--loop=2", "--format=csv,noheader,nounits"]
NVIDIA_SMI.append(f"--query-gpu={','.join(QUERY)}")
# What every bench says: "measured on" and "preset" are enough for the table.
ABOUT = ("bench", "game", "device", "threads", "torch")


def bench_device(
    parts: str = "",
    minutes: float = 9.0,
    folder: str | Path = "runs/device",
    device: str = "auto",
    seconds: float | None = None,
    **settings: Any,
) -> None:
    """Check and measure a device, part by part, and print the figures.

    parts: names with commas between them; "" is all, in the order of their worth. minutes: a part
    is begun only if it is likely to end within them. folder: gets device.json and device.md after
    each part. Figures of other parts that are there stay. seconds: for how long each part measures.
    settings: preset ("auto" is the one that training takes), game, boards and precision. An
    interrupt ends it. Raises ConfigError and DeviceError.
    """
    require("minutes", minutes, ABOVE_ZERO)
    ends_at = time.monotonic() + 60 * minutes
    wanted = [part.strip() for part in parts.split(",")] if parts else list(PARTS)
    for name in wanted:
        require("parts", name, one_of(*PARTS))
    choice = detect_device(device)
    given = {"device": choice.device, "preset": "auto", **settings}
    TrainConfig(**given)  # a wrong setting ends here: parts that fail lose their earlier figures
    given["seconds"] = seconds
    options = [f"--{option}={value}" for option, value in given.items() if value]
    left = wanted.copy()
    failure = f"{folder} cannot be written"
    with suppress(KeyboardInterrupt), refused(failure, kind=ConfigError):
        Path(folder).mkdir(parents=True, exist_ok=True)
        print(f"{choice}. {folder}/device.md gets the figures of each part when it ends.")
        for name in wanted:
            measures, takes = PARTS[name]
            each = seconds or measures
            takes = START + (takes - START) * max(1.0, each / measures)
            if time.monotonic() + takes > ends_at:
                continue
            print(f"{name}: takes about {duration(takes)} ...", flush=True)
            command = ["bench", name, "--json", *options, f"--seconds={each}"]
            when = time.strftime("%Y-%m-%d %H:%M")
            found = measured(command, PATIENCE * takes)
            figures = {"measured on": f"{choice.name}, {when}", **found}
            write(Path(folder), name, figures)
            print(*rows_of(name, figures), sep="\n", flush=True)
            left.remove(name)
    if left:
        rest = ",".join(left)
        print(f"Not measured: {rest}. To go on, give these parts, or in a shell:")
        again = f"--parts {rest} --out '{folder}' {' '.join(options)}"
        print(f"python -m chessnn_colab bench device {again}")


def measured(command: list[str], limit: float) -> Figures:
    """The figures that a command of the package prints, or the error that ended it.

    limit: it may take so many seconds.
    """
    paths = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    started = time.monotonic()
    driver = {}
    try:
        with watched(driver):
            done = subprocess.run(
                [sys.executable, "-m", "chessnn_colab", *command],
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
    except subprocess.TimeoutExpired:  # workers end with the process that started them
        return {"error": f"it took longer than {limit:.0f} s"}
    if done.returncode:
        headline = error_line(done.stderr.strip() or done.stdout)
        printed = (done.stdout + done.stderr).splitlines()[-PRINTED_LINES:]
        found = {"error": headline or f"exit code {done.returncode}", "printed": printed}
    else:
        found = json.loads(done.stdout.splitlines()[-1])
    return {**found, **driver, "seconds": time.monotonic() - started}


@contextmanager
def watched(figures: Figures) -> Iterator[None]:
    """Add what nvidia-smi says of the machine's GPUs, where there is one, to `figures`: means of
    the second half of the time. NaN is what it does not know, as of a MIG device ("[N/A]").
    """
    if not shutil.which(NVIDIA_SMI[0]):
        yield
        return
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(NVIDIA_SMI, stdout=said) as watcher:
            try:
                yield
            finally:
                watcher.kill()
        said.seek(0)
        rows = [line.split(",") for line in said]
        for name, column in zip(QUERY, zip(*rows[len(rows) // 2 :])):
            figures[f"nvidia-smi, {name}"] = float(np.genfromtxt(column).mean())


def write(folder: Path, name: str, figures: Figures) -> None:
    """Write the figures of a part in the place of its earlier ones, beside those of other parts."""
    file = folder / "device.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kept[name] = figures
    write_atomically(file, json.dumps(kept, indent=1).encode())
    rows = [row for part in PARTS for row in rows_of(part, kept.get(part, {}))]
    write_atomically(file.with_suffix(".md"), "\n".join([*HEAD, *rows, ""]).encode())


def rows_of(name: str, figures: Figures) -> list[str]:
    """The rows of a part. ABOUT, lists and dicts are in the JSON file alone."""
    rows = []
    for figure, value in figures.items():
        shown = f"{value:,.3f}" if isinstance(value, float) else str(value).replace("|", "/")
        if figure not in ABOUT and not isinstance(value, (list, dict)):
            rows.append(f"| {name} | {figure} | {' '.join(shown.split())} |")
    return rows
