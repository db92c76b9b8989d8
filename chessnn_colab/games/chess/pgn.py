"""Games as PGN, the form chess players exchange, to and from GameRecords; python-chess reads and writes."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any, Mapping, Sequence

import chess
import chess.pgn
import numpy as np
import torch

from ...errors import NotationError
from .rules import ENDINGS, FIFTY_MOVES, THREEFOLD_REPETITION, TRUNCATED, UNFINISHED, Chess
from .notation import (
    action_from_move,
    boards_from_state,
    check_board,
    move_from_action,
    play_on,
    quote,
    state_from_boards,
)
from ...records import POLICY_WIDTH, GameRecords

MAX_BYTES = 10_000_000
MAX_GAMES = 20_000  # the smallest of games is a thousand times its text in memory
MAX_PLIES = 2_000
_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
_RESULT_OF = {text: result for result, text in _RESULTS.items()}
_NO_RESULT = "*"
_WANTED = 'expected headers like [White "..."] and legal moves like 1. e4 e5'
_COMMENT = re.compile(r"\{[^}]*(?:\}|\Z)|;.*")
_ALMOST_A_MOVE = re.compile(r"(?<![A-Za-z])[A-Za-z]+[0-9]\w*")
_CUT_SHORT = (UNFINISHED, TRUNCATED)
_CLAIMS = (THREEFOLD_REPETITION, FIFTY_MOVES)  # in ordinary chess a player has to ask for these draws


def records_to_pgn(records: GameRecords, game: Chess, headers: Mapping[str, str] | None = None) -> list[str]:
    """One PGN text a game; a game cut short or stopped at the ply cap without a winner has the result "*".

    Termination is the standard's "normal" or "unterminated"; Ending is one of games.chess.ENDINGS. Raises
    NotationError when an action is not legal where it was played.
    """
    texts = []
    for number, (first, end) in enumerate(zip(records.offsets[:-1], records.offsets[1:])):
        if first == end:
            raise NotationError(f"game {number} of the records has no positions: expected at least one")
        packed = torch.from_numpy(records.positions[first : first + 1]).to(game.device)
        board = boards_from_state(game.unpack(packed))[0]
        check_board(board)
        played = _pgn_game(board, records.actions[first:end].tolist())
        ending, result = int(records.endings[number]), int(records.results[number])
        played.headers.update(headers or {})
        played.headers["Result"] = _NO_RESULT if ending in _CUT_SHORT and result == 0 else _RESULTS[result]
        played.headers["Termination"] = "unterminated" if ending in _CUT_SHORT else "normal"
        played.headers["Ending"] = ENDINGS[ending]
        texts.append(str(played))
    return texts


def _pgn_game(board: chess.Board, actions: Sequence[int]) -> chess.pgn.Game:
    played = chess.pgn.Game()
    if board.fen(en_passant="fen") != chess.STARTING_FEN:
        played.headers["SetUp"] = "1"
        played.headers["FEN"] = board.fen(en_passant="fen")
    node: chess.pgn.GameNode = played
    for action in actions:
        node = node.add_variation(move_from_action(action, board))
        board.push(node.move)
    return played


def games_from_pgn(text: str, max_bytes: int = MAX_BYTES, max_plies: int = MAX_PLIES) -> list[chess.pgn.Game]:
    """The games of a PGN text, main lines only.

    Raises NotationError for text without a game, unreadable or illegal moves, positions that cannot be, other kinds
    of chess, more bytes or plies than allowed, and more than MAX_GAMES games.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > max_bytes:
        raise NotationError(f"PGN of {size:,} bytes: expected at most {max_bytes:,} bytes")
    _check_words(text)
    stream, games = io.StringIO(text, newline=None), []
    while (parsed := _read_game(stream)) is not None:
        _check_game(parsed, max_plies)
        games.append(parsed)
        if len(games) > MAX_GAMES:
            raise NotationError(f"PGN of more than {MAX_GAMES:,} games: expected at most that many")
    if not games or any(map(_is_empty, games)):
        raise NotationError(f"no game in PGN {quote(text)}, or in a part of it: {_WANTED}")
    return games


def _check_words(text: str) -> None:
    """python-chess leaves out words that it does not know. One that looks like a move, such as e9, is no remark."""
    lines = (line for line in text.lstrip("\ufeff").splitlines() if not line.startswith(("[", "%")))
    unknown = chess.pgn.MOVETEXT_REGEX.sub(" ", _COMMENT.sub(" ", "\n".join(lines)))
    if word := _ALMOST_A_MOVE.search(unknown):
        raise NotationError(f"bad PGN: {quote(word[0])} is no move; {_WANTED}")


def _is_empty(parsed: chess.pgn.Game) -> bool:
    """No move and no header: what python-chess makes of any words."""
    return parsed.next() is None and parsed.headers == chess.pgn.Game().headers


def _read_game(stream: io.StringIO) -> chess.pgn.Game | None:
    try:
        return chess.pgn.read_game(stream, Visitor=_StrictBuilder)
    except ValueError as error:  # an annotation number of thousands of digits
        raise NotationError(f"bad PGN: {_brief(error)}; {_WANTED}") from error


