"""Games played back as HTML with a script: they move while the kernel works, and without one.

A static picture comes first. It is all that remains where scripts do not run: on GitHub, or in a
notebook that is not trusted. Nothing is loaded from elsewhere.
"""

import functools
import html
import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..arena.ladder import spread
from ..arena.opponent import Opinion
from ..arena.registry import arena_game
from ..games.registry import make_game
from ..report import Report
from ..runs.files import AnyPath
from ..runs.folder import RunFolder
from .cell import HtmlImage
from .drawing import Drawing
from .drawings import draw_game
from .opinion_html import arrows, top_moves_html, value_html
from .picture import MARKS, arrows_svg, board_svg, picture_html
from .play.controls import moves_html
from .played import Played, played_game
from .squares import data_text

PANEL_GAMES = 6  # the newest, in the panel of a run that trains
MOST_GAMES = 12  # iterations to choose from, spread evenly over the run
MOST_PLIES = 3000  # of all games together: a ply takes about 80 bytes of the page
_NO_TEXT = "No game to show yet: an iteration has to finish first."


def sample_replay(run: AnyPath) -> HtmlImage:
    """The sample games of a run's folder, one for each of up to MOST_GAMES iterations.

    Raises RunError when there is no such run, NotationError for a game that cannot be read.
    """
    reports = RunFolder.open(run).reports()
    with_game = {report.iteration: report for report in reports if report.sample_game}
    if not with_game:
        return HtmlImage(f"<p>{_NO_TEXT}</p>")
    chosen = spread(list(with_game), MOST_GAMES)
    return HtmlImage(_page(_newest_games([with_game[iteration] for iteration in chosen])))


def panel_replay(reports: Sequence[Report], place: str) -> str:
    """HTML: the newest sample games of a run that trains, the last of them playing by itself.

    It is "" where there is no game yet. place: a name that all drawings at
    the same place of the page share; the next one continues where the last one was.
    """
    newest = [report for report in reports if report.sample_game][-PANEL_GAMES:]
    games = _newest_games(newest)
    return _page(games, place) if games else ""


def one_position(reports: Sequence[Report], game: str, place: str) -> str:
    """HTML: one position through the iterations, which plays by itself, again and again: the
    network's likeliest moves there, its chances, and the spikes of its last neurons.

    It is "" where no report has an opinion of one. place: as panel_replay has it.
    """
    opinions = [opinion for report in reports for opinion in report.opinions]
    if not opinions:
        return ""
    position = arena_game(game).require("one_position")
    drawing = draw_game(make_game(game))
    drawing.load(" ".join(position.moves))
    film = _replayed(Played(drawing, "", ""), "")
    for number in spread(range(len(opinions)), MOST_GAMES):
        iteration, *values, spikes = opinions[number]
        opinion = Opinion(*values)
        words = value_html(drawing.players, opinion) + top_moves_html(drawing, opinion)
        over = arrows_svg(drawing, arrows(drawing, opinion))
        film.game["plies"].append({"i": iteration, "a": over, "w": words, "s": spikes})
    return f"<b>Does it see that {position.name}?</b>{_page([film], f'{place}-one')}"


def game_replay(played: Played) -> HtmlImage:
    """One game that was played."""
    return HtmlImage(_page([_replayed(played, "")]))


class _Replayed(NamedTuple):
    drawing: Drawing  # at the end of the game
    game: dict[str, Any]  # as replay.js has it


def _newest_games(reports: Sequence[Report]) -> list[_Replayed]:
    """The last of the games, and as many before it as have MOST_PLIES together with it."""
    games = [_sample(report.iteration, report.sample_game) for report in reports]
    while len(games) > 1 and sum(len(each.game["plies"]) for each in games) > MOST_PLIES:
        del games[0]
    return games


@functools.lru_cache(maxsize=PANEL_GAMES)  # a panel is drawn again with one game more
def _sample(iteration: int, text: str) -> _Replayed:
    return _replayed(played_game(text), f"Iteration {iteration}")


def _replayed(played: Played, title: str) -> _Replayed:
    """A game as replay.js has it (see the head of that file): the start, and what each ply
    changes.
    """
    drawing = played.drawing
    actions = list(drawing.actions)
    moves = drawing.moves()
    for _ in actions:
        drawing.pop()
    start = before = _glyphs(drawing)
    alarms = list(drawing.alarms())
    note = drawing.opening_words()
    plies = []
    for action, (number, move) in zip(actions, moves):
        drawing.push(action)
        after = _glyphs(drawing)
        changed = {square: new for square, new in enumerate(after) if new != before[square]}
        last = list(drawing.last())
        danger = list(drawing.alarms())
        plies.append({"c": changed, "l": last, "k": danger, "n": number, "m": move})
        before = after
    about = {"title": title, "players": played.players, "note": note, "end": played.end}
    return _Replayed(drawing, {**about, "start": "".join(start), "k": alarms, "plies": plies})


def _glyphs(drawing: Drawing) -> list[str]:
    return [glyph or "." for glyph in drawing.squares()]


def _page(games: Sequence[_Replayed], place: str = "") -> str:
    """The games as HTML, with a picture of how the last one ended. place: as panel_replay has
    it.
    """
    name = f"cn-{secrets.token_hex(5)}"
    drawing, newest = games[-1]
    title = html.escape(" ".join(filter(None, (newest["title"], newest["players"]))))
    lines = [title and f"<b>{title}</b>", html.escape(newest["note"]), html.escape(newest["end"])]
    about = "<br>".join(filter(None, lines))
    held = {
        "games": [each.game for each in games],
        "board": board_svg(drawing, {}),
        "glyphs": drawing.glyphs,
        "names": list(drawing.names),
        "last": MARKS["last"][0],
        "danger": MARKS[drawing.alarm][0],
    }
    data = json.dumps(held, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # "</" would end the script that holds the games
    where = f' data-place="{html.escape(place)}"' if place else ""
    still = (
        f'{picture_html(drawing)}<div class="cn-side"><p>{about}</p>'
        f"<p>{moves_html(drawing)}</p></div>"
    )
    return (
        f"<style>{data_text('board.css')}</style>"
        f'<div class="cn-replay" data-replay="{name}"{where}>'
        f'<div class="cn-table cn-replay-still">{still}</div>'
        f'<div class="cn-table cn-replay-live" hidden></div>'
        f'<script type="application/json">{data}</script></div>'
        f"<script>{data_text('replay.js')}({json.dumps(name)});</script>"
    )
