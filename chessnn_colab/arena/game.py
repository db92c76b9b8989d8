"""The parts of a game's matches: players, openings, puzzles and more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..games.base import Game
from .players import Player
from .result import Opening

# Part of ArenaGame -> what the message of `require` calls it.
_PARTS = {
    "one_position": "position to show: expected a run of chess",
    "engine": "engines to play against: expected a run of chess or gomoku",
    "puzzles": "puzzles: expected a run of chess, or of gomoku on 9x9 or larger",
}


class Puzzle(NamedTuple):
    """A position and every action that solves it."""

    kind: str
    board: Any  # the game's board object
    solutions: frozenset[int]


def data_lines(module: str, file: str) -> list[str]:
    """The lines of a file in the folder `data` beside a module. module: its `__file__`."""
    return Path(module).with_name("data").joinpath(file).read_text(encoding="utf-8").splitlines()


@dataclass(frozen=True)
class ArenaGame:
    """The parts of one game's matches. The game does not have a part that is None. By default
    matches begin from its standard start, and a board object is the list of its actions.
    """

    game: str
    # Name, as `--opponent` takes it -> a function that makes the player of a Game.
    players: Mapping[str, Callable[[Any], Player]]
    max_plies: int | None = None  # plies after which a match game is drawn; None: the game's limit
    # The openings; more than the standard start need `opening_actions` and `states`.
    book: Sequence[Opening] = (Opening("start position", ()),)
    # The actions that lead from the standard start to the position after an opening.
    opening_actions: Callable[[Opening], Sequence[int]] = lambda opening: ()
    # A board object in the standard start, for players that want boards.
    new_board: Callable[[], Any] = list
    push: Callable[[Any, int], None] = list.append  # plays an action on a board object
    # Board objects and the Game -> a state with a row for each.
    states: Callable[[Sequence[Any], Any], Any] = lambda boards, game: game.init(len(boards))
    engine: Callable[[str], Player] | None = None  # the player for "engine:PATH"
    puzzles: Callable[[Any], Sequence[Puzzle]] | None = None  # of a Game
    # A run shows what its network thinks of this position after every iteration. Its name says what
    # there is to see, as in "Does it see that ...?".
    one_position: Opening | None = None

    def start(self, game: Game, openings: Sequence[Opening]) -> tuple[Any, list[Any]]:
        """The positions after `openings`: a state with a row for each, and their board objects."""
        boards = []
        for opening in openings:
            board = self.new_board()
            for action in self.opening_actions(opening):
                self.push(board, action)
            boards.append(board)
        return self.states(boards, game), boards

    def require(self, part: str) -> Any:
        """The part with this name. Raises ConfigError when the game does not have it."""
        found = getattr(self, part)
        if found is None:
            raise ConfigError(f"the game {self.game!r} has no {_PARTS[part]}")
        return found
