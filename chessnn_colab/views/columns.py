"""The figures of an iteration: one label, one meaning and one format in every line and table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..report import Report, score_names
from ..text import clock, duration

LINE_LABELS = ("plies", "policy", "policy KL", "value", "entropy", "positions/s", "time")


def figure(value: float | None) -> str:
    """Two decimals; "-" for a loss that this iteration does not have (None or NaN)."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


# Label -> the text of a report's figure. "policy" is the policy loss, a cross-entropy in nats;
# "policy KL" is that loss less the entropy of its targets.
COLUMNS: dict[str, Callable[[Report], str]] = {
    "iteration": lambda report: f"({report.iteration})" if report.cut else f"{report.iteration}",
    "games": lambda report: f"{report.games}",
    "plies": lambda report: "-" if report.cut else f"{report.average_plies:.0f}",
    "policy": lambda report: figure(report.policy_loss),
    "policy KL": lambda report: figure(report.policy_kl),
    "value": lambda report: figure(report.value_loss),
    "entropy": lambda report: figure(report.entropy),
    "positions/s": lambda report: f"{report.positions_per_second:,.0f}",
    "time": lambda report: duration(report.seconds),
    "at": lambda report: clock(report.seconds),
}


def result_names(reports: Sequence[Report]) -> list[str]:
    """The columns of results: the scores of a game with points, else wins by player and draws."""
    if scores := score_names(reports):
        return scores
    players = list(reports[-1].wins) if reports else []
    return [*players[:1], "draws", *players[1:], "cap"]


def result_texts(report: Report, names: Sequence[str]) -> list[str]:
    """The texts of these columns of results; "-" where the clock cut the games short.

    The shares of such an iteration would be false: they are those of its short games alone.
    """
    if report.cut:
        return ["-"] * len(names)
    if report.scores:
        return [f"{report.scores.get(name, 0):,.0f}" for name in names]
    stopped = report.games - report.draws - sum(report.wins.values())
    counts = {**report.wins, "draws": report.draws, "cap": stopped}
    return [f"{100 * counts.get(name, 0) / max(1, report.games):.0f} %" for name in names]


def table_rows(
    reports: Sequence[Report], newest: int | None, first: Sequence[str], last: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """The headings, and a row for each of the `newest` reports (None: all), the oldest first.

    The columns are those labelled `first`, the results, and those labelled `last`.
    """
    results = result_names(reports)
    rows = []
    for report in reports[-newest:] if newest else reports:
        row = [COLUMNS[label](report) for label in first]
        row += result_texts(report, results)
        row += [COLUMNS[label](report) for label in last]
        rows.append(row)
    return [*first, *results, *last], rows


def iteration_line(report: Report) -> str:
    """ "Iteration 3 | white 26 %, draws 48 %, black 25 %, cap 1 % | plies 81 | ..."."""
    results = "cut short by the clock"
    if not report.cut:
        names = result_names([report])
        texts = result_texts(report, names)
        results = ", ".join(f"{name} {text}" for name, text in zip(names, texts))
    figures = [f"{label} {COLUMNS[label](report)}" for label in LINE_LABELS]
    return " | ".join([f"Iteration {report.iteration}", results, *figures])


def detail_lines(report: Report) -> list[str]:
    """More about an iteration: how its games ended, the replay buffer, the learner, the times."""
    endings = [
        f"{kind.replace('_', ' ')} {games}" for kind, games in report.endings.items() if games
    ]
    endings += [f"{name} in {100 * share:.0f} %" for name, share in report.reached.items()]
    learner = f"Buffer: {report.buffer_size:,} positions | lr {report.learning_rate:.2g}"
    play = f"self-play {duration(report.seconds_selfplay)}"
    learning = f"learning {duration(report.seconds_learning)}"
    return [f"Endings: {', '.join(endings) or 'none'}", f"{learner} | {play}, {learning}"]
