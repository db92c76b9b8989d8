"""The command bench."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from ..errors import Interrupted


def add_bench(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command that measures speed."""
    bench = command("bench", run_bench, "measure speed: rules, network, self-play and more")
    bench.add_argument("name", help="rules, self-play, learner, neighbour, ... (docs/speed.md), or all")
    bench.add_argument("--device", default="auto")
    bench.add_argument("--preset", default="cpu")
    bench.add_argument("--seconds", type=float, default=10.0)
    bench.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16")
    bench.add_argument("--game", default="chess", help="such as chess, gomoku or gomoku:9 (default: chess)")
    bench.add_argument("--boards", type=int, help="games in lockstep (rules, self-play and memory)")
    bench.add_argument("--search", default="two-rung")
    bench.add_argument("--simulations", type=int, default=32, help="of the tree")
    bench.add_argument("--json", action="store_true")


def run_bench(options: argparse.Namespace) -> None:
    """The command bench. Ctrl-C prints the figures of the benches that were done."""
    from ..bench.table import bench
    from ..views.measuring import watching

    with watching(stream=sys.stderr) as watch:
        given = (options.device, options.preset, options.seconds, options.precision, options.game)
        figures = bench(options.name, *given, options.search, options.simulations, options.boards, watch)
    if options.json:
        print(json.dumps(figures), flush=True)
    rest = figures.pop("not_measured", [])
    for name, value in figures.items() if not options.json else ():
        if isinstance(value, dict) and figures["bench"] == "all":
            for part, figure in value.items():
                print_figure(f"{name} {part}", figure)
        else:
            print_figure(name, value)
    if rest:
        raise Interrupted(f"interrupted; not measured: {', '.join(rest)}")


def print_figure(name: str, value: Any) -> None:
    """One line: the name and the figure."""
    print(f"{name:40} {value:,.3f}" if isinstance(value, float) else f"{name:40} {value}")
