"""The command bench."""

import argparse
import json
import sys
from typing import Any

from ..errors import Interrupted
from . import AddCommand


def add_bench(command: AddCommand) -> None:
    """Add the command that measures speed."""
    bench = command("bench", run_bench, "measure speed: rules, network, self-play and more")
    bench.add_argument(
        "name",
        help="rules, self-play, learner, ... (docs/speed.md), or all; or device, which checks and "
        "measures a device in nine minutes",
    )
    bench.add_argument("--device", default="auto")
    bench.add_argument("--preset", help="cpu, t4, ... (default: cpu; device: as in training)")
    bench.add_argument(
        "--seconds", type=float, help="for each figure (default: 10; device: each part's)"
    )
    bench.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16")
    bench.add_argument(
        "--game", default="chess", help="such as chess, gomoku or gomoku:9 (default: chess)"
    )
    bench.add_argument("--boards", type=int, help="games in lockstep; network: positions")
    bench.add_argument("--json", action="store_true")
    bench.add_argument(
        "--parts", default="", help="of device, such as check,train (default: all that fit)"
    )
    bench.add_argument("--minutes", type=float, default=9.0, help="for device (default: 9)")
    bench.add_argument(
        "--out", default="runs/device", help="where device writes (default: runs/device)"
    )


def run_bench(options: argparse.Namespace) -> None:
    """The command bench. Ctrl-C prints the figures of the benches that were done."""
    from ..bench.table import bench
    from ..views.progress import watching

    own = ("device", "preset", "precision", "game", "boards")
    settings = {name: value for name in own if (value := getattr(options, name)) is not None}
    if options.name == "device":
        from ..bench.device import bench_device

        return bench_device(
            options.parts, options.minutes, options.out, seconds=options.seconds, **settings
        )
    with watching(stream=sys.stderr) as watch:
        figures = bench(
            options.name,
            seconds=10.0 if options.seconds is None else options.seconds,
            watch=watch,
            **settings,
        )
    as_json = json.dumps(figures)
    not_measured = figures.pop("not_measured", [])
    if options.json:
        print(as_json)
    else:
        print_figures(figures)
    if not_measured:
        raise Interrupted(f"interrupted; not measured: {', '.join(not_measured)}")


def print_figures(figures: dict[str, Any], prefix: str = "") -> None:
    """A line for each figure: its name and its value."""
    for name, value in figures.items():
        if isinstance(value, dict) and figures.get("bench") == "all":
            print_figures(value, f"{name} ")
        else:
            shown = f"{value:,.3f}" if isinstance(value, float) else value
            print(f"{prefix + name:40} {shown}")
