"""Which games have a board to click on.

A game gets a board by a line in DRAWINGS; docs/games.md says what a game of stones needs besides.
"""

from ..errors import ConfigError
from ..games.base import Game
from ..games.registry import family
from .chess_drawing import ChessDrawing
from .drawing import CELL, CROSSES, CROSSING, DISCS, Drawing
from .tiles import TilesDrawing

DRAWINGS = {
    "chess": ChessDrawing,
    "tictactoe": lambda game: Drawing(game, CELL, CROSSES),
    "gomoku": lambda game: Drawing(game, CROSSING, DISCS),
}


def draw_game(game: Game) -> Drawing:
    """A board of `game` to look at; 2048 has one too. Raises ConfigError as `make_drawing` does."""
    return TilesDrawing(game) if game.name == "2048" else make_drawing(game)


def make_drawing(game: Game) -> Drawing:
    """A board of `game` at its usual start.

    Raises ConfigError for a game without a line in DRAWINGS.
    """
    name = family(game.name)
    if name not in DRAWINGS:
        raise ConfigError(
            f"the game {game.name!r} has no board to click on: expected one of "
            f"{', '.join(DRAWINGS)}"
        )
    return DRAWINGS[name](game)
