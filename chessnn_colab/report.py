"""Report: what one iteration did. Progress, plots, metrics.jsonl, TensorBoard and `watch` all read it.

Progress: what a run tells while it trains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

_WINS = "_wins"
TIME_SHARE = 0.05  # of a session's time, at most, for measuring strength


@dataclass(frozen=True)
class Strength:
    """How strong the network was at one moment of a run, by one measure (see strength.py)."""

    measure: str  # what was measured, in words: "puzzles, by policy"
    iteration: int  # 0 is the untrained network
    seconds: float  # of training before
    share: float  # of the puzzles solved, or of the points won, 0 to 1
    low: float  # the 95 % interval of the share
    high: float
    trials: int  # puzzles or games
    cost: float  # seconds that the measurement took


@dataclass(frozen=True)
class Report:
    """One iteration of training. Counts are of this iteration unless they say total; times are in seconds."""

    iteration: int
    seconds: float  # of training so far, earlier sessions of the run included
    games: int  # played to an end
    plies: int  # new positions, those of games cut short by the clock included
    wins: dict[str, int]  # player's name in lower case, the first mover first -> games won by the rules
    draws: int  # by the rules; games stopped at the ply cap are in `endings` alone
    endings: dict[str, int]  # kind of ending -> games
    average_plies: float
    buffer_size: int  # positions in replay
    positions_per_second: float  # of self-play
    games_per_second: float
    updates: int  # gradient steps
    loss: float
    policy_loss: float  # nats
    value_loss: float  # nats
    entropy: float  # of the policy over legal moves, nats
    value_accuracy: float  # share of positions whose result was called right
    learning_rate: float
    policy_kl: float = math.nan  # policy loss less the entropy of its targets, nats; NaN where it learns without search
    cut: bool = False  # the clock stopped its games: `average_plies`, `wins` and `endings` tell of the short ones alone
    strength: tuple[Strength, ...] = ()  # measured since the report before
    firing_rates: dict[str, float] = field(default_factory=dict)  # layer -> spikes per neuron and step, 0 to 1
    seconds_selfplay: float = 0.0
    seconds_learning: float = 0.0
    seconds_other: float = 0.0
    total_games: int = 0
    total_positions: int = 0
    total_updates: int = 0
    scores: dict[str, float] = field(default_factory=dict)  # of a game with points: mean, median and best of the games
    reached: dict[str, float] = field(default_factory=dict)  # of such a game: milestone -> share of games, such as 2048
    sample_game: str = ""  # one of the games as its players write it down, PGN for chess

    @property
    def win_rates(self) -> dict[str, float]:
        """Player's name -> share of the games that it won."""
        return {name: count / max(self.games, 1) for name, count in self.wins.items()}

    @property
    def draw_rate(self) -> float:
        """The share of the games that were drawn by the rules."""
        return self.draws / max(self.games, 1)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data; the wins of each player under its name, such as white_wins."""
        values = asdict(self)
        wins = {f"{name}{_WINS}": count for name, count in values.pop("wins").items()}
        return {**values, **wins}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`. Keys that another version wrote and this one does not know are left out."""
        known = {field.name for field in fields(cls)}
        wins = {name.removesuffix(_WINS): count for name, count in values.items() if name.endswith(_WINS)}
        parts = {field.name for field in fields(Strength)}
        points = [
            {name: value for name, value in point.items() if name in parts} for point in values.get("strength", ())
        ]
        strength = tuple(Strength(**point) for point in points)
        kept = {name: value for name, value in values.items() if name in known}
        return cls(**{**kept, "wins": wins, "strength": strength})


def score_names(reports: Sequence[Report]) -> list[str]:
    """The figures of a game that pays points, such as "best"; none in another game.

    An iteration in which the clock let no game end has none either, so all are looked at.
    """
    return list(next((report.scores for report in reversed(reports) if report.scores), {}))


def strength_points(reports: Sequence[Report]) -> list[Strength]:
    """Every strength that was measured, oldest first."""
    return [point for report in reports for point in report.strength]


@dataclass(frozen=True)
class Session:
    """What a session of training begins with."""

    run: str  # folder
    config: Mapping[str, Any]  # the settings of the run, as in its config.json
    minutes: float | None  # the session's budget; None: its iterations are counted
    iterations: int | None
    workers: int = 1  # that play
    elapsed: float = 0.0  # seconds of the session that are over
    history: Sequence[Report] = ()  # of earlier sessions


class Progress(Protocol):
    """What a training run tells.

    Once: `start_run`. Per iteration: start_selfplay, worker_update many times, finish_selfplay, start_learning,
    learning_update many times, start_measuring, measuring_update and measured where strength is measured, report. While
    workers play beside the learner (`overlap`), the start_selfplay of the next iteration comes before start_learning.
    """

    def message(self, text: str) -> None:
        """A line that is worth reading at any time."""

    def start_run(self, session: Session) -> None:
        """The clock of the session starts; messages may have come before."""

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        """Self-play begins. Each worker has its share of games, and its device in words ("GPU 0: Tesla T4")."""

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        """Since start_selfplay, `worker` has finished `games` games and played `plies` plies."""

    def finish_selfplay(self, seconds: float) -> None:
        """Self-play is over, complete or not, after `seconds`; learning follows."""

    def start_learning(self, updates: int) -> None:
        """Learning begins: so many updates, or fewer if the time is up before."""

    def learning_update(self, done: int) -> None:
        """`done` updates of this iteration are made."""

    def start_measuring(self, what: str) -> None:
        """The strength is measured now; `what` says how, such as "300 puzzles, by policy"."""

    def measuring_update(self, share: float) -> None:
        """It goes on. share: how much is done, 0 to 1, by the time it took last; 0 where that is not known."""

    def measured(self, points: Sequence[Strength]) -> None:
        """What came out. The next report has these points too."""

    def report(self, report: Report) -> None:
        """The iteration is over; `report` tells what it did."""

    def close(self) -> None:
        """The run is over or interrupted."""


class Silence(Progress):
    """The progress of a run that nobody watches."""
