"""The commands that hand a run's network on: to a file, to other runtimes, to programs that
play.
"""

import argparse

from . import AddCommand

LAST = "the last"  # snapshot


def add_network_commands(command: AddCommand) -> None:
    """Add share, export and uci."""
    share = command(
        "share",
        run_share,
        "write a run's network to one file that evaluate, uci and play.ipynb open; to a file "
        "that ends in .html: a page on which anybody plays against it in a browser",
    )
    export = command(
        "export",
        run_export,
        "write a run's network as ONNX, for other languages and browsers; to a file that ends in "
        ".nir: as NIR, for neuromorphic simulators and chips",
    )
    best = "the best, where the ladder has said which; else the last"
    for into, default in ((share, best), (export, LAST)):
        _add_run(into, default)
        into.add_argument("file")
    share.add_argument(
        "--card",
        action="store_true",
        help="FILE is a folder to make: weights, settings and a README.md, as the page of a model "
        "on a hub wants them",
    )
    engine = command("uci", run_uci, "a run's network as a UCI engine, for chess programs")
    _add_run(engine, LAST)


def _add_run(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("run")
    parser.add_argument(
        "--snapshot", type=int, help=f"iteration of the weights (default: {default})"
    )


def run_share(options: argparse.Namespace) -> None:
    """The command share."""
    from ..runs.shared import card_lines, share, share_folder

    if options.card:
        share_folder(options.run, options.file, options.snapshot)
        print(f"wrote {options.file}: docs/share.md says where to put it")
        return
    if options.file.lower().endswith(".html"):
        from ..views.page import share_page

        print(share_page(options.run, options.file, options.snapshot))
        return
    card = share(options.run, options.file, options.snapshot)
    print("\n".join([f"wrote {options.file}", *card_lines(card)]))


def run_export(options: argparse.Namespace) -> None:
    """The command export."""
    from ..export import export_network

    print(f"wrote {export_network(options.run, options.file, options.snapshot)}")


def run_uci(options: argparse.Namespace) -> None:
    """The command uci."""
    from ..arena.chess.uci import Engine

    Engine(options.run, options.snapshot).loop()
