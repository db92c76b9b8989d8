"""Games as PGN, the form chess players exchange, to and from GameRecords; python-chess reads and writes."""

from __future__ import annotations

import io
from typing import Mapping

import chess
import chess.pgn
import numpy as np
import torch

from .errors import NotationError
from .games.base import concatenate
from .games.chess import ENDINGS, TRUNCATED, Chess
from .notation import action_from_move, boards_from_state, check_board, move_from_action, state_from_boards
from .records import GameRecords

MAX_BYTES = 10_000_000
MAX_PLIES = 2_000
POLICY_WIDTH = 16
_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
_TERMINATIONS = {"unfinished": "unterminated", "truncated": "unterminated"}  # else "normal", as the standard has it


def records_to_pgn(records: GameRecords, game: Chess, headers: Mapping[str, str] | None = None) -> list[str]:
    """One PGN text a game. A game cut short or stopped at the ply cap has the result "*"."""
    ends = np.cumsum(records.game_lengths)
    texts = []
    for index, (end, length) in enumerate(zip(ends, records.game_lengths)):
        first = game.unpack(torch.from_numpy(records.positions[end - length:end - length + 1]).to(game.device))
        board = boards_from_state(first)[0]
        text = _game(board, records.actions[end - length:end], int(records.endings[index]),
                     int(records.results[index]), headers or {})
        texts.append(str(text))
    return texts


def _game(board: chess.Board, actions: np.ndarray, ending: int, result: int,
          headers: Mapping[str, str]) -> chess.pgn.Game:
    game = chess.pgn.Game()
    if board.fen() != chess.STARTING_FEN:
        game.setup(board)
    node: chess.pgn.GameNode = game
    for action in actions:
        move = move_from_action(int(action), board)
        node = node.add_variation(move)
        board.push(move)
    name = ENDINGS[ending]
    game.headers.update(headers)
    game.headers["Result"] = "*" if ending in (0, TRUNCATED) else _RESULTS[result]
    game.headers["Termination"] = _TERMINATIONS.get(name, "normal")
    game.headers["Ending"] = name
    return game


def games_from_pgn(text: str, max_bytes: int = MAX_BYTES, max_plies: int = MAX_PLIES) -> list[chess.pgn.Game]:
    """The games of a PGN text. Raises NotationError for text without a game, unreadable or illegal moves, positions
    that cannot be, and more bytes or plies than allowed."""
    if len(text.encode("utf-8", "replace")) > max_bytes:
        raise NotationError(f"PGN of {len(text):,} characters: expected at most {max_bytes:,} bytes")
    stream, games = io.StringIO(text), []
    while True:
        try:
            game = chess.pgn.read_game(stream)
        except (ValueError, IndexError, KeyError, RecursionError) as error:
            raise NotationError(f"cannot read PGN {text[:60]!r}: {error}") from error
        if game is None:
            break
        _check_game(game, max_plies)
        games.append(game)
    if not any(game.next() is not None or game.headers.get("Result", "*") != "*" or "FEN" in game.headers
               or game.headers.get("Event", "?") != "?" for game in games):
        raise NotationError(f"no game in PGN {text[:60]!r}: expected headers like [White \"...\"] and moves like 1. e4 e5")
    return games


def _check_game(game: chess.pgn.Game, max_plies: int) -> None:
    if game.errors:
        raise NotationError(f"bad PGN: {game.errors[0]}")
    check_board(game.board())
    plies = sum(1 for _ in game.mainline_moves())
    if plies > max_plies:
        raise NotationError(f"PGN game of {plies} plies: expected at most {max_plies}")


def records_from_pgn(text: str, game: Chess) -> GameRecords:
    """The games of a PGN text as records: policy targets are the moves played, values the results.

    Where the moves end the game by the rules, that is its ending; else it is unfinished. Raises NotationError.
    """
    parts = [_records(parsed, game) for parsed in games_from_pgn(text)]
    parts = [part for part in parts if part is not None]
    if not parts:
        raise NotationError(f"no moves in PGN {text[:60]!r}: expected at least one")
    return GameRecords.concatenate(parts)


def _records(parsed: chess.pgn.Game, game: Chess) -> GameRecords | None:
    board, boards, actions = parsed.board(), [], []
    for move in parsed.mainline_moves():
        boards.append(board.copy())
        actions.append(action_from_move(move, board))
        board.push(move)
    if not actions:
        return None
    states = [state_from_boards([position], game) for position in (*boards, board)]
    final = states[-1]
    positions = game.pack(concatenate(states[:-1])).cpu().numpy()
    ending = int(final.ending) if bool(final.terminated) else 0
    result = int(final.rewards[0, 0])
    sides = np.array([1.0 if position.turn else -1.0 for position in boards])
    policy_actions = np.zeros((len(actions), POLICY_WIDTH), np.uint16)
    policy_weights = np.zeros((len(actions), POLICY_WIDTH), np.float16)
    policy_actions[:, 0], policy_weights[:, 0] = actions, 1.0
    return GameRecords(
        positions=positions, actions=np.array(actions, np.uint16), policy_actions=policy_actions,
        policy_weights=policy_weights, root_values=np.zeros(len(actions), np.float16),
        value_targets=(sides * (result if ending else np.nan)).astype(np.float16),
        game_lengths=np.array([len(actions)], np.int32), endings=np.array([ending], np.uint8),
        results=np.array([result], np.int8))
