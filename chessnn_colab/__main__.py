"""The notebook's jobs from a shell: python -m chessnn_colab COMMAND. Bad input: a sentence on stderr, exit code 2."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .config import TrainConfig
from .errors import ChessnnError

# Options whose field of TrainConfig has another name.
FLAGS = {"from_checkpoint": "--from"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        options.function(options)
    except ChessnnError as error:
        print(f"chessnn_colab: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone: `... | head`
        sys.stderr.close()
    except KeyboardInterrupt:
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command and option."""
    parser = argparse.ArgumentParser(prog="python -m chessnn_colab", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub

    check = command("check-device", run_check, "what this machine has, what works, how many workers it wants")
    check.add_argument("--device", default="auto")
    check.add_argument("--workers", type=int, help="also play games on so many workers")
    check.add_argument("--games", type=int, help="how many games (default 16)")
    check.add_argument("--game", default="chess")
    check.add_argument("--json", action="store_true")

    perft = command("perft", run_perft, "count the leaves of the legal move tree")
    perft.add_argument("fen")
    perft.add_argument("depth", type=int)

    train = command("train", run_train, "train a network by self-play; a run that is already in the folder continues")
    add_config_options(train)

    watch = command("watch", run_watch, "what a run has done so far, one line per iteration")
    watch.add_argument("run")

    add_measuring_commands(command)

    uci = command("uci", run_uci, "a run's network as a UCI engine, for chess programs")
    uci.add_argument("run")
    uci.add_argument("--snapshot", type=int, help="iteration of the weights (default: the last)")
    uci.add_argument("--device", default="auto")
    return parser


def add_measuring_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands that play, matches, ratings and puzzles, and the one that measures speed."""
    evaluate = command("evaluate", run_evaluate, "play a run's network against an opponent")
    evaluate.add_argument("run")
    evaluate.add_argument(
        "--opponent",
        default="random",
        help="random, greedy, minimax or engine:PATH (all but random: chess only), or another run's network: RUN or "
        "RUN@SNAPSHOT",
    )
    evaluate.add_argument("--games", type=int, default=200, help="an even number: every opening is played twice")
    evaluate.add_argument("--snapshot", type=int, help="iteration of the weights (default: the last)")
    evaluate.add_argument("--save", metavar="DIR", help="a folder that gets every game as PGN (chess only)")
    add_play_options(evaluate)

    ladder = command("ladder", run_ladder, "rate a run's snapshots, and save the ratings in its ratings.json")
    ladder.add_argument("run")
    ladder.add_argument(
        "--opponents",
        help="who else is rated, as in evaluate (default: every fixed player, in chess random,greedy,minimax)",
    )
    ladder.add_argument("--games", type=int, default=40, help="games per pair, an even number")
    ladder.add_argument("--snapshots", type=int, default=5, help="how many, from the untrained one to the last")
    ladder.add_argument("--anchor", default="random", help="the player whose rating is 0")
    add_play_options(ladder)

    tactics = command("tactics", run_tactics, "how many chess puzzles a run's network solves: mates and hanging pieces")
    tactics.add_argument("run")
    tactics.add_argument("--snapshot", type=int, help="iteration of the weights (default: every snapshot)")
    add_play_options(tactics)

    bench = command("bench", run_bench, "measure speed: rules, network, self-play and more")
    bench.add_argument("name", help="rules, self-play, learner, neighbour, ... (docs/speed.md), or all")
    bench.add_argument("--device", default="auto")
    bench.add_argument("--preset", default="cpu")
    bench.add_argument("--seconds", type=float, default=10.0)
    bench.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16")
    bench.add_argument("--game", default="chess")
    bench.add_argument("--boards", type=int, help="games in lockstep (rules and self-play)")
    bench.add_argument("--search", default="two-rung")
    bench.add_argument("--simulations", type=int, default=32, help="of the tree")
    bench.add_argument("--json", action="store_true")


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every field of TrainConfig, with its name and default."""
    for field, kind in zip(dataclasses.fields(TrainConfig), field_types()):
        flag = FLAGS.get(field.name, "--" + field.name.replace("_", "-"))
        more = {
            "dest": field.name,
            "default": field.default,
            "help": f"default: {'by device' if field.default is None else field.default}",
        }
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **more)
        else:
            convert = whole_numbers if kind == tuple[int, ...] else kind
            parser.add_argument(flag, type=convert, metavar=field.name.upper(), **more)


