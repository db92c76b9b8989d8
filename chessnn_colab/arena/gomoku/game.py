"""The players, openings, puzzles and engines of Gomoku, for every size and rule."""

import functools
from functools import partial
from typing import cast

from ...games.base import move_list
from ...games.gomoku.notation import parse_cell
from ...games.gomoku.rules import Gomoku
from ...games.registry import make_game, rules
from ..game import ArenaGame
from ..games_folder import GamesFolder
from ..players import RandomPlayer
from ..result import FORFEIT, MatchGame, MatchResult, Opening
from .alphabeta import AlphaBetaPlayer
from .engine import parse_engine
from .heuristic import HeuristicPlayer
from .openings import book
from .tactics import SUITE_SIZE, load_puzzles


def board_after(game: Gomoku | type[Gomoku], opening: Opening) -> list[int]:
    """The actions of `opening`, which stand for the position after it: the board objects of
    Gomoku are lists of actions. game: the rules, or their class.
    """
    return [parse_cell(move, game.size) for move in opening.moves]


def match_text(name: str, result: MatchResult) -> str:
    """The games of a match as games.base.move_list writes them, an empty line between two games.

    name: of the game. Each game begins on the empty board, so the moves of the opening come first.
    """
    game = cast(Gomoku, make_game(name))
    texts = [_game_text(game, result, played) for played in result.played]
    return "\n\n".join(texts) + "\n"


def _game_text(game: Gomoku, result: MatchResult, played: MatchGame) -> str:
    names = [result.player, result.opponent]
    points = played.points
    if not played.player_is_first:
        names.reverse()
        points = 1 - points
    headers = {"Black": names[0], "White": names[1], "Opening": played.opening.name}
    ending = 0
    if played.ending == FORFEIT:
        headers["Forfeit"] = " ".join((played.reason or "no reason").split())
    else:
        ending = game.endings.index(played.ending)
    actions = [*board_after(game, played.opening), *played.actions]
    return move_list(game, game.init(1), actions, ending, round(2 * points - 1), **headers)


@functools.cache
def gomoku_game(name: str) -> ArenaGame:
    """For "gomoku", "gomoku:9" and so on. Raises ConfigError for a name that the rules
    refuse.
    """
    variant = rules(name)
    return ArenaGame(
        game=variant.name,
        players={
            "random": RandomPlayer,
            "heuristic": HeuristicPlayer,
            "alphabeta2": partial(AlphaBetaPlayer, depth=2),
            "alphabeta4": partial(AlphaBetaPlayer, depth=4),
        },
        book=book(variant.size),
        board_after=partial(board_after, variant),
        states=lambda boards, game: game.after(boards),
        push=list.append,
        engine=partial(parse_engine, variant),
        games_folder=partial(GamesFolder, ".txt", partial(match_text, variant.name)),
        puzzles=load_puzzles if variant.size >= SUITE_SIZE else None,
    )
