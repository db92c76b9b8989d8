"""The command plan."""

import argparse
import json
from dataclasses import asdict

from . import AddCommand


def add_plan(command: AddCommand) -> None:
    """Add the command that says what a run would do."""
    plan = command(
        "plan",
        run_plan,
        "what a run would do, by arithmetic: an iteration's seconds, who waits, reuse, window",
    )
    add = plan.add_argument
    add("--gpus", type=int, help="how many (default: what this machine has; with --gpu, 1)")
    add("--gpu", help="T4, A100 or H200 (default: T4 with --gpus, else this machine's)")
    add("--preset", default="auto", help="cpu, t4, a100 or h100 (default: auto)")
    add("--minutes", type=float, default=60.0, help="of the session (default: 60)")
    add("--game", default="chess")
    add("--learner-gpu", default="all", help="all or one, as in train (default: all)")
    add("--sample-reuse", type=float, help="as in train (default: chosen)")
    add("--batch-size", type=int, help="as in train")
    add("--replay-capacity", type=int, help="as in train (default: by this machine's memory)")
    add("--json", action="store_true")


def run_plan(options: argparse.Namespace) -> None:
    """The command plan."""
    from ..check import time_network
    from ..config import TrainConfig
    from ..devices import detect_device, inventory
    from ..plan import made_up_machine, plan_run

    own = ("preset", "minutes", "game", "learner_gpu")
    own += ("sample_reuse", "batch_size", "replay_capacity")
    config = TrainConfig(**{name: getattr(options, name) for name in own})
    if options.gpus is None and options.gpu is None:
        machine = inventory()
        device = detect_device("auto", machine).device
    else:
        machine = made_up_machine(1 if options.gpus is None else options.gpus, options.gpu or "T4")
        device = "cuda:0"
    rates = None
    if device == "cpu" and config.preset in ("auto", "cpu"):
        rates = time_network(device, config.game).rates
    plan = plan_run(config, device, machine, rates)
    print(json.dumps(asdict(plan)) if options.json else plan)
