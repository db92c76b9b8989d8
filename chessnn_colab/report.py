"""Report: what one iteration did. Progress, plots, metrics.jsonl, TensorBoard and `watch` all read
it.

Progress: the events of a run while it trains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

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
    """One iteration of training. Counts are of this iteration unless they say total; times are in
    seconds.
    """

    iteration: int
    seconds: float  # of training so far, earlier sessions of the run included
    games: int  # that ended; some began in earlier iterations
    # New positions: of these games, and of those that the clock stopped at a session's end.
    plies: int
    wins: dict[str, int]  # player in lower case, the first mover first -> games won by the rules
    draws: int  # by the rules; games stopped at the ply cap are in `endings` alone
    endings: dict[str, int]  # kind of ending -> games
    average_plies: float  # of the games; NaN where none ended
    buffer_size: int  # positions in replay
    positions_per_second: float  # of self-play
    updates: int  # gradient steps
    loss: float
    policy_loss: float  # nats
    value_loss: float  # nats
    entropy: float  # of the policy over legal moves, nats
    learning_rate: float
    # What the search said in the new games that the rules ended, before anything was learned from
    # them, beside their outcomes (chances.py); NaN without such a game, or where points are paid.
    brier: float = math.nan
    correlation: float = math.nan
    # Policy loss less the entropy of its targets, nats; NaN where nothing was learned.
    policy_kl: float = math.nan
    positions_played: int = 0  # on the boards, those of games that go on included
    strength: tuple[Strength, ...] = ()  # measured since the report before
    # By strength.opinion_of_position; in a run's first report the untrained network's comes first.
    opinions: Sequence[Any] = ()
    # Layer -> spikes as a share of those possible, 0 to 1.
    firing_rates: dict[str, float] = field(default_factory=dict)
    seconds_selfplay: float = 0.0
    seconds_learning: float = 0.0
    # How often a new position is learned from, on average; it says nothing where no game has ended.
    draws_per_position: float = 0.0
    window: int = 0  # the positions that the replay may keep
    total_games: int = 0
    total_positions: int = 0
    total_updates: int = 0
    # Of a game with points: mean, median and best of the games.
    scores: dict[str, float] = field(default_factory=dict)
    # Of such a game: milestone, such as 2048 -> share of games.
    reached: dict[str, float] = field(default_factory=dict)
    # One of the games as its players write it down, PGN for chess; "" where none ended.
    sample_game: str = ""

    @property
    def results(self) -> dict[str, float]:
        """Result -> share of the games: the wins of each player, "draws" by the rules, and "cap",
        the games stopped at the ply cap.
        """
        stopped = self.games - self.draws - sum(self.wins.values())
        counts = {**self.wins, "draws": self.draws, "cap": stopped}
        return {name: count / max(self.games, 1) for name, count in counts.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The inverse of `dataclasses.asdict`; unknown keys are left out."""
        known = {field.name for field in fields(cls)}
        kept = {name: value for name, value in values.items() if name in known}
        strength = tuple(Strength(**point) for point in values.get("strength", ()))
        return cls(**{**kept, "strength": strength})


def score_names(reports: Sequence[Report]) -> list[str]:
    """The figures of a game that pays points, such as "best"; none in another game.

    An iteration without a finished game has none either, so earlier ones are searched too.
    """
    return list(next((report.scores for report in reversed(reports) if report.scores), {}))


def strength_points(reports: Sequence[Report]) -> list[Strength]:
    """Every strength that was measured, oldest first."""
    return [point for report in reports for point in report.strength]


@dataclass(frozen=True)
class Session:
    """A session of training at its start."""

    run: str  # folder
    config: Mapping[str, Any]  # the settings of the run, as in its config.json
    minutes: float | None  # the session's budget; None: its iterations are counted
    iterations: int | None
    workers: int = 1  # that play
    elapsed: float = 0.0  # seconds of the session that are over
    history: Sequence[Report] = ()  # of earlier sessions


class Progress:
    """The events of a training run. This class shows nothing; views.progress has one that does.

    Once: `start_run`. Per iteration: start_selfplay, worker_update many times, finish_selfplay,
    learning_update many times, measuring_update and measured where strength is measured, report.
    """

    def message(self, text: str) -> None:
        """A line that is worth reading at any time."""

    def start_run(self, session: Session) -> None:
        """The clock of the session starts; messages may have come before."""

    def starting_update(self, devices: Sequence[str]) -> None:
        """Workers start: the device in words of each that has started, "" for the others."""

    def start_selfplay(self, positions_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        """Self-play begins. Each worker has its share of positions, and its device in words ("GPU
        0: Tesla T4").
        """

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        """Since start_selfplay `worker` has finished `games` games and played `plies` positions."""

    def finish_selfplay(self, seconds: float) -> None:
        """Self-play is over, complete or not, after `seconds`; learning follows."""

    def learning_update(self, done: int, updates: int) -> None:
        """`done` of this iteration's `updates` updates are made; time may be up before the last."""

    def measuring_update(self, what: str, share: float) -> None:
        """The strength is measured; `what` says how, such as "300 puzzles, by policy".

        share: the measurement's progress, 0 to 1, estimated from the previous one's duration; 0 if
        there was none.
        """

    def measured(self, points: Sequence[Strength]) -> None:
        """The measured strengths; the next report includes them."""

    def report(self, report: Report) -> None:
        """The iteration is over; `report` says what it did."""

    def close(self) -> None:
        """The run is over or interrupted."""
