"""Chess as people write it, in FEN, UCI and SAN, to and from states and actions; python-chess reads
and writes.

This is where input is checked: anything that is not chess raises NotationError, which quotes it. An
action names its squares as the mover sees them, so Black's are flipped here (square ^ 56).
"""

import dataclasses
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest

import chess
import torch

from ...errors import NotationError
from ..base import where
from .bitboards import squares_with_room
from .boards import position_from_boards
from .moves import PLANES
from .rules import Chess
from .state import ChessState

MAX_COUNTER = 32_767  # of either FEN counter: a packed position keeps its ply in 16 bits
_UNDERPROMOTIONS = (None, chess.KNIGHT, chess.BISHOP, chess.ROOK)  # as moves.PLANES numbers them
# From and to, as the mover sees them, and the piece that an underpromotion makes -> action.
_ACTIONS = {
    (origin, origin + files + 8 * ranks, _UNDERPROMOTIONS[piece]): plane * 64 + origin
    for plane, (files, ranks, piece) in enumerate(PLANES)
    for origin in chess.scan_forward(squares_with_room(files, ranks) & chess.BB_ALL)
}
_MOVES = {action: move for move, action in _ACTIONS.items()}
_UCI = re.compile("[a-h][1-8][a-h][1-8][nbrq]?")


def board_from_fen(fen: str) -> chess.Board:
    """The position of `fen`. Raises NotationError when it cannot be read, or is not a possible
    position of chess.
    """
    try:
        board = chess.Board(fen)
    except ValueError as error:
        why = str(error).partition(": ")[0]  # what follows repeats the FEN
        raise NotationError(
            f"invalid FEN {fen!r:.120}: {why}; a valid one is {chess.STARTING_FEN!r}"
        ) from error
    check_board(board, fen)
    return board


def check_board(board: chess.Board, fen: str | None = None) -> None:
    """Raise NotationError, with the reason, for an impossible position or another kind of chess.

    fen: the text that gave the position, for the error to quote.
    """
    status = board.status()
    reasons = [str(flag.name).lower().replace("_", " ") for flag in chess.Status if flag & status]
    if board.uci_variant != "chess" or board.chess960:
        reasons.append(f"this is {'Chess960' if board.chess960 else board.uci_variant}")
    if board.promoted & board.kings:
        reasons.append("a king that was a pawn")
    if max(board.halfmove_clock, board.fullmove_number) > MAX_COUNTER:
        reasons.append(f"a counter above {MAX_COUNTER:,}")
    if reasons:
        raise NotationError(
            f"impossible position {fen or board.fen(en_passant='fen')!r:.120}: "
            f"{', '.join(reasons)}; expected one of ordinary chess"
        )


def state_from_boards(boards: Sequence[chess.Board], game: Chess) -> ChessState:
    """A state with one row per board, whose moves are played again as far as they matter to
    repetitions.

    The ply cap counts from the positions given. A board that was played on after a draw is an
    unfinished game. Raises NotationError for an impossible position and an illegal past.
    """
    starts, actions = zip(*map(_rewound, boards))
    state = game.from_position(position_from_boards(starts, game.device))
    lengths = torch.tensor([len(played) for played in actions], device=game.device)
    state.plies_played.copy_(-lengths)  # the cap counts from the last position on
    for played in zip_longest(*actions, fillvalue=0):
        action = torch.tensor(played, device=game.device)
        state = where(state.plies_played < 0, game.step(reopen(state), action), state)
    return state


def reopen(state: ChessState) -> ChessState:
    """The same positions as unfinished games, so that step plays on after a draw or the ply cap."""
    flags = state.flags.clone()
    flags[:, 1:] = False
    return dataclasses.replace(state, flags=flags)


def _rewound(board: chess.Board) -> tuple[chess.Board, list[int]]:
    """The position after the last capture or pawn move that `board` remembers, and the actions
    since.
    """
    start = board.copy()
    moves = []
    while start.move_stack and start.halfmove_clock > 0:
        moves.append(start.pop())
    check_board(start)
    current = start.copy(stack=False)
    actions = []
    for move in reversed(moves):
        actions.append(action_from_move(move, current))
        current.push(move)
    return start, actions


def action_from_move(move: chess.Move, board: chess.Board) -> int:
    """The action number of a legal move of the side to move on `board`. Raises NotationError when
    it is not legal.
    """
    if not isinstance(move, chess.Move) or not board.is_legal(move):
        raise NotationError(
            f"illegal move {str(move)!r:.120} in {board.fen()!r}: {_expected(board)}"
        )
    # python-chess also takes the king's move onto its rook for castling; the way back does not.
    move = board.parse_uci(move.uci())
    flip = 0 if board.turn else 56
    underpromotion = None if move.promotion == chess.QUEEN else move.promotion
    return _ACTIONS[move.from_square ^ flip, move.to_square ^ flip, underpromotion]


def move_from_action(action: int, board: chess.Board) -> chess.Move:
    """The move that `action` stands for on `board`. Raises NotationError when it is not legal
    there.
    """
    with suppress(KeyError, NotationError):
        origin, target, promotion = _MOVES[action]
        flip = 0 if board.turn else 56
        if promotion is None and target >= 56 and board.piece_type_at(origin ^ flip) == chess.PAWN:
            promotion = chess.QUEEN
        move = chess.Move(origin ^ flip, target ^ flip, promotion)
        if action_from_move(move, board) == action:
            return move
    raise NotationError(f"illegal action {action} in {board.fen()!r}: {_expected(board)}")


def parse_move(text: str, board: chess.Board, place: str = "") -> chess.Move:
    """A legal move of `board` from UCI ("e2e4", "E7E8Q") or SAN ("Nf3", "0-0", "a8=Q", "a8q"),
    spaces around it or not.

    place: what an error calls the position, instead of its FEN. Raises NotationError, which quotes
    `text`.
    """
    fault = "null"
    hint = ""
    try:
        if move := _read_move(text.strip(), board):
            return move
    except chess.AmbiguousMoveError:
        fault = "ambiguous"
        hint = "say which piece moves, as in Nbd2 or b1d2"
    except chess.IllegalMoveError:
        fault = "illegal"
    except ValueError:
        fault = "unreadable"
        hint = "expected UCI such as e2e4 or SAN such as Nf3"
    place = place or repr(board.fen())
    raise NotationError(f"{fault} move {text!r:.120} in {place}: {hint or _expected(board)}")


def _read_move(text: str, board: chess.Board) -> chess.Move:
    # B2b3 is a bishop's move: capitals are UCI only where they cannot be SAN.
    if _UCI.fullmatch(text) or (_UCI.fullmatch(text.lower()) and not chess.SAN_REGEX.match(text)):
        return board.parse_uci(text.lower())
    return board.parse_san(text)


def _expected(board: chess.Board) -> str:
    moves = [move.uci() for move in board.legal_moves]
    if not moves:
        return "no move is legal there, the game is over"
    if len(moves) <= 5:
        return f"expected {' or '.join(moves)}"
    promotions = [move for move in board.legal_moves if move.promotion]
    hint = f"; a promotion names its piece, as in {board.san(promotions[0])}" if promotions else ""
    return f"expected one of its {len(moves)} legal moves, such as {moves[0]}{hint}"
