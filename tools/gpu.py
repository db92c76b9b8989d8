"""Measure and test everything on a GPU, in ten to fifteen minutes (an estimate): one JSON file and
one table.

python tools/gpu.py [--part NAME] [--out FOLDER] [--device auto] [--tiny]    (or: make gpu, make gpu
PART=bench)

Every piece runs in a process of its own, with the Python that runs this, and installs nothing. Its
figures are written as soon as it ends; a piece that fails is written down with its error, and the
next one goes on. A later run of one piece replaces that piece alone. Pieces that need CUDA say so
elsewhere. --tiny: small sizes, to see that it runs.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the package need not be installed
NEEDS_CUDA = "needs CUDA"
PIECE_SECONDS = 400.0
PRINTED_LINES = 200  # of a piece that failed, the last are kept in gpu.json
INSIDE = "CHESSNN_GPU_PIECE"  # set in the processes of a piece
Figures = dict[str, Any]


class Options(NamedTuple):
    """The arguments of a piece."""

    device: str
    tiny: bool

    @property
    def preset(self) -> str:
        """The network's size."""
        return "cpu" if self.tiny else "t4"

    def bench(self, name: str, seconds: float = 4.0, **settings: Any) -> Figures:
        """One of the package's benches."""
        from chessnn_colab.bench.table import bench

        return bench(name, self.device, self.preset, 0.2 if self.tiny else seconds, **settings)


def check_device(options: Options) -> Figures:
    """The devices of this machine, and whether they work."""
    from chessnn_colab.check import check_device

    report = check_device(options.device).to_dict()
    return {
        "device": report["choice"]["device"],
        "pieces of advice": len(report["advice"]),
        "report": report,
    }


def gpu_tests(options: Options) -> Figures:
    """The tests that need a GPU."""
    # Without pytest's plugins its own settings are warnings, which would be errors.
    done = python("-m", "pytest", "-q", "-m", "gpu", "-W", "default", "tests/test_gpu.py")
    return {"tests": done.strip().splitlines()[-1]}


def benches(options: Options) -> Figures:
    """Rules and self-play at several batch sizes, the network alone, the learner."""
    sizes = (16,) if options.tiny else (512, 1024, 2048, 4096)
    found: Figures = {}
    for boards in sizes:
        rules = options.bench("rules", boards=boards)
        play = options.bench("self-play", boards=boards)
        found[f"rules positions/s, {boards} boards"] = rules["positions_per_second"]
        for name in ("moves_per_second", "search_efficiency"):
            found[f"two-rung {name}, {boards} boards"] = play[name]
        if options.device.startswith("cuda"):
            found[f"GPU memory, MiB, {boards} boards"] = most_memory(options.device)
    if options.tiny:
        return found
    for boards in (512, 8192):  # the first leaves a large GPU waiting for the host
        rate = functools.partial(options.bench, "network", boards=boards)
        found |= tried(
            f"network evaluations/s, {boards} positions",
            lambda rate=rate: rate()["evaluations_per_second"],
        )
    for name, figure in {"tree": "moves_per_second", "learner": "update_ms"}.items():
        found |= tried(
            f"{name} {figure}", lambda name=name, figure=figure: options.bench(name)[figure]
        )
    return found


def most_memory(device: str) -> float:
    """The most that tensors took on the GPU since this was last asked, in MiB."""
    import torch

    most = torch.cuda.max_memory_allocated(device) / 2**20
    torch.cuda.reset_peak_memory_stats(device)
    return most


def tried(figure: str, measure: Callable[[], Any]) -> Figures:
    """The figure, or why there is none: one that fails does not cost the others."""
    try:
        return {figure: measure()}
    except Exception as error:  # whatever a device or a compiler raises
        return {
            figure: f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        }


def launches(options: Options) -> Figures:
    """Operators per ply."""
    searches = ("two-rung",) if options.tiny else ("two-rung", "tree", "policy")
    counted = {
        search: options.bench("launches", search=search, num_simulations=47) for search in searches
    }
    return {
        f"kernels per ply, {search}": found["kernels_per_ply"] for search, found in counted.items()
    }


def busy_share(options: Options) -> Figures:
    """How busy the GPU is while it plays, by nvidia-smi, from the second block of plies on."""
    from chessnn_colab.config import TrainConfig
    from chessnn_colab.games.registry import make_game
    from chessnn_colab.selfplay import SelfPlay

    config = TrainConfig(preset=options.preset, boards=2048)
    job = SelfPlay(options.device, **config.job_settings(config.network_config(make_game("chess"))))
    query = ["nvidia-smi", f"--id={physical(options.device)}", "--query-gpu=utilization.gpu"]
    query += ["--format=csv,noheader,nounits"]
    samples: list[int] = []
    begun, over = threading.Event(), threading.Event()

    def sample() -> None:
        begun.wait()
        while not over.wait(0.5):
            samples.append(int(subprocess.check_output(query, text=True)))

    def played(*_: Any) -> bool:
        begun.set()
        return time.monotonic() < deadline

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    deadline = time.monotonic() + 30
    job.play(4 * config.boards, 0, played)
    over.set()
    watcher.join()
    if not samples:
        raise RuntimeError(f"no number came from {' '.join(query)}")
    return {"busy %, mean while playing": sum(samples) / len(samples), "samples": len(samples)}


