"""What a face that redraws itself knows of a run: its phase, its bars, the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...report import Progress, Report, Session, Strength, strength_points
from ...words import clock, counted
from .text import SelfplayTally, rate, stopped_line

MEASURING = "measuring strength"


class Bar(NamedTuple):
    """A bar with what stands before and after it."""

    name: str
    share: float  # 0 to 1
    words: str


class LiveProgress(Progress):
    """Follows a run. A subclass draws in `changed`, on the caller's thread.

    now: a function that gives seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self.messages: list[str] = []
        self.session: Session | None = None
        self.reports: list[Report] = []  # of the whole run
        self.tally: SelfplayTally | None = None
        self.phase = "starting"
        self._pending: list[Strength] = []  # measured since the last report
        self._started = now()
        self._done = 0  # iterations of this session
        self._bar = Bar("", 0.0, "")
        self._workers: list[Bar] = []
        self._learning_began, self._updates = 0.0, 0
        self._iteration_began = self._first_began = self._started
        self._learning = self._ended = False

    def changed(self, important: bool) -> None:
        """Something is new. What is not important may wait for a moment."""

    # --- what the run tells

    def message(self, text: str) -> None:
        self.messages.append(text)
        self.changed(important=True)

    def start_run(self, session: Session) -> None:
        self.session, self.reports = session, list(session.history)
        self._started = self._now() - session.elapsed
        self.phase = "starting workers"
        self.changed(important=True)

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        self.tally = SelfplayTally(games_per_worker, devices, self._now())
        if self.phase == "starting workers":
            self._iteration_began = self._first_began = self._now()
        self._draw_games()

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        if self.tally is not None:
            self.tally.update(worker, games, plies)
            self._draw_games()

    def finish_selfplay(self, seconds: float) -> None:
        self._draw_games()
        self._workers = [bar._replace(share=1.0) for bar in self.worker_bars()]
        self.tally = None

    def start_learning(self, updates: int) -> None:
        self._updates, self._learning_began, self._learning = updates, self._now(), True
        self.learning_update(0)

    def learning_update(self, done: int) -> None:
        pace = rate(done, self._now() - self._learning_began, 1)
        self._show("learning", done / self._updates, f"{done}/{counted(self._updates, 'update')} | {pace} updates/s")

    def start_measuring(self, what: str) -> None:
        self._show(MEASURING, 0.0, what)

    def measuring_update(self, share: float) -> None:
        self._show(MEASURING, share, self._bar.words)

    def measured(self, points: Sequence[Strength]) -> None:
        self._pending += points
        first = self.tally is None and not self._learning and not self._done
        self._show(*("starting workers", 0.0, "") if first else (MEASURING, 1.0, ""))

    def report(self, report: Report) -> None:
        self.reports.append(report)
        self._pending, self._learning = [], False
        self._done += 1
        self._iteration_began = self._now()
        self._show("saving", 1.0, "")

    def close(self) -> None:
        if self.tally is not None:
            self.messages.append(stopped_line(self.tally))
        self.phase, self._ended, self.tally = "ended", True, None
        self.changed(important=True)

    # --- what a face shows

    @property
    def points(self) -> list[Strength]:
        """Every strength that was measured in this run so far."""
        return strength_points(self.reports) + self._pending

    @property
    def iteration(self) -> int:
        """The iteration that is going on, or the last one when the run has ended."""
        return (self.reports[-1].iteration if self.reports else 0) + (not self._ended and self.phase != "saving")

    @property
    def elapsed(self) -> float:
        """Seconds of this session."""
        return self._now() - self._started

    def header(self) -> str:
        """Such as "Iteration 7 | learning | 1:12 of 3:00 | about 1:48 left"."""
        iteration = f"Iteration {self.iteration}" if self.iteration else ""
        left = self._left()
        ending = "" if left is None else f"about {clock(left)} left" if left > 0 else "finishing"
        return " | ".join(filter(None, (iteration, self.phase, self._budget_words(), ending)))

    def bars(self) -> list[Bar]:
        """The session's bar and the phase's."""
        seconds, iterations = self._budget()
        share = 0.0
        if iterations:
            halves = {"playing": self._bar.share, "learning": 1 + self._bar.share, MEASURING: 2.0 * self._learning}
            share = (self._done + halves.get(self.phase, 0) / 2) / iterations
        if seconds:
            share = max(share, self.elapsed / seconds)
        return [Bar("session", min(share, 1.0), self._budget_words()), self._bar]

    def worker_bars(self) -> list[Bar]:
        """A bar for every worker, as it stood last; none for a single one, whose games the phase's bar counts."""
        tally = self.tally
        if tally is None:
            return self._workers
        if tally.workers == 1:
            return []
        seconds = self._now() - tally.started
        return [
            Bar(tally.label(worker), games / share, f"{games}/{share} | {rate(plies, seconds)}/s")
            for worker, (games, share, plies) in enumerate(zip(tally.games, tally.games_per_worker, tally.plies))
        ]

    def _draw_games(self) -> None:
        tally = self.tally
        if tally is None or self._learning:  # beside the learner: its bar is the one on show
            return
        done, planned = tally.total_games, tally.planned_games
        pace = f"{rate(tally.total_plies, self._now() - tally.started)} positions/s"
        self._show("playing", done / planned, f"{done}/{counted(planned, 'game')} | {pace}")

    def _show(self, phase: str, share: float, words: str) -> None:
        important = phase != self.phase
        self.phase, self._bar = phase, Bar(phase, min(share, 1.0), words)
        self.changed(important)

    def _budget(self) -> tuple[float | None, int | None]:
        """Seconds and iterations of the session, each None where it has no limit."""
        if self.session is None:
            return None, None
        minutes = self.session.minutes
        return None if minutes is None else 60 * minutes, self.session.iterations

    def _budget_words(self) -> str:
        seconds, iterations = self._budget()
        if seconds:
            return f"{clock(self.elapsed)} of {clock(seconds)}"
        if iterations:
            return f"{min(self._done + 1, iterations)} of {counted(iterations, 'iteration')} | {clock(self.elapsed)}"
        return clock(self.elapsed)

    def _left(self) -> float | None:
        """Seconds of the session that are left; None where nobody can say."""
        seconds, iterations = self._budget()
        left = []
        if seconds:
            left.append(seconds - self.elapsed)
        if iterations and self._done:
            each = (self._iteration_began - self._first_began) / self._done
            left.append(each * (iterations - self._done) - (self._now() - self._iteration_began))
        return min(left) if left else None
