"""Games played back as HTML with a script: they move while the kernel works, and without one.

A static picture comes first. It is all that remains where scripts do not run: on GitHub, or in a notebook that is not
trusted. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import functools
import html
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..report import Report
from ..runs.folder import RunFolder
from .drawings import EMPTY, Drawing
from .picture import picture_html
from .play.controls import moves_html
from .played import Played, from_pgn, played_game
from .squares import board_css, data_text, overlay_svg, svg_url

PANEL_GAMES = 6  # the newest, in the panel of a run that trains
MOST_GAMES = 12  # iterations to choose from; of more, so many are taken evenly
MOST_PLIES, PANEL_PLIES = 6000, 2000  # of all games together: a ply takes some 80 bytes of the page
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

    A game that an older version wrote without its start is shown as text. Raises RunError when there is no such run,
    NotationError for a game that cannot be read.
    """
    if isinstance(source, str | Path):
        source = [Report.from_dict(values) for values in RunFolder.open(source).read_reports()]
    reports = [report for report in source if report.sample_game]
    if not reports:
        return Replay(f"<p>{_NO_TEXT}</p>", 0)
    shown = [_sample(f"Iteration {report.iteration}", report.sample_game) for report in _evenly(reports, MOST_GAMES)]
    if shown[-1] is None:
        return text_replay(reports[-1].sample_game, f"Iteration {reports[-1].iteration}")
    games = _newest(shown, MOST_PLIES)
    return Replay(_page(shown[-1].drawing, games), len(games))


def panel_replay(reports: Sequence[Report], place: str) -> str:
    """HTML: the newest sample games of a run that trains, the last of them playing by itself.

    It is "" where there is no game yet, or none with a board. place: a name that every drawing has that replaces
    another; the next one goes on where the last one was.
    """
    newest = [report for report in reports if report.sample_game][-PANEL_GAMES:]
    shown = [_sample(f"Iteration {report.iteration}", report.sample_game) for report in newest]
    if not shown or shown[-1] is None:
        return ""
    return _page(shown[-1].drawing, _newest(shown, PANEL_PLIES), place)


class _Sample(NamedTuple):
    drawing: Drawing  # at the end of the game
    game: dict[str, Any]  # as replay.js has it


def _newest(samples: Sequence[_Sample | None], most: int) -> list[dict[str, Any]]:
    """The last of the games, and those before it as long as all have `most` plies together at most."""
    games = [sample.game for sample in samples if sample is not None]
    while len(games) > 1 and sum(len(game["plies"]) for game in games) > most:
        games = games[1:]
    return games


@functools.lru_cache(maxsize=PANEL_GAMES)  # a panel is drawn anew with one game more
def _sample(title: str, text: str) -> _Sample | None:
    """A game that comes as text; None where it has no board."""
    played = played_game(text)
    return None if played is None else _Sample(played.drawing, _game(played, title))


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


def _page(drawing: Drawing, games: Sequence[dict[str, Any]], place: str = "") -> str:
    """The games as HTML. `drawing` shows the last position of the last one. place: as panel_replay has it."""
    name = f"cn-{uuid.uuid4().hex[:10]}"
    newest = games[-1]
    said = " ".join(filter(None, (newest["title"], newest["players"])))
    lines = [f"<b>{html.escape(said)}</b>", html.escape(newest["note"]), html.escape(newest["end"])]
    about = "<br>".join(line for line in lines if line not in ("", "<b></b>"))
    words = json.dumps({key: text for key, (text, _) in drawing.glyphs.items()})
    # "</" would end the script that holds the games.
    held = json.dumps(games, separators=(",", ":")).replace("<", "\\u003c")
    data = f'data-replay="{name}" data-scope="{name}" data-css="{drawing.css}" data-names="{" ".join(drawing.names)}"'
    data += f' data-place="{place}"' if place else ""
    still = f'{picture_html(drawing)}<div class="cn-side"><p>{about}</p><p>{moves_html(drawing)}</p></div>'
    css = f"{board_css(name, drawing)}.{name}{{--over:{svg_url(overlay_svg(drawing, (), False))}}}"
    return (
        f'<style>{css}</style><div class="cn-replay" {data} data-words="{html.escape(words)}">'
        f'<div class="cn-table cn-replay-still">{still}</div><div class="cn-table cn-replay-live" hidden></div>'
        f'<script type="application/json">{held}</script></div>'
        f"<script>{data_text('replay.js')}({json.dumps(name)});</script>"
    )
