"""How strong a run gets in a given time: train for so many minutes, play a fixed set of matches, log the results.

    python tools/strength.py runs/s0 --minutes 20 --seed 0 --log LOG.md -- --value-scale 0.3

What follows `--` goes to `python -m chessnn_colab train`. The untrained network plays the same matches with the same
search. A run that is already in the folder continues, so that a long training can be done in pieces.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from chessnn_colab.arena.evaluate import run_game
from chessnn_colab.arena.registry import match_kit

MATCHES = {"random": 400, "greedy": 200, "minimax": 100}  # opponent -> games; a game plays those that it has
COMMAND = [sys.executable, "-m", "chessnn_colab"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="share of each match's games to play (default 1)")
    parser.add_argument("--no-untrained", action="store_true", help="without the untrained network's matches")
    parser.add_argument("--log", type=Path, help="append the table to this file")
    own, more = partition(sys.argv[1:])
    options = parser.parse_args(own)
    train = ["train", "--run", options.run, "--minutes", f"{options.minutes:g}", "--seed", str(options.seed), *more]
    subprocess.run([*COMMAND, *train], check=True)
    last = json.loads((Path(options.run) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    rows = []
    opponents = [name for name in MATCHES if name in match_kit(run_game(options.run)).players]
    for snapshot in ([] if options.no_untrained else [0]) + [last["iteration"]]:
        for opponent in opponents:
            games = max(2, round(MATCHES[opponent] * options.share / 2) * 2)
            row = evaluated(options.run, opponent, games, snapshot)
            print(row, flush=True)
            rows.append(row)
    text = entry(options, train, last, rows)
    print(text)
    if options.log:
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(text)
    return 0


def partition(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and those after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def evaluated(run: str, opponent: str, games: int, snapshot: int) -> str:
    """One match as a row of the table."""
    match = ["evaluate", run, "--opponent", opponent, "--games", str(games), "--snapshot", str(snapshot), "--json"]
    result = json.loads(subprocess.run([*COMMAND, *match], check=True, stdout=subprocess.PIPE).stdout)
    low, high = result["interval"]
    endings = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in result["endings"].items() if count)
    who = f"iteration {snapshot}" if snapshot else "untrained"
    return (
        f"| {who} | {opponent} | {result['evaluations']} | {result['wins']} / {result['draws']} / {result['losses']} | "
        f"{result['score']:.3f} ({low:.3f} to {high:.3f}) | {result['average_plies']:.0f} | {endings} |"
    )


def entry(options: argparse.Namespace, train: list[str], last: dict, rows: list[str]) -> str:
    """What the log gets: date, commit, machine, command, table."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    head = "| network | opponent | evaluations per move | won / drawn / lost | score (95 %) | plies | endings |"
    return "\n".join(
        [
            "",
            f"### {datetime.date.today()}, commit {commit or 'unknown'}, {os.cpu_count()} cores: "
            f"`python -m chessnn_colab {' '.join(train)}`",
            "",
            f"{last['total_positions']:,} positions of {last['total_games']:,} games, "
            f"{last['total_updates']:,} updates, {last['iteration']} iterations, {last['seconds'] / 60:.1f} minutes.",
            "",
            head,
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
