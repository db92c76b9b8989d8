"""The results of a run as HTML that needs no kernel: after training, and again at any time from its
folder.
"""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..games.registry import rules
from ..network_config import PRESETS
from ..report import Report, Strength, score_names, strength_points
from ..runs.folder import RunFolder
from ..text import counted, duration, percent
from .cell import HtmlImage
from .columns import strength_sentences
from .panel import LINE, box, div, figures_html, plain_lines, quiet, table_html
from .picture import picture_html
from .played import played_game
from .reference import reference_for
from .replay import one_position


def run_story(run: str | Path) -> HtmlImage:
    """The results of the run in this folder, all sessions together. Raises RunError when there is
    no run.
    """
    folder = RunFolder.open(run)
    config = folder.config
    reports = folder.reports()
    if not reports:
        told = f"{folder.path}: no iteration has finished yet, train it for a while first"
        return HtmlImage(box(html.escape(told)), told)
    points = strength_points(reports)
    game = sample_part(reports)
    position = one_position(reports, config.get("game", "chess"), folder.path.name)
    figures = figures_html(reports, points, reference_for(config), None, game, position)
    page = summary_html(config, reports, points) + box(figures + table_html(reports, 8))
    return HtmlImage(page, "\n".join([headline(config, reports), *strength_sentences(points)]))


def summary_html(
    config: Mapping[str, Any],
    reports: Sequence[Report],
    points: Sequence[Strength],
    messages: Sequence[str] = (),
) -> str:
    """What was trained, for how long, how strong it was before and after, and what else stands
    out.
    """
    head = div("font-size:17px;font-weight:600", html.escape(headline(config, reports)))
    sentences = plain_lines(strength_sentences(points))
    tiles = "".join(_tile(name, figure) for name, figure in best_facts(reports).items())
    tiles = div("display:flex;flex-wrap:wrap;gap:8px;margin:8px 0", tiles)
    small = div("font-size:12px;opacity:0.8", plain_lines([network_words(config), *messages]))
    return box(head + sentences + tiles + small)


def headline(config: Mapping[str, Any], reports: Sequence[Report]) -> str:
    """The run in one line that a stranger understands."""
    game = rules(config.get("game", "chess")).title
    last = reports[-1]
    games = f"{last.total_games:,} games{' against itself' if last.wins else ''}"
    return f"It taught itself {game} in {duration(last.seconds)}: {games}, no teacher"


def best_facts(reports: Sequence[Report]) -> dict[str, str]:
    """A few figures of a run and their names."""
    last = reports[-1]
    fastest = max(report.positions_per_second for report in reports)
    facts = {
        "positions played": f"{last.total_positions:,}",
        "updates of the network": f"{last.total_updates:,}",
        "positions per second, best iteration": f"{fastest:,.0f}",
    }
    ended = sum((Counter(report.endings) for report in reports), Counter())
    for kind, count in ended.most_common(2):
        if kind != "truncated":
            facts[f"games that ended by {kind.replace('_', ' ')}"] = f"{count:,}"
    if score_names(reports):
        best = max(report.scores.get("best", 0) for report in reports)
        facts["points of the best game"] = f"{best:,.0f}"
    if last.firing_rates:
        rate = np.mean(list(last.firing_rates.values()))
        facts["of the possible spikes are fired"] = percent(float(rate))
    return facts


def network_words(config: Mapping[str, Any]) -> str:
    """The shape of the network in a sentence."""
    shape = PRESETS.get(config.get("preset", "cpu"), PRESETS["cpu"]).to_dict()
    shape |= {key: config[key] for key in shape if config.get(key)}
    size = "{blocks} blocks with {channels} channels".format_map(shape)
    search = f"search: {config.get('search')}. "
    if (activation := shape["activation"]) != "spikes":
        return f"A twin without spikes ({activation}) of {size}; {search}"
    steps = counted(shape["steps"], "time step")
    spikes = counted(shape["levels"], "spike")
    reset = ", with a hard reset" if shape["reset"] == "hard" else ""
    return f"A spiking network of {size}, {steps} of at most {spikes}{reset}; {search}"


def sample_part(reports: Sequence[Report]) -> str:
    """How a game of the latest iteration that has one ended: its last position."""
    newest = next((report for report in reversed(reports) if report.sample_game), None)
    if newest is None:
        return ""
    head = f"<p><b>A game of iteration {newest.iteration}</b></p>"
    played = played_game(newest.sample_game)
    plies = f"After {len(played.drawing.actions)} plies."
    told = " ".join(filter(None, (played.drawing.opening_words(), plies, played.end)))
    return f"{head}{picture_html(played.drawing, size=270)}<p>{html.escape(told)}</p>"


def _tile(name: str, figure: str) -> str:
    style = f"flex:1 1 130px;border:1px solid {LINE};border-radius:8px;padding:6px 10px"
    large = "font-size:18px;font-weight:600;white-space:nowrap"
    return div(style, div(large, html.escape(figure)) + quiet(name))
