"""A board on which a person plays against a network or any other opponent: by clicks, or by typing
moves.
"""

from pathlib import Path
from typing import Any

from ...arena.evaluate import find_player
from ...arena.opponent import NetworkOpponent, Opponent
from ...arena.players import NetworkPlayer
from ...arena.registry import match_game
from ...network import SpikingNetwork
from ...runs.networks import is_file, is_run, run_game, split_run
from ...settings import one_of, require
from ..drawings import make_drawing
from .board import PlayBoard


def play_widget(
    opponent: str | Path | SpikingNetwork | Opponent,
    human: str = "",
    game: str = "chess",
    position: str = "",
    evaluations: int | None = None,
) -> PlayBoard:
    """A game to play by hand. Make it the last line of a cell.

    opponent: a run's folder or shared file (RUN or RUN@ITERATION), a player's name ("greedy",
    "engine:PATH"), a network, or an Opponent. human: the side of the person, such as "white"; "" is
    the first mover. game: of an opponent that is no run.
    position: where to start, as PlayBoard.load takes it.
    evaluations: of a network, per move; None: as many as in a match. Raises ConfigError, RunError,
    CheckpointError or NotationError.
    """
    answering = find_opponent(opponent, game)
    if evaluations is not None and isinstance(answering, NetworkOpponent):
        answering.evaluations = evaluations
    try:
        drawing = make_drawing(answering.game)
        sides = [name.lower() for name in drawing.players]
        if human:
            require("human", human, one_of(*sides))
        if position:
            drawing.load(position)
        return PlayBoard(drawing, answering, sides.index(human) if human else 0)
    except BaseException:
        answering.player.close()  # an engine is a process
        raise


def find_opponent(source: Any, game: str = "chess") -> Opponent:
    """What `play_widget` takes as an opponent, as one. Raises ConfigError, RunError or
    CheckpointError.
    """
    if isinstance(source, Opponent):
        return source
    if isinstance(source, SpikingNetwork):
        rules = match_game(game)
        return NetworkOpponent(rules, NetworkPlayer(rules, source, name="the network"))
    rules = match_game(own_game(source) or game)
    player = find_player(str(source), rules)
    if is_file(source):  # the name of a file says little
        player.name = f"network of {player.name.removeprefix(Path(source).name).strip()}"
    if isinstance(player, NetworkPlayer):
        return NetworkOpponent(rules, player)
    return Opponent(rules, player)


def own_game(source: Any) -> str:
    """The name of the game that an opponent brings with it, as a run does; "" for one that plays
    any game.

    Raises RunError or CheckpointError for a folder or a file that is not a run.
    """
    if isinstance(source, Opponent):
        return source.game.name
    if not source or not isinstance(source, str | Path):
        return ""
    run, _ = split_run(str(source))
    return run_game(run) if is_run(run) else ""
