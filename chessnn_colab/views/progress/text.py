"""Progress as lines of text, the sentences that every kind of progress says, and the tally behind them."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from ...report import Progress, Strength
from ...words import counted, duration

HEARTBEAT_SECONDS = 15.0


class SelfplayTally:
    """How many games and plies of one iteration's self-play each worker has finished."""

    def __init__(self, games_per_worker: Sequence[int], devices: Sequence[str], now: float):
        if len(games_per_worker) != len(devices):
            raise ValueError(f"{len(games_per_worker)} shares of games for {len(devices)} devices: expected one each")
        self.games_per_worker = list(games_per_worker)
        self.devices = list(devices)
        self.started = now
        self.games = [0] * len(devices)
        self.plies = [0] * len(devices)

    def update(self, worker: int, games: int, plies: int) -> bool:
        """Take a worker's counts since the start; True when this update completes its share of games."""
        share = self.games_per_worker[worker]
        completes = self.games[worker] < share <= games
        # A restarted worker counts from the games that were kept, but the numbers on show never go down.
        self.games[worker] = max(games, self.games[worker])
        self.plies[worker] = max(plies, self.plies[worker])
        return completes

    @property
    def planned_games(self) -> int:
        """Games of all workers."""
        return sum(self.games_per_worker)

    @property
    def total_games(self) -> int:
        """Games finished so far."""
        return sum(self.games)

    @property
    def total_plies(self) -> int:
        """Plies played so far."""
        return sum(self.plies)

    @property
    def workers(self) -> int:
        """How many workers play."""
        return len(self.devices)

    @property
    def workers_done(self) -> int:
        """Workers that have finished their share."""
        return sum(games >= share for games, share in zip(self.games, self.games_per_worker, strict=True))

    def label(self, worker: int) -> str:
        """The short name of a worker: "GPU 2", or "CPU worker 1" where several workers share a device."""
        names = [device.split(":")[0].strip() for device in self.devices]
        return names[worker] if names.count(names[worker]) == 1 else f"{names[worker]} worker {worker}"


