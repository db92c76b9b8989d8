"""Before a run starts: how strong it is likely to get by when."""

import numpy as np

from ..config import TrainConfig, saved_config
from ..devices import detect_device, inventory
from .reference import reference_for

MOMENTS = (1.0, 3.0, 10.0, 20.0, 60.0, 180.0)  # minutes


def what_to_expect(config: TrainConfig) -> str:
    """Lines that say what a run of `config` chooses and why, and how strong it is likely to
    get. Raises ConfigError and DeviceError.

    The strength is that of the reference run that comes with the package, on the machine that it
    names; without one for this game and preset there is no line about strength.
    """
    machine = inventory()
    device = detect_device(config.device, machine, gpus=config.gpus).device
    plan = config.worker_plan(device, machine)
    lines = []
    resolved = config.resolve(device, machine, plan, saved_config(config.run), lines.append)
    if reference := reference_for(resolved.to_dict()):
        lines.append(
            f"A normal run from its beginning, on {reference['machine']} ({reference['date']}):"
        )
        for measure, points in reference["curves"].items():
            lines.append(f"  {measure}: {_by_minutes(points, config.minutes)}")
        lines.append("  (In these games it looks at few positions for a move, in a match at more.)")
    else:
        lines.append("There is no curve of this game and preset to compare with.")
    return "\n".join(lines)


def _by_minutes(points: list[list[float]], minutes: float | None) -> str:
    """The share at a few moments of a curve, between its points in a straight line: "4 % untrained,
    12 % after 3 min, 31 % after 20 min"; "first played after 6 min" where `minutes` end before it.
    """
    measured, shares = zip(*points)
    first = measured[0]
    end = min(measured[-1], minutes or measured[-1])
    if end < first:
        return f"first played after {first:.3g} min"
    said = []
    for moment in sorted({first, *(each for each in MOMENTS if first < each < 0.8 * end), end}):
        when = f"after {moment:.3g} min" if moment else "untrained"
        said.append(f"{100 * np.interp(moment, measured, shares):.0f} % {when}")
    return ", ".join(said)