class _StrictBuilder(chess.pgn.GameBuilder):
    """Collects errors without logging them, and leaves variations out."""

    def begin_variation(self) -> Any:
        return chess.pgn.SKIP

    def end_variation(self) -> None:
        pass

    def handle_error(self, error: Exception) -> None:
        self.game.errors.append(error)


def _check_game(parsed: chess.pgn.Game, max_plies: int) -> None:
    name = quote(" - ".join(parsed.headers.get(colour, "?") for colour in ("White", "Black")))
    if parsed.errors:
        raise NotationError(f"bad PGN, game {name}: {_brief(parsed.errors[0])}; {_WANTED}")
    check_board(parsed.board())
    if not all(parsed.mainline_moves()):
        raise NotationError(f"bad PGN, game {name}: a null move (0000); {_WANTED}")
    plies = parsed.end().ply() - parsed.ply()
    if plies > max_plies:
        raise NotationError(f"PGN game {name} of {plies:,} plies: expected at most {max_plies:,}")


def _brief(error: Exception) -> str:
    return str(error)[:200]


def records_from_pgn(text: str, game: Chess) -> GameRecords:
    """The games of a PGN text as records: policy targets are the moves played, values the results.

    Where the last move ends the game by the rules, that is its ending; else the Ending header, if it says truncated.
    A game without a result ("*") has no value targets. Games without moves are left out. Raises NotationError, for
    results against the rules too.
    """
    games = [parsed for parsed in games_from_pgn(text) if parsed.next() is not None]
    if not games:
        raise NotationError(f"no moves in PGN {quote(text)}: expected at least one")
    boards = [parsed.board() for parsed in games]
    actions = [_actions(parsed) for parsed in games]
    lengths = np.array([len(played) for played in actions], np.int32)
    state = state_from_boards(boards, game)
    # Counted from the end, so that the cap of self-play stops no game of people.
    state = replace(state, plies_played=-torch.from_numpy(lengths).to(game.device, torch.int64))
    packed = []
    for state in play_on(state, actions, game):
        packed.append(game.pack(state).cpu().numpy())
    outcomes = list(map(_outcome, games, state.ending.tolist(), state.rewards[:, 0].tolist()))
    endings, results, _ = zip(*outcomes)
    positions = [np.stack([rows[number] for rows in packed[:length]]) for number, length in enumerate(lengths)]
    values = [
        _values(board.turn, length, result if known else np.nan)
        for board, length, (_, result, known) in zip(boards, lengths, outcomes)
    ]
    return _one_hot_records(
        np.concatenate(positions),
        np.concatenate(actions),
        np.concatenate(values),
        lengths,
        np.array(endings, np.uint8),
        np.array(results, np.int8),
    )


def _values(white_first: bool, plies: int, result: float) -> np.ndarray:
    """float64 [plies]: White's `result` as the mover of each ply sees it."""
    blacks = np.arange(plies) % 2 == white_first
    return np.where(blacks, -result, result)


def _actions(parsed: chess.pgn.Game) -> list[int]:
    board, actions = parsed.board(), []
    for move in parsed.mainline_moves():
        actions.append(action_from_move(move, board))
        board.push(move)
    return actions


def _outcome(parsed: chess.pgn.Game, ending: int, white_reward: float) -> tuple[int, int, bool]:
    """Ending, result for White, and whether there is a result, from the rules and then from the headers."""
    written = parsed.headers.get("Result", _NO_RESULT)
    if ending in _CLAIMS and written in ("1-0", "0-1"):
        ending = UNFINISHED  # nobody claimed the draw, and somebody gave up
    if ending != UNFINISHED:
        result = int(white_reward)
        if written not in (_NO_RESULT, _RESULTS[result]):
            raise NotationError(
                f"PGN result {quote(written)} of a game that ended by {ENDINGS[ending]}: "
                f"expected {_RESULTS[result]!r} or {_NO_RESULT!r}"
            )
        return ending, result, True
    truncated = parsed.headers.get("Ending") == ENDINGS[TRUNCATED]
    return TRUNCATED if truncated else UNFINISHED, _RESULT_OF.get(written, 0), written in _RESULT_OF


def _one_hot_records(positions, actions, values, lengths, endings, results) -> GameRecords:
    """Records whose policy targets are the moves played."""
    policy_actions = np.zeros((len(actions), POLICY_WIDTH), np.uint16)
    policy_weights = np.zeros((len(actions), POLICY_WIDTH), np.float16)
    policy_actions[:, 0], policy_weights[:, 0] = actions, 1.0
    return GameRecords(
        positions=positions,
        actions=actions.astype(np.uint16),
        policy_actions=policy_actions,
        policy_weights=policy_weights,
        root_values=np.zeros(len(actions), np.float16),
        value_targets=values.astype(np.float16),
        game_lengths=lengths,
        endings=endings,
        results=results,
    )