class TextProgress(Progress):
    """Lines of text, for a terminal, a log, or a notebook without widgets.

    stream: where the lines go; None is sys.stdout at the time of printing. clock: a function that gives seconds.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._stream = stream
        self._clock = clock
        self._tally: SelfplayTally | None = None
        self._last_line = self._learning_began = 0.0
        self._updates = 0

    def message(self, text: str) -> None:
        print(text, file=self._stream or sys.stdout, flush=True)

    def start_selfplay(self, games_per_worker: Sequence[int], devices: Sequence[str]) -> None:
        self._last_line = self._clock()
        self._tally = SelfplayTally(games_per_worker, devices, self._last_line)
        self.message(generating_line(self._tally))
        self.message(f"Games per worker: {self._tally.games_per_worker}")

    def worker_update(self, worker: int, games: int, plies: int) -> None:
        tally, now = self._tally, self._clock()
        if tally is None:
            return
        stamp = f"[{now - tally.started:7.1f}s]"
        if tally.update(worker, games, plies):
            self.message(
                f"{stamp} {tally.label(worker)}: completed {counted(games, 'game')} | "
                f"{tally.workers_done}/{counted(tally.workers, 'worker')} done | "
                f"{tally.total_games}/{counted(tally.planned_games, 'game')}"
            )
        elif now - self._last_line >= HEARTBEAT_SECONDS:
            plies_per_second = rate(tally.total_plies, now - tally.started)
            self.message(
                f"{stamp} {tally.total_games}/{counted(tally.planned_games, 'game')} | "
                f"{tally.total_plies:,} plies | {plies_per_second} plies/s"
            )
        else:
            return
        self._last_line = now

    def finish_selfplay(self, seconds: float) -> None:
        if self._tally is not None:
            self.message(completed_line(self._tally, seconds))
        self._tally = None

    def start_learning(self, updates: int) -> None:
        self._last_line = self._learning_began = self._clock()
        self._updates = updates

    def learning_update(self, done: int) -> None:
        now = self._clock()
        if now - self._last_line >= HEARTBEAT_SECONDS:
            self.message(f"[{now - self._learning_began:7.1f}s] learning: {done}/{counted(self._updates, 'update')}")
            self._last_line = now

    def measured(self, points: Sequence[Strength]) -> None:
        for point in points:
            self.message(strength_line(point))

    def report(self, report: Any) -> None:
        for line in report_lines(report):
            self.message(line)

    def close(self) -> None:
        if self._tally is not None:
            self.message(stopped_line(self._tally))
        self._tally = None


def generating_line(tally: SelfplayTally) -> str:
    """The line at the beginning of self-play."""
    return f"Generating {counted(tally.planned_games, 'game')} on {counted(tally.workers, 'worker')}"


def completed_line(tally: SelfplayTally, seconds: float) -> str:
    """The line at the end of self-play; it names the planned games only if fewer were played."""
    done, planned = tally.total_games, tally.planned_games
    games = counted(done, "game") if done >= planned else f"{done} of {counted(planned, 'game')}"
    return f"Completed {games} in {seconds:.1f}s ({rate(done, seconds, 1)} games/s)"


def report_lines(report: Any) -> list[str]:
    """An iteration in four lines: results by player, kinds of ending, buffer size, losses with speed and times.

    The results of a game with points are its scores.
    """
    wins = [(f"{name} wins", count) for name, count in report.wins.items()]
    results = [*wins[:1], ("draws", report.draws), *wins[1:]]
    stopped = report.games - sum(count for _, count in results)
    if stopped > 0:
        results.append(("stopped at the ply cap", stopped))
    shares = ", ".join(f"{name} {count} ({100 * count / max(1, report.games):.0f} %)" for name, count in results)
    if report.scores:
        shares = ", ".join(f"{name} {score:,.0f}" for name, score in report.scores.items())
        shares += "".join(f", {name} in {100 * share:.0f} %" for name, share in report.reached.items())
    endings = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in report.endings.items() if count)
    losses = f"policy {figure(report.policy_loss)} value {figure(report.value_loss)} entropy {figure(report.entropy)}"
    speed = f"{report.positions_per_second:,.0f} positions/s"
    seconds = f"self-play {duration(report.seconds_selfplay)}, learning {duration(report.seconds_learning)}"
    seconds += f" | {duration(report.seconds)} in all"
    length = f"{report.average_plies:.1f} plies on average"
    if report.cut:
        length = "the clock cut the others short, so these are the shortest games"
    return [
        f"Results: {shares} | {length}",
        f"Endings: {endings or 'none'}",
        f"Buffer: {report.buffer_size:,} positions",
        f"Iteration {report.iteration} | {losses} | lr {short_power(report.learning_rate)} | {speed} | {seconds}",
    ]


def result_shares(report: Any) -> str:
    """The results of self-play in short: "white 26 %, draws 48 %, black 25 %"; of a game with points its scores."""
    if scores := report.scores:
        return ", ".join(f"{name} {score:,.0f}" for name, score in scores.items())
    games = max(1, report.games)
    wins = [f"{name} {100 * count / games:.0f} %" for name, count in report.wins.items()]
    return ", ".join([*wins[:1], f"draws {100 * report.draws / games:.0f} %", *wins[1:]])


def stopped_line(tally: SelfplayTally) -> str:
    """What a run says that ended in the middle of self-play."""
    return f"Stopped during self-play at {tally.total_games}/{counted(tally.planned_games, 'game')}"


def strength_line(point: Strength) -> str:
    """A measurement in one line."""
    interval = f"{100 * point.low:.0f} to {100 * point.high:.0f}"
    what = "the untrained network" if point.iteration == 0 else f"iteration {point.iteration}"
    return (
        f"Strength of {what}: {100 * point.share:.0f} % of {point.trials} {point.measure} "
        f"(95 % interval {interval}; {point.cost:.1f}s)"
    )


def rate(count: float, seconds: float, digits: int = 0) -> str:
    """`count` per second; "-" while no time has passed."""
    return f"{count / seconds:,.{digits}f}" if seconds > 0 else "-"


def figure(value: float | None) -> str:
    """Two decimals; "-" for a loss that does not exist in this iteration (None or NaN)."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def short_power(value: float) -> str:
    """0.001 as 1e-3, 0.00025 as 2.5e-4."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
