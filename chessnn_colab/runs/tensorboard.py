"""Reports as TensorBoard events."""

import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from ..report import Report
from .files import refused

# TensorBoard's own name for: without TensorFlow. Else it imports that where it is installed, as on
# Colab, which takes seconds and hundreds of megabytes.
sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

_SCALARS = {
    "loss/total": "loss",
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "loss/policy_kl": "policy_kl",
    "policy/entropy": "entropy",
    "value/brier": "brier",
    "value/correlation": "correlation",
    "speed/positions": "positions_per_second",
    "seconds/selfplay": "seconds_selfplay",
    "seconds/learning": "seconds_learning",
    "replay/size": "buffer_size",
    "learning_rate": "learning_rate",
}


class TensorBoard:
    """Writes one step per iteration, the first of them after iteration `first`.

    Later steps that an interrupted session wrote are hidden: they come again.
    """

    def __init__(self, folder: Path, first: int):
        self._folder = folder
        self._writer = SummaryWriter(str(folder), purge_step=first + 1)

    def write(self, report: Report) -> None:
        """Add one iteration to the curves. Raises RunError when the system refuses, and then at
        every later call.
        """
        values = {tag: getattr(report, name) for tag, name in _SCALARS.items()}
        values |= {f"games/{name}_score": score for name, score in report.scores.items()}
        values |= {f"games/reached_{name}": share for name, share in report.reached.items()}
        values |= {f"firing_rate/{layer}": rate for layer, rate in report.firing_rates.items()}
        if report.games:
            values["games/average_plies"] = report.average_plies
            values |= {
                f"games/{name}": share for name, share in report.results.items() if report.wins
            }
        advice = ". Make room there, then train again: the run resumes from its last checkpoint"
        with refused(f"cannot write the curves in {self._folder}", advice):
            for tag, value in values.items():
                self._writer.add_scalar(tag, value, report.iteration)
            for point in report.strength:
                self._writer.add_scalar(f"strength/{point.measure}", point.share, point.iteration)
            self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        with suppress(OSError):  # every write was flushed, or has said why not
            self._writer.close()
