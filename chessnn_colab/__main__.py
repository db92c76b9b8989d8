"""Train, measure and share networks from a shell: python -m chessnn_colab COMMAND. Bad input: a
sentence on stderr, exit code 2.
"""

import argparse
import dataclasses
import json
import signal
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .config import TrainConfig
from .errors import ChessnnError, ConfigError, Interrupted
from .settings import GROUPS
from .shell.bench import add_bench
from .shell.measuring import add_measuring_commands
from .shell.networks import add_network_commands
from .shell.plan import add_plan
from .shell.watch import add_watch

# Options whose field of TrainConfig has another name.
FLAGS = {"from_checkpoint": "--from"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0; 2 for bad input or output that cannot be written;
    130 for an interrupt; 141 when nobody reads its output.
    """
    options = build_parser().parse_args(arguments)
    try:
        options.function(options)
        sys.stdout.flush()
    except Interrupted as error:  # what there was to keep has been printed
        if str(error):
            print(f"chessnn_colab: {error}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone: `... | head`
        sys.stdout = None  # or Python tries once more when it ends, and says that it failed
        return 141  # what a shell says of a program that ends so
    except ChessnnError as error:
        print(f"chessnn_colab: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # such as a full disk, where our output goes
        sys.stdout = None
        print(f"chessnn_colab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command and option."""
    parser = argparse.ArgumentParser(
        prog="python -m chessnn_colab", description=__doc__, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub

    check = command(
        "check-device", run_check, "what this machine has, what works, how many workers it wants"
    )
    check.add_argument("--device", default="auto")
    check.add_argument("--game", default="chess")
    check.add_argument("--json", action="store_true")

    train = command(
        "train",
        run_train,
        "train a network by self-play; a run that is already in the folder continues",
    )
    train.usage = "%(prog)s [options]"  # the settings by group follow
    add_config_options(train)

    add_plan(command)
    add_watch(command)
    add_measuring_commands(command)
    add_network_commands(command)
    add_bench(command)
    return parser


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every setting of TrainConfig, in the setting's group."""
    groups = {title: parser.add_argument_group(title) for title in GROUPS}
    for entry, kind in zip(dataclasses.fields(TrainConfig), field_types()):
        group = groups[entry.metadata["group"]]
        flag = FLAGS.get(entry.name, "--" + entry.name.replace("_", "-"))
        text = entry.metadata["help"].replace("%", "%%")
        if entry.default is not None:
            text += f" (default: {entry.default})"
        options = {"dest": entry.name, "default": entry.default, "help": text}
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **options)
        else:
            convert = whole_numbers if kind == tuple[int, ...] else kind
            group.add_argument(flag, type=convert, metavar=entry.name.upper(), **options)


def field_types() -> list[Any]:
    """The type of each TrainConfig field, without the None of an optional one."""
    hints = typing.get_type_hints(TrainConfig)
    types = [hints[field.name] for field in dataclasses.fields(TrainConfig)]
    return [(typing.get_args(kind) or [kind])[0] for kind in types]  # None stands behind the type


def whole_numbers(text: str) -> tuple[int, ...]:
    """ "0,1" as (0, 1)."""
    return tuple(int(part) for part in text.split(","))


def run_check(options: argparse.Namespace) -> None:
    """The command check-device."""
    from .check import check_device

    report = check_device(options.device, options.game)
    print(json.dumps(dataclasses.asdict(report)) if options.json else report)


def run_train(options: argparse.Namespace) -> None:
    """The command train."""
    from .training import train
    from .views.progress import make_progress

    names = [field.name for field in dataclasses.fields(TrainConfig)]
    config = TrainConfig(**{name: getattr(options, name) for name in names})
    if config.search != "tree" and config.num_simulations != TrainConfig.num_simulations:
        raise ConfigError("--num-simulations is a size of --search tree: give both, or neither")
    reports = train(config, make_progress())
    try:
        while True:
            next(reports)
    except StopIteration as end:
        if end.value:  # it was interrupted, and has said what it kept
            raise Interrupted from None


if __name__ == "__main__":
    # A cluster's scheduler ends a job by SIGTERM, a terminal that is closed by SIGHUP (not Windows,
    # and not after nohup): what is there is kept, as after Ctrl-C.
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):  # a terminal need not know every letter
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(main())
