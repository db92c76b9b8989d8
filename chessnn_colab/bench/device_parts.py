"""Benches of a device's first day, run by `bench device`: is it right, and what is fast on it."""

import tempfile
import time
from dataclasses import replace

import torch

from ..actor import Actor
from ..arena.evaluate import evaluate_run
from ..arena.players import play_search
from ..arena.registry import arena_game
from ..arena.result import MatchResult
from ..check import check_device
from ..clock import timed
from ..device_probe import probe
from ..games.registry import make_game
from ..graphs import Graphs
from ..network import actor_copy
from ..report import Progress, Report, Session
from ..runs.networks import find_network, load_network, run_game
from ..selfplay import graphs_for
from ..training import train
from .launches import bench_launches
from .self_play import played
from .setting import Figures, Setting, random_positions

MATCH_GAMES = 40
FEW_BOARDS = 16  # the host is slower than any GPU at them
POSITIONS = 512


def bench_check(setting: Setting) -> Figures:
    """Whether the device computes what the CPU computes, and what check_device says."""
    furthest, compared = timed(setting.device, probe, setting.device, setting.config.game)
    report = check_device(setting.device, setting.config.game)
    differences = [f"{name} {part:.2f}" for name, part in furthest.items()]
    return {
        "s for comparing with the CPU": compared,
        "gradient's largest difference from the CPU's": ", ".join(differences),
        "versions": ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        **{f"network on {speed.device}": str(speed) for speed in report.speeds},
        "advice": "; ".join(report.advice) or "none",
    }


class Noted(Progress):
    """Notes after how many seconds things first happened."""

    def __init__(self):
        self.began = time.monotonic()
        self.seconds = {}

    def note(self, what: str) -> None:
        """`what` happens now."""
        self.seconds.setdefault(f"s to the {what}", time.monotonic() - self.began)

    def start_run(self, session: Session) -> None:
        self.note("first bar")

    def report(self, report: Report) -> None:
        self.note("first report")


def trained(setting: Setting, run: str) -> Figures:
    """Train in the folder `run` for the setting's seconds, and say at which pace."""
    minutes = setting.seconds / 60
    noted = Noted()
    config = replace(setting.config, run=run, device=setting.device, minutes=minutes)
    reports = list(train(config, noted))
    if not reports:  # an interrupt came first
        raise KeyboardInterrupt
    last = reports[-1]
    learning = sum(report.seconds_learning for report in reports)
    playing = sum(report.seconds_selfplay for report in reports)
    return {
        "positions/s, self-play and learning": last.total_positions / (playing + learning),
        "positions/s, self-play": last.total_positions / playing,
        "ms per update": 1000 * learning / max(1, last.total_updates),
        "loss": last.loss,
        **noted.seconds,
    }


def bench_train(setting: Setting) -> Figures:
    """A training, and its network against every fixed player of the game, in half of its time."""
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        figures = trained(setting, run)
        players = list(arena_game(setting.config.game).players)
        search = play_search("two-rung")
        seconds = setting.seconds / 2
        results = evaluate_run(
            run, players, MATCH_GAMES, search, device=setting.device, seconds=seconds
        )
    for result in results:
        who = f"against {result.opponent}" if isinstance(result, MatchResult) else result.player
        figures[who] = str(result)
    return figures


def bench_ply(setting: Setting) -> Figures:
    """Plies launch by launch and, on CUDA, replayed by a graph: of few boards, as many as in
    training, and more.
    """
    boards = setting.lockstep_boards
    network = actor_copy(setting.network(), setting.dtype)
    figures = bench_launches(setting)

    def measure(search: str, count: int) -> float:
        actor = Actor(setting.game, network, replace(setting.config, search=search))

        def pace(graphs: Graphs) -> float:
            plies, seconds = played(actor, count, setting.seconds, lambda: None, graphs)
            return plies / seconds

        graphs = graphs_for(actor)
        name = f"positions/s, {search}, {count} boards"
        by_graph = pace(graphs) if graphs.on else "needs CUDA"
        figures[f"{name}, by graph"] = graphs.trouble or by_graph
        figures[f"{name}, launch by launch"] = launched = pace(Graphs(on=False))
        return launched

    measure("tree", boards)
    measure("two-rung", 4 * boards)
    measure("two-rung", boards)
    slow = measure("two-rung", FEW_BOARDS)
    per_launch = 1e6 * FEW_BOARDS / slow / figures["kernels_per_ply"]
    figures["us of the host per launch"] = "needs a GPU" if setting.device == "cpu" else per_launch
    return figures


def bench_precision(setting: Setting) -> Figures:
    """How often the device's precisions prefer the move that the CPU prefers in float32."""
    run = find_network().run
    game = make_game(run_game(run))
    state = random_positions(game, POSITIONS)
    legal = game.legal_action_mask(state)

    @torch.no_grad()
    def best(device: str, dtype: torch.dtype) -> torch.Tensor:
        network, _ = load_network(run, device=device)
        logits = actor_copy(network, dtype)(game.observe(state).to(device)).prior_logits.cpu()
        return logits.masked_fill(~legal, -torch.inf).argmax(1)

    figures: Figures = {"network": run}
    usual = best("cpu", torch.float32)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        same = best(setting.device, dtype) == usual
        figures[f"share of best moves that are the CPU's, {dtype}"] = float(same.float().mean())
    return figures
