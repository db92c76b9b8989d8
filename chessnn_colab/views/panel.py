"""The panel of a run as HTML: header, bars, figures, table. Pure functions; every style stands
beside its element.

HTML and no widget, because it shows in a saved notebook without a kernel, and in every front end.
Jupyter takes style sheets and inline SVG out of notebooks that it does not trust, and leaves inline
styles and images in data addresses.
"""

import html
from collections.abc import Sequence

from ..arena.progress import Bar
from ..report import Report, Strength
from .columns import table_rows
from .curves import SMALL_PANELS, Reference, small_figure, strength_figure
from .style import BLUE, GREEN, PAGE_WIDTH, RED, figure_html

FONT = "font-family:system-ui,sans-serif;line-height:1.4"
FAINT = "rgba(128,132,140,0.22)"
LINE = "rgba(128,132,140,0.35)"
ONE_LINE = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
TABLE_ROWS = 2
GAME_HEIGHT = 315  # CSS pixels, of the place where a game plays
NEWEST_MESSAGES = 2
TABLE_NOTE = (
    "cap: games stopped because they were too long; a ply is one move of one side; policy, "
    "policy KL, value: errors in learning, lower is better; entropy: how undecided it is between "
    "moves; Brier: how far its chances are from what happened, lower is better"
)


def div(style: str, content: str) -> str:
    """A block of HTML with this style."""
    return f'<div style="{style}">{content}</div>'


def box(content: str, style: str = "") -> str:
    """`content` as wide as the page."""
    return div(f"{FONT};max-width:{PAGE_WIDTH}px;font-size:13px;{style}", content)


def live_html(header: str, bars: Sequence[Bar], workers: Sequence[Bar]) -> str:
    """The part that moves: the header, the bars, and smaller those of workers."""
    width = name_width(bars)
    rows = "".join(_bar(bar, 12, width, 250) for bar in bars)
    each = "".join(div("width:48.5%;min-width:0", _bar(bar, 6, 90, 190)) for bar in workers)
    grid = div("display:flex;flex-wrap:wrap;justify-content:space-between", each)
    return box(header_html(header) + rows + grid)


def header_html(text: str) -> str:
    """The line above the bars."""
    return div(f"font-size:17px;font-weight:600;height:30px;{ONE_LINE}", html.escape(text))


def name_width(bars: Sequence[Bar]) -> int:
    """CSS pixels for the names of bars."""
    return 8 * max([22, *(len(bar.name) for bar in bars)])


def bar_note(bar: Bar) -> str:
    """What stands behind a bar, with a tick once all is done."""
    return ("✓ " if bar.share == 1 else "") + bar.note


def figures_html(
    reports: Sequence[Report],
    points: Sequence[Strength],
    reference: Reference | None,
    minutes: float | None,
    game: str,
    position: str,
) -> str:
    """Strength large, HTML of a game beside it, or below it where the page is narrow; below them
    small figures and HTML of one position.
    """
    large = figure_html(strength_figure(reports, points, reference, minutes))
    half = f"flex:1 1 440px;max-width:496px;min-width:0;min-height:{GAME_HEIGHT}px"
    small = "".join(
        div("flex:0 1 192px;min-width:0", figure_html(small_figure(name, reports)))
        for name in SMALL_PANELS
    )
    small += div("flex:1 1 390px;min-width:0", position)
    row = "display:flex;flex-wrap:wrap;gap:4px 8px"
    return div(row, div(half, large) + div(half, game)) + div(row, small)


def table_html(reports: Sequence[Report], rows: int = TABLE_ROWS) -> str:
    """The latest iterations, the newest first, always `rows` lines high."""
    heads, texts = table_rows(reports, rows)
    empty = [[""] * len(heads)] * (rows - len(texts))
    lines = _cells(heads, "th") + "".join(_cells(row, "td") for row in texts[::-1] + empty)
    style = (
        "border-collapse:collapse;width:100%;table-layout:auto;margin-top:6px;"
        "border:0;font-size:11px"
    )
    return div("overflow-x:auto", f'<table style="{style}">{lines}</table>') + quiet(TABLE_NOTE)


def quiet(text: str) -> str:
    """A line in small print."""
    return div("font-size:11px;opacity:0.65;min-height:16px", html.escape(text))


def plain_lines(texts: Sequence[str]) -> str:
    """Each text on as many lines as it needs."""
    return "".join(f"<div>{html.escape(text)}</div>" for text in texts)


def messages_html(messages: Sequence[str]) -> str:
    """The newest messages; the height is always the same, and a long one can be scrolled."""
    style = (
        f"height:{20 * NEWEST_MESSAGES}px;font-size:12px;opacity:0.8;margin-top:4px;overflow:auto"
    )
    return box(plain_lines(messages[-NEWEST_MESSAGES:]), style)


def _bar(bar: Bar, thick: int, name_width: int, note_width: int) -> str:
    """A line with name, bar and note, green once all is done; widths and thickness in CSS
    pixels.
    """
    colour = RED if bar.lost else GREEN if bar.share == 1 else BLUE
    done = f"{100 * bar.share:.1f}"
    name = html.escape(bar.name)
    shape = f"height:{thick}px;border-radius:{thick}px"
    track = f"flex:1 1 60px;min-width:60px;{shape};background:{FAINT};overflow:hidden"
    fill = f"width:{done}%;{shape};background:{colour};float:left;transition:none"
    return div(
        "display:flex;align-items:center;gap:12px;height:22px",
        div(f"flex:0 0 {name_width}px;{ONE_LINE}", name)
        + f'<div role="progressbar" aria-label="{name}" aria-valuenow="{done}" style="{track}">'
        f'<div class="progress-bar" style="{fill}"></div></div>'
        + div(f"flex:0 1 {note_width}px;{ONE_LINE};opacity:0.75", html.escape(bar_note(bar))),
    )


def _cells(texts: Sequence[str], kind: str) -> str:
    font = "font-weight:600" if kind == "th" else "font-weight:400;white-space:nowrap"
    style = (
        f"text-align:right;padding:2px;height:18px;{font};border:0;"
        f"border-bottom:1px solid {LINE};background:transparent"
    )
    row = "".join(f'<{kind} style="{style}">{html.escape(text)}</{kind}>' for text in texts)
    return f'<tr style="background:transparent">{row}</tr>'
