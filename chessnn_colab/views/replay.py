"""Games played back as HTML with a script: they move while the kernel works, and without one.

A static picture comes first. It is all that remains where scripts do not run: on GitHub, or in a notebook that is not
trusted. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import html
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report import Report
from ..runs.folder import RunFolder
from .drawings import EMPTY, Drawing
from .picture import picture_html
from .play.controls import moves_html
from .played import Played, from_pgn, played_game
from .squares import board_css, data_text, overlay_svg, svg_url

MOST_GAMES = 12  # iterations to choose from; of more, so many are taken evenly
_NO_TEXT = "No game to show yet: an iteration has to finish first."


class Replay:
    """One game or several as HTML; a cell shows it. `html` is the same as text, for any page."""

    def __init__(self, text: str, games: int):
        self.html, self.games = text, games

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"Replay({self.games} game{'' if self.games == 1 else 's'})"


def sample_replay(source: str | Path | Sequence[Report]) -> Replay:
    """The sample games of a run's folder or of its reports, one for each of up to MOST_GAMES iterations.

    Chess and Gomoku are played back; of any other game the newest sample is shown as text. Raises RunError when there
    is no such run, NotationError for a PGN or PSQ that cannot be read.
    """
    if isinstance(source, str | Path):
        source = [Report.from_dict(values) for values in RunFolder.open(source).read_reports()]
    reports = [report for report in source if report.sample_game]
    if not reports:
        return Replay(f"<p>{_NO_TEXT}</p>", 0)
    shown = [
        (f"Iteration {report.iteration}", played_game(report.sample_game)) for report in _evenly(reports, MOST_GAMES)
    ]
    title, last = shown[-1]
    if last is None:
        return text_replay(reports[-1].sample_game, title)
    games = [_game(played, title) for title, played in shown if played is not None]
    return Replay(_page(last.drawing, games), len(games))


def game_replay(pgn_text: str, title: str = "") -> Replay:
    """The first game of a PGN text. Raises NotationError when it cannot be read or has no move."""
    played = from_pgn(pgn_text)
    return Replay(_page(played.drawing, [_game(played, title)]), 1)


def drawing_replay(drawing: Drawing, title: str = "", players: str = "", end: str = "") -> Replay:
    """The game that was played on `drawing`, of any game that has a board. end: how it ended, in words."""
    return Replay(_page(drawing, [_game(Played(drawing, players, end), title)]), 1)


def text_replay(text: str, title: str = "") -> Replay:
    """A game without a board as the text that its players write."""
    return Replay(f"<p><b>{html.escape(title)}</b></p><pre>{html.escape(text)}</pre>", 1)


def _evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most `most` of the items, spread evenly, the last one always among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(number * (len(items) - 1) / (most - 1))] for number in range(most)]


def _game(played: Played, title: str) -> dict[str, Any]:
    """What replay.js needs of a game (its head says what): the start, and what each ply changes."""
    drawing = played.drawing
    actions, moves = list(drawing.actions), drawing.moves()
    for _ in actions:
        drawing.pop()
    before = start = [glyph or "." for glyph in drawing.squares()]
    alarms, note, plies = list(drawing.alarms()), drawing.opening_words(), []
    for action, (number, move) in zip(actions, moves):
        drawing.push(action)
        after = [glyph if glyph != EMPTY else "." for glyph in drawing.squares()]
        changed = {square: new for square, (old, new) in enumerate(zip(before, after)) if old != new}
        plies.append({"c": changed, "l": list(drawing.last()), "k": list(drawing.alarms()), "n": number, "m": move})
        before = after
    about = {"title": title, "players": played.players, "note": note, "end": played.end}
    return {**about, "start": "".join(start), "k": alarms, "plies": plies}


def _page(drawing: Drawing, games: Sequence[dict[str, Any]]) -> str:
    """The games as HTML. `drawing` shows the last position of the last one."""
    name = f"cn-{uuid.uuid4().hex[:10]}"
    newest = games[-1]
    said = " ".join(filter(None, (newest["title"], newest["players"])))
    lines = [f"<b>{html.escape(said)}</b>", html.escape(newest["note"]), html.escape(newest["end"])]
    about = "<br>".join(line for line in lines if line not in ("", "<b></b>"))
    words = json.dumps({key: text for key, (text, _) in drawing.glyphs.items()})
    # "</" would end the script that holds the games.
    held = json.dumps(games, separators=(",", ":")).replace("<", "\\u003c")
    data = f'data-replay="{name}" data-scope="{name}" data-css="{drawing.css}" data-names="{" ".join(drawing.names)}"'
    still = f'{picture_html(drawing)}<div class="cn-side"><p>{about}</p><p>{moves_html(drawing)}</p></div>'
    css = f"{board_css(name, drawing)}.{name}{{--over:{svg_url(overlay_svg(drawing, (), False))}}}"
    return (
        f'<style>{css}</style><div class="cn-replay" {data} data-words="{html.escape(words)}">'
        f'<div class="cn-table cn-replay-still">{still}</div><div class="cn-table cn-replay-live" hidden></div>'
        f'<script type="application/json">{held}</script></div>'
        f"<script>{data_text('replay.js')}({json.dumps(name)});</script>"
    )
