"""The figures of an iteration: one label, one meaning and one format in every line and table."""

import math
from collections.abc import Sequence

from ..report import Report, Strength, score_names
from ..text import duration


def figure(value: float) -> str:
    """Two decimals; "-" for a loss that this iteration does not have (None or NaN)."""
    return "-" if math.isnan(value) else f"{value:.2f}"


# Label -> the text of a report's figure, in the order of a table, to the right of the results.
# "policy" is the policy loss, a cross-entropy in nats; "policy KL" is that loss less the entropy of
# its targets.
LAST_COLUMNS = {
    "plies": lambda report: f"{report.average_plies:.0f}" if report.games else "-",
    "policy": lambda report: figure(report.policy_loss),
    "policy KL": lambda report: figure(report.policy_kl),
    "value": lambda report: figure(report.value_loss),
    "Brier": lambda report: figure(report.brier),
    "entropy": lambda report: figure(report.entropy),
    "positions/s": lambda report: f"{report.positions_per_second:,.0f}",
    "time": lambda report: duration(report.seconds),
}


def result_texts(report: Report, names: Sequence[str]) -> list[str]:
    """The texts of these columns of results; "-" where no game ended."""
    if not report.games:
        return ["-"] * len(names)
    if report.scores:
        return [f"{report.scores.get(name, 0):,.0f}" for name in names]
    return [f"{100 * report.results.get(name, 0):.0f} %" for name in names]


def table_rows(reports: Sequence[Report], newest: int | None) -> tuple[list[str], list[list[str]]]:
    """The headings, and a row for each of the `newest` reports (None: all), the oldest first.

    The results are the scores of a game with points, else the shares of wins, draws and games that
    were stopped.
    """
    results = score_names(reports) or [*(reports[-1].results if reports else ())]
    rows = []
    for report in reports[-newest:] if newest else reports:
        row = [str(report.iteration), str(report.games)]
        row += result_texts(report, results)
        row += [text_of(report) for text_of in LAST_COLUMNS.values()]
        rows.append(row)
    return ["iteration", "games", *results, *LAST_COLUMNS], rows


def iteration_line(report: Report) -> str:
    """ "Iteration 3 | white 26 %, black 25 %, draws 48 %, cap 1 % | plies 81 | ..."."""
    results = "no game ended"
    if report.games:
        names = [*(report.scores or report.results)]
        texts = result_texts(report, names)
        results = ", ".join(f"{name} {text}" for name, text in zip(names, texts))
    figures = [f"{label} {text_of(report)}" for label, text_of in LAST_COLUMNS.items()]
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


def strength_sentences(points: Sequence[Strength]) -> list[str]:
    """Before and after, a sentence for each measure."""
    sentences = []
    for measure in dict.fromkeys(point.measure for point in points):
        measured = [point for point in points if point.measure == measure]
        first = measured[0]
        last = measured[-1]
        change = [_share_and_moment(first)]
        if last is not first:
            change.append(_share_and_moment(last))
        interval = f"95 % interval {100 * last.low:.0f} to {100 * last.high:.0f} %"
        sentences.append(f"{last.trials} {measure}: {', '.join(change)} ({interval})")
    return sentences


def _share_and_moment(point: Strength) -> str:
    moment = f"after {duration(point.seconds)}" if point.iteration else "before training"
    return f"{100 * point.share:.0f} % {moment}"
