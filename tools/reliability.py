"""The promises of docs/promises.md, each tested with its full count, and all other tests that have
one: a row of a table for each.

python tools/reliability.py            all
python tools/reliability.py corrupt    those whose promise has that word in it
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    """A promise, the tests that hold it, and what their passing means."""

    promise: str
    tests: tuple[str, ...]
    figure: str


ROWS = (
    Row(
        "no received game is lost or counted twice",
        ("test_workers.py -k under_kill_9_at_random",),
        "0 in 100 kills at random moments",
    ),
    Row(
        "the same on Ray",
        ("test_cluster.py -k under_kill_9_at_random",),
        "0 in 100 kills at random moments",
    ),
    Row(
        "a run whose workers are killed is the undisturbed run, bit for bit",
        ("test_training.py -k whose_workers_are_killed",),
        "100 kills and more at random moments, games in flight included",
    ),
    Row(
        "an iteration completes whatever dies",
        ("test_workers.py test_cluster.py -k killed",),
        "every game, with a worker killed in a call and between two",
    ),
    Row(
        "a lost machine is a dead worker",
        ("test_cluster.py -k machine_that_is_lost", "test_cluster_network.py"),
        "every game; node removed, cable pulled",
    ),
    Row(
        "a hung worker is replaced",
        ("test_workers.py test_cluster.py -k a_hung_worker",),
        "within the deadline + 1 s, SIGSTOP in 300 kB messages",
    ),
    Row(
        "workers that learn together are one learner, whoever is lost",
        ("test_ranks.py", "test_cluster.py -k learn_together"),
        "the same weights on each; one killed, one stopped",
    ),
    Row(
        "an engine ends with its match",
        ("test_engine_player.py",),
        "in the middle of a move, and while it starts",
    ),
    Row(
        "a match loses no game to a dead process",
        ("test_sharing.py -k killed_process",),
        "the same games as in one process, each once",
    ),
    Row(
        "a crash loop ends",
        ("test_workers.py -k always",),
        "error after 3 restarts, with the cause",
    ),
    Row(
        "interrupt is clean",
        ("test_kernels.py -k interrupted_cell",),
        "no child after 5 s; the next cell resumes",
    ),
    Row(
        "no interrupt is lost",
        ("test_sharing.py -k no_interrupt",),
        "20,000 of 20,000 at random moments",
    ),
    Row(
        "SIGTERM saves the run",
        ("test_training.py -k told_to_end",),
        "SIGTERM and SIGINT to a real process",
    ),
    Row(
        "no orphans",
        ("test_kernels.py -k outlives", "test_workers.py -k dies_with_its_parent"),
        "gone within 2 s of a kernel's restart or kill -9",
    ),
    Row(
        "a save survives a kill",
        ("test_run_folder.py -k under_kill_9",),
        "200 of 200 kills left a loadable run",
    ),
    Row(
        "a copy survives a kill",
        ("test_backup.py -k under_kill_9",),
        "200 of 200 kills left a loadable copy",
    ),
    Row(
        "corruption is found",
        ("test_corruption.py",),
        "all of 300 cuts and 300 flipped bits of each kind of file",
    ),
    Row(
        "a full disk is a clear error and the previous checkpoint stands",
        ("test_full_disk.py", "test_checkpoint.py -k full_disk", "test_backup.py -k restore"),
        "at every step of a save",
    ),
    Row("a hostile checkpoint does nothing", ("test_hostile.py",), "0 executed"),
    Row(
        "bad FEN, moves and PGN",
        ("test_fuzz.py",),
        "12,000 changed FENs, 8,000 PGNs, moves and UCI commands each: the project's own errors or "
        "valid positions",
    ),
    Row("no leak", ("test_leak.py",), ""),
    Row(
        "every notebook runs with any game, and where packages are Colab's",
        ("test_notebook.py -k packages_are_colabs", "test_play_notebook.py -k another_game"),
        "from top to bottom, in a short mode",
    ),
    Row(
        "bench device runs",
        ("test_bench_device.py -k every_part",),
        "every part in a small size, on the CPU",
    ),
    Row(
        "rules, players, plans and files for chips equal what they are compared with",
        (
            "test_chess_endings.py test_chess_moves.py test_gomoku.py test_minimax.py",
            "test_notation.py test_solo.py test_tactics.py",
            "test_graphs.py test_int8.py test_nir.py test_plan.py",
        ),
        "every one",
    ),
    Row(
        "resume is exact",
        ("test_training.py -k resuming_is_exact",),
        "N + N equals 2N, weights and games, bit by bit",
    ),
)


def main(word: str = "") -> int:
    """Run the rows that have `word` in them; the number of those that failed is the exit code."""
    failed = 0
    rows = [row for row in ROWS if word in row.promise]
    if not rows:
        sys.exit(f"no row has {word!r}: expected a word of {'; '.join(r.promise for r in ROWS)}")
    print("| promise | test | measured | seconds |\n|---|---|---|---|")
    for row in rows:
        passed, said, seconds = tested(row)
        failed += not passed
        tests = ", ".join(
            word for tests in row.tests for word in tests.split() if word.endswith(".py")
        )
        print(f"| {row.promise} | {tests} | {said} | {seconds:.0f} |", flush=True)
    return failed


def tested(row: Row) -> tuple[bool, str, float]:
    """Whether the row's tests passed, the figure to show, and how long they took."""
    started, figure = time.monotonic(), row.figure
    for tests in row.tests:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-s",
            "--timeout",
            "3600",
            *(f"tests/{word}" if word.endswith(".py") else word for word in tests.split()),
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "CHESSNN_FULL": "1"},
        )
        seconds = time.monotonic() - started
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-2000:], file=sys.stderr)
            last = (done.stdout.strip().splitlines() or ["no output"])[-1]
            return False, f"FAILED: {last}", seconds
        if measured := re.findall(r"^measured: (.*)$", done.stdout, re.MULTILINE):
            figure = "; ".join(measured)
        if " skipped" in done.stdout.splitlines()[-1]:
            figure += " (part skipped here)"
    return True, figure, seconds


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
