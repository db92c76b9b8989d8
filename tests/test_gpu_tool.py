"""tools/gpu.py on a CPU, in its smallest sizes: so that it works on the day a GPU is there."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from .counts import only_in_full

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import gpu


def pieces(folder: Path) -> dict:
    return json.loads((folder / "gpu.json").read_text(encoding="utf-8"))


@pytest.mark.timeout(600)
@only_in_full
def test_every_piece_runs_and_is_written_down(tmp_path):
    assert gpu.main(["--tiny", "--device", "cpu", "--out", str(tmp_path)]) == 0
    found = pieces(tmp_path)
    assert set(found) == {*gpu.PIECES, "machine"} and not any(
        "error" in figures for figures in found.values()
    )
    assert (
        found["check"]["device"] == "cpu" and found["launches"]["kernels per ply, two-rung"] <= 900
    )
    assert found["bench"]["rules positions/s, 16 boards"] > 0
    assert found["halves"]["float32 same best move as float32"] == 1
    assert found["train"]["iterations"] == 1 and "plies per game" in found["train"]["match"]
    assert all(
        found[name]["skipped"] == "needs CUDA" for name, piece in gpu.PIECES.items() if piece.cuda
    )
    table = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert "| graph | skipped | needs CUDA |" in table
    assert all(f"| {name} |" in table for name in found)


def test_a_piece_that_fails_is_written_down_and_the_next_one_goes_on(tmp_path, monkeypatch):
    def run(*arguments):
        if "check" in arguments:
            raise RuntimeError("CUDA error: an illegal memory access")
        return '{"value": 1}'

    monkeypatch.setattr(gpu, "python", run)
    monkeypatch.setattr(gpu, "PIECES", {name: gpu.PIECES[name] for name in ("check", "launches")})
    assert gpu.main(["--device", "cpu", "--out", str(tmp_path)]) == 1
    found = pieces(tmp_path)
    assert found["check"]["error"].startswith("CUDA error") and found["launches"]["value"] == 1
    assert (
        "| check | error | CUDA error: an illegal memory access |"
        in (tmp_path / "gpu.md").read_text()
    )
    monkeypatch.setattr(gpu, "python", lambda *arguments: '{"value": 2}')
    assert gpu.main(["--device", "cpu", "--out", str(tmp_path), "--part", "check"]) == 0
    found = pieces(tmp_path)
    assert (
        found["check"]["value"] == 2
        and "error" not in found["check"]
        and found["launches"]["value"] == 1
    )


def test_of_a_failure_the_line_that_names_it_is_told_and_the_rest_is_kept(tmp_path, monkeypatch):
    advice = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    code = f"print('seen before'); raise RuntimeError('CUDA error: an illegal memory access\\n{advice}\\n')"
    call = gpu.python
    monkeypatch.setattr(gpu, "python", lambda *_, **__: call("-c", code))
    monkeypatch.setattr(gpu, "PIECES", {"check": gpu.PIECES["check"]})
    assert gpu.main(["--device", "cpu", "--out", str(tmp_path)]) == 1
    found = pieces(tmp_path)["check"]
    assert found["error"] == "RuntimeError: CUDA error: an illegal memory access"
    assert found["printed"][0] == "seen before" and advice in found["printed"]
    for printed in (
        "print('2 failed, 30 passed')",
        "print('12/40 games | 5s left\\nchessnn_colab: no such run', file=sys.stderr)",
    ):
        with pytest.raises(
            RuntimeError, match=r"^(2 failed, 30 passed|chessnn_colab: no such run)\n\n"
        ):
            call("-c", f"import sys; {printed}; sys.exit(1)")


def test_without_its_requirements_it_says_what_to_install(tmp_path):
    """A Python that has none of them, nor this package, as Colab's has not."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", str(Path(gpu.__file__))]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    words = r"No module named '(torch|numpy)': this installs nothing\. First: .* -m pip install -r requirements\.txt"
    assert done.returncode == 1 and re.search(words, done.stderr), done.stderr


def test_a_piece_that_takes_too_long_ends_with_all_that_it_started(tmp_path):
    psutil = pytest.importorskip("psutil")  # comes with ipykernel
    started = tmp_path / "started"
    inner = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with pytest.raises(RuntimeError, match="it took longer than 3 s"):
        gpu.python("-c", code, seconds=3)
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(started.read_text()))
        until = time.monotonic() + 5
        while (
            child.status() != psutil.STATUS_ZOMBIE
        ):  # killed, and reaped by nobody where there is no init
            assert time.monotonic() < until, "it runs on"
            time.sleep(0.05)
