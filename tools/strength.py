"""How strong a run is: a fixed set of matches and puzzles, as a table and as JSON.

    python tools/strength.py runs/s0 --minutes 20 --seed 0 -- --value-scale 0.3
    python tools/strength.py runs/s0 --full --stockfish stockfish --maia maia.py

The first command trains (what follows `--` goes to `python -m chessnn_colab train`; a run that is
already in the folder continues) and plays a few matches, the untrained network's beside them. The
second trains nothing and plays everything that docs/strength.md quotes: the fixed players,
Stockfish's levels and Maia's ratings where those programs are, with what the rules prove and
without it, and the puzzles of everybody. Both write RUN/strength.json, anew after each match.

maia: a UCI engine that plays one of CSSLab's networks, which the environment variable MAIA names
by its rating.

The yardstick in the table names the opponents and the openings by what they do: results with the
same one compare, on any machine and in any version.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from chessnn_colab.arena.engine_processes import OUTSIDE_PATH
from chessnn_colab.arena.evaluate import evaluate_run, find_player, network_player
from chessnn_colab.arena.players import GamesChance, Player, play_search
from chessnn_colab.arena.puzzles import solved_share
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.arena.result import FORFEIT, MatchResult
from chessnn_colab.cpu import usable_cores
from chessnn_colab.devices import detect_device
from chessnn_colab.errors import ChessnnError
from chessnn_colab.runs.files import encode_object, write_atomically
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import find_snapshot, run_game
from chessnn_colab.search import SearchConfig
from chessnn_colab.views.progress import watching

FEW_GAMES = {"random": 400, "greedy": 200, "minimax": 100}  # a game plays those that it has
ALL_GAMES = {"random": 200, "greedy": 200, "minimax": 400}
FIXED = "random", "greedy", "minimax"  # whose openings and moves make the yardstick
LEVELS = 0, 1, 2, 3
LEVEL_GAMES = 200
RATINGS = 1100, 1500, 1900
RATING_GAMES = 128  # neither side has chance: 64 openings, two colours
UNSOLVED = play_search(solve="off")
SEED = 0  # of the matches' chance
COMMAND = [sys.executable, "-m", "chessnn_colab"]
FILE = "strength.json"


def trained(command: Sequence[str]) -> int:
    """The exit code of a training. Ctrl-C is its own affair: it saves the run, and then it ends."""
    training = subprocess.Popen(command)
    while True:
        try:
            return training.wait()
        except KeyboardInterrupt:
            continue


def main() -> int:
    options = parse(sys.argv[1:])
    if not options.full:
        train = ["train", "--run", options.run, "--minutes", f"{options.minutes:g}"]
        train += ["--seed", str(options.seed), *options.more]
        if failed := trained([*COMMAND, *train]):
            return failed
    found: dict[str, Any] = {}
    try:
        for found in measured(options):
            write_atomically(Path(options.run) / FILE, encode_object(found, indent=1))
    except ChessnnError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join([*head_lines(found), "", *table(found)]))
    return 130 if any(match["interrupted"] for match in found["matches"]) else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; `more` are the arguments after the first `--`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("run", help="run folder")
    add("--minutes", type=float, default=20.0)
    add("--seed", type=int, default=0)
    add("--share", type=float, default=1.0, help="share of each match's games to play (default 1)")
    add("--full", action="store_true", help="train nothing, and play everything")
    add("--stockfish", default="stockfish", help="the program; without it its rows are left out")
    add("--maia", help="the UCI engine of Maia's networks; without it its rows are left out")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.more = arguments[at + 1 :]
    return options


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What has been played so far, and what it was played with, as plain data: after each match and
    after the puzzles. An interrupted match is the last.
    """
    run = options.run
    if match_game(run_game(run)).num_players == 1:
        sys.exit(f"{run} is a run of a game without an opponent: `evaluate` measures it")
    if options.full:
        find_snapshot(run, 0)  # the puzzles at the end need it
    reports = RunFolder.open(run).read_reports()
    if not reports:
        sys.exit(f"{run} has no finished iteration yet: let it train first")
    last = reports[-1]
    settings = json.loads((Path(run) / "config.json").read_text(encoding="utf-8"))
    totals = ("iteration", "total_positions", "total_games", "total_updates", "seconds")
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{usable_cores()} cores, {cpu_name()}",
        "yardstick": yardstick(run_game(run)),
        "settings": settings,
        "match_seed": SEED,
        **{name: last[name] for name in totals},
        "matches": [],
        "puzzles": {},
    }
    for match in planned(options):
        with maia_rating(match.rating):
            result = played(run, match, options.share)
        shown = {"solver": match.search.solve, **result.to_dict()}
        if match.rating:
            shown["opponent"] = f"Maia {match.rating}"
        found["matches"].append(shown)
        yield found
        if result.interrupted:
            return
    if options.full and arena_game(run_game(run)).puzzles is not None:
        found["puzzles"] = puzzles(run)
        yield found


