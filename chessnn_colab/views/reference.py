"""The strength of a normal run, and a run that is weaker than that."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..report import Strength

REFERENCE = Path(__file__).parent / "data" / "reference.json"  # by tools/reference_curve.py
EARLY = 180.0  # seconds in which strength changes too fast to be compared


def reference_for(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The curve of a normal run of the same game, preset and search, if one is shipped."""
    for run in json.loads(REFERENCE.read_text(encoding="utf-8"))["runs"]:
        if all(run[key] == config.get(key) for key in ("game", "preset", "search")):
            return run
    return None


def behind_words(config: Mapping[str, Any], points: Sequence[Strength]) -> str:
    """That one of `points` is below the curve of a normal run, their 95 % intervals apart, and what
    to look at first; "" where none is.
    """
    reference = reference_for(config) or {"curves": {}}
    for point in points:
        curve = reference["curves"].get(point.measure)
        if curve and point.seconds > EARLY:
            minutes, shares = zip(*curve)
            usual = np.interp(point.seconds / 60, minutes, shares, left=0)
            if usual > 2 * point.high - point.share:
                return (
                    f"Weaker than a normal run by now ({point.measure}). First compare positions/s "
                    f"with the normal run's {reference['pace']:,}: a slower or busier machine "
                    "learns later. Then look at settings that you changed"
                )
    return ""