def physical(device: str) -> str:
    """The driver's name for torch's "cuda:1"."""
    index, seen = int(device.partition(":")[2] or 0), os.environ.get("CUDA_VISIBLE_DEVICES")
    return seen.split(",")[index] if seen else str(index)


def two_workers(options: Options) -> Figures:
    """Two workers on one device against one."""
    found = options.bench("workers", 15.0)  # a worker first makes the starts of all its games
    rates = {f"moves/s, {count} workers": rate for count, rate in found["workers"].items()}
    return {**rates, "speedup": found["speedup"]}


def graph_and_eager(options: Options) -> Figures:
    """A step of the rules as a CUDA graph, compiled, and in eager mode; microseconds."""
    import torch

    from chessnn_colab.bench.clock import seconds_per_call
    from chessnn_colab.games.chess.rules import Chess

    game, boards = Chess(device=options.device), 1024
    state = game.init(boards)
    action = game.legal_action_mask(state).int().argmax(1)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        eager = game.step(state, action)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        captured = game.step(state, action)
    graph.replay()
    compiled = torch.compile(game.step)
    ways: dict[str, Callable[[], Any]] = {
        "eager": lambda: game.step(state, action),
        "graph": graph.replay,
    }
    ways["compiled"] = lambda: compiled(state, action)
    found: Figures = {}
    for name, way in ways.items():
        found |= tried(
            f"step us, {name}", lambda way=way: 1e6 * seconds_per_call(way, options.device, 3.0)
        )
    equal = all(
        torch.equal(getattr(captured, name), getattr(eager, name))
        for name in ("words", "history", "flags")
    )
    return {**found, "graph equals eager": equal}


def half_precisions(options: Options) -> Figures:
    """Each precision: the pace of an actor's network, and how often a trained one prefers the same
    move as float32.
    """
    import torch

    from chessnn_colab.games.chess.rules import Chess
    from chessnn_colab.network import actor_copy
    from chessnn_colab.runs.networks import shipped_networks

    game = Chess(device=options.device)
    *_, network = shipped_networks(options.device).values()
    state = game.starts(
        64 if options.tiny else 1024, "random-plies", torch.Generator().manual_seed(0)
    )
    observation, legal = game.observe(state), game.legal_action_mask(state)

    @torch.no_grad()
    def best(name: str) -> torch.Tensor:
        logits = actor_copy(network, getattr(torch, name))(observation).prior_logits
        return logits.masked_fill(~legal, -torch.inf).argmax(1)

    def same(name: str) -> float:
        return float((best(name) == best("float32")).float().mean())

    found: Figures = {}
    for name in ("float32", "bfloat16", "float16"):
        if not options.tiny:  # a CPU without units for them takes minutes
            rate = functools.partial(options.bench, "network", precision=name, boards=8192)
            found |= tried(
                f"{name} evaluations/s", lambda rate=rate: rate()["evaluations_per_second"]
            )
        found |= tried(f"{name} same best move as float32", functools.partial(same, name))
    return found


