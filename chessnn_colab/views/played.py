"""A finished game that comes as text, on the board that draws it."""

from typing import NamedTuple

import torch

from ..errors import ConfigError, NotationError
from ..games.registry import make_game
from .chess_drawing import RESULTS, ChessDrawing, read_pgn
from .drawing import Drawing
from .drawings import draw_game

LIST_BEGINS = "Game: "  # a text of games.base.move_list
STOPPED = "Stopped without a result."


class Played(NamedTuple):
    """A game that was played, the names of its players in one line ("" when nobody named them), and
    how it ended.
    """

    drawing: Drawing
    players: str
    end: str


def played_game(text: str) -> Played:
    """The game in a text of registry.game_text. Raises NotationError for one it cannot read."""
    return _from_list(text) if text.startswith(LIST_BEGINS) else _from_pgn(text)


def _from_pgn(text: str) -> Played:
    """The first game of a PGN text. Raises NotationError when it cannot be read or has no move."""
    drawing, headers = read_pgn(text)
    names = [headers.get(colour, "?") for colour in drawing.players]
    result = RESULTS.get(headers.get("Result", ""), STOPPED)
    return _played(drawing, names, result.capitalize())


def _from_list(text: str) -> Played:
    """The game in a text of games.base.move_list."""
    said = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        game = make_game(said["Game"])
        start = game.unpack(torch.tensor([[int(word) for word in said["Start"].split()]]))
        actions = [int(word) for word in said["Actions"].split()]
        drawing = draw_game(game)
    except (KeyError, ValueError, RuntimeError, ConfigError) as error:
        raise NotationError(
            f"a game that cannot be read ({error}): expected lines Game, Start, Actions"
        ) from error
    if isinstance(drawing, ChessDrawing):
        raise NotationError(
            f"a game of {game.name} as a list of actions: expected the form that its players write"
        )
    drawing.begin(start)
    for number, action in enumerate(actions, 1):
        if not (
            0 <= action < game.num_actions
            and bool(game.legal_action_mask(drawing.state())[0, action])
        ):
            raise NotationError(f"move {number}: action {action} is not legal in this position")
        drawing.push(action)
    names = [said.get(player, player) for player in drawing.players]
    return _played(drawing, names, STOPPED)


def _played(drawing: Drawing, names: list[str], result: str) -> Played:
    unnamed = set(names) == {"?"} or names == list(drawing.players)
    return Played(drawing, "" if unnamed else " - ".join(names), drawing.ending() or result)
