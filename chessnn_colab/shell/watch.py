"""The command watch: the iterations of runs as tables."""

import argparse
import sys
from contextlib import suppress

from ..settings import COUNT, require
from . import AddCommand


def add_watch(command: AddCommand) -> None:
    """Add the command watch."""
    watch = command(
        "watch",
        run_watch,
        "show the iterations of runs, a line each: live on a terminal, printed once into a pipe",
    )
    watch.add_argument("run", nargs="+", help="run folders; tables are side by side where they fit")
    watch.add_argument("--once", action="store_true", help="print once on a terminal too")
    watch.add_argument(
        "--last",
        type=int,
        help="how many of the newest iterations (default: all; live, as many as there is room for)",
    )


def run_watch(options: argparse.Namespace) -> None:
    """The command watch. Ctrl-C is how the live table ends."""
    from ..views.run_table import follow, print_tables

    if options.last is not None:
        require("last", options.last, COUNT)
    if options.once or not sys.stdout.isatty():
        print_tables(options.run, options.last)
    else:
        with suppress(KeyboardInterrupt):
            follow(options.run, options.last)
