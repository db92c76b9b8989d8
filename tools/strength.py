"""How strong a run gets in a given time: train for so many minutes, play a fixed set of matches,
log the results.

    python tools/strength.py runs/s0 --minutes 20 --seed 0 --log LOG.md -- --value-scale 0.3

What follows `--` goes to `python -m chessnn_colab train`. The untrained network plays the same
matches with the same search. A run that is already in the folder continues, so that a long training
can be done in pieces.

The yardstick in the table names the opponents and the openings by what they do: results with the
same one compare, on any machine and in any version.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from chessnn_colab.arena.evaluate import find_player, network_player
from chessnn_colab.arena.match import Match
from chessnn_colab.arena.parallel import play_matches
from chessnn_colab.arena.players import GamesChance
from chessnn_colab.arena.registry import arena_game, match_game
from chessnn_colab.arena.result import MatchResult
from chessnn_colab.devices import detect_device
from chessnn_colab.runs.networks import run_game
from chessnn_colab.views.progress import watching

MATCHES = {
    "random": 400,
    "greedy": 200,
    "minimax": 100,
}  # opponent -> games; a game plays those that it has
COMMAND = [sys.executable, "-m", "chessnn_colab"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="run folder")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of each match's games to play (default 1)"
    )
    parser.add_argument(
        "--no-untrained", action="store_true", help="without the untrained network's matches"
    )
    parser.add_argument("--log", type=Path, help="append the table to this file")
    own, more = partition(sys.argv[1:])
    options = parser.parse_args(own)
    train = [
        "train",
        "--run",
        options.run,
        "--minutes",
        f"{options.minutes:g}",
        "--seed",
        str(options.seed),
        *more,
    ]
    subprocess.run([*COMMAND, *train], check=True)
    last = json.loads(
        (Path(options.run) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    )
    snapshots = ([] if options.no_untrained else [0]) + [last["iteration"]]
    results = matches(options.run, snapshots, options.share)
    if any(result.interrupted for result in results):
        print(*results, sep="\n")
        return 130
    text = entry(options, train, last, [row(result) for result in results])
    print(text)
    if options.log:
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(text)
    return 0


def partition(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and those after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def matches(run: str, snapshots: list[int], share: float) -> list[MatchResult]:
    """All matches side by side, snapshot by snapshot."""
    name = run_game(run)
    game = match_game(name, detect_device().device)
    own = [network_player(run, snapshot, game) for snapshot in snapshots]
    opponents = [
        find_player(opponent, game) for opponent in MATCHES if opponent in arena_game(name).players
    ]
    games = {opponent: max(2, round(count * share / 2) * 2) for opponent, count in MATCHES.items()}
    wanted = [
        Match(player, opponent, games[opponent.name]) for player in own for opponent in opponents
    ]
    with watching(stream=sys.stderr) as watch:
        return play_matches(game, wanted, watch=watch, processes=None)


def yardstick(name: str) -> str:
    """Twelve digits that follow from a game's openings and from what its fixed opponents play after
    each of them.
    """
    game, kit = match_game(name), arena_game(name)
    state, boards = kit.start(game, kit.book)
    played = [[opening.name, *map(str, opening.moves)] for opening in kit.book]
    for opponent in MATCHES:
        if opponent in kit.players:
            chance = GamesChance(game.device)
            chance.games = [random.Random(str(number)) for number in range(len(kit.book))]
            played.append(
                [opponent, *kit.players[opponent](game).choose(state, chance, boards).tolist()]
            )
    return hashlib.sha256(json.dumps(played).encode()).hexdigest()[:12]


def row(result: MatchResult) -> str:
    """One match as a row of the table."""
    low, high = result.interval
    endings = ", ".join(
        f"{count} {kind.replace('_', ' ')}" for kind, count in result.endings.items()
    )
    who = "untrained" if result.player == "iteration 0" else result.player
    return (
        f"| {who} | {result.opponent} | {result.evaluations} | {result.wins} / {result.draws} / {result.losses} | "
        f"{result.score:.3f} ({low:.3f} to {high:.3f}) | {result.average_plies:.0f} | {endings} |"
    )


def entry(options: argparse.Namespace, train: list[str], last: dict, rows: list[str]) -> str:
    """What the log gets: date, commit, machine, command, table."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    head = "| network | opponent | evaluations per move | won / drawn / lost | score (95 %) | plies | endings |"
    return "\n".join(
        [
            "",
            f"### {datetime.date.today()}, commit {commit or 'unknown'}, {os.cpu_count()} cores: "
            f"`python -m chessnn_colab {' '.join(train)}`",
            "",
            f"{last['total_positions']:,} positions of {last['total_games']:,} games, "
            f"{last['total_updates']:,} updates, {last['iteration']} iterations, {last['seconds'] / 60:.1f} minutes. "
            f"Yardstick {yardstick(run_game(options.run))}.",
            "",
            head,
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
