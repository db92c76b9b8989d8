"""Write the curve of a normal run into chessnn_colab/views/data/reference.json, where the panel
finds it.

python tools/reference_curve.py RUN "MACHINE" [OUT]: RUN is a run trained in one session on an idle
machine, for example by `python -m chessnn_colab train --run RUN --minutes 20`. It replaces the
curve of the same game, preset and search.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from chessnn_colab.budget import DEFAULT_MINUTES
from chessnn_colab.errors import ChessnnError, RunError
from chessnn_colab.report import strength_points
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.run_list import folder_bytes
from chessnn_colab.views.reference import REFERENCE

KEYS = {"game": "chess", "preset": "cpu", "search": "two-rung"}  # and what a run has without them


def curve_of(run: str, machine: str) -> dict:
    """The entry of one run. Raises RunError for a run whose strength was not measured at least
    twice.
    """
    folder = RunFolder.open(run)
    reports = folder.reports()
    curves: dict[str, list[list[float]]] = {}
    for point in strength_points(reports):
        moment = [round(point.seconds / 60, 3), round(point.share, 4)]
        curves.setdefault(point.measure, []).append(moment)
    if not curves or max(map(len, curves.values())) < 2:
        raise RunError(
            f"{run} has no curve: train it with --measure-strength and a time budget, expected two points"
        )
    settings = {key: folder.config.get(key) for key in KEYS}
    options = [f"--{key} {value}" for key, value in settings.items() if value != KEYS[key]]
    minutes = folder.config.get("minutes") or DEFAULT_MINUTES
    return {
        **settings,
        "machine": machine,
        "date": datetime.now(UTC).date().isoformat(),
        "command": " ".join(["python -m chessnn_colab train", *options, f"--minutes {minutes:g}"]),
        "minutes": round(reports[-1].seconds / 60, 2),
        "pace": round(median(report.positions_per_second for report in reports)),
        "bytes": folder_bytes(folder.path),
        "curves": curves,
    }


def main(run: str, machine: str, out: str | None = None) -> int:
    target = Path(out or REFERENCE)
    entry = curve_of(run, machine)
    runs = json.loads(target.read_text(encoding="utf-8"))["runs"] if target.is_file() else []
    kept = [other for other in runs if any(other[key] != entry[key] for key in KEYS)]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"runs": [*kept, entry]}, indent=1) + "\n", encoding="utf-8")
    print(f"{target}: {entry['game']}, preset {entry['preset']}, search {entry['search']}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except ChessnnError as error:
        print(f"reference_curve: {error}", file=sys.stderr)
        sys.exit(2)