def cpu_name() -> str:
    """The CPU's name where Linux tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


class Planned(NamedTuple):
    """A match to play."""

    opponent: str  # see evaluate.find_player
    games: int
    search: SearchConfig
    snapshot: int | None = None  # None: the last
    rating: int = 0  # of Maia


def planned(options: argparse.Namespace) -> Iterator[Planned]:
    """Every match, those first whose programs may not start."""
    name = run_game(options.run)
    search = play_search()
    if options.full and name == "chess":
        yield from against_programs(options, search)
    games = ALL_GAMES if options.full else FEW_GAMES
    fixed = {who: games[who] for who in games if who in arena_game(name).players}
    for who, count in fixed.items():
        yield Planned(who, count, search)
    if not options.full:
        for who, count in fixed.items():
            yield Planned(who, count, search, 0)
        return
    if "minimax" in fixed:
        yield Planned("minimax", fixed["minimax"], UNSOLVED)


def against_programs(options: argparse.Namespace, search: SearchConfig) -> Iterator[Planned]:
    """The matches against Maia and Stockfish, where they are."""
    if options.maia:
        maia = Path(options.maia)  # or a name on PATH
        spec = f"engine:{maia.resolve() if maia.is_file() else maia}?nodes=1"
        for rating in RATINGS:
            yield Planned(spec, RATING_GAMES, search, rating=rating)
    known = options.stockfish
    if stockfish := shutil.which(known) or shutil.which(known, path=OUTSIDE_PATH):
        for level in LEVELS:
            spec = f"engine:{stockfish}?nodes=1000&Skill Level={level}"
            yield Planned(spec, LEVEL_GAMES, search)


@contextmanager
def maia_rating(rating: int) -> Iterator[None]:
    """MAIA names the network for the processes that begin meanwhile."""
    os.environ["MAIA"] = str(rating or "")
    try:
        yield
    finally:
        del os.environ["MAIA"]


def played(run: str, match: Planned, share: float) -> MatchResult:
    """One match, said as it ends."""
    games = max(2, round(match.games * share / 2) * 2)
    with watching(stream=sys.stderr) as watch:
        (result,) = evaluate_run(
            run, [match.opponent], games, match.search, [match.snapshot], SEED, watch=watch
        )
    print(result, file=sys.stderr, flush=True)
    return result


def puzzles(run: str) -> dict[str, dict[str, float]]:
    """Who -> kind of puzzle -> the share that it solves."""
    game = match_game(run_game(run), detect_device("cpu").device)
    kit = arena_game(game.name)
    suite = kit.require("puzzles")(game)
    who: dict[str, Player] = {
        "the network by its policy alone": network_player(run, None, game, play_search("policy")),
        "with 48 evaluations": network_player(run, None, game, UNSOLVED),
        "with 48 evaluations and proofs": network_player(run, None, game),
        "untrained, with 48 evaluations": network_player(run, 0, game, UNSOLVED),
        "untrained, with 48 evaluations and proofs": network_player(run, 0, game),
        **{name: find_player(name, game) for name in ("greedy", "minimax") if name in kit.players},
    }
    return {name: solved_share(game, suite, player) for name, player in who.items()}


def yardstick(name: str) -> str:
    """Twelve digits that follow from a game's openings and from what its fixed opponents play after
    each of them.
    """
    game, kit = match_game(name), arena_game(name)
    state, boards = kit.start(game, kit.book)
    played = [[opening.name, *map(str, opening.moves)] for opening in kit.book]
    for opponent in FIXED:
        if opponent in kit.players:
            chance = GamesChance(game.device)
            chance.games = [random.Random(str(number)) for number in range(len(kit.book))]
            played.append(
                [opponent, *kit.players[opponent](game).choose(state, chance, boards).tolist()]
            )
    return hashlib.sha256(json.dumps(played).encode()).hexdigest()[:12]


def head_lines(found: dict[str, Any]) -> list[str]:
    """What was measured, in a line or two."""
    return [
        f"Seed {found['settings']['seed']}: {found['total_positions']:,} positions of "
        f"{found['total_games']:,} games, {found['total_updates']:,} updates, "
        f"{found['iteration']} iterations, {found['seconds'] / 60:.1f} minutes; {found['date']}, "
        f"{found['machine']}. Yardstick {found['yardstick']}."
    ]


def table(found: dict[str, Any]) -> list[str]:
    """The tables, in Markdown."""
    lines = [
        "| against | proofs | evaluations a move | won / drawn / lost | score (95 %) | plies |",
        "|---|---|---|---|---|---|",
        *(match_row(match) for match in found["matches"]),
    ]
    if found["puzzles"]:
        kinds = list(next(iter(found["puzzles"].values())))
        lines += ["", f"| puzzles | {' | '.join(kinds)} |", "|---" * (1 + len(kinds)) + "|"]
        lines += [puzzle_row(who, list(found["puzzles"][who].values())) for who in found["puzzles"]]
    return lines


def match_row(match: dict[str, Any]) -> str:
    low, high = match["interval"]
    who = "untrained, " if match["player"] == "iteration 0" else ""
    proofs = "with" if match["solver"] == "all" else "without"
    score = "-" if match["score"] is None else f"{match['score']:.3f}"
    forfeits = match["endings"].get(FORFEIT, 0)
    forfeited = f", {forfeits} of them forfeited" if forfeits else ""
    return (
        f"| {who}{match['opponent']} | {proofs} | {match['evaluations']} | "
        f"{match['wins']} / {match['draws']} / {match['losses']}{forfeited} | "
        f"{score} ({low:.3f} to {high:.3f}) | {match['average_plies']:.0f} |"
    )


def puzzle_row(who: str, shares: Sequence[float]) -> str:
    return f"| {who} | {' | '.join(f'{share:.0%}' for share in shares)} |"


if __name__ == "__main__":
    sys.exit(main())
