"""The panel of a run as HTML: header, bars, figures, table. Pure functions; every style stands beside its element.

HTML and no widget, because it shows in a saved notebook without a kernel, and in every front end. Jupyter takes style
sheets and inline SVG out of notebooks that it does not trust, and leaves inline styles and images in data addresses.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ..report import Report, Strength, score_names
from ..words import clock
from .curves import SMALL_PANELS, Reference, small_figure, strength_figure
from .ink import BLUE, PAGE_WIDTH, figure_html
from .progress.live import Bar
from .progress.text import figure

FONT = "font-family:system-ui,sans-serif;line-height:1.4"
FAINT, LINE, FILL = "rgba(128,132,140,0.22)", "rgba(128,132,140,0.35)", BLUE
ONE_LINE = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
ROW = 22  # CSS pixels, the height of a bar's line
TABLE_ROWS = 4
ALTS = {
    "losses": "Losses over the iterations",
    "results": "Results of self-play over the iterations",
    "lengths": "Plies per game over the iterations",
    "firing": "Firing rate of each block over the iterations",
}


def box(content: str, height: int | None = None, style: str = "") -> str:
    """`content` as wide as the page; `height` CSS pixels whatever it holds, None for as high as it is."""
    fixed = "" if height is None else f"height:{height}px;overflow:hidden;"
    return f'<div style="{FONT};max-width:{PAGE_WIDTH}px;{fixed}font-size:13px;{style}">{content}</div>'


def live_html(header: str, bars: Sequence[Bar], workers: Sequence[Bar], worker_rows: int) -> str:
    """The part that moves: the header and the bars. worker_rows: how many lines are kept for workers' bars."""
    head = f'<div style="font-size:17px;font-weight:600;height:30px;{ONE_LINE}">{html.escape(header)}</div>'
    both = "".join(_bar(bar, 12) for bar in bars)
    each = "".join(f'<div style="width:48.5%;min-width:0">{_bar(bar, 6, 90, 110)}</div>' for bar in workers)
    grid = f'<div style="display:flex;flex-wrap:wrap;justify-content:space-between">{each}</div>' if worker_rows else ""
    return box(head + both + grid, 30 + ROW * (len(bars) + worker_rows) + 6)


def figures_html(
    reports: Sequence[Report], points: Sequence[Strength], reference: Reference | None, minutes: float | None
) -> str:
    """Strength large, and four small figures beside it, or below it where the page is narrow."""
    strength = "".join(f" {point.measure} {100 * point.share:.0f} %;" for point in points[-3:])
    large = figure_html(strength_figure(reports, points, reference, minutes), f"Strength over time:{strength}")
    small = "".join(
        f'<div style="width:49%;min-width:0">{figure_html(small_figure(name, reports), ALTS[name])}</div>'
        for name in SMALL_PANELS
    )
    both = (
        f'<div style="flex:1 1 440px;max-width:500px;min-width:0">{large}</div>'
        f'<div style="flex:1 1 440px;max-width:500px;display:flex;flex-wrap:wrap;gap:4px 2%">{small}</div>'
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:4px 0">{both}</div>'


def table_html(reports: Sequence[Report], rows: int = TABLE_ROWS) -> str:
    """The latest iterations, the newest first, always `rows` lines high."""
    newest = list(reports[::-1][:rows])
    names = _result_names(reports) if reports else ["results"]
    heads = ["#", "games", *names, "plies", "policy", "value", "pos./s", "at"]
    lines = [_cells(heads, "th"), *(_cells(_figures(report, names), "td") for report in newest)]
    lines += [_cells([""] * len(heads), "td")] * (rows - len(newest))
    note = "cap: stopped at the ply cap; policy, value: losses, the lower the better; (n): cut short by the clock"
    style = (
        "border-collapse:collapse;width:100%;min-width:640px;margin-top:6px;border:0;table-layout:fixed;font-size:12px"
    )
    return f'<div style="overflow-x:auto"><table style="{style}">{"".join(lines)}</table></div>{quiet(note)}'


def quiet(text: str) -> str:
    """A line in small print."""
    return f'<div style="font-size:11px;opacity:0.65;min-height:16px">{html.escape(text)}</div>'


def plain_lines(texts: Sequence[str]) -> str:
    """Each text on as many lines as it needs."""
    return "".join(f"<div>{html.escape(text)}</div>" for text in texts)


def messages_html(messages: Sequence[str], newest: int) -> str:
    """The last messages, always `newest` lines high."""
    lines = ["", *messages][-newest:]
    lines = [""] * (newest - len(lines)) + lines
    style = f"height:{18 * newest}px;overflow:hidden;font-size:12px;opacity:0.8;margin-top:4px"
    one = f'<div title="{{0}}" style="height:18px;{ONE_LINE}">{{0}}</div>'
    return f'<div style="{style}">{"".join(one.format(html.escape(line)) for line in lines)}</div>'


def _bar(bar: Bar, thick: int, name_width: int = 120, words_width: int = 250) -> str:
    done = f"{100 * min(max(bar.share, 0.0), 1.0):.1f}"
    track = f"flex:1 1 200px;min-width:60px;height:{thick}px;background:{FAINT};border-radius:{thick}px;overflow:hidden"
    fill = f"width:{done}%;height:{thick}px;background:{FILL};border-radius:{thick}px;float:left;transition:none"
    return (
        f'<div style="display:flex;align-items:center;gap:12px;height:{ROW}px">'
        f'<div style="flex:0 0 {name_width}px;{ONE_LINE}">{html.escape(bar.name)}</div>'
        f'<div role="progressbar" aria-label="{html.escape(bar.name)}" aria-valuenow="{done}" style="{track}">'
        f'<div class="progress-bar" style="{fill}"></div></div>'
        f'<div style="flex:0 1 {words_width}px;{ONE_LINE};opacity:0.75">{html.escape(bar.words)}</div></div>'
    )


def _cells(texts: Iterable[str], kind: str) -> str:
    weight = "600" if kind == "th" else "400"
    style = (
        f"text-align:right;padding:2px 4px;height:18px;font-weight:{weight};border:0;border-bottom:1px solid {LINE};"
        f"background:transparent;{ONE_LINE}"
    )
    row = "".join(f'<{kind} style="{style}">{html.escape(text)}</{kind}>' for text in texts)
    return f'<tr style="background:transparent">{row}</tr>'


def _result_names(reports: Sequence[Report]) -> list[str]:
    if scores := score_names(reports):
        return scores
    players = list(reports[-1].wins)
    return [*players[:1], "draws", *players[1:], "cap"]


def _figures(report: Report, names: Sequence[str]) -> list[str]:
    """A table's row: what it shows of one iteration. Where the clock cut it, results and length would be false."""
    scores = report.scores
    if report.cut:
        results, plies = ["-"] * len(names), "-"
    elif scores:
        results, plies = [f"{scores.get(name, 0):,.0f}" for name in names], f"{report.average_plies:.0f}"
    else:
        stopped = report.games - report.draws - sum(report.wins.values())
        counts = {**report.wins, "draws": report.draws, "cap": stopped}
        results = [f"{100 * counts.get(name, 0) / max(1, report.games):.0f} %" for name in names]
        plies = f"{report.average_plies:.0f}"
    name = f"({report.iteration})" if report.cut else str(report.iteration)
    losses = [figure(report.policy_kl), figure(report.value_loss)]
    return [
        name,
        str(report.games),
        *results,
        plies,
        *losses,
        f"{report.positions_per_second:,.0f}",
        clock(report.seconds),
    ]
