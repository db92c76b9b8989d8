"""Chess as people write it, FEN, UCI and SAN, to and from states and actions; python-chess reads and writes."""

from __future__ import annotations

from typing import Sequence

import chess
import torch

from .errors import NotationError
from .games.base import concatenate
from .games.bitboards import DIRECTIONS, KNIGHT_JUMPS, signed
from .games.chess import Chess, ChessState, destinations
from .games.chess_moves import KNIGHT_PLANES, UNDERPROMOTION_PLANES

_PIECES = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)
_UNDERPROMOTIONS = (chess.KNIGHT, chess.BISHOP, chess.ROOK)
_UNSIGNED = (1 << 64) - 1
_DESTINATIONS = destinations().tolist()


def board_from_fen(fen: str) -> chess.Board:
    """A legal position. Raises NotationError, quoting `fen`, for what cannot be read or cannot be chess."""
    try:
        board = chess.Board(fen)
    except (ValueError, IndexError) as error:
        raise NotationError(f"invalid FEN {fen!r}: {error}; expected six fields like {chess.STARTING_FEN!r}") from error
    check_board(board)
    return board


def check_board(board: chess.Board) -> None:
    """Raises NotationError when the position cannot arise in chess: kings, pawns, checks, rights that do not fit."""
    status = board.status()
    if status != chess.STATUS_VALID:
        reasons = ", ".join(flag.name.lower().replace("_", " ") for flag in chess.Status if flag & status)
        raise NotationError(f"impossible position {board.fen()!r}: {reasons}")


def state_from_fens(fens: Sequence[str], game: Chess) -> ChessState:
    """One state a FEN, without a past. Raises NotationError, or for no FENs at all."""
    return state_from_boards([board_from_fen(fen) for fen in fens], game)


def state_from_boards(boards: Sequence[chess.Board], game: Chess) -> ChessState:
    """One state a board; its move stack is played again from the last capture or pawn move, so that repetitions
    count. Raises NotationError."""
    if not boards:
        raise NotationError("no positions: expected at least one")
    return concatenate([_replayed(board, game) for board in boards])


def _replayed(board: chess.Board, game: Chess) -> ChessState:
    check_board(board)
    past, moves = board.copy(), []
    while past.move_stack and past.halfmove_clock > 0:
        moves.append(past.pop())
    state = _without_past(past, game)
    for move in reversed(moves):
        action = action_from_move(move, past)
        state = game.step(state, torch.tensor([action], device=game.device))
        past.push(move)
    return state


def _without_past(board: chess.Board, game: Chess) -> ChessState:
    def seen(bits: int) -> int:
        return signed(bits if board.turn else chess.flip_vertical(bits))

    def column(value: int) -> torch.Tensor:
        return torch.tensor([value], dtype=torch.int64, device=game.device)
    sides = (board.turn, not board.turn)
    pieces = [seen(int(board.pieces(piece, colour))) for colour in sides for piece in _PIECES]
    ep_square = 0 if board.ep_square is None else seen(1 << board.ep_square)
    return game.from_position(
        torch.tensor([pieces], dtype=torch.int64, device=game.device), column(seen(board.clean_castling_rights())),
        column(ep_square), column(board.halfmove_clock), column(board.ply()), column(0 if board.turn else 1))


def boards_from_state(state: ChessState) -> list[chess.Board]:
    """The positions as python-chess boards, without their past."""
    columns = [field.cpu().tolist() for field in (state.pieces, state.castling_rights, state.ep_square,
                                                  state.halfmove_clock, state.ply, state.current_player)]
    return [_board(*row) for row in zip(*columns)]


def _board(pieces: list[int], castling_rights: int, ep_square: int, clock: int, ply: int, player: int) -> chess.Board:
    def seen(bits: int) -> int:
        bits &= _UNSIGNED
        return chess.flip_vertical(bits) if player else bits
    board = chess.Board(None)
    board.turn = player == 0
    for number, bits in enumerate(pieces):
        for square in chess.scan_forward(seen(bits)):
            board.set_piece_at(square, chess.Piece(number % 6 + 1, (number < 6) == board.turn))
    board.castling_rights = seen(castling_rights)
    board.ep_square = chess.msb(seen(ep_square)) if ep_square else None
    board.halfmove_clock = clock
    board.fullmove_number = ply // 2 + 1
    return board


def fens_from_state(state: ChessState) -> list[str]:
    return [board.fen() for board in boards_from_state(state)]


def action_from_move(move: chess.Move, board: chess.Board) -> int:
    """The action number of a legal move of the side to move on `board`. Raises NotationError when it is not legal."""
    if move not in board.legal_moves:
        raise NotationError(f"illegal move {move.uci()!r} in {board.fen()!r}: expected one of {_legal(board)}")
    flip = 0 if board.turn else 56
    origin, target = move.from_square ^ flip, move.to_square ^ flip
    files = chess.square_file(target) - chess.square_file(origin)
    ranks = chess.square_rank(target) - chess.square_rank(origin)
    return _plane(files, ranks, move.promotion) * 64 + origin


def _plane(files: int, ranks: int, promotion: int | None) -> int:
    if promotion in _UNDERPROMOTIONS:
        return UNDERPROMOTION_PLANES + 3 * _UNDERPROMOTIONS.index(promotion) + files + 1
    distance = max(abs(files), abs(ranks))
    if files and ranks and abs(files) != abs(ranks):
        return KNIGHT_PLANES + KNIGHT_JUMPS.index((files, ranks))
    return DIRECTIONS.index((files // distance, ranks // distance)) * 7 + distance - 1


def move_from_action(action: int, board: chess.Board) -> chess.Move:
    """The move that an action means on `board`. Raises NotationError when it is none, or not legal there."""
    if not 0 <= action < Chess.num_actions:
        raise NotationError(f"action {action}: expected 0 to {Chess.num_actions - 1}")
    plane, origin = divmod(action, 64)
    target = _DESTINATIONS[action]
    flip = 0 if board.turn else 56
    promotion = None
    if plane >= UNDERPROMOTION_PLANES:
        promotion = _UNDERPROMOTIONS[(plane - UNDERPROMOTION_PLANES) // 3]
    elif target >= 56 and board.piece_type_at(origin ^ flip) == chess.PAWN:
        promotion = chess.QUEEN
    move = chess.Move(origin ^ flip, target ^ flip, promotion)
    if move not in board.legal_moves:
        raise NotationError(f"action {action} ({move.uci()}) is not legal in {board.fen()!r}")
    return move


def parse_move(text: str, board: chess.Board) -> chess.Move:
    """A legal move from UCI ("e2e4") or SAN ("Nf3"). Raises NotationError quoting the text and the position."""
    try:
        move = chess.Move.from_uci(text.strip().lower())
    except ValueError:
        try:
            move = board.parse_san(text.strip())
        except ValueError as error:
            raise NotationError(f"cannot play {text!r} in {board.fen()!r}: {error}; expected one of "
                                f"{_legal(board)}") from error
    if move not in board.legal_moves:
        raise NotationError(f"illegal move {text!r} in {board.fen()!r}: expected one of {_legal(board)}")
    return move


def _legal(board: chess.Board) -> str:
    return " ".join(move.uci() for move in board.legal_moves) or "none (the game is over)"