def train_and_match(options: Options) -> Figures:
    """Two minutes of training, and a match against random play."""
    small = "--game tictactoe --channels 8 --blocks 1 --boards 4 --games-per-iteration 4 --max-plies 10 --batch-size 16"
    small += " --iterations 1"
    sizes = (
        [*small.split(), "--workers", "1", "--pool", "inline"]
        if options.tiny
        else ["--minutes", "2"]
    )  # with the preset of the device
    games = ["--games", "2", "--simulations", "2"] if options.tiny else ["--games", "100"]
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        python("-m", "chessnn_colab", "train", "--run", run, "--device", options.device, *sizes)
        rows = (Path(run) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        said = python("-m", "chessnn_colab", "evaluate", run, "--device", options.device, *games)
    match = "; ".join(
        line.strip() for line in said.strip().splitlines()[-2:]
    )  # the score, then its games
    return {"iterations": len(rows), "last report": json.loads(rows[-1]), "match": match}


def notebook(options: Options) -> Figures:
    """The training notebook, headless."""
    with tempfile.TemporaryDirectory() as folder:
        values = ["minutes=1", f"run_folder={str(Path(folder) / 'run')!r}"]
        said = python(
            "tools/run_notebook.py",
            "notebooks/train.ipynb",
            str(Path(folder) / "out.ipynb"),
            *values,
        )
    return {"lines": len(said.splitlines())}


class Piece(NamedTuple):
    """The function of a piece; whether it needs CUDA, is too long for --tiny, or wants one GPU."""

    run: Callable[[Options], Figures]
    cuda: bool = False
    long: bool = False
    one_gpu: bool = False


PIECES = {
    "check": Piece(check_device),
    "tests": Piece(gpu_tests, cuda=True),
    "launches": Piece(launches),
    "bench": Piece(benches),
    "busy": Piece(busy_share, cuda=True),
    "workers": Piece(two_workers, one_gpu=True),
    "graph": Piece(graph_and_eager, cuda=True),
    "halves": Piece(half_precisions),
    "train": Piece(train_and_match),
    "notebook": Piece(notebook, long=True),
}


def python(*arguments: str, seconds: float = PIECE_SECONDS, **environment: str) -> str:
    """Run this Python with `arguments` in the repository and return what it prints.

    Raises RuntimeError with the line that names the error, and below it all that was printed. After
    `seconds` it is killed, with all that it started: nothing may disturb the next piece.
    """
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "CHESSNN_UI": "text", **environment}
    inside = os.environ.get(INSIDE)  # a piece's own processes stay in its group
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**environment, INSIDE: "1"}, start_new_session=not inside,
    )  # fmt: skip
    try:
        said, complaints = process.communicate(timeout=seconds)
    except BaseException as error:
        process.kill() if inside else os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"it took longer than {seconds:.0f} s") from None
        raise
    if process.returncode:
        from chessnn_colab.errors import error_line

        headline = (
            error_line(complaints if complaints.strip() else said)
            or f"exit code {process.returncode}"
        )
        raise RuntimeError(f"{headline}\n\n{said}\n{complaints}")
    return said


def measured(name: str, options: Options) -> Figures:
    """A piece's figures, from a process of its own; or the error that ended it, and its output."""
    if PIECES[name].cuda and not options.device.startswith("cuda"):
        return {"skipped": NEEDS_CUDA}
    if PIECES[name].long and options.tiny:
        return {"skipped": "left out by --tiny"}
    started = time.monotonic()
    tiny = ["--tiny"] if options.tiny else []
    device, alone = options.device, {}
    if PIECES[name].one_gpu and device.startswith("cuda"):
        device, alone = "cuda", {"CUDA_VISIBLE_DEVICES": physical(device)}
    try:
        said = python(str(Path(__file__)), "--inside", name, "--device", device, *tiny, **alone)
        found = json.loads(said.strip().splitlines()[-1])
    except (RuntimeError, ValueError, IndexError) as error:
        headline, _, printed = str(error).partition("\n\n")
        found = {"error": headline, "printed": printed.splitlines()[-PRINTED_LINES:]}
    return {**found, "seconds": time.monotonic() - started}


def write(folder: Path, pieces: dict[str, Figures]) -> None:
    """gpu.json and gpu.md in `folder`."""
    (folder / "gpu.json").write_text(json.dumps(pieces, indent=1) + "\n", encoding="utf-8")
    lines = ["| piece | figure | value |", "|---|---|---|"]
    for name in sorted(pieces, key=[*PIECES, "machine"].index):
        for figure, value in pieces[name].items():
            if not isinstance(value, (dict, list)):
                shown = (
                    f"{value:,.3f}" if isinstance(value, float) else str(value).replace("|", "/")
                )
                lines.append(f"| {name} | {figure} | {shown} |")
    (folder / "gpu.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the pieces; the number of those that failed is the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", choices=[*PIECES, ""], default="", help="one piece (default: all)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "gpu")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--inside", choices=list(PIECES), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        from chessnn_colab.devices import detect_device
    except ImportError as error:
        raise SystemExit(
            f"{error}: this installs nothing. First: {sys.executable} -m pip install -r requirements.txt"
        ) from error

    choice = detect_device(given.device)
    options = Options(choice.device, given.tiny)
    if given.inside:
        print(json.dumps(PIECES[given.inside].run(options)))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "gpu.json"
    pieces = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    failed = 0
    pieces["machine"] = {"device": choice.name, "date": time.strftime("%Y-%m-%d %H:%M")}
    for name in [given.part] if given.part else PIECES:
        pieces[name] = measured(name, options)
        failed += "error" in pieces[name]
        write(given.out, pieces)
        print(
            f"{name:10} {pieces[name].get('error') or pieces[name].get('skipped') or 'done'}",
            flush=True,
        )
    print(f"Written: {kept} and {kept.with_suffix('.md')}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
