"""The commands that play: matches, ratings, puzzles. Progress goes to stderr, results to stdout."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from ..errors import Interrupted


def add_measuring_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands that play: matches, ratings, puzzles."""
    evaluate = command("evaluate", run_evaluate, "play a run's network against an opponent")
    evaluate.add_argument("run")
    evaluate.add_argument(
        "--opponent",
        default="random",
        help="random; greedy, minimax (chess); heuristic, alphabeta2, alphabeta4 (gomoku); greedy, snake, expectimax "
        "(2048); engine:PATH (UCI or Gomocup); or another run's network: RUN or RUN@SNAPSHOT",
    )
    evaluate.add_argument("--games", type=int, default=200, help="an even number: every opening is played twice")
    evaluate.add_argument("--snapshot", type=int, help="iteration of the weights (default: the last)")
    evaluate.add_argument("--save", metavar="DIR", help="a folder that gets every game as PGN (chess) or PSQ (gomoku)")
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

    tactics = command("tactics", run_tactics, "how many puzzles of its game a run's network solves, by kind")
    tactics.add_argument("run")
    tactics.add_argument("--snapshot", type=int, help="iteration of the weights (default: every snapshot)")
    add_play_options(tactics)


def add_play_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how far networks look ahead, and on which device."""
    parser.add_argument("--search", help="two-rung, tree or policy")
    parser.add_argument("--candidates", type=int, help="two-rung: root moves that it looks at")
    parser.add_argument("--survivors", type=int, help="two-rung: of them, those whose best reply it looks at too")
    parser.add_argument("--simulations", type=int, help="tree: positions that it looks at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true")


def search_of(options: argparse.Namespace) -> Any:
    """The SearchConfig that the options of a playing command ask for."""
    from ..arena.players import play_search

    return play_search(options.search, options.candidates, options.survivors, options.simulations)


def run_evaluate(options: argparse.Namespace) -> None:
    """The command evaluate. Ctrl-C prints the score so far."""
    from ..arena.evaluate import evaluate_run
    from ..views.measuring import watching

    with watching(stream=sys.stderr) as watch:
        result = evaluate_run(
            options.run,
            options.opponent,
            options.games,
            search_of(options),
            options.snapshot,
            options.seed,
            options.device,
            options.save,
            watch,
        )
    print(json.dumps(result.to_dict()) if options.json else result, flush=True)
    if result.interrupted:
        raise Interrupted


def run_ladder(options: argparse.Namespace) -> None:
    """The command ladder. Ctrl-C prints the ratings so far."""
    from ..arena.ladder import rate_run
    from ..views.measuring import watching

    opponents = None if options.opponents is None else [name.strip() for name in options.opponents.split(",")]
    with watching(stream=sys.stderr) as watch:
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
            watch,
        )
    print(json.dumps(ladder.to_dict()) if options.json else ladder, flush=True)
    if ladder.interrupted:
        raise Interrupted


def run_tactics(options: argparse.Namespace) -> None:
    """The command tactics. Ctrl-C prints the snapshots that were done."""
    from ..arena.puzzles import solved_over_run
    from ..errors import RunError
    from ..runs.shared import networks
    from ..views.measuring import watching

    snapshots = sorted(networks(options.run)) if options.snapshot is None else [options.snapshot]
    if not snapshots:
        raise RunError(f"{options.run} has no snapshot of its weights yet; let it train for an iteration")
    with watching(stream=sys.stderr) as watch:
        shares = solved_over_run(options.run, search_of(options), snapshots, options.seed, options.device, watch)
    if options.json:
        print(json.dumps(shares), flush=True)
    for iteration, solved in shares.items() if not options.json else ():
        print(f"iteration {iteration:5}: " + ", ".join(f"{kind} {share:.0%}" for kind, share in solved.items()))
    if len(shares) < len(snapshots):
        raise Interrupted(f"interrupted after {len(shares)} of {len(snapshots)} snapshots")
