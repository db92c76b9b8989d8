"""Two players at one board while somebody watches: networks, fixed players, or an engine."""

from __future__ import annotations

import html
from typing import Any

from ..arena.opponent import NetworkOpponent, Opponent
from ..arena.registry import match_game
from ..errors import ChessnnError, ConfigError
from .drawings import Drawing, make_drawing
from .front_end import has_widget_front_end
from .picture import picture_html
from .play import find_opponent, own_game
from .play.board import Answering
from .play.controls import moves_html
from .replay import Replay, drawing_replay

MOST_PLIES = 300


def watch_game(
    player: Any,
    opponent: Any,
    game: str = "chess",
    evaluations: int | None = None,
    position: str = "",
    plies: int = MOST_PLIES,
) -> Replay:
    """Play one game before the eyes of the person at the notebook, and return it to be played back.

    player, opponent: as play.find_opponent takes them; `player` moves first. game: where neither is a run.
    evaluations: of each network, per move; None: as many as in a match. position: where to start (FEN or PGN in
    chess). plies: how many are played at most. An interrupt, or a player that fails, ends the game
    and keeps what was played. Raises ConfigError, RunError, CheckpointError or NotationError.
    """
    if plies < 1:
        raise ConfigError(f"plies={plies}: expected a whole number from 1 up")
    games = {own_game(source) for source in (player, opponent)} - {""} or {game}
    if len(games) > 1:
        raise ConfigError(f"{player} and {opponent} play different games: {' and '.join(sorted(games))}")
    (name,) = games
    sides: list[Answering] = []
    try:
        for source in (player, opponent):
            sides.append(find_opponent(source, name))
            if isinstance(sides[-1], NetworkOpponent) and evaluations:
                sides[-1].evaluations = evaluations
        drawing = make_drawing(next((side.game for side in sides if isinstance(side, Opponent)), match_game(name)))
        if position:
            drawing.load(position)
        end = _play(drawing, sides, plies)
    finally:
        for side in sides:
            if isinstance(side, Opponent):
                side.player.close()
    print(f"{_names(sides)}: {end} {len(drawing.actions)} plies.")
    return drawing_replay(drawing, players=_names(sides), end=end)


def _play(drawing: Drawing, sides: list[Answering], plies: int) -> str:
    """Play to the end, and say how it came."""
    view = _LiveView(_names(sides))
    first = len(drawing.actions)
    try:
        while not drawing.ending() and len(drawing.actions) - first < plies:
            view.show(drawing, f"{sides[drawing.turn].name} is thinking.")
            drawing.push(sides[drawing.turn].choose(drawing.state(), drawing.board))
    except KeyboardInterrupt:
        return "Interrupted."
    except ChessnnError as error:  # such as an engine that died: what was played is kept
        return f"{error}."
    finally:
        view.close()
    return drawing.ending() or "Stopped."


def _names(sides: list[Answering]) -> str:
    return " - ".join(side.name for side in sides)


class _LiveView:
    """The position in the output of the running cell, drawn again after each ply. Nothing where nobody looks."""

    def __init__(self, title: str):
        self._title, self._handle = title, None

    def show(self, drawing: Drawing, message: str) -> None:
        if not has_widget_front_end():
            return
        from IPython.display import HTML, DisplayHandle

        told = f"<b>{html.escape(self._title)}</b><p>{html.escape(message)}</p><p>{moves_html(drawing)}</p>"
        box = "display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start"
        side = '<div style="flex:1 1 300px;max-width:460px">'
        content = HTML(f'<div style="{box}">{picture_html(drawing)}{side}{told}</div></div>')
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(content)
        else:
            self._handle.update(content)

    def close(self) -> None:
        """Leave the place to the replay."""
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
