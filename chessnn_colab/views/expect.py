"""Before a run starts: how strong it is likely to get by when."""

import numpy as np

from ..config import TrainConfig, saved_config
from ..devices import detect_device, inventory
from .story import reference_for

MOMENTS = (1.0, 3.0, 10.0, 20.0, 60.0, 180.0)  # minutes


def what_to_expect(config: TrainConfig) -> str:
    """Lines that say which preset is chosen and why, and how strong a run of `config` is likely to
    get. Raises ConfigError and DeviceError.

    The strength is that of the reference run that comes with the package, on the machine that it
    names; without one for this game and preset there is no line about strength.
    """
    machine = inventory()
    device = detect_device(config.device, machine, gpus=config.gpus).device
    plan = config.worker_plan(device, machine)
    lines: list[str] = []
    resolved = config.resolve(device, machine, plan, saved_config(config.run), lines.append)
    if reference := reference_for(resolved.to_dict()):
        lines.append(f"A normal run on {reference['machine']} ({reference['date']}):")
        for measure, points in reference["curves"].items():
            lines.append(f"  {measure}: {_by_minutes(points, config.minutes)}")
    return "\n".join(lines) or "There is no curve of this game and preset to compare with."


def _by_minutes(points: list[list[float]], minutes: float | None) -> str:
    """The share at a few moments of a curve, between its points in a straight line: "4 % untrained,
    12 % after 3 min, 31 % after 20 min".
    """
    measured, shares = zip(*points)
    end = min(measured[-1], minutes or measured[-1])
    moments = [*(moment for moment in MOMENTS if moment < 0.8 * end), end]
    said = [f"{100 * shares[0]:.0f} % untrained"]
    for moment, share in zip(moments, np.interp(moments, measured, shares)):
        said.append(f"{100 * share:.0f} % after {moment:.3g} min")
    return ", ".join(said)
