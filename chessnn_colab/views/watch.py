"""Watch two players at one board: networks, fixed players, or an engine."""

import html
from contextlib import ExitStack
from typing import Any

from ..arena.opponent import NetworkOpponent, Opponent
from ..errors import ChessnnError, ConfigError
from .cell import HtmlImage, Place
from .drawing import Drawing
from .drawings import make_drawing
from .front_end import has_widget_front_end
from .picture import picture_html
from .play import find_opponent, own_game
from .play.controls import moves_html
from .played import Played
from .replay import game_replay


def watch_game(
    player: Any,
    opponent: Any,
    game: str = "chess",
    evaluations: int | None = None,
    position: str = "",
    plies: int = 300,
) -> HtmlImage:
    """Play one game, shown move by move in a notebook, and return it to be played back.

    player, opponent: as play.find_opponent takes them; `player` has the side that begins a game.
    game: if neither is a run. evaluations: of each network, per move; None: as many as in a match.
    position: where to start (FEN or PGN in chess). plies: how many the game has at most. An
    interrupt, or a player that fails, ends the game and keeps what was played. Raises ConfigError,
    RunError, CheckpointError or NotationError.
    """
    games = {own_game(source) for source in (player, opponent)} - {""} or {game}
    if len(games) > 1:
        raise ConfigError(
            f"{player} and {opponent} play different games: {' and '.join(sorted(games))}"
        )
    (name,) = games
    sides = []
    with ExitStack() as players:
        for source in (player, opponent):
            side = find_opponent(source, name)
            sides.append(side)
            if side is not source:  # whoever made it closes it
                players.callback(side.player.close)
            if isinstance(side, NetworkOpponent) and evaluations:
                side.evaluations = evaluations
        drawing = make_drawing(sides[0].game)
        if position:
            drawing.load(position)
        names = " - ".join(side.name for side in sides)
        end = _play(drawing, sides, names, plies)
    print(f"{names}: {end} {len(drawing.actions)} plies.")
    return game_replay(Played(drawing, names, end))


def _play(drawing: Drawing, sides: list[Opponent], names: str, plies: int) -> str:
    """Play to the end, drawing the position before each ply; returns how the game ended."""
    show = Place().show if has_widget_front_end() else lambda page: None
    try:
        while not drawing.ending() and len(drawing.actions) < plies:
            side = sides[drawing.turn]
            show(_position_html(drawing, names, f"{side.name} is thinking."))
            drawing.push(side.choose(drawing.state(), drawing.board))
    except KeyboardInterrupt:
        return "Interrupted."
    except ChessnnError as error:  # such as an engine that died: what was played is kept
        return f"{error}."
    finally:
        show("")  # the replay comes below
    return drawing.ending() or "Stopped."


def _position_html(drawing: Drawing, title: str, message: str) -> str:
    words = f"<b>{html.escape(title)}</b><p>{html.escape(message)}</p><p>{moves_html(drawing)}</p>"
    side = f'<div style="flex:1 1 300px;max-width:460px">{words}</div>'
    style = "display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start"
    return f'<div style="{style}">{picture_html(drawing)}{side}</div>'
