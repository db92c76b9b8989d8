"""The progress that a face shows: header, bars, messages, lines; training or matches feed it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...arena.progress import Bar, MatchProgress
from ...report import Progress, Report, Session, Strength, strength_points
from ...text import counted, duration
from ..columns import detail_lines, iteration_line, strength_sentences
from ..reference import behind_words
from . import lines

DRAWS_PER_SECOND = 4.0
HEARTBEAT_SECONDS = 15.0  # a line at least as often as this
STARTING = "starting workers"
PLAYING = "playing"
LEARNING = "learning"
MEASURING = "measuring strength"
SAVING = "saving"
LOST = "lost, its share is played again"
# cuDNN times its ways to convolve at each new shape (devices.time_convolutions), and CUDA loads
# code, so the first plies of a session take many times as long as later ones.
CHOOSING = "choosing kernels, once"


class Face:
    """Shows nothing; the base of the faces.

    Its methods are called from the thread that trains or measures, because Colab may not draw what
    another thread changes.
    """

    keeps_bars = False  # whether those of a measurement stay, with its results

    def draw(self, model: LiveProgress) -> None:
        """Show the model, which has changed."""

    def message(self, text: str) -> None:
        """Print a line that stays, unless `draw` shows messages itself."""

    def detail(self, text: str) -> None:
        """Print a line that a face without bars needs."""

    def close(self, model: LiveProgress) -> None:
        """Show how it ended."""


class LiveProgress(Progress):
    """The progress of a training run (see report.Progress), or, called with a MatchProgress, of a
    measurement (an arena.progress.Watch). Each change is drawn by `face`.
    """

    def __init__(self, face: Face):
        self.face = face
        self.messages = []
        self.session: Session | None = None
        self.reports = []  # of the whole run
        self.matches: MatchProgress | None = None  # what is measured outside of training
        self.ended = False
        self._seconds: float | None = None  # the session's budget
        self._iterations: int | None = None
        self._points = []  # measured since the last report
        self._phase = Bar("starting", 0, 1)
        self._play = MatchProgress((), "position", 0.0)  # self-play, a bar for each worker
        self._learning = False
        self._slow_is_named = False
        self._done = 0  # iterations of this session
        self._started = self._play_began = self._phase_began = time.monotonic()
        self._last_draw = self._last_line = self._started

    # Training calls these.

    def message(self, text: str) -> None:
        self.messages.append(text)
        self._say(text)
        self._draw()

    def start_run(self, session: Session) -> None:
        self.session = session
        self.reports = list(session.history)
        self._seconds = None if session.minutes is None else 60 * session.minutes
        self._iterations = session.iterations
        self._started = time.monotonic() - session.elapsed
        for text in self.messages:
            lines.keep(session, text)
        self._play = replace(self._play, bars=(Bar("", 0, 0),) * session.workers)
        self._show(Bar(STARTING, 0, 1))

    def starting_update(self, devices: Sequence[str]) -> None:
        bars = tuple(Bar(device or "starting", bool(device), 1) for device in devices)
        self._play = replace(self._play, bars=bars, unit="worker")
        self._show(Bar(STARTING, self._play.done, len(bars), lines.games_done(self._play)))

    def start_selfplay(self, positions_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        self._play_began = time.monotonic()
        names = lines.worker_names(devices)
        bars = tuple(Bar(name, 0, share) for name, share in zip(names, positions_per_worker))
        first = self._play.unit != "position" or not self._play.done
        positions = f"{sum(positions_per_worker):,} positions"
        self._write(f"Generating {positions} on {counted(len(bars), 'worker')}")
        self._write(f"Positions per worker: {list(positions_per_worker)}")
        self._show_play(bars)
        if first and any("GPU" in device for device in devices):
            self._write("Choosing kernels, once: the first plies on a GPU are slow")
            self._show(Bar(CHOOSING, 0, 1, "the first plies on a GPU are slow"))

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        bars = list(self._play.bars)
        before = bars[worker]
        if before.ended:  # its seconds stay
            return
        # A lost worker's share is counted from its beginning; what is shown never goes down. The
        # last block of plies may bring more than the share.
        lost = not plies and before.done > 0
        done = min(max(plies, int(before.done)), int(before.total))
        seconds = time.monotonic() - self._play_began
        pace = f" | {lines.rate(done, seconds)}/s"
        pace = f" in {duration(seconds)}" if done >= before.total else pace
        note = LOST if lost else f"{done:,}/{before.total:,}, {counted(games, 'game')}{pace}"
        bars[worker] = replace(before, done=done, note=note, lost=lost)
        # The first plies of a session take long on some devices, and a lost worker begins again.
        self._slow_is_named |= lost
        if self._done and not self._slow_is_named and (words := lines.slow_worker(bars)):
            self._slow_is_named = True
            self.message(words)
        self._show_play(tuple(bars))

    def finish_selfplay(self, seconds: float) -> None:
        bars = tuple(
            bar if bar.ended else replace(bar, note=f"{bar.done:,}/{bar.total:,}, time is up")
            for bar in self._play.bars
        )
        self._play = replace(self._play, bars=bars)
        pace = lines.rate(self._play.done, seconds)
        positions = lines.games_done(self._play)
        self._write(f"Completed {positions} in {seconds:.1f}s ({pace} positions/s)")

    def learning_update(self, done: int, updates: int) -> None:
        self._learning = True
        pace = lines.rate(done, time.monotonic() - self._phase_began, 1)
        note = f"{done}/{counted(updates, 'update')} | {pace} updates/s"
        self._show(Bar(LEARNING, done, updates, note))

    def measuring_update(self, what: str, share: float) -> None:
        self._show(Bar(MEASURING, share, 1, what))

    def measured(self, points: Sequence[Strength]) -> None:
        self._points += points
        measures = {point.measure for point in points}
        curves = [point for point in self.points if point.measure in measures]
        for sentence in strength_sentences(curves):
            self._say(sentence)
        words = behind_words(self.session.config, points) if self.session else ""
        if words and words not in self.messages:
            self.message(words)
        self._show(Bar(MEASURING, 1, 1) if self._learning else Bar(STARTING, 0, 1))

    def report(self, report: Report) -> None:
        self.reports.append(report)
        self._points = []
        self._learning = False
        self._done += 1
        self._say(iteration_line(report))
        self._write(*detail_lines(report))
        self._show(Bar(SAVING, 0, 1))

    def close(self) -> None:
        if not self.ended:
            self.ended = True
            self.face.close(self)

    # A measurement calls this.

    def __call__(self, progress: MatchProgress) -> None:
        before = self.matches
        self.matches = progress
        if before is None:
            self._write(lines.total_line(progress))
        elif len(progress.bars) > 1:
            self._write(*lines.ended_lines(before.bars, progress, "parts"))
        self._draw(before is None or progress.done >= progress.total)

    # A face reads these.

    @property
    def points(self) -> list[Strength]:
        """Every strength that was measured in this run so far."""
        return strength_points(self.reports) + self._points

    def header(self) -> str:
        """Such as "Iteration 7 | learning | 1m 12s of 3m 00s | about 1m 48s left"."""
        if self.matches is not None:
            return (lines.last_line if self.ended else lines.total_line)(self.matches)
        iteration = self.reports[-1].iteration if self.reports else 0
        if self._phase.name != SAVING:
            iteration += 1
        words = [f"Iteration {iteration}", self._phase.name, self._budget_words()]
        share = self._session_share()
        if share == 1:
            words.append("finishing")
        elif share > 0:
            words.append(f"about {duration(self._elapsed() * (1 - share) / share)} left")
        return " | ".join(words)

    def bars(self) -> list[Bar]:
        """The bars of the session and of its phase, or those of the matches."""
        if self.matches is None:
            return [Bar("session", self._session_share(), 1, self._budget_words()), self._phase]
        return [
            replace(bar, note=f"{bar.done}/{bar.total} done {bar.note}".rstrip())
            for bar in lines.shown_bars(self.matches.bars)
        ]

    def worker_bars(self) -> Sequence[Bar]:
        """A bar for each worker."""
        return self._play.bars

    # How it is counted.

    def _say(self, text: str) -> None:
        self.face.message(text)
        lines.keep(self.session, text)

    def _write(self, *new_lines: str) -> None:
        for line in new_lines:
            self.face.detail(line)
            lines.keep(self.session, line)
            self._last_line = time.monotonic()

    def _show_play(self, bars: tuple[Bar, ...]) -> None:
        seconds = time.monotonic() - self._play_began
        before = self._play.bars
        pace = f"{lines.rate(sum(bar.done for bar in bars), seconds)}/s"
        self._play = MatchProgress(bars, "position", seconds, None, pace)
        self._write(*lines.ended_lines(before, self._play, "workers"))
        if not self._learning:  # else they play beside the learner, whose bar is shown
            note = lines.total_line(self._play)
            self._show(Bar(PLAYING, self._play.done, self._play.total, note))

    def _show(self, bar: Bar) -> None:
        new_phase = bar.name != self._phase.name
        if new_phase:
            self._phase_began = time.monotonic()
        self._phase = bar
        self._draw(new_phase)

    def _draw(self, important: bool = True) -> None:
        """Draw, and write a line if none came for long; what is not important may wait for a
        moment.
        """
        now = time.monotonic()
        if now - self._last_line >= HEARTBEAT_SECONDS:
            self._write(*self._heartbeat())
        if important or now - self._last_draw >= 1 / DRAWS_PER_SECOND:
            self._last_draw = now
            self.face.draw(self)

    def _heartbeat(self) -> list[str]:
        if self.matches is None:
            at = lines.stamp(time.monotonic() - self._phase_began)
            return [f"{at} {self._phase.name} {self._phase.note}".rstrip()]
        at = lines.stamp(self.matches.seconds)
        each = [f"{at} {bar.name}: {bar.note}" for bar in self.bars() if not bar.ended]
        return [*each, f"{at} {self.header()}"]

    def _elapsed(self) -> float:
        """Seconds of this session."""
        return time.monotonic() - self._started

    def _session_share(self) -> float:
        """How much of the session is done, 0 to 1."""
        share = 0.0
        if self._iterations:
            halves = {PLAYING: self._phase.share, LEARNING: 1 + self._phase.share}
            halves[MEASURING] = 2.0 if self._learning else 0.0
            share = (self._done + halves.get(self._phase.name, 0.0) / 2) / self._iterations
        if self._seconds:
            share = max(share, self._elapsed() / self._seconds)
        return min(share, 1.0)

    def _budget_words(self) -> str:
        """Such as "1m 12s of 3m 00s" or "2 of 4 iterations | 40s"."""
        elapsed = duration(self._elapsed())
        if self._seconds:
            return f"{elapsed} of {duration(self._seconds)}"
        if self._iterations:
            number = min(self._done + 1, self._iterations)
            return f"{number} of {counted(self._iterations, 'iteration')} | {elapsed}"
        return elapsed
