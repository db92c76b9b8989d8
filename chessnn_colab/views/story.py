"""What a run has come to, as HTML that needs no kernel: after training, and again at any time from its folder."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..config import BEFORE
from ..network_config import preset
from ..report import Report, Strength, score_names, strength_points
from ..runs.folder import RunFolder
from ..words import counted, duration
from .curves import Reference
from .panel import LINE, box, figures_html, plain_lines, table_html
from .picture import picture_html
from .played import played_game

REFERENCE_FILE = "reference.json"  # in data/, made by tools/reference_curve.py
NOTHING_YET = "No iteration has finished yet: train it for a while first."


class Story:
    """A run as a page that stays: `_repr_html_` for notebooks, `str` for a terminal."""

    def __init__(self, run: str, config: Mapping[str, Any], reports: Sequence[Report]):
        self.run, self.config, self.reports = run, config, list(reports)

    def _repr_html_(self) -> str:
        if not self.reports:
            return box(html.escape(f"{self.run}: {NOTHING_YET}"))
        points = strength_points(self.reports)
        figures = figures_html(self.reports, points, reference_for(self.config), None)
        return (
            summary_html(self.config, self.reports, points)
            + box(figures + table_html(self.reports, 8))
            + sample_part(self.reports)
        )

    def __str__(self) -> str:
        if not self.reports:
            return f"{self.run}: {NOTHING_YET}"
        return "\n".join([headline(self.config, self.reports), *strength_sentences(strength_points(self.reports))])

    __repr__ = __str__


def run_story(run: str | Path) -> Story:
    """What the run in this folder has come to, all sessions together. Raises RunError when there is no run."""
    folder = RunFolder.open(run)
    return Story(str(folder.path), folder.config, [Report.from_dict(values) for values in folder.read_reports()])


def summary_html(
    config: Mapping[str, Any], reports: Sequence[Report], points: Sequence[Strength], messages: Sequence[str] = ()
) -> str:
    """What was trained, for how long, how strong it was before and after, and what else stands out."""
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
        first, *_, last = [point for point in points if point.measure == measure] * 2
        interval = f"95 % interval {100 * last.low:.0f} to {100 * last.high:.0f} %"
        if first.iteration == last.iteration:
            sentences.append(f"{last.trials} {measure}: {100 * last.share:.0f} % ({interval})")
            continue
        before = "untrained" if first.iteration == 0 else f"after iteration {first.iteration}"
        change = f"{100 * first.share:.0f} % {before}, {100 * last.share:.0f} % after iteration {last.iteration}"
        sentences.append(f"{last.trials} {measure}: {change} ({interval})")
    return sentences


def best_facts(reports: Sequence[Report]) -> dict[str, str]:
    """A few figures of a run and their names."""
    last, whole = reports[-1], [report for report in reports if not report.cut]
    facts = {"positions played": f"{last.total_positions:,}", "updates of the network": f"{last.total_updates:,}"}
    fastest = max(report.positions_per_second for report in reports)
    facts["positions per second, best iteration"] = f"{fastest:,.0f}"
    ended: dict[str, int] = {}
    for report in reports:
        for kind, count in report.endings.items():
            ended[kind] = ended.get(kind, 0) + count
    for kind, count in sorted(ended.items(), key=lambda item: -item[1])[:2]:
        if count and kind != "truncated":
            facts[f"games that ended by {kind.replace('_', ' ')}"] = f"{count:,}"
    if score_names(reports):
        facts["points of the best game"] = f"{max(report.scores.get('best', 0) for report in reports):,.0f}"
    elif len(whole) > 1:
        shares = [100 * sum(report.wins.values()) / max(1, report.games) for report in (whole[0], whole[-1])]
        facts["games with a winner, first to last iteration"] = f"{shares[0]:.0f} % to {shares[1]:.0f} %"
    if last.firing_rates:
        facts["of the neurons' possible spikes fire"] = f"{100 * np.mean(list(last.firing_rates.values())):.0f} %"
    return facts


def network_words(config: Mapping[str, Any]) -> str:
    """The shape of the network in a sentence."""
    name = config.get("preset") or "cpu"
    base = preset(name if name != "auto" else "cpu").to_dict()
    shape = {key: config.get(key) or BEFORE.get(key, base[key]) for key in ("channels", "blocks", "steps", "levels")}
    size, search = f"{shape['blocks']} blocks with {shape['channels']} channels", f"search: {config.get('search')}. "
    if (twin := config.get("activation") or "spikes") != "spikes":
        return f"A twin without spikes ({twin}) of {size}; {search}"
    spikes = f"{shape['steps']} time step{'s' * (shape['steps'] != 1)} of at most {shape['levels']} spikes"
    return f"A spiking network of {size}, {spikes}; {search}"


def sample_part(reports: Sequence[Report]) -> str:
    """How a game of the latest iteration that has one ended: its last position, or its text where it has no board."""
    newest = next((report for report in reversed(reports) if report.sample_game), None)
    if newest is None:
        return ""
    head, text = f"<p><b>A game of iteration {newest.iteration}</b></p>", newest.sample_game
    if (played := played_game(text)) is None:
        return f"{head}<pre>{html.escape(text)}</pre>"
    start = played.drawing.opening_words()
    told = f"{start and start + ' '}After {counted(len(played.drawing.actions), 'move')}. {played.end}"
    return f"{head}{picture_html(played.drawing, size=320)}<p>{html.escape(told)}</p>"


def reference_for(config: Mapping[str, Any]) -> Reference | None:
    """The curve of a normal run of the same game, preset and search, if one is shipped."""
    file = resources.files(__package__ or "").joinpath("data").joinpath(REFERENCE_FILE)
    if not file.is_file():
        return None
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    keys = ("game", "preset", "search")
    return next((run for run in runs if all(run[key] == config.get(key) for key in keys)), None)


def _tile(name: str, figure: str) -> str:
    style = f"flex:1 1 140px;border:1px solid {LINE};border-radius:8px;padding:6px 10px"
    large = "font-size:18px;font-weight:600;white-space:nowrap"
    return (
        f'<div style="{style}"><div style="{large}">{html.escape(figure)}</div>'
        f'<div style="font-size:11px;opacity:0.7">{html.escape(name)}</div></div>'
    )
