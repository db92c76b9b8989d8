"""Reports as TensorBoard events."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from ..errors import RunError
from ..report import Report
from .files import reason

_SCALARS = {
    "loss/total": "loss",
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "loss/policy_kl": "policy_kl",
    "policy/entropy": "entropy",
    "speed/positions": "positions_per_second",
    "speed/games": "games_per_second",
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
        try:
            for tag, name in _SCALARS.items():
                self._writer.add_scalar(tag, getattr(report, name), report.iteration)
            for name, value in {} if report.cut else _of_whole_games(report).items():
                self._writer.add_scalar(name, value, report.iteration)
            for name, score in report.scores.items():
                self._writer.add_scalar(f"games/{name}_score", score, report.iteration)
            for milestone, share in report.reached.items():
                self._writer.add_scalar(f"games/reached_{milestone}", share, report.iteration)
            for layer, rate in report.firing_rates.items():
                self._writer.add_scalar(f"firing_rate/{layer}", rate, report.iteration)
            for point in report.strength:
                self._writer.add_scalar(f"strength/{point.measure}", point.share, point.iteration)
            self._writer.flush()
        except OSError as error:
            raise RunError(
                f"cannot write the curves in {self._folder}: {reason(error)}. Make room there, then train "
                "again: the run resumes from its last checkpoint"
            ) from error

    def close(self) -> None:
        """Close the event file."""
        with suppress(OSError):  # every write was flushed, or has said why not
            self._writer.close()


def _of_whole_games(report: Report) -> dict[str, float]:
    """What would be false where the clock cut games short: the short ones alone are left."""
    rates = {f"games/{player}_win_rate": rate for player, rate in report.win_rates.items()}
    return {
        "games/average_plies": report.average_plies,
        "games/draw_rate": report.draw_rate,
        **rates,
    }
