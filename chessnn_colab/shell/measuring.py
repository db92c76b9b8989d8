"""The commands that play: matches, ratings, puzzles. Progress goes to stderr, results to stdout."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import Interrupted
from . import AddCommand


def add_measuring_commands(command: AddCommand) -> None:
    """Add the commands that play: matches, ratings, puzzles."""
    evaluate = command("evaluate", run_evaluate, "play a run's network against an opponent")
    ladder = command(
        "ladder", run_ladder, "rate a run's snapshots, and save the ratings in its ratings.json"
    )
    tactics = command(
        "tactics", run_tactics, "how many puzzles of its game a run's network solves, by kind"
    )
    for parser in (evaluate, ladder, tactics):
        add = parser.add_argument
        add("run")
        add("--search", help="tree (default), two-rung or policy, which does not look ahead")
        add("--candidates", type=int, help="two-rung: root moves that it looks at (31)")
        add(
            "--survivors",
            type=int,
            help="two-rung: of them, those whose best reply it looks at too (16)",
        )
        add("--num-simulations", type=int, help="tree: positions that it looks at (47)")
        add(
            "--solve",
            choices=("all", "off"),
            help="all (default): what the rules prove counts as proven; off: as any other guess. "
            "policy proves nothing",
        )
        add("--device", default="auto")
        add("--json", action="store_true")

    for parser in (evaluate, ladder):
        parser.add_argument("--seed", type=int, default=0)
    evaluate.add_argument(
        "--calibration",
        action="store_true",
        help="no opponent: it plays itself as in training, and what its search said of winning, "
        "drawing and losing is compared with what was played",
    )
    add = evaluate.add_argument
    add(
        "--opponent",
        help="random (default); greedy, minimax (chess); heuristic, alphabeta2, alphabeta4 "
        "(gomoku); greedy, snake, expectimax (2048); engine:PATH (UCI or Gomocup); or another "
        "run's network: RUN or RUN@SNAPSHOT",
    )
    add("--games", type=int, default=200, help="an even number: every opening is played twice")
    add("--snapshot", type=int, help="iteration of the weights (default: the last)")
    add(
        "--save",
        metavar="DIR",
        help="a folder that gets every game: PGN for chess, text for gomoku",
    )

    add = ladder.add_argument
    add(
        "--opponents",
        help="who else is rated, as in evaluate (default: every fixed player, in chess "
        "random,greedy,minimax)",
    )
    add("--games", type=int, default=40, help="games per pair, an even number")
    add("--snapshots", type=int, default=5, help="how many, from the untrained one to the last")
    add("--anchor", default="random", help="the player whose rating is 0")

    tactics.add_argument(
        "--snapshot", type=int, help="iteration of the weights (default: every snapshot)"
    )


def run_evaluate(options: argparse.Namespace) -> None:
    """The command evaluate. Ctrl-C prints the score so far."""
    from ..arena.evaluate import evaluate_run
    from ..views.progress import watching

    if options.calibration:
        return _calibrate(options)
    with watching(stream=sys.stderr) as watch:
        results = evaluate_run(
            options.run,
            ["random" if options.opponent is None else options.opponent],
            options.games,
            _search(options),
            [options.snapshot],
            options.seed,
            options.device,
            options.save,
            watch,
        )
    _print_results(results, options.json)


def _calibrate(options: argparse.Namespace) -> None:
    from ..arena.calibration import calibrate_run
    from ..errors import ConfigError
    from ..runs.files import null_for_nan
    from ..views.progress import watching

    own = ("opponent", "save", "search", "candidates", "survivors", "num_simulations", "solve")
    if given := [name for name in own if getattr(options, name) is not None]:
        flag = given[0].replace("_", "-")
        raise ConfigError(f"--{flag} with --calibration, which plays as in training: leave it out")
    with watching(stream=sys.stderr) as watch:
        found = calibrate_run(
            options.run, options.games, options.snapshot, options.seed, options.device, watch
        )
    print(json.dumps(null_for_nan(found._asdict())) if options.json else found, flush=True)


def run_ladder(options: argparse.Namespace) -> None:
    """The command ladder. Ctrl-C prints the ratings so far."""
    from ..arena.ladder import rate_run
    from ..views.progress import watching

    opponents = None
    if options.opponents is not None:
        opponents = [name.strip() for name in options.opponents.split(",")]
    with watching(stream=sys.stderr) as watch:
        ladder = rate_run(
            options.run,
            opponents,
            options.games,
            options.snapshots,
            options.anchor,
            _search(options),
            options.seed,
            options.device,
            watch,
        )
        for match in ladder.matches:
            watch.message(str(match))
    _print_results([ladder], options.json)


def run_tactics(options: argparse.Namespace) -> None:
    """The command tactics. Ctrl-C prints the snapshots that were done."""
    from ..arena.puzzles import solved_over_run
    from ..runs.networks import networks
    from ..views.progress import watching

    snapshots = sorted(networks(options.run)) if options.snapshot is None else [options.snapshot]
    with watching(stream=sys.stderr) as watch:
        shares = solved_over_run(options.run, _search(options), snapshots, options.device, watch)
    if options.json:
        print(json.dumps(shares), flush=True)
    else:
        for iteration, solved in shares.items():
            kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in solved.items())
            print(f"iteration {iteration:5}: {kinds}", flush=True)
    if len(shares) < len(snapshots):
        raise Interrupted(f"interrupted after {len(shares)} of {len(snapshots)} snapshots")


def _search(options: argparse.Namespace) -> Any:
    from ..arena.players import play_search

    return play_search(
        options.search,
        options.candidates,
        options.survivors,
        options.num_simulations,
        options.solve or "all",
    )


def _print_results(results: Sequence[Any], as_json: bool) -> None:
    """Print each result; raises Interrupted when one is of an interrupted measurement."""
    for result in results:
        print(json.dumps(result.to_dict()) if as_json else result, flush=True)
    if any(result.interrupted for result in results):
        raise Interrupted
