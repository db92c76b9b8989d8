"""The results of a run as HTML that needs no kernel: after training, and again at any time from its
folder.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..network_config import PRESETS
from ..report import Report, Strength, score_names, strength_points
from ..runs.folder import RunFolder
from ..text import counted, duration
from .curves import Reference
from .panel import LINE, box, figures_html, plain_lines, table_html
from .picture import picture_html
from .played import played_game

REFERENCE_FILE = "reference.json"  # in data/, made by tools/reference_curve.py
NOTHING_YET = "No iteration has finished yet: train it for a while first."


class Story:
    """A run as a page that stays: `_repr_html_` for notebooks, `str` for a terminal."""

    def __init__(self, page: str, lines: Sequence[str]):
        self._page = page
        self._lines = lines

    def _repr_html_(self) -> str:
        return self._page

    def __repr__(self) -> str:
        return "\n".join(self._lines)


def run_story(run: str | Path) -> Story:
    """The results of the run in this folder, all sessions together. Raises RunError when there is
    no run.
    """
    folder = RunFolder.open(run)
    config = folder.config
    reports = [Report.from_dict(values) for values in folder.read_reports()]
    if not reports:
        told = f"{folder.path}: {NOTHING_YET}"
        return Story(box(html.escape(told)), [told])
    points = strength_points(reports)
    figures = figures_html(reports, points, reference_for(config), None)
    page = summary_html(config, reports, points)
    page += box(figures + table_html(reports, 8)) + sample_part(reports)
    return Story(page, [headline(config, reports), *strength_sentences(points)])


def summary_html(
    config: Mapping[str, Any],
    reports: Sequence[Report],
    points: Sequence[Strength],
    messages: Sequence[str] = (),
) -> str:
    """What was trained, for how long, how strong it was before and after, and what else stands
    out.
    """
    head = f'<div style="font-size:17px;font-weight:600">{html.escape(headline(config, reports))}</div>'
    said = plain_lines(strength_sentences(points))
    tiles = "".join(_tile(name, figure) for name, figure in best_facts(reports).items())
    tiles = f'<div style="display:flex;flex-wrap:wrap;gap:8px;margin:8px 0">{tiles}</div>'
    quiet = f'<div style="font-size:12px;opacity:0.8">{html.escape(network_words(config))}{plain_lines(messages)}</div>'
    return box(head + said + tiles + quiet)


def headline(config: Mapping[str, Any], reports: Sequence[Report]) -> str:
    """The run in one line."""
    game, last = config.get("game", "chess"), reports[-1]
    what = f"{last.total_games:,} games of {game}{' against itself' if last.wins else ''}"
    return f"{what} in {duration(last.seconds)}, {counted(last.iteration, 'iteration')}"


def strength_sentences(points: Sequence[Strength]) -> list[str]:
    """Before and after, a sentence for each measure."""
    sentences = []
    for measure in dict.fromkeys(point.measure for point in points):
        measured = [point for point in points if point.measure == measure]
        first, last = measured[0], measured[-1]
        change = f"{100 * last.share:.0f} %"
        if len(measured) > 1:
            before = f"after iteration {first.iteration}" if first.iteration else "untrained"
            change = (
                f"{100 * first.share:.0f} % {before}, {change} after iteration {last.iteration}"
            )
        interval = f"95 % interval {100 * last.low:.0f} to {100 * last.high:.0f} %"
        sentences.append(f"{last.trials} {measure}: {change} ({interval})")
    return sentences


def best_facts(reports: Sequence[Report]) -> dict[str, str]:
    """A few figures of a run and their names."""
    last = reports[-1]
    fastest = max(report.positions_per_second for report in reports)
    facts = {
        "positions played": f"{last.total_positions:,}",
        "updates of the network": f"{last.total_updates:,}",
        "positions per second, best iteration": f"{fastest:,.0f}",
    }
    ended: Counter[str] = Counter()
    for report in reports:
        ended.update(report.endings)
    for kind, count in ended.most_common(2):
        if count and kind != "truncated":
            facts[f"games that ended by {kind.replace('_', ' ')}"] = f"{count:,}"
    whole = [report for report in reports if not report.cut]
    if score_names(reports):
        best = max(report.scores.get("best", 0) for report in reports)
        facts["points of the best game"] = f"{best:,.0f}"
    elif len(whole) > 1:
        first, newest = (_decided(report) for report in (whole[0], whole[-1]))
        facts["games with a winner, first to last iteration"] = f"{first} to {newest}"
    if last.firing_rates:
        rate = np.mean(list(last.firing_rates.values()))
        facts["of the possible spikes are fired"] = f"{100 * rate:.0f} %"
    return facts


def _decided(report: Report) -> str:
    return f"{100 * sum(report.wins.values()) / max(1, report.games):.0f} %"


def network_words(config: Mapping[str, Any]) -> str:
    """The shape of the network in a sentence."""
    name = config.get("preset") or "auto"
    shape = PRESETS["cpu" if name == "auto" else name].to_dict()
    shape |= {key: config[key] for key in shape if config.get(key)}
    size = "{blocks} blocks with {channels} channels".format_map(shape)
    search = f"search: {config.get('search')}. "
    if (activation := shape["activation"]) != "spikes":
        return f"A twin without spikes ({activation}) of {size}; {search}"
    steps = counted(shape["steps"], "time step")
    return f"A spiking network of {size}, {steps} of at most {shape['levels']} spikes; {search}"


def sample_part(reports: Sequence[Report]) -> str:
    """How a game of the latest iteration that has one ended: its last position, or its text where
    it has no board.
    """
    newest = next((report for report in reversed(reports) if report.sample_game), None)
    if newest is None:
        return ""
    head = f"<p><b>A game of iteration {newest.iteration}</b></p>"
    played = played_game(newest.sample_game)
    if played is None:
        return f"{head}<pre>{html.escape(newest.sample_game)}</pre>"
    moves = f"After {counted(len(played.drawing.actions), 'move')}."
    told = " ".join(filter(None, (played.drawing.opening_words(), moves, played.end)))
    return f"{head}{picture_html(played.drawing, size=320)}<p>{html.escape(told)}</p>"


def reference_for(config: Mapping[str, Any]) -> Reference | None:
    """The curve of a normal run of the same game, preset and search, if one is shipped."""
    file = resources.files("chessnn_colab.views") / "data" / REFERENCE_FILE
    if not file.is_file():
        return None
    for run in json.loads(file.read_text(encoding="utf-8"))["runs"]:
        if all(run[key] == config.get(key) for key in ("game", "preset", "search")):
            return run
    return None


def _tile(name: str, figure: str) -> str:
    style = f"flex:1 1 140px;border:1px solid {LINE};border-radius:8px;padding:6px 10px"
    large = "font-size:18px;font-weight:600;white-space:nowrap"
    return (
        f'<div style="{style}"><div style="{large}">{html.escape(figure)}</div>'
        f'<div style="font-size:11px;opacity:0.7">{html.escape(name)}</div></div>'
    )