def add_play_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how far networks look ahead, and on which device."""
    parser.add_argument("--search", help="two-rung, tree or policy")
    parser.add_argument("--candidates", type=int, help="two-rung: root moves that it looks at")
    parser.add_argument("--survivors", type=int, help="two-rung: of them, those whose best reply it looks at too")
    parser.add_argument("--simulations", type=int, help="tree: positions that it looks at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true")


def field_types() -> list[Any]:
    """The type of each TrainConfig field, without the None of an optional one."""
    hints = typing.get_type_hints(TrainConfig)
    types_ = []
    for field in dataclasses.fields(TrainConfig):
        hint = hints[field.name]
        if isinstance(hint, types.UnionType):
            hint = next(part for part in typing.get_args(hint) if part is not type(None))
        types_.append(hint)
    return types_


def whole_numbers(text: str) -> tuple[int, ...]:
    """ "0,1" as (0, 1)."""
    return tuple(int(part) for part in text.split(","))


def run_check(options: argparse.Namespace) -> None:
    """The command check-device."""
    from .check import check_device

    report = check_device(options.device, options.workers, options.games, options.game)
    print(json.dumps(report.to_dict()) if options.json else report)


def run_perft(options: argparse.Namespace) -> None:
    """The command perft."""
    from .games.chess.perft import format_perft, perft

    print(format_perft(perft(options.fen, options.depth)))


def run_train(options: argparse.Namespace) -> None:
    """The command train."""
    from .training import train
    from .views.progress import make_progress

    names = [field.name for field in dataclasses.fields(TrainConfig)]
    config = TrainConfig(**{name: getattr(options, name) for name in names})
    for _ in train(config, make_progress()):
        pass


def run_watch(options: argparse.Namespace) -> None:
    """The command watch."""
    from .report import Report
    from .runs.folder import RunFolder
    from .views.text_progress import report_lines

    for values in RunFolder.open(options.run).read_reports():
        print("\n".join(report_lines(Report.from_dict(values))))


def search_of(options: argparse.Namespace) -> Any:
    """The SearchConfig that the options of a playing command ask for."""
    from .arena.players import play_search

    return play_search(options.search, options.candidates, options.survivors, options.simulations)


def run_evaluate(options: argparse.Namespace) -> None:
    """The command evaluate."""
    from .arena.evaluate import evaluate_run

    result = evaluate_run(
        options.run,
        options.opponent,
        options.games,
        search_of(options),
        options.snapshot,
        options.seed,
        options.device,
        options.save,
    )
    print(json.dumps(result.to_dict()) if options.json else result)


def run_ladder(options: argparse.Namespace) -> None:
    """The command ladder."""
    from .arena.ladder import rate_run

    opponents = None if options.opponents is None else [name.strip() for name in options.opponents.split(",")]
    ladder = rate_run(
        options.run,
        opponents,
        options.games,
        options.snapshots,
        options.anchor,
        search_of(options),
        options.seed,
        options.device,
        lambda match: print(match, file=sys.stderr, flush=True),
    )
    print(json.dumps(ladder.to_dict()) if options.json else ladder)


def run_tactics(options: argparse.Namespace) -> None:
    """The command tactics."""
    from .arena.evaluate import run_game
    from .arena.registry import match_kit

    solve = match_kit(run_game(options.run)).require("puzzles")
    snapshots = None if options.snapshot is None else [options.snapshot]
    shares = solve(options.run, search_of(options), snapshots, options.seed, options.device)
    if options.json:
        return print(json.dumps(shares))
    for iteration, solved in shares.items():
        print(f"iteration {iteration:5}: " + ", ".join(f"{kind} {share:.0%}" for kind, share in solved.items()))


def run_uci(options: argparse.Namespace) -> None:
    """The command uci."""
    from .arena.evaluate import run_game
    from .arena.registry import match_kit

    match_kit(run_game(options.run)).require("uci")(options.run, options.snapshot, options.device)


def run_bench(options: argparse.Namespace) -> None:
    """The command bench."""
    from .bench.table import bench

    given = (options.device, options.preset, options.seconds, options.precision, options.game)
    figures = bench(options.name, *given, options.search, options.simulations, options.boards)
    if options.json:
        return print(json.dumps(figures))
    for name, value in figures.items():
        if isinstance(value, dict) and figures["bench"] == "all":
            for part, figure in value.items():
                print_figure(f"{name} {part}", figure)
        else:
            print_figure(name, value)


def print_figure(name: str, value: Any) -> None:
    """One line: the name and the figure."""
    print(f"{name:40} {value:,.3f}" if isinstance(value, float) else f"{name:40} {value}")


if __name__ == "__main__":
    sys.exit(main())
